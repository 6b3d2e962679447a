"""Byte streams over TCP and TLS, blocking and in asyncio, each step with a deadline.

Deadlines are on ``time.monotonic()``'s clock. Whatever breaks is a TransportError.
"""

from __future__ import annotations

import asyncio
import selectors
import socket
import ssl
import time
from collections.abc import Sequence
from typing import Callable, Optional, TypeVar

from ._http import Origin
from .errors import TimedOut, TransportError

#: Bytes that one read asks for.
READ = 64 << 10
#: Seconds that the other side has to end a connection well.
FAREWELL = 1.0
#: Seconds after which a waiting thread notices that another one has closed the connection.
_CLOSED = 0.25

_T = TypeVar("_T")


def _left(deadline: float, what: str) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimedOut(f"timed out: {what}")
    return left


def tls_context() -> ssl.SSLContext:
    """TLS as it is right by default: certificates and names are checked."""
    return ssl.create_default_context()


class Connection:
    """A blocking connection. One thread reads it, and one writes."""

    def __init__(self, origin: Origin, deadline: float, context: Optional[ssl.SSLContext]) -> None:
        self.where = origin.authority
        try:
            raw = socket.create_connection((origin.host, origin.port), _left(deadline, f"connecting to {self.where}"))
        except OSError as e:
            raise _broken(self.where, e) from e
        try:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = (context or tls_context()).wrap_socket(raw, server_hostname=origin.host) if origin.tls else raw
            self._socket.setblocking(False)
        except OSError as e:
            raw.close()
            raise _broken(self.where, e) from e

    @classmethod
    def open(cls, origin: Origin, deadline: float, context: Optional[ssl.SSLContext]) -> Connection:
        return cls(origin, deadline, context)

    def send(self, data: bytes, deadline: float) -> None:
        """Sends all of data."""
        view = memoryview(data)
        while view:
            sent = self._try(lambda: self._socket.send(view), selectors.EVENT_WRITE, deadline, "sending to")
            view = view[sent:]

    def receive(self, deadline: float) -> bytes:
        """The next bytes; none: the other side has closed."""
        return self._try(lambda: self._socket.recv(READ), selectors.EVENT_READ, deadline, "waiting for")

    def received(self) -> Optional[bytes]:
        """What receive returns, or None where it would have to wait: what has come may be a
        part of a TLS record, which says nothing yet."""
        try:
            return self._socket.recv(READ)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None
        except OSError as e:
            raise _broken(self.where, e) from e

    def _try(self, act: Callable[[], _T], waits_for: int, deadline: float, what: str) -> _T:
        """Does what may have to wait. The waiting is done here: a timeout of the socket's
        own would be that of the thread that reads and of the one that writes."""
        while True:
            try:
                return act()
            except BlockingIOError:
                events = waits_for
            except ssl.SSLWantReadError:
                events = selectors.EVENT_READ
            except ssl.SSLWantWriteError:
                events = selectors.EVENT_WRITE
            except OSError as e:
                raise _broken(self.where, e) from e
            left = _left(deadline, f"{what} {self.where}")
            with selectors.DefaultSelector() as selector:
                try:
                    selector.register(self._socket, events)
                    selector.select(min(left, _CLOSED))
                except (OSError, ValueError):
                    pass  # it was closed: the next attempt says so

    def readable(self, deadline: float) -> bool:
        """Waits until something has come, or the deadline."""
        return bool(readable([self], deadline))

    @property
    def idle(self) -> bool:
        """Nothing has come, not even the end: it can be used again."""
        return not self.readable(0.0)

    def register(self, selector: selectors.BaseSelector) -> bool:
        """Has a selector wait for what comes; False: there is something already."""
        if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            return False
        try:
            selector.register(self._socket, selectors.EVENT_READ, self)
        except (OSError, ValueError):
            return False  # it was closed: the next read raises the error
        return True

    def close(self) -> None:
        """Closes it; a thread that waits for it gets an error."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it had ended
        self._socket.close()


def readable(connections: Sequence[Connection], deadline: float) -> list[Connection]:
    """Waits until something has come over one of them or more, or they are broken, and
    returns these; none: the deadline has passed."""
    with selectors.DefaultSelector() as selector:
        ready = [c for c in connections if not c.register(selector)]
        timeout = 0.0 if ready else max(0.0, deadline - time.monotonic())
        if len(ready) < len(connections):
            try:
                return ready + [key.data for key, _ in selector.select(timeout)]
            except OSError:  # one was closed meanwhile: the next read raises the error
                return list(connections)
    time.sleep(timeout)
    return ready


class AsyncConnection:
    """The same in asyncio."""

    def __init__(self, where: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.where = where
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, origin: Origin, deadline: float, context: Optional[ssl.SSLContext]) -> AsyncConnection:
        where = origin.authority
        tls = (context or tls_context()) if origin.tls else None
        try:
            opening = asyncio.open_connection(origin.host, origin.port, ssl=tls)
            reader, writer = await asyncio.wait_for(opening, _left(deadline, f"connecting to {where}"))
        except (OSError, asyncio.TimeoutError) as e:
            raise _broken(where, e) from e
        return cls(where, reader, writer)

    async def send(self, data: bytes, deadline: float) -> None:
        """Sends all of data."""
        try:
            self._writer.write(data)
            await asyncio.wait_for(self._writer.drain(), _left(deadline, f"sending to {self.where}"))
        except (OSError, asyncio.TimeoutError) as e:
            raise _broken(self.where, e) from e

    async def receive(self, deadline: float) -> bytes:
        """The next bytes; none: the other side has closed."""
        try:
            return await asyncio.wait_for(self._reader.read(READ), _left(deadline, f"waiting for {self.where}"))
        except (OSError, asyncio.TimeoutError) as e:
            raise _broken(self.where, e) from e

    @property
    def idle(self) -> bool:
        """The other side has not closed it: it can be used again."""
        return not self._reader.at_eof() and not self._writer.is_closing()

    async def close(self) -> None:
        """Closes it."""
        self._writer.close()
        try:
            await asyncio.wait_for(self._writer.wait_closed(), FAREWELL)
        except (OSError, asyncio.TimeoutError):
            self._writer.transport.abort()  # it had ended, or does not answer


def _broken(where: str, e: Exception) -> TransportError:
    if isinstance(e, (socket.timeout, asyncio.TimeoutError, TimeoutError)):
        return TimedOut(f"{where}: timed out")
    return TransportError(f"{where}: {e}")
