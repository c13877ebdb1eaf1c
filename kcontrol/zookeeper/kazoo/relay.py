"""A loopback port in front of a server, for one client whose connection can be cut and restored."""

import contextlib
import socket
import threading

PATIENCE_S = 10.0


class Relay:
    """Forwards bytes between clients and the server at the address `server`, until `cut` ends every connection.

    Clients connect to the address `hosts`. After `cut` new connections are refused until `mend`.
    """

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.hosts = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._links: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._is_cut = False
        self.has_refused = threading.Event()  # set when a connection was refused since the last cut
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def cut(self) -> None:
        """End every connection and refuse new connections until `mend`."""
        with self._lock:
            self._is_cut = True
            self.has_refused.clear()
            links, self._links = self._links, set()
        for link in links:
            _end(link)

    def mend(self) -> None:
        """Accept connections to the port again, after `cut` has ended all of them."""
        self._is_cut = False

    def close(self) -> None:
        """Refuse connections for ever and end all threads. A second call does nothing."""
        self.cut()
        _end(self._listener)
        for thread in self._threads:
            thread.join(PATIENCE_S)
        self._threads.clear()

    def _start(self, target: object, *arguments: socket.socket) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._server, PATIENCE_S)
            except OSError:
                _end(near)
                continue
            far.settimeout(None)
            with self._lock:
                refused = self._is_cut
                self._links |= set() if refused else {near, far}
            if refused:
                _end(near, far)
                self.has_refused.set()
                continue
            self._start(self._forward, near, far)
            self._start(self._forward, far, near)

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while part := source.recv(65_536):
                sink.sendall(part)
        _end(source, sink)


def _end(*links: socket.socket) -> None:
    for link in links:
        with contextlib.suppress(OSError):
            link.shutdown(socket.SHUT_RDWR)
        link.close()
