"""A loopback port in front of a server, for one client whose line can be cut and mended."""

from __future__ import annotations

import contextlib
import socket
import threading

PATIENCE_S = 10.0


class Relay:
    """Passes bytes on between whoever connects to `hosts` and the server; `cut` ends every connection and refuses new ones."""

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.hosts = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._links: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._is_cut = False
        self.turned_away = threading.Event()  # whether somebody has tried in vain since the last cut
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def cut(self) -> None:
        """End every connection; whoever tries again is turned away until `mend`."""
        with self._lock:
            self._is_cut = True
            self.turned_away.clear()
            links, self._links = self._links, set()
        for link in links:
            _end(link)

    def mend(self) -> None:
        """Let connections through again."""
        self._is_cut = False

    def close(self) -> None:
        """Cut everything for good; no thread is left. A second call does nothing."""
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
                turned_away = self._is_cut
                self._links |= set() if turned_away else {near, far}
            if turned_away:
                _end(near, far)
                self.turned_away.set()
                continue
            self._start(self._pass_on, near, far)
            self._start(self._pass_on, far, near)

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while part := source.recv(65_536):
                sink.sendall(part)
        _end(source, sink)


def _end(*links: socket.socket) -> None:
    for link in links:
        with contextlib.suppress(OSError):
            link.shutdown(socket.SHUT_RDWR)
        link.close()
