"""HTTP/1.1 without the network: requests into bytes, bytes into answers.

The blocking and the asyncio client, the WebSocket's upgrade and the event stream
all read their answers here. Limits are named; beyond them is a LimitExceeded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Optional
from urllib.parse import urlsplit

from .errors import LimitExceeded, ProtocolError, TransportError

#: Longest status line and headers of an answer, in bytes.
MAX_HEAD = 64 << 10
#: Longest body of an answer that is read whole, in bytes.
MAX_BODY = 32 << 20
#: Longest line that begins a chunk, in bytes.
MAX_CHUNK_LINE = 256


@dataclass(frozen=True)
class Origin:
    """Where requests go: a URL without its query. ``prefix`` is its path."""

    host: str
    port: int
    tls: bool
    prefix: str

    @classmethod
    def parse(cls, url: str) -> Origin:
        """The origin of an http, https, ws or wss URL. ValueError if it is none."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https", "ws", "wss") or not parts.hostname:
            raise ValueError(f"{url!r} is no URL of a service")
        tls = parts.scheme in ("https", "wss")
        return cls(parts.hostname, parts.port or (443 if tls else 80), tls, parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        """Host and port as they go into the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


@dataclass(frozen=True)
class Response:
    """An answer. Names of headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    #: The connection may carry another request.
    reusable: bool = field(default=False, compare=False)


def request(method: str, origin: Origin, target: str, headers: Mapping[str, str], body: Optional[bytes] = None) -> bytes:
    """The bytes of a request. ValueError where a header would be two."""
    lines = [f"{method} {origin.prefix}{target} HTTP/1.1", f"Host: {origin.authority}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    for line in lines:
        if not line.isprintable() or not line.isascii():
            raise ValueError(f"not to be sent in a header: {line!r:.120}")
    if " " in target or not target.startswith("/"):
        raise ValueError(f"no path: {target!r:.120}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii") + (body or b"")


class ResponseReader:
    """Reads one answer as its bytes come.

    ``feed`` takes bytes, ``eof`` the end of the connection. Once ``head`` is there,
    ``take`` gives what has come of the body; ``done`` says that it is whole. What
    follows the answer is left in ``rest``.
    """

    def __init__(self) -> None:
        self.head: Optional[Response] = None
        self.done = False
        self.rest = b""
        self._buffer = bytearray()
        self._body = bytearray()
        self._left: Optional[int] = None  # of the body or the chunk; None: until the end
        self._chunked = False
        self._state = "head"

    def feed(self, data: bytes) -> None:
        self._buffer += data
        while self._step():
            pass

    def eof(self) -> None:
        """The connection has ended: right only if nothing else marks the end of the body."""
        if self._state == "body" and self._left is None:
            self._finish()
        if not self.done:
            raise TransportError("the connection ended within an answer")

    def take(self) -> bytes:
        """The body's bytes that have not been taken yet."""
        data = bytes(self._body)
        self._body.clear()
        return data

    @property
    def pending(self) -> int:
        """How many bytes take would give."""
        return len(self._body)

    def _step(self) -> bool:
        if self._state == "head":
            return self._read_head()
        if self._state == "chunk":
            return self._read_chunk_line()
        if self._state == "trailer":
            return self._read_trailer()
        if self._state == "body":
            return self._read_body()
        if self._state == "gap":
            return self._read_gap()
        self.rest += bytes(self._buffer)
        self._buffer.clear()
        return False

    def _line(self, limit: int) -> Optional[bytes]:
        end = self._buffer.find(b"\r\n")
        if end > limit or end < 0 and len(self._buffer) > limit:
            raise LimitExceeded(f"a line of more than {limit} bytes")
        if end < 0:
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end > MAX_HEAD or end < 0 and len(self._buffer) > MAX_HEAD:
            raise LimitExceeded(f"headers of more than {MAX_HEAD} bytes")
        if end < 0:
            return False
        lines = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        status, version = _status(lines[0])
        headers = _headers(lines[1:])
        if 100 <= status < 200 and status != 101:
            return True  # the answer is still to come
        self._frame(status, headers)
        close = headers.get("connection", "").lower() == "close" or version == "1.0" or self._left is None and not self._chunked
        self.head = Response(status, headers, reusable=not close)
        if self._left == 0:
            self._finish()
        return True

    def _frame(self, status: int, headers: Mapping[str, str]) -> None:
        """How long the body is, by the rules of RFC 9112, 6.3."""
        self._state = "body"
        coding, length = headers.get("transfer-encoding"), headers.get("content-length")
        if status in (101, 204, 304):
            self._left = 0
        elif coding is not None:
            if coding.strip().lower() != "chunked" or length is not None:
                raise ProtocolError(f"a body framed by {coding!r:.40} and {length!r:.40}")
            self._chunked, self._state = True, "chunk"
        elif length is not None:
            if not length.isascii() or not length.isdigit() or len(length) > 18:
                raise ProtocolError(f"Content-Length {length!r:.40}")
            self._left = int(length)

    def _read_chunk_line(self) -> bool:
        line = self._line(MAX_CHUNK_LINE)
        if line is None:
            return False
        size = line.split(b";")[0].strip()
        if not size or len(size) > 15 or size.strip(b"0123456789abcdefABCDEF"):
            raise ProtocolError(f"a chunk of {size!r:.40}")
        self._left = int(size, 16)
        self._state = "body" if self._left else "trailer"
        return True

    def _read_trailer(self) -> bool:
        line = self._line(MAX_HEAD)
        if line == b"":
            self._finish()
        return line is not None

    def _read_body(self) -> bool:
        if not self._buffer:
            return False
        if self._left is None:
            self._body += self._buffer
            self._buffer.clear()
            return False
        part = self._buffer[: self._left]
        self._body += part
        del self._buffer[: len(part)]
        self._left -= len(part)
        if self._left:
            return False
        if not self._chunked:
            self._finish()
            return True
        self._state = "gap"
        return True

    def _read_gap(self) -> bool:
        """The CRLF after a chunk's data."""
        if len(self._buffer) < 2:
            return False
        if self._buffer[:2] != b"\r\n":
            raise ProtocolError("a chunk that is longer than it says")
        del self._buffer[:2]
        self._state = "chunk"
        return True

    def _finish(self) -> None:
        self._state, self.done = "done", True


def retry_after(headers: Mapping[str, str]) -> Optional[float]:
    """The seconds after which the service may be asked again; None where it does not say."""
    text = headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _status(line: str) -> tuple[int, str]:
    version, _, rest = line.partition(" ")
    code = rest.partition(" ")[0]
    if version not in ("HTTP/1.1", "HTTP/1.0") or len(code) != 3 or not code.isdigit() or not code.isascii():
        raise ProtocolError(f"no HTTP/1.1 answer: {line!r:.80}")
    return int(code), version[-3:]


def _headers(lines: list[str]) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name, value = name.lower(), value.strip()
        if not colon or not name or name != name.strip():
            raise ProtocolError(f"no header: {line!r:.80}")
        if name in headers and name in ("content-length", "transfer-encoding"):
            raise ProtocolError(f"{name} twice")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers
