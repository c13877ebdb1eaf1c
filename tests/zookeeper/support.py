"""Short words for what the tests do to a ZooKeeper, and a wire that can be cut."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from kcontrol.core.effects import Op, Stat, Znode
from kcontrol.zookeeper.port import Client, ConnectionLoss, WriteResult

T = TypeVar("T")


class Clock:
    """A virtual clock that goes on by one millisecond whenever it is read."""

    def __init__(self) -> None:
        self.now_ms = 1_000

    def __call__(self) -> int:
        self.now_ms += 1
        return self.now_ms


def transact(client: Client, *ops: Op) -> WriteResult:
    return client.write([ops])[0]


def create(client: Client, path: str, data: bytes = b"", **flags: bool) -> WriteResult:
    return transact(client, Op("create", path, data, **flags))


def put(client: Client, path: str, data: bytes = b"", version: int = -1) -> WriteResult:
    return transact(client, Op("set", path, data, version))


def delete(client: Client, path: str, version: int = -1) -> WriteResult:
    return transact(client, Op("delete", path, expected_version=version))


def stat(client: Client, path: str) -> Stat:
    found = client.exists([path], watch=False)[0]
    assert found is not None
    return found


def node(client: Client, path: str) -> Znode:
    found = client.read([path], watch=False)[0]
    assert found is not None
    return found


def events(zookeeper: Any, client: Client) -> list[tuple[str, str]]:
    """The (type, path) of every event that has reached the client once all is settled."""
    zookeeper.settle()
    return [(event.type, event.path) for event in client.events()]


@contextlib.contextmanager
def refused_port() -> Iterator[int]:
    """A loopback port that refuses connections; as long as it is held, no server of another test gets it."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def patiently(call: Callable[[], T]) -> T:
    """Call again while the connection is lost, as users of a client do; the client itself waits for the next connection."""
    for _ in range(20):
        with contextlib.suppress(ConnectionLoss):
            return call()
    raise AssertionError("The connection is lost again and again.")


class Trickling:
    """A loopback server that answers its connections byte by byte, with a pause behind every byte.

    Args:
        answers: what the server sends on its first, second... connection, first as a whole and then byte by byte; on later
            connections it sends the last of these answers.
    """

    PAUSE_S = 0.05

    def __init__(self, *answers: tuple[bytes, bytes]) -> None:
        self._answers = answers
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.hosts = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.broken_off = threading.Event()  # once a client has ended its connection before the end of an answer
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        """End every thread, once what is being answered has been answered or broken off."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()

    def _accept(self) -> None:
        for number in itertools.count():
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            answer = self._answers[min(number, len(self._answers) - 1)]
            self._threads.append(threading.Thread(target=self._send, args=(link, *answer), daemon=True))
            self._threads[-1].start()

    def _send(self, link: socket.socket, at_once: bytes, trickled: bytes) -> None:
        with link:
            link.recv(4096)
            link.sendall(at_once)
            try:
                for byte in trickled:
                    link.sendall(bytes([byte]))
                    time.sleep(self.PAUSE_S)  # the slowness is what the client is tried with
            except OSError:
                self.broken_off.set()


class Wire:
    """A loopback port in front of a server, whose connections can be cut at a chosen moment."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._links: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._cut_on: str | None = None
        self._answers_left = 0
        self._is_down = False
        self._start(self._accept)

    @property
    def hosts(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def threads(self) -> set[threading.Thread]:
        return set(self._threads)

    def cut(self) -> None:
        """Cut every connection now; new ones are accepted."""
        links, self._links = self._links, []
        self._close(*links)

    def cut_before_request(self) -> None:
        """Cut a connection instead of passing its next request on."""
        self._cut_on = "request"

    def cut_before_answer(self, after: int = 0) -> None:
        """Cut a connection instead of passing on the answer that comes `after` so many others."""
        self._answers_left = after
        self._cut_on = "answer"

    def down(self) -> None:
        """Cut, and refuse new connections until `up`."""
        self._is_down = True
        self.cut()

    def up(self) -> None:
        self._is_down = False

    def close(self) -> None:
        """Cut everything and end every thread."""
        self.down()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()

    def _start(self, target: Any, *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self._is_down:
                near.close()
                continue
            far = socket.create_connection(("127.0.0.1", self._target))
            self._links += [near, far]
            self._start(self._pass_on, near, far, "request")
            self._start(self._pass_on, far, near, "answer")

    def _pass_on(self, source: socket.socket, sink: socket.socket, kind: str) -> None:
        with contextlib.suppress(OSError, ValueError), source.makefile("rb") as stream:
            while header := stream.read(4):
                frame = header + stream.read(int.from_bytes(header, "big"))
                if self._is_cut_here(kind):
                    break
                sink.sendall(frame)
        self._close(source, sink)

    def _close(self, *links: socket.socket) -> None:
        for link in links:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
            link.close()

    def _is_cut_here(self, kind: str) -> bool:
        if self._cut_on != kind:
            return False
        if kind == "answer" and self._answers_left:
            self._answers_left -= 1
            return False
        self._cut_on = None
        return True
