"""Connections of a stream without the network: what a WebSocket or an event stream
sends, and what its bytes say to a feed."""

from __future__ import annotations

from collections import deque
from typing import Any, Optional, Protocol
from urllib.parse import urlencode

from . import _websocket as ws
from ._decode import loads
from ._http import Origin, Response, ResponseReader, request, retry_after
from .errors import ConnectionClosed, LimitExceeded, ProtocolError, TransportError, api_error
from .feed import Feed, StreamEvent

WEBSOCKET_PATH = "/ws/rfq"
#: Largest body of a refusal that is read.
MAX_REFUSAL = 64 << 10


class Link(Protocol):
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
        raise api_error(head.status, body, head.headers.get("x-request-id", ""), retry_after(head.headers), head.headers.get("location"))

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
