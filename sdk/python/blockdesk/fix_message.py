"""FIX 4.4 messages: their fields, their bytes, and what an ExecutionReport says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from typing import Optional, Union

from ._call import new_key
from ._decode import decimal
from .errors import BlockdeskError, LimitExceeded, ProtocolError

SOH = "\x01"
BEGIN = "FIX.4.4"
#: Largest message that is read, in bytes.
MAX_MESSAGE = 1 << 20
_ENDED = frozenset("248C")

Field = tuple[int, Union[str, int, Decimal]]


class FixRefused(BlockdeskError):
    """The service refused a Logon or a request. ``code`` is the machine word."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.code = text.partition(":")[0]


class FixMessage:
    """One message: its fields in their order, groups included."""

    def __init__(self, fields: Sequence[tuple[int, str]]) -> None:
        self.fields = list(fields)

    @property
    def type(self) -> str:
        """MsgType (35)."""
        return self.get(35)

    def get(self, tag: int) -> str:
        """The first value of a tag; empty where there is none."""
        return next((value for t, value in self.fields if t == tag), "")

    def all(self, tag: int) -> list[str]:
        """Every value of a tag."""
        return [value for t, value in self.fields if t == tag]

    def number(self, tag: int) -> Decimal:
        """A field as a number; ProtocolError where it is none."""
        return decimal(self.get(tag), f"tag {tag}")

    def groups(self, first: int) -> list[FixMessage]:
        """The entries of a repeating group, each of which begins with tag first."""
        starts = [i for i, (tag, _) in enumerate(self.fields) if tag == first]
        return [FixMessage(self.fields[a:b]) for a, b in zip(starts, starts[1:] + [len(self.fields)])]

    def __str__(self) -> str:
        return "|".join(f"{tag}={'***' if tag == 554 else value}" for tag, value in self.fields)

    __repr__ = __str__


def encode(fields: Sequence[Field]) -> bytes:
    """A whole message of its fields from MsgType (35) on, with length and checksum."""
    parts = []
    for tag, value in fields:
        text = format(value, "f") if isinstance(value, Decimal) else str(value)
        if not text or SOH in text or not text.isascii():
            raise ValueError(f"tag {tag}: {text!r:.80} cannot be sent")
        parts.append(f"{tag}={text}{SOH}")
    body = "".join(parts)
    head = f"8={BEGIN}{SOH}9={len(body)}{SOH}{body}".encode("ascii")
    return head + b"10=%03d\x01" % (sum(head) & 0xFF)


class FixReader:
    """Reads messages as their bytes come. What is no FIX is a ProtocolError."""

    _HEAD = f"8={BEGIN}{SOH}9=".encode("ascii")

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[FixMessage]:
        """The messages that the bytes complete."""
        self._buffer += data
        out: list[FixMessage] = []
        while True:
            message = self._next()
            if message is None:
                return out
            out.append(message)

    def _next(self) -> Optional[FixMessage]:
        b, head = self._buffer, self._HEAD
        if not head.startswith(b[: len(head)]):
            raise ProtocolError(f"no FIX 4.4: {bytes(b[:40])!r}")
        end = b.find(b"\x01", len(head))
        if end < 0:
            if len(b) > len(head) + 8:
                raise ProtocolError("a length that does not end")
            return None
        digits = bytes(b[len(head) : end])
        if not digits.isdigit() or len(digits) > 7 or int(digits) > MAX_MESSAGE:
            raise LimitExceeded(f"a message of {digits!r:.20} bytes")
        total = end + 1 + int(digits) + 7
        if len(b) < total:
            return None
        raw = bytes(b[:total])
        del b[:total]
        if raw[-7:] != b"10=%03d\x01" % (sum(raw[:-7]) & 0xFF):
            raise ProtocolError("a message whose checksum is wrong")
        return FixMessage(_fields(raw[end + 1 : -7]))


def _fields(body: bytes) -> list[tuple[int, str]]:
    fields = []
    for part in body.decode("latin-1").split(SOH)[:-1]:
        tag, equals, value = part.partition("=")
        if not equals or not tag.isascii() or not tag.isdigit() or len(tag) > 6:
            raise ProtocolError(f"no field: {part!r:.40}")
        fields.append((int(tag), value))
    if not fields or fields[0][0] != 35 or not body.endswith(b"\x01"):
        raise ProtocolError("a message that does not begin with its type, or does not end")
    return fields


@dataclass(frozen=True)
class Execution:
    """Where an order stands, by an ExecutionReport (8)."""

    order_id: str
    cl_ord_id: str
    exec_type: str
    status: str
    symbol: str
    side: str
    filled: Decimal
    left: Decimal
    average_price: Decimal
    last_price: Optional[Decimal]
    last_quantity: Optional[Decimal]
    text: str
    message: FixMessage

    @property
    def ended(self) -> bool:
        """The order is filled, cancelled, refused or expired."""
        return self.status in _ENDED

    @classmethod
    def of(cls, m: FixMessage) -> Execution:
        """The execution in a message."""

        def maybe(tag: int) -> Optional[Decimal]:
            return m.number(tag) if m.get(tag) else None

        side = "buy" if m.get(54) == "1" else "sell"
        return cls(
            m.get(37), m.get(11), m.get(150), m.get(39), m.get(55), side, m.number(14), m.number(151), m.number(6), maybe(31), maybe(32), m.get(58), m
        )  # fmt: skip


def fix_time(at: Optional[datetime] = None) -> str:
    """A time as FIX writes it, in UTC; without one, now."""
    return (at or datetime.now(timezone.utc)).astimezone(timezone.utc).strftime("%Y%m%d-%H:%M:%S.%f")[:-3]


def new_ident() -> str:
    """An id that no message had before."""
    return new_key().replace("-", "")
