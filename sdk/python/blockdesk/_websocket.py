"""The WebSocket protocol (RFC 6455) without the network, as a client speaks it, with
permessage-deflate (RFC 7692) where nothing is carried from message to message.

With the package ``websockets`` (``pip install "blockdesk[fast]"``) frames are read by it,
else here. Both take the same messages and refuse the same faults, but for one: only here
is a length that is not in its shortest form refused.

Hostile input ends in a ProtocolError or a LimitExceeded, never in memory that grows.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable, Optional, Union

from ._http import Origin, Response, request
from .errors import LimitExceeded, ProtocolError

#: Largest message that is read, in bytes, after decompression.
MAX_MESSAGE = 16 << 20
#: Largest payload of a control frame, by the protocol.
MAX_CONTROL = 125

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
_CONTINUATION = 0
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_OFFER = "permessage-deflate; client_no_context_takeover; server_no_context_takeover"
#: Close codes that may be sent over the wire.
_CODES = frozenset([1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014])


class Handshake:
    """The upgrade of one connection."""

    def __init__(self, origin: Origin, path: str) -> None:
        self._key = base64.b64encode(os.urandom(16)).decode("ascii")
        self.request = request("GET", origin, path, {
            "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": self._key,
            "Sec-WebSocket-Version": "13", "Sec-WebSocket-Extensions": _OFFER,
        })  # fmt: skip

    def accept(self, answer: Response) -> Reader:
        """The reader of what follows a right answer of status 101."""
        headers = answer.headers
        if headers.get("upgrade", "").lower() != "websocket" or "upgrade" not in headers.get("connection", "").lower():
            raise ProtocolError("an upgrade to something else")
        want = base64.b64encode(hashlib.sha1(self._key.encode("ascii") + _GUID).digest()).decode("ascii")
        if headers.get("sec-websocket-accept") != want:
            raise ProtocolError("an upgrade of somebody else's request")
        return (Reader if LIBRARY is None else LibraryReader)(deflate=_agreed(headers))


def _agreed(headers: Mapping[str, str]) -> bool:
    answer = headers.get("sec-websocket-extensions", "")
    if not answer:
        return False
    name, *parameters = [part.strip().lower() for part in answer.split(";")]
    if name != "permessage-deflate" or "server_no_context_takeover" not in parameters:
        raise ProtocolError(f"an extension that was not offered: {answer!r:.80}")
    return True


@dataclass(frozen=True)
class Message:
    """A whole text message."""

    text: str


@dataclass(frozen=True)
class Ping:
    """To be answered by a pong with the same payload."""

    payload: bytes


@dataclass(frozen=True)
class Pong:
    """An answer to a ping."""

    payload: bytes


@dataclass(frozen=True)
class Close:
    """The other side's farewell, to be answered in kind. 1005: without a code."""

    code: int
    reason: str


Event = Union[Message, Ping, Pong, Close]


class Reader:
    """Reads frames as their bytes come."""

    def __init__(self, *, deflate: bool = False, max_message: int = MAX_MESSAGE) -> None:
        self._deflate = deflate
        self._max = max_message
        self._buffer = bytearray()
        self._opcode = 0  # of the message whose fragments come
        self._compressed = False
        self._message = bytearray()
        self._closed = False

    def feed(self, data: bytes) -> list[Event]:
        """What the bytes complete, in their order. Nothing follows a Close."""
        self._buffer += data
        events: list[Event] = []
        while not self._closed:
            frame = self._frame()
            if frame is None:
                break
            event = self._control(*frame[1:]) if frame[1] >= CLOSE else self._data(*frame)
            if event is not None:
                events.append(event)
                self._closed = isinstance(event, Close)
        return events

    def _frame(self) -> Optional[tuple[int, int, bytes]]:
        """Takes the next whole frame: its first byte's flags, opcode, payload."""
        b = self._buffer
        if len(b) < 2:
            return None
        flags, opcode, length, at = b[0] & 0xF0, b[0] & 0x0F, b[1] & 0x7F, 2
        self._check_head(flags, opcode, b[1])
        if length >= 126:
            width = 2 if length == 126 else 8
            if len(b) < 2 + width:
                return None
            length, at = int.from_bytes(b[2 : 2 + width], "big"), 2 + width
            if length < (126 if width == 2 else 1 << 16):
                raise ProtocolError("a length not in its shortest form")
        if length + len(self._message) > self._max:
            raise LimitExceeded(f"a message of more than {self._max} bytes")
        if len(b) < at + length:
            return None
        payload = bytes(b[at : at + length])
        del b[: at + length]
        return flags, opcode, payload

    def _check_head(self, flags: int, opcode: int, second: int) -> None:
        if second & 0x80:
            raise ProtocolError("a masked frame from a server")
        if opcode not in (_CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG):
            raise ProtocolError(f"opcode {opcode}")
        if opcode >= CLOSE and (not flags & 0x80 or second & 0x7F > MAX_CONTROL):
            raise ProtocolError("a control frame in pieces, or too long")
        compressed_ok = self._deflate and opcode in (TEXT, BINARY)
        if flags & (0x30 if compressed_ok else 0x70):
            raise ProtocolError("reserved bits")

    def _control(self, opcode: int, payload: bytes) -> Event:
        if opcode == PING:
            return Ping(payload)
        if opcode == PONG:
            return Pong(payload)
        if not payload:
            return Close(1005, "")
        code = int.from_bytes(payload[:2], "big") if len(payload) >= 2 else 0
        if code not in _CODES and not 3000 <= code <= 4999:
            raise ProtocolError(f"close code {code}")
        return Close(code, _utf8(payload[2:]))

    def _data(self, flags: int, opcode: int, payload: bytes) -> Optional[Event]:
        if (opcode == _CONTINUATION) != bool(self._opcode):
            raise ProtocolError("fragments that do not belong together")
        if opcode != _CONTINUATION:
            self._opcode, self._compressed = opcode, bool(flags & 0x40)
        self._message += payload
        if not flags & 0x80:
            return None
        whole, kind = bytes(self._message), self._opcode
        self._message.clear()
        self._opcode = 0
        if kind != TEXT:
            raise ProtocolError("a binary message")
        return Message(_utf8(self._inflate(whole) if self._compressed else whole))

    def _inflate(self, data: bytes) -> bytes:
        z = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            out = z.decompress(data + b"\x00\x00\xff\xff", self._max + 1)
        except zlib.error as e:
            raise ProtocolError(f"a message that is not compressed as it says: {e}") from None
        if len(out) > self._max or z.unconsumed_tail:
            raise LimitExceeded(f"a message of more than {self._max} bytes")
        return out


def _library() -> Any:
    """The modules of websockets that read frames; None without them."""
    try:
        modules = [importlib.import_module(f"websockets.{name}") for name in ("protocol", "extensions.permessage_deflate", "exceptions")]
        return modules if hasattr(modules[0], "Protocol") else None
    except ImportError:
        return None


#: The modules of websockets, or None: then Reader reads the frames.
LIBRARY: Any = _library()


class LibraryReader(Reader):
    """Reads frames by the package websockets."""

    def __init__(self, *, deflate: bool = False, max_message: int = MAX_MESSAGE) -> None:
        super().__init__(deflate=deflate, max_message=max_message)
        protocol, extension, exceptions = LIBRARY
        self._too_big = exceptions.PayloadTooBig
        self._protocol = protocol.Protocol(protocol.Side.CLIENT, state=protocol.State.OPEN, max_size=max_message)
        if deflate:
            self._protocol.extensions = [extension.PerMessageDeflate(True, True, zlib.MAX_WBITS, zlib.MAX_WBITS)]

    def feed(self, data: bytes) -> list[Event]:
        self._protocol.receive_data(data)
        frames = self._protocol.events_received()
        self._protocol.data_to_send()  # its answers to pings and farewells: the link sends its own
        events = [e for e in map(self._event, frames) if e is not None]
        error = self._protocol.parser_exc
        if isinstance(error, self._too_big):
            raise LimitExceeded(f"a message of more than {self._max} bytes")
        if error is not None:
            raise ProtocolError(f"frames that break the protocol: {error}")
        return events

    def _event(self, frame: Any) -> Optional[Event]:
        opcode, payload = int(frame.opcode), bytes(frame.data)
        return self._control(opcode, payload) if opcode >= CLOSE else self._data(0x80 if frame.fin else 0, opcode, payload)


def _utf8(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ProtocolError("text that is not UTF-8") from None


def frame(opcode: int, payload: bytes, random: Callable[[int], bytes] = os.urandom) -> bytes:
    """One whole frame of a client's, masked."""
    head = bytearray([0x80 | opcode])
    length = len(payload)
    if length < 126:
        head.append(0x80 | length)
    elif length < 1 << 16:
        head += bytes([0x80 | 126]) + length.to_bytes(2, "big")
    else:
        head += bytes([0x80 | 127]) + length.to_bytes(8, "big")
    mask = random(4)
    # One xor of two large numbers instead of one of each byte.
    pad = (mask * (length // 4 + 1))[:length]
    masked = int.from_bytes(payload, "big") ^ int.from_bytes(pad, "big")
    return bytes(head) + mask + masked.to_bytes(length, "big")


def close_frame(code: int, reason: str = "") -> bytes:
    """A farewell with a code."""
    return frame(CLOSE, code.to_bytes(2, "big") + reason.encode("utf-8")[: MAX_CONTROL - 2])
