"""Market data as it changes, over a WebSocket or as server-sent events.

A stream connects, reconnects and resumes by itself. What it goes through meanwhile is
among its events: see :class:`~blockdesk.feed.Interruption`.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections import deque
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Optional, Protocol
from urllib.parse import urlencode

from . import _websocket as ws
from ._decode import loads
from ._http import Origin, Response, ResponseReader, request
from ._net import AsyncConnection, Connection
from .book import OrderBook
from .errors import ApiError, BlockdeskError, ConnectionClosed, LimitExceeded, ProtocolError, TransportError, api_error
from .feed import Connected, Feed, Interruption, StreamEvent

WEBSOCKET_PATH = "/ws/rfq"
DEFAULT_CHANNELS = ("ticker", "l2", "trades")

#: Seconds without a byte after which a connection counts as broken: the service sends
#: a heartbeat every second.
SILENCE = 10.0
#: Seconds of the first wait before a reconnect, and of the longest.
FIRST_WAIT, LONGEST_WAIT = 0.25, 30.0
#: Largest body of a refusal that is read.
MAX_REFUSAL = 64 << 10
#: Close codes that say that this side is at fault: coming back would end alike.
_OUR_FAULT = frozenset([1002, 1003, 1007, 1009, 1010, 4009, 4029])


class _Link(Protocol):
    """One connection without the network: bytes in, events out, and bytes to send.

    receive puts what it finds behind the events that there are, also what it finds
    before it raises.
    """

    def outgoing(self) -> bytes: ...
    def receive(self, data: bytes, events: deque[StreamEvent]) -> None: ...
    def farewell(self) -> bytes: ...


class _Upgrade:
    """Reads the answer that opens a link; what is no success is raised."""

    def __init__(self, success: int) -> None:
        self._reader = ResponseReader()
        self._success = success

    def receive(self, data: bytes) -> Optional[Response]:
        """The head of a success, once it is there."""
        self._reader.feed(data) if data else self._reader.eof()
        head = self._reader.head
        if head is None or head.status == self._success:
            return head
        if self._reader.pending > MAX_REFUSAL:
            raise LimitExceeded(f"a refusal of more than {MAX_REFUSAL} bytes")
        if not self._reader.done:
            return None
        try:
            body: Any = loads(self._reader.take())
        except ProtocolError:
            body = None
        after = head.headers.get("retry-after", "")
        raise api_error(head.status, body, head.headers.get("x-request-id", ""), float(after) if after.isdigit() else None)

    @property
    def reader(self) -> ResponseReader:
        return self._reader


class WebSocketLink:
    """A connection to ``/ws/rfq``."""

    def __init__(self, origin: Origin, feed: Feed) -> None:
        self._handshake = ws.Handshake(origin, WEBSOCKET_PATH)
        self._upgrade: Optional[_Upgrade] = _Upgrade(101)
        self._frames: Optional[ws.Reader] = None
        self._feed = feed
        self._out = bytearray(self._handshake.request)

    def outgoing(self) -> bytes:
        out = bytes(self._out)
        self._out.clear()
        return out

    def receive(self, data: bytes, events: deque[StreamEvent]) -> None:
        if self._upgrade is not None:
            head = self._upgrade.receive(data)
            if head is None:
                return
            self._frames = self._handshake.accept(head)
            data, self._upgrade = self._upgrade.reader.rest, None
            self._out += ws.frame(ws.TEXT, self._feed.subscribe().encode("utf-8"))
        elif not data:
            raise ConnectionClosed(1006, "the connection broke")
        assert self._frames is not None
        for e in self._frames.feed(data):
            if isinstance(e, ws.Message):
                found, answers = self._feed.take(e.text)
                events.extend(found)
                for answer in answers:
                    self._out += ws.frame(ws.TEXT, answer.encode("utf-8"))
            elif isinstance(e, ws.Ping):
                self._out += ws.frame(ws.PONG, e.payload)
            elif isinstance(e, ws.Close):
                raise ConnectionClosed(e.code, e.reason)

    def farewell(self) -> bytes:
        return ws.close_frame(1000)


class EventLines:
    """Server-sent events out of their bytes: (id, data) of each that has data."""

    def __init__(self, max_event: int = ws.MAX_MESSAGE) -> None:
        self._max = max_event
        self._buffer = bytearray()
        self._data: list[str] = []
        self._size = 0
        self._id = ""

    def feed(self, data: bytes) -> list[tuple[str, str]]:
        self._buffer += data
        events: list[tuple[str, str]] = []
        while True:
            end = self._buffer.find(b"\n")
            if max(end, 0) + self._size > self._max or end < 0 and len(self._buffer) + self._size > self._max:
                raise LimitExceeded(f"an event of more than {self._max} bytes")
            if end < 0:
                return events
            try:
                line = bytes(self._buffer[:end]).rstrip(b"\r").decode("utf-8")
            except UnicodeDecodeError:
                raise ProtocolError("an event that is not UTF-8") from None
            del self._buffer[: end + 1]
            if not line and self._data:
                events.append((self._id, "\n".join(self._data)))
                self._data, self._size = [], 0
            self._field(line)

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "data":
            self._data.append(value)
            self._size += len(value) + 1
        elif name == "id" and "\0" not in value:
            self._id = value


class EventStreamLink:
    """A connection to ``/api/v1/market/stream``."""

    def __init__(self, origin: Origin, feed: Feed, last_id: str) -> None:
        query = {"symbols": ",".join(feed.symbols), "channels": ",".join(feed.channels)}
        if "l2" in feed.channels:
            query["depth"] = str(feed.depth)
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last_id} if last_id else {})}
        self._out = request("GET", origin, "/api/v1/market/stream?" + urlencode(query, safe="/,"), headers)
        self._upgrade = _Upgrade(200)
        self._events = EventLines()
        self._feed = feed
        self.last_id = last_id

    def outgoing(self) -> bytes:
        out, self._out = self._out, b""
        return out

    def receive(self, data: bytes, events: deque[StreamEvent]) -> None:
        if self._upgrade.receive(data) is None:
            return
        for last_id, text in self._events.feed(self._upgrade.reader.take()):
            self.last_id = last_id
            found, answers = self._feed.take(text)
            events.extend(found)
            if answers:  # nothing can be asked for over this: begin anew
                self._feed.forget()
                self.last_id = ""
                raise TransportError("a gap in the events")
        if self._upgrade.reader.done:
            raise TransportError("the events have ended")

    def farewell(self) -> bytes:
        return b""


class _Core:
    """What the blocking and the asyncio stream have in common."""

    def __init__(self, origin: Origin, symbols: Sequence[str], channels: Sequence[str], depth: int, via: str) -> None:
        if via not in ("websocket", "sse"):
            raise ValueError("via: websocket or sse")
        self._origin, self._via = origin, via
        self._feed = Feed(symbols, channels, depth)
        self._events: deque[StreamEvent] = deque()
        self._failures = 0
        self._last_id = ""
        self._link: Optional[_Link] = None
        self._closed = False
        self._fatal: Optional[BlockdeskError] = None  # to be raised behind the events

    @property
    def books(self) -> dict[str, OrderBook]:
        """The live order books by symbol."""
        return self._feed.books

    def _new_link(self) -> _Link:
        if self._via == "websocket":
            self._link = WebSocketLink(self._origin, self._feed)
        else:
            self._link = EventStreamLink(self._origin, self._feed, self._last_id)
        return self._link

    def _take(self, link: _Link, data: bytes) -> None:
        """Takes in what a connection has brought."""
        link.receive(data, self._events)
        if any(isinstance(e, Connected) for e in self._events):
            self._failures = 0

    def _wait(self, e: BlockdeskError) -> float:
        """Seconds until the next connection, where another one would mend it."""
        if isinstance(self._link, EventStreamLink):
            self._last_id = self._link.last_id
        self._link = None
        after = e.retry_after if isinstance(e, ApiError) else None
        passes = isinstance(e, TransportError) or isinstance(e, ApiError) and e.status in (429, 503)
        if not passes or isinstance(e, ConnectionClosed) and e.code in _OUR_FAULT:
            self._fatal = e
            return 0.0
        self._events.append(Interruption(None, str(e)))
        self._failures += 1
        wait: float = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(self._failures - 1, 10)) * random.uniform(0.75, 1.25)
        return max(wait, after or 0.0)


class Stream(_Core):
    """A blocking stream: ``for event in client.stream(["SLUSD/USDC"]): ...``.

    It belongs to one thread; ``close`` may come from another.
    """

    def __init__(
        self, origin: Origin, symbols: Sequence[str], channels: Sequence[str], depth: int, *, via: str = "websocket",
        timeout: float = 10.0, context: Optional[ssl.SSLContext] = None,
    ) -> None:  # fmt: skip
        super().__init__(origin, symbols, channels, depth, via)
        self._timeout, self._context = timeout, context
        self._connection: Optional[Connection] = None
        self._not_before = 0.0
        self._heard = 0.0

    def __iter__(self) -> Iterator[StreamEvent]:
        return self

    def __next__(self) -> StreamEvent:
        event = self.get()
        if event is None:
            raise StopIteration
        return event

    def get(self, timeout: Optional[float] = None) -> Optional[StreamEvent]:
        """The next event, at once or within so many seconds; a connect may take the
        client's timeout beyond them. None: there is none yet, or the stream was closed."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._events and not self._closed:
            if self._fatal:
                raise self._fatal
            if deadline is not None and time.monotonic() >= deadline:
                return None
            try:
                self._step(deadline)
            except BlockdeskError as e:
                if self._closed:
                    break
                self._disconnect()
                self._not_before = time.monotonic() + self._wait(e)
        return self._events.popleft() if self._events else None

    def _step(self, deadline: Optional[float]) -> None:
        """Connects, or reads what comes next."""
        now = time.monotonic()
        if self._connection is None:
            if now < self._not_before:
                end = self._not_before if deadline is None else min(deadline, self._not_before)
                time.sleep(max(0.0, end - now))
                return
            self._connection = Connection(self._origin, now + self._timeout, self._context)
            link = self._new_link()
            self._heard = now
        else:
            assert self._link is not None
            link = self._link
        self._flush(link)
        silent = self._heard + SILENCE
        if not self._connection.readable(silent if deadline is None else min(deadline, silent)):
            if time.monotonic() >= silent:
                raise TransportError(f"nothing was heard for {SILENCE:g} s")
            return
        data = self._connection.receive(silent)
        self._heard = time.monotonic()
        self._take(link, data)
        self._flush(link)

    def _flush(self, link: _Link) -> None:
        out = link.outgoing()
        if out and self._connection is not None:
            self._connection.send(out, time.monotonic() + self._timeout)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Ends the stream: who iterates over it comes to its end."""
        self._closed = True
        if self._connection is not None and self._link is not None:
            try:
                self._connection.send(self._link.farewell(), time.monotonic() + 1.0)
            except TransportError:
                pass  # it has ended already
        self._disconnect()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], e: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()


class AsyncStream(_Core):
    """A stream in asyncio: ``async for event in client.stream(["SLUSD/USDC"]): ...``.

    It belongs to one task.
    """

    def __init__(
        self, origin: Origin, symbols: Sequence[str], channels: Sequence[str], depth: int, *, via: str = "websocket",
        timeout: float = 10.0, context: Optional[ssl.SSLContext] = None,
    ) -> None:  # fmt: skip
        super().__init__(origin, symbols, channels, depth, via)
        self._timeout, self._context = timeout, context
        self._connection: Optional[AsyncConnection] = None
        self._delay = 0.0

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> StreamEvent:
        while not self._events:
            if self._closed:
                raise StopAsyncIteration
            if self._fatal:
                raise self._fatal
            try:
                await self._step()
            except BlockdeskError as e:
                await self._disconnect()
                if self._closed:
                    raise StopAsyncIteration from None
                self._delay = self._wait(e)
        return self._events.popleft()

    async def _step(self) -> None:
        if self._connection is None:
            delay, self._delay = self._delay, 0.0
            await asyncio.sleep(delay)
            self._connection = await AsyncConnection.open(self._origin, time.monotonic() + self._timeout, self._context)
            link = self._new_link()
        else:
            assert self._link is not None
            link = self._link
        await self._flush(link)
        self._take(link, await self._connection.receive(time.monotonic() + SILENCE))
        await self._flush(link)

    async def _flush(self, link: _Link) -> None:
        out = link.outgoing()
        if out and self._connection is not None:
            await self._connection.send(out, time.monotonic() + self._timeout)

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def close(self) -> None:
        """Ends the stream: who iterates over it comes to its end."""
        self._closed = True
        if self._connection is not None and self._link is not None:
            try:
                await self._connection.send(self._link.farewell(), time.monotonic() + 1.0)
            except TransportError:
                pass  # it has ended already
        await self._disconnect()

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], e: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.close()
