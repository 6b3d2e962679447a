"""Market data as it changes, over a WebSocket or as server-sent events.

A stream connects, reconnects and resumes by itself. What it goes through meanwhile is
among its events: see :class:`~blockdesk.feed.Interruption`. Where the symbols are split
over groups of nodes it has a connection to each group that serves some of them.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Callable, Generic, Optional, TypeVar, Union

from ._group import LEADER_CHANGED, Group
from ._http import Origin
from ._link import EventStreamLink, Link, WebSocketLink
from ._net import AsyncConnection, Connection, readable
from .book import OrderBook
from .errors import ApiError, BlockdeskError, ConnectionClosed, TransportError
from .feed import OTHER_GROUP, Feed, Interruption, StreamEvent, SubscriptionRefused

DEFAULT_CHANNELS = ("ticker", "l2", "trades")

#: Other groups that one stream goes to for their symbols.
MAX_OTHER_GROUPS = 8
#: Seconds without a byte after which a connection counts as broken: the service sends
#: a heartbeat every second.
SILENCE = 10.0
#: Seconds of the first wait before a reconnect, and of the longest.
FIRST_WAIT, LONGEST_WAIT = 0.25, 30.0
#: Longest wait that the service may ask for.
LONGEST_ASKED = 300.0
#: Seconds between two looks at a connection that is being made beside others.
_LOOK = 0.02
#: The close code of a node that restarts, or does not lead.
_RESTART = 1012
#: Close codes that say that this side is at fault: coming back would end alike.
_OUR_FAULT = frozenset([1002, 1003, 1007, 1009, 1010, 4009, 4029])


class _Line:
    """One connection of a stream and those that take its place: what it carries, the
    nodes that it may go to, and its failures."""

    def __init__(self, feed: Feed, via: str, origin: Origin, nodes: Group, sent: bool = False) -> None:
        self.feed, self.via, self.origin, self.nodes = feed, via, origin, nodes
        #: Another group has sent it here: nobody sends it on.
        self.sent = sent
        #: When the next connection may be made, on ``time.monotonic()``'s clock.
        self.not_before = 0.0
        self.link: Optional[Link] = None
        self._failures = 0
        self._last_id = ""

    def begin(self) -> None:
        """A connection stands: it is to begin, or to go on."""
        if self.via == "websocket":
            self.link = WebSocketLink(self.origin, self.feed)
        else:
            self.link = EventStreamLink(self.origin, self.feed, self._last_id)
        self.feed.connected()

    def take(self, data: bytes, events: deque[StreamEvent]) -> None:
        """Takes in what a connection has brought."""
        assert self.link is not None
        self.link.receive(data, events)
        if self.feed.sound:
            self._failures = 0

    def outgoing(self) -> bytes:
        """What is to be sent now."""
        return self.link.outgoing() if self.link is not None else b""

    def failed(self, e: BlockdeskError) -> None:
        """Chooses where and when to connect again; raises what that would not mend."""
        if isinstance(self.link, EventStreamLink):
            self._last_id = self.link.last_id
        self.link = None
        after = e.retry_after if isinstance(e, ApiError) else None
        passes = isinstance(e, TransportError) or isinstance(e, ApiError) and e.status in (307, 429, 503)
        if not passes or isinstance(e, ConnectionClosed) and e.code in _OUR_FAULT:
            raise e
        self.origin = self._next(e)
        self._failures += 1
        wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(self._failures - 1, 10)) * random.uniform(0.75, 1.25)
        self.not_before = time.monotonic() + max(wait, min(after or 0.0, LONGEST_ASKED))

    def _next(self, e: BlockdeskError) -> Origin:
        """The node to go on at: the leader that the last one has named, else another."""
        leader = e.leader if isinstance(e, ApiError) else None
        if isinstance(e, ConnectionClosed) and e.code == _RESTART and e.reason.startswith(f"{LEADER_CHANGED}: "):
            leader = e.reason[len(LEADER_CHANGED) + 2 :]
        if leader and (moved := self.nodes.moved(leader, self.origin)):
            return moved[0]
        return self.nodes.after(self.origin)

    def place(self, url: str) -> Optional[Origin]:
        """The origin of another group from a received address; None: it must not be
        followed."""
        moved = None if self.sent else self.nodes.moved(url, self.origin)
        return moved[0] if moved else None


_L = TypeVar("_L", bound=_Line)


class _Core(Generic[_L]):
    """What the blocking and the asyncio stream have in common."""

    def __init__(
        self, line: type[_L], origin: Origin, symbols: Sequence[str], channels: Sequence[str], depth: int, via: str,
        nodes: Sequence[Origin], other_groups: Sequence[Sequence[Origin]],
    ) -> None:  # fmt: skip
        if via not in ("websocket", "sse"):
            raise ValueError("via: websocket or sse")
        feed = Feed(symbols, channels, depth)
        self._line, self._via, self._others = line, via, other_groups
        self._named = [origin, *nodes, *(node for group in other_groups for node in group)]
        self._books = dict(feed.books)
        self._lines = [line(feed, via, origin, Group([origin, *nodes], self._named))]
        self._sent = 0  # lines that were made for other groups
        self._events: deque[StreamEvent] = deque()
        self._closed = False
        self._fatal: Optional[BlockdeskError] = None  # to be raised behind the events

    @property
    def books(self) -> dict[str, OrderBook]:
        """The live order books by symbol."""
        return self._books

    def _take(self, line: _L, data: bytes) -> None:
        """Takes in what a line has brought, which may be where other symbols are."""
        line.take(data, self._events)
        if line.feed.elsewhere:
            self._spread(line, line.feed.elsewhere)

    def _spread(self, line: _L, elsewhere: dict[str, str]) -> None:
        """Gives symbols that other groups serve, by symbol, lines of their own."""
        places: dict[str, list[str]] = {}
        for symbol, url in elsewhere.items():
            places.setdefault(url, []).append(symbol)
        for url, symbols in places.items():
            refused = f"{', '.join(symbols)}: {OTHER_GROUP} {url}"
            origin = line.place(url)
            if origin is None:
                raise SubscriptionRefused(f"{refused}, where this stream may not go: name the host in other_groups")
            if self._sent == MAX_OTHER_GROUPS:
                raise SubscriptionRefused(f"{refused}: a stream goes to {MAX_OTHER_GROUPS} other groups at most")
            self._sent += 1
            its = next((group for group in self._others if any(node.host == origin.host for node in group)), ())
            nodes = Group(list(dict.fromkeys([origin, *its])), self._named)
            self._lines.append(self._line(line.feed.split(symbols), self._via, origin, nodes, sent=True))
        if not line.feed.symbols:
            self._lines.remove(line)

    def _failed(self, line: _L, e: BlockdeskError) -> None:
        """What becomes of a line whose connection has ended by this."""
        try:
            if isinstance(e, ApiError) and e.status == 307 and e.code == OTHER_GROUP and e.location:
                self._spread(line, dict.fromkeys(line.feed.symbols, e.location))
                return
            line.failed(e)
            symbols: Sequence[Optional[str]] = line.feed.symbols if len(self._lines) > 1 else [None]
            self._events.extend(Interruption(symbol, str(e)) for symbol in symbols)
        except BlockdeskError as fatal:
            self._fatal = fatal


class _Dial(threading.Thread):
    """Opens a connection. In a thread of its own it keeps no other line waiting, however
    long nobody answers."""

    def __init__(self, origin: Origin, deadline: float, context: Optional[ssl.SSLContext]) -> None:
        super().__init__(name=f"blockdesk connects to {origin.authority}", daemon=True)
        self._to = (origin, deadline, context)
        self._lock = threading.Lock()
        self._made: Union[None, Connection, Exception] = None
        self._abandoned = False

    def run(self) -> None:
        made: Union[Connection, Exception]
        try:
            made = Connection(*self._to)
        except Exception as e:  # it is raised where the connection is wanted
            made = e
        with self._lock:
            self._made = made
            abandoned = self._abandoned
        if abandoned and isinstance(made, Connection):
            made.close()

    def connection(self) -> Optional[Connection]:
        """The connection; None: it is not there yet."""
        with self._lock:
            if isinstance(self._made, Exception):
                raise self._made
            return self._made

    def abandon(self) -> None:
        """Closes the connection, or whatever comes of it."""
        with self._lock:
            self._abandoned = True
            made = self._made
        if isinstance(made, Connection):
            made.close()


class _BlockingLine(_Line):
    """A line of a blocking stream. Another thread may hang up at any time."""

    dial: Optional[_Dial] = None
    connection: Optional[Connection] = None
    heard = 0.0  # when something came last, on time.monotonic()'s clock

    def flush(self, timeout: float) -> None:
        out, connection = self.outgoing(), self.connection
        if out and connection is not None:
            connection.send(out, time.monotonic() + timeout)

    def part(self) -> None:
        """Says goodbye and hangs up."""
        connection, link = self.connection, self.link
        if connection is not None and link is not None:
            try:
                connection.send(link.farewell(), time.monotonic() + 1.0)
            except TransportError:
                pass  # it has ended already
        self.hang_up()

    def hang_up(self) -> None:
        dial, self.dial = self.dial, None
        connection, self.connection = self.connection, None
        if dial is not None:
            dial.abandon()
        if connection is not None:
            connection.close()


_Act = Callable[[_BlockingLine], None]


class Stream(_Core[_BlockingLine]):
    """A blocking stream: ``for event in client.stream(["SLUSD/USDC"]): ...``.

    It belongs to one thread; ``close`` may come from another.
    """

    def __init__(
        self, origin: Origin, symbols: Sequence[str], channels: Sequence[str], depth: int, *, via: str = "websocket",
        timeout: float = 10.0, context: Optional[ssl.SSLContext] = None, nodes: Sequence[Origin] = (),
        other_groups: Sequence[Sequence[Origin]] = (),
    ) -> None:  # fmt: skip
        super().__init__(_BlockingLine, origin, symbols, channels, depth, via, nodes, other_groups)
        self._timeout, self._context = timeout, context

    def __iter__(self) -> Iterator[StreamEvent]:
        return self

    def __next__(self) -> StreamEvent:
        event = self.get()
        if event is None:
            raise StopIteration
        return event

    def get(self, timeout: Optional[float] = None) -> Optional[StreamEvent]:
        """The next event, at once or within so many seconds; the first connection may take
        the client's timeout beyond them. None: there is none yet, or the stream was closed."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._events and not self._closed:
            if self._fatal:
                self._part()
                raise self._fatal
            if deadline is not None and time.monotonic() >= deadline:
                return None
            for line in list(self._lines):
                self._attend(line, self._connect)
            if not self._events and not self._fatal:
                for line, act in self._listen(deadline):
                    self._attend(line, act)
        if self._closed:  # by another thread, while this one made a connection perhaps
            for line in self._lines:
                line.hang_up()
        return self._events.popleft() if self._events else None

    def _attend(self, line: _BlockingLine, act: _Act) -> None:
        try:
            act(line)
            line.flush(self._timeout)
        except BlockdeskError as e:
            if not self._closed:
                line.hang_up()
                self._failed(line, e)

    def _connect(self, line: _BlockingLine) -> None:
        """Makes a line's connection where there is none and it is time for one. It waits
        for it where there is no other line."""
        now = time.monotonic()
        if line.connection is not None or now < line.not_before:
            return
        dial = line.dial
        if dial is None:
            dial = line.dial = _Dial(line.origin, now + self._timeout, self._context)
            start = dial.start if len(self._lines) > 1 else dial.run
            start()
        made = dial.connection()
        if made is not None:
            line.dial, line.connection, line.heard = None, made, time.monotonic()
            line.begin()

    def _listen(self, deadline: Optional[float]) -> list[tuple[_BlockingLine, _Act]]:
        """Waits until there is something to do, and returns what, with the lines."""
        now = time.monotonic()
        until = [] if deadline is None else [deadline]
        open_ = {}
        for line in self._lines:
            connection = line.connection
            if connection is not None:
                open_[connection] = line
                until.append(line.heard + SILENCE)
            else:
                until.append(now + _LOOK if line.dial is not None else line.not_before)
        ready = [open_[c] for c in readable(list(open_), min(until))]
        now = time.monotonic()
        silent = [line for line in open_.values() if line not in ready and now >= line.heard + SILENCE]
        acts: list[tuple[_BlockingLine, _Act]] = [(line, self._read) for line in ready]
        return acts + [(line, self._silent) for line in silent]

    def _silent(self, line: _BlockingLine) -> None:
        raise TransportError(f"nothing was heard for {SILENCE:g} s")

    def _read(self, line: _BlockingLine) -> None:
        connection = line.connection
        if connection is None:
            return  # another thread has closed the stream
        data = connection.received()
        line.heard = time.monotonic()
        if data is None:
            return
        self._take(line, data)
        if line not in self._lines:  # another group has all that it carried
            line.part()

    def close(self) -> None:
        """Ends the stream, and any iteration over it."""
        self._closed = True
        self._part()

    def _part(self) -> None:
        for line in list(self._lines):
            line.part()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], e: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()


class _AsyncLine(_Line):
    """A line of a stream in asyncio."""

    connection: Optional[AsyncConnection] = None
    broken: Optional[AsyncConnection] = None  # to be closed before the next one
    job: Optional[asyncio.Future[Any]] = None  # opens the connection, or reads from it

    async def work(self, timeout: float, context: Optional[ssl.SSLContext]) -> Any:
        """What comes next over the connection; the connection, where there is none."""
        if self.connection is not None:
            return await self.connection.receive(time.monotonic() + SILENCE)
        broken, self.broken = self.broken, None
        if broken is not None:
            await broken.close()
        await asyncio.sleep(self.not_before - time.monotonic())
        return await AsyncConnection.open(self.origin, time.monotonic() + timeout, context)

    async def flush(self, timeout: float) -> None:
        out = self.outgoing()
        if out and self.connection is not None:
            await self.connection.send(out, time.monotonic() + timeout)

    async def part(self) -> None:
        """Says goodbye and hangs up."""
        if self.connection is not None and self.link is not None:
            try:
                await self.connection.send(self.link.farewell(), time.monotonic() + 1.0)
            except TransportError:
                pass  # it has ended already
        await self.hang_up()

    async def hang_up(self) -> None:
        job, self.job = self.job, None
        if job is not None:
            job.cancel()
            await asyncio.wait([job])
            if not job.cancelled() and job.exception() is None and self.connection is None:
                self.connection = job.result()  # it came just now
        for connection in (self.connection, self.broken):
            if connection is not None:
                await connection.close()
        self.connection = self.broken = None


class AsyncStream(_Core[_AsyncLine]):
    """A stream in asyncio: ``async for event in client.stream(["SLUSD/USDC"]): ...``.

    It belongs to one task.
    """

    def __init__(
        self, origin: Origin, symbols: Sequence[str], channels: Sequence[str], depth: int, *, via: str = "websocket",
        timeout: float = 10.0, context: Optional[ssl.SSLContext] = None, nodes: Sequence[Origin] = (),
        other_groups: Sequence[Sequence[Origin]] = (),
    ) -> None:  # fmt: skip
        super().__init__(_AsyncLine, origin, symbols, channels, depth, via, nodes, other_groups)
        self._timeout, self._context = timeout, context

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> StreamEvent:
        while not self._events:
            if self._closed:
                raise StopAsyncIteration
            if self._fatal:
                await self._part()
                raise self._fatal
            await self._step()
        return self._events.popleft()

    async def _step(self) -> None:
        """Waits for one line's connection or bytes. They are taken in here alone, so books
        stay as they are while the program looks at them."""
        for line in self._lines:
            if line.job is None:
                line.job = asyncio.ensure_future(line.work(self._timeout, self._context))
        await asyncio.wait([line.job for line in self._lines if line.job is not None], return_when=asyncio.FIRST_COMPLETED)
        for line in list(self._lines):
            if line.job is not None and line.job.done() and not self._closed:
                await self._attend(line, line.job)

    async def _attend(self, line: _AsyncLine, job: asyncio.Future[Any]) -> None:
        line.job = None
        try:
            if line.connection is None:
                line.connection = job.result()
                line.begin()
            else:
                self._take(line, job.result())
            await line.flush(self._timeout)
        except BlockdeskError as e:
            if not self._closed:
                line.connection, line.broken = None, line.connection
                self._failed(line, e)
        if line not in self._lines:  # another group has all that it carried
            await line.part()

    async def close(self) -> None:
        """Ends the stream, and any iteration over it."""
        self._closed = True
        await self._part()

    async def _part(self) -> None:
        for line in list(self._lines):
            await line.part()

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], e: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.close()
