"""Additions to kazoo's wire protocol: replies that keep their zxid, SetWatches, and the takeover of a session to close it."""

import socket
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kazoo.handlers.threading import AsyncResult, SequentialThreadingHandler
from kazoo.protocol.serialization import Close, Connect, ReplyHeader, int_struct, long_struct, write_string

from kcontrol.core.effects import Stat

LARGEST_HANDSHAKE = 1_024  # bytes; no ZooKeeper sends a longer handshake


class Reply(AsyncResult):  # type: ignore[misc] # kazoo has no types
    """The response to one request, with the zxid of its header: kazoo stores the zxid just before `set`, on the same thread.

    Args:
        handler: the object that runs kazoo's threads.
        kazoo: the client that sends the request.
        on_response: called on kazoo's connection thread with the response, before any later event or response.
    """

    def __init__(self, handler: SequentialThreadingHandler, kazoo: Any, on_response: Callable[[Any], None] | None = None) -> None:
        super().__init__(handler)
        self._kazoo = kazoo
        self._on_response = on_response
        self.zxid = 0

    def set(self, value: Any = None) -> None:
        """Store the response and wake the threads that wait for it."""
        self.zxid = self._kazoo.last_zxid
        if self._on_response is not None:
            self._on_response(value)
        super().set(value)


class SetWatches:
    """The request by which Java's client sets its watches again; the server sends notifications of changes since `zxid` at once.

    Args:
        zxid: the last zxid that the client has seen.
        data_watches: paths with a data watch that was set on a znode.
        exist_watches: paths with a data watch that was set without a znode.
        child_watches: paths with a child watch.
    """

    type = 101

    def __init__(
        self, zxid: int, data_watches: Iterable[str], exist_watches: Iterable[str], child_watches: Iterable[str]
    ) -> None:
        self._zxid = zxid
        self._paths = [sorted(data_watches), sorted(exist_watches), sorted(child_watches)]

    def serialize(self) -> bytes:
        """Return the body of the SetWatches request in the bytes of ZooKeeper's protocol."""
        body: bytes = long_struct.pack(self._zxid)
        for paths in self._paths:
            body += int_struct.pack(len(paths)) + b"".join(write_string(path) for path in paths)
        return body

    def deserialize(self, _body: bytes, _offset: int) -> bool:
        """Return True, which kazoo takes as the response: the reply has no body, so both parameters are ignored."""
        return True


def close_session(
    hosts: Sequence[tuple[str, int]], patience_s: float, session_id: int = 0, password: bytes = bytes(16)
) -> int | None:
    """End the session `session_id`: open it, with its password, on a new connection and close it.

    With the id 0 a new session is opened and closed, to test whether a ZooKeeper responds.

    Returns:
        The zxid of the session's end, or None if the server does not know the session.

    Raises:
        OSError: no server in `hosts` can be reached, or none responds in `patience_s`.
        ValueError: the server is not a ZooKeeper.
    """
    connect = Connect(0, 0, 18_000, session_id, password, False).serialize()
    close = int_struct.pack(1) + int_struct.pack(Close.type)
    problem = OSError("no address")
    for address in hosts:
        try:
            deadline_s = time.monotonic() + patience_s
            with socket.create_connection(address, timeout=patience_s) as link:
                link.sendall(_framed(connect) + _framed(close))
                session, _ = Connect.deserialize(_read_frame(link, deadline_s), 0)
                if session.time_out <= 0:
                    return None
                header, _ = ReplyHeader.deserialize(_read_frame(link, deadline_s), 0)
                return int(header.zxid)
        except OSError as error:
            problem = error
        except struct.error:
            raise ValueError("a response that is too short") from None
    raise problem


def to_stat(stat: Any) -> Stat:
    """Return kazoo's stat as `kcontrol.core.effects.Stat`."""
    return Stat(
        stat.czxid, stat.ctime, stat.mzxid, stat.mtime, stat.pzxid, stat.cversion, stat.version, stat.aversion,
        stat.ephemeralOwner, stat.dataLength, stat.numChildren,
    )  # fmt: skip


def error_name(error: Exception) -> str:
    """Return ZooKeeper's name of the error that kazoo has raised as `error`, such as "NoNode" for NoNodeError."""
    name = type(error).__name__.removesuffix("Error")
    return "InvalidAcl" if name == "InvalidACL" else name


def _framed(body: bytes) -> bytes:
    return bytes(int_struct.pack(len(body))) + body


def _read_frame(link: socket.socket, deadline_s: float) -> bytes:
    length = int_struct.unpack(_read_exactly(link, 4, deadline_s))[0]
    if not 0 < length <= LARGEST_HANDSHAKE:
        raise ValueError(f"a response of {length} bytes")
    return _read_exactly(link, length, deadline_s)


def _read_exactly(link: socket.socket, length: int, deadline_s: float) -> bytes:
    body = b""
    while len(body) < length:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        link.settimeout(left_s)
        part = link.recv(length - len(body))
        if not part:
            raise ConnectionResetError("the connection was closed")
        body += part
    return body
