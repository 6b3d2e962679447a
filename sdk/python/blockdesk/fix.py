"""A small FIX 4.4 client: orders, quotes and market data over one session.

    with FixClient("127.0.0.1:9878", "GUEST", "demo") as fix:
        print(fix.order("SLUSD/USDC", "buy", 5, "1.01", tif="ioc").average_price)

A thread of its own reads the session and keeps it alive. The service's FIX documents
have every message.
"""

from __future__ import annotations

import json
import os
import queue
import ssl
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Callable, Optional, Union

from ._call import Number, exact, new_key
from ._decode import decimal
from ._http import Origin
from ._net import Connection
from .errors import BlockdeskError, ConnectionClosed, LimitExceeded, ProtocolError, TimedOut, TransportError
from .models import Level

SOH = "\x01"
BEGIN = "FIX.4.4"
#: Largest message that is read, in bytes.
MAX_MESSAGE = 1 << 20
#: Messages that wait to be received; beyond it the session ends.
MAX_INBOX = 100_000

_SIDES = {"buy": "1", "sell": "2"}
_TIFS = {"day": "0", "gtc": "1", "ioc": "3", "fok": "4"}
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


@dataclass(frozen=True)
class FixQuote:
    """A firm quote, by a Quote (S)."""

    quote_id: str
    symbol: str
    order_id: str
    tranche_id: str
    fill_usd: Decimal
    rail: str
    price_usd: Decimal
    base_amount: Decimal
    valid_until: str


@dataclass(frozen=True)
class FixBook:
    """An order book, by a MarketDataSnapshotFullRefresh (W): best first."""

    symbol: str
    bids: list[Level]
    asks: list[Level]
    last: Optional[Level]


class _Numbers:
    """The next sequence numbers, in memory or in a file."""

    def __init__(self, path: Optional[Path]) -> None:
        self.incoming, self.outgoing = 1, 1
        self._path = path
        if path and path.exists():
            kept = json.loads(path.read_text("ascii"))
            self.incoming, self.outgoing = int(kept["in"]), int(kept["out"])

    def keep(self) -> None:
        """Writes the file anew as a whole."""
        if self._path:
            fresh = self._path.with_name(self._path.name + ".new")
            fresh.write_text(json.dumps({"in": self.incoming, "out": self.outgoing}), "ascii")
            os.replace(fresh, self._path)


_Waiter = tuple[Callable[[FixMessage], bool], "queue.Queue[Union[FixMessage, BlockdeskError]]"]


class FixClient:
    """One session. Safe to use from many threads."""

    def __init__(
        self,
        address: str,
        sender: str,
        password: str,
        *,
        username: Optional[str] = None,
        target: str = "BLOCKDESK",
        heartbeat: int = 30,
        numbers: Union[str, os.PathLike[str], None] = None,
        cancel_on_disconnect: bool = True,
        ssl_context: Optional[ssl.SSLContext] = None,
        timeout: float = 10.0,
    ) -> None:
        """Connects and logs on. address is ``host:port``; with ssl_context it is TLS.

        numbers names a file that keeps the sequence numbers: what the session missed
        while it was away comes first then. Without it both sides begin at 1.
        FixRefused where the service does not let it in.
        """
        host, _, port = address.rpartition(":")
        origin = Origin(host.strip("[]"), int(port), ssl_context is not None, "")
        self._head = (sender, target)
        self._numbers = _Numbers(Path(numbers) if numbers is not None else None)
        self._heartbeat, self._timeout = heartbeat, timeout
        self._lock = threading.Lock()  # of what is sent, and of what follows
        self._waiters: list[_Waiter] = []
        self._inbox: queue.Queue[FixMessage] = queue.Queue()
        self._resend_asked = 0  # the gap's end that has been asked for
        self._ended: Optional[BlockdeskError] = None
        self._logged_on = False
        self._leaving = False
        self._connection = Connection(origin, time.monotonic() + timeout, ssl_context)
        self._sent = self._heard = time.monotonic()
        logon: list[Field] = [(98, 0), (108, heartbeat)]
        if numbers is None:
            logon.append((141, "Y"))
        logon += [(553, username or sender), (554, password)]
        if not cancel_on_disconnect:
            logon.append((8013, "N"))
        self._thread = threading.Thread(target=self._run, name="blockdesk-fix", daemon=True)
        try:
            with self._expect(lambda m: m.type in ("A", "5")) as answer:
                answer.ask("A", logon)
                self._thread.start()
                m = answer.get(timeout)
        except BaseException as e:
            self._end(e if isinstance(e, BlockdeskError) else ConnectionClosed(1000, "given up"))
            raise
        if m.type == "5":
            self._numbers.outgoing -= 1  # neither side's number has moved
            self._numbers.keep()
            self._end(ConnectionClosed(1000, "refused"))
            raise FixRefused(m.get(58) or "logged out")

    def send(self, kind: str, fields: Sequence[Field]) -> None:
        """Sends a message: its type, and the fields after the header."""
        with self._lock:
            self._send(kind, fields)

    def _send(self, kind: str, fields: Sequence[Field], number: Optional[int] = None, again: bool = False) -> None:
        if self._ended:
            raise self._ended
        sender, target = self._head
        seq = self._numbers.outgoing if number is None else number
        now = _now()
        head: list[Field] = [(35, kind), (49, sender), (56, target), (34, seq)]
        head += [(43, "Y")] if again else []
        head += [(52, now)] + ([(122, now)] if again else [])
        content = encode(head + list(fields))
        if number is None:
            # Before it is sent: a number that was used twice is worse than a gap.
            self._numbers.outgoing += 1
            self._numbers.keep()
        self._connection.send(content, time.monotonic() + self._timeout)
        self._sent = time.monotonic()

    def receive(self, timeout: Optional[float] = None) -> Optional[FixMessage]:
        """The next message that no method waited for; None: none came in time."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = 0.2 if deadline is None else min(0.2, deadline - time.monotonic())
            try:
                return self._inbox.get(timeout=max(0.0, left))
            except queue.Empty:
                if self._ended:
                    raise self._ended from None
                if deadline is not None and time.monotonic() >= deadline:
                    return None

    def order(
        self, symbol: str, side: str, quantity: Number, price: Optional[Number] = None, *, tif: str = "day",
        post_only: bool = False, cl_ord_id: Optional[str] = None,
    ) -> Execution:  # fmt: skip
        """Sends an order: at the market without a price.

        tif: ``day``, ``gtc``, ``ioc`` or ``fok``. Returns once it is accepted, or, of
        an order that does not rest, once it has ended. FixRefused where it is refused.
        """
        ident = cl_ord_id or _ident()
        fields: list[Field] = [(11, ident), (55, symbol), (54, _SIDES[side]), (60, _now()), (38, exact(quantity))]
        if price is None:
            tif = tif if tif == "fok" else "ioc"
            fields += [(40, "1"), (59, _TIFS[tif])]
        else:
            fields += [(40, "2"), (44, exact(price)), (59, _TIFS[tif])]
        if post_only:
            fields.append((18, "6"))
        return self._executed("D", fields, ident, to_end=tif in ("ioc", "fok"))

    def cancel(self, order: Execution) -> Execution:
        """Cancels an order. FixRefused where it has ended already."""
        ident = _ident()
        fields: list[Field] = [(11, ident), (41, order.cl_ord_id), (55, order.symbol), (54, _SIDES[order.side]), (60, _now())]
        return self._executed("F", [(37, order.order_id)] + fields, ident, to_end=True)

    def replace(self, order: Execution, quantity: Number, price: Number) -> Execution:
        """Changes an order's whole quantity and its price."""
        ident = _ident()
        fields: list[Field] = [
            (37, order.order_id), (11, ident), (41, order.cl_ord_id), (55, order.symbol), (54, _SIDES[order.side]), (60, _now()),
            (38, exact(quantity)), (40, "2"), (44, exact(price)),
        ]  # fmt: skip
        return self._executed("G", fields, ident, to_end=False)

    def cancel_all(self, symbol: Optional[str] = None) -> int:
        """Cancels all orders of the participant, or those of a symbol: how many."""
        ident = _ident()
        fields: list[Field] = [(11, ident), (530, 1 if symbol else 7), (60, _now())]
        if symbol:
            fields.insert(2, (55, symbol))
        m = self._ask("q", fields, lambda m: m.type == "r" and m.get(11) == ident)
        if m.get(531) == "0":
            raise FixRefused(m.get(58))
        return int(m.number(533)) if m.get(533) else 0

    def quote(self, symbol: str, fill_usd: Number, rail: Optional[str] = None) -> FixQuote:
        """Asks the desk for a firm price of so many dollars. FixRefused: it has none."""
        ident = _ident()
        fields: list[Field] = [(131, ident), (146, 1), (55, symbol), (54, 1), (152, exact(fill_usd))]
        m = self._ask("R", fields + ([(15, rail)] if rail else []), lambda m: m.type in ("S", "AG") and m.get(131) == ident)
        if m.type == "AG":
            raise FixRefused(m.get(58))
        order_id, _, tranche_id = m.get(48).partition("/")
        return FixQuote(
            m.get(117), m.get(55), order_id, tranche_id, m.number(152), m.get(15), m.number(133), m.number(135), m.get(62)
        )  # fmt: skip

    def book(self, symbol: str, depth: int = 10) -> FixBook:
        """The order book of a symbol now, and its last trade."""
        ident = _ident()
        fields: list[Field] = [(262, ident), (263, 0), (264, depth), (267, 3), (269, 0), (269, 1), (269, 2), (146, 1), (55, symbol)]
        m = self._ask("V", fields, lambda m: m.type in ("W", "Y") and m.get(262) == ident)
        if m.type == "Y":
            raise FixRefused(m.get(58))
        rows: dict[str, list[Level]] = {"0": [], "1": [], "2": []}
        for entry in m.groups(269):
            rows.setdefault(entry.get(269), []).append(Level(entry.number(270), entry.number(271)))
        return FixBook(symbol, rows["0"], rows["1"], rows["2"][-1] if rows["2"] else None)

    def subscribe(self, symbol: str, depth: int = 10) -> str:
        """Asks for a snapshot (W) and updates (X) of a book, which receive brings; the
        MDReqID (262) that they have."""
        ident = _ident()
        self.send("V", [(262, ident), (263, 1), (264, depth), (265, 1), (267, 3), (269, 0), (269, 1), (269, 2), (146, 1), (55, symbol)])
        return ident

    def _executed(self, kind: str, fields: list[Field], ident: str, to_end: bool) -> Execution:
        with self._expect(lambda m: m.type in ("8", "9") and m.get(11) == ident) as answers:
            answers.ask(kind, fields)
            while True:
                m = answers.get(self._timeout)
                if m.type != "8" or m.get(150) == "8":
                    raise FixRefused(m.get(58) or f"refused: {m}")
                execution = Execution.of(m)
                if execution.ended or not to_end:
                    return execution

    def _ask(self, kind: str, fields: Sequence[Field], matches: Callable[[FixMessage], bool]) -> FixMessage:
        with self._expect(matches) as answers:
            answers.ask(kind, fields)
            return answers.get(self._timeout)

    def _expect(self, matches: Callable[[FixMessage], bool]) -> _Expectation:
        return _Expectation(self, matches)

    # The reading thread.

    def _run(self) -> None:
        reader = FixReader()
        try:
            while not self._ended:
                self._keep_alive()
                if self._connection.readable(time.monotonic() + 0.25):
                    data = self._connection.received()
                    self._heard = time.monotonic()
                    if data is None:
                        continue
                    if not data:
                        raise ConnectionClosed(1006, "the FIX connection ended")
                    for m in reader.feed(data):
                        self._handle(m)
        except BlockdeskError as e:
            self._end(e)
        except (OSError, ValueError) as e:
            self._end(ProtocolError(f"FIX: {e}"))

    def _keep_alive(self) -> None:
        now = time.monotonic()
        if now - self._heard > 2.5 * self._heartbeat:
            raise TimedOut("nothing was heard of the FIX session")
        if now - self._sent >= self._heartbeat:
            self.send("0", [])

    def _handle(self, m: FixMessage) -> None:
        seq = int(m.get(34) or 0)
        if not self._logged_on:
            if m.type == "5":
                self._deliver(m)  # a refused Logon's farewell does not count
                return
            if m.type != "A":
                raise ProtocolError(f"{m.type} in the place of a Logon")
            self._logged_on = True
            if m.get(141) == "Y":
                self._numbers.incoming = seq  # both sides begin anew
        if m.type == "4" and m.get(123) != "Y":
            self._expected(int(m.get(36)))
            return
        if seq < self._numbers.incoming:
            if m.get(43) != "Y":
                raise ProtocolError(f"message {seq} of the FIX session came where {self._numbers.incoming} was due")
            return
        if seq > self._numbers.incoming:
            if m.type == "A":
                self._deliver(m)
            if m.type == "2":
                self._fill(int(m.get(7)))
            self._ask_again(seq)
            return
        self._expected(int(m.get(36)) if m.type == "4" else seq + 1)
        if m.type == "1":
            self.send("0", [(112, m.get(112))])
        elif m.type == "2":
            self._fill(int(m.get(7)))
        elif m.type == "5":
            self._deliver(m)
            if not self._leaving:
                self.send("5", [])
            raise ConnectionClosed(1000, m.get(58) or "logged out")
        elif m.type not in ("0", "4"):
            self._deliver(m)

    def _expected(self, number: int) -> None:
        """The next message's number."""
        self._numbers.incoming = number
        self._numbers.keep()
        if number > self._resend_asked:
            self._resend_asked = 0

    def _ask_again(self, seq: int) -> None:
        """A gap: everything from its begin on comes again."""
        if not self._resend_asked:
            self._resend_asked = seq
            self.send("2", [(7, self._numbers.incoming), (16, 0)])

    def _fill(self, begin: int) -> None:
        """What the service missed is not sent again: an order that comes late is worse
        than none."""
        with self._lock:
            self._send("4", [(123, "Y"), (36, self._numbers.outgoing)], number=begin, again=True)

    def _deliver(self, m: FixMessage) -> None:
        with self._lock:
            waiting = [q for matches, q in self._waiters if matches(m)]
        for q in waiting:
            q.put(m)
        if waiting or m.type in ("A", "5"):
            return
        if self._inbox.qsize() >= MAX_INBOX:
            raise LimitExceeded(f"{MAX_INBOX} messages that nobody has received")
        self._inbox.put(m)

    def _end(self, e: BlockdeskError) -> None:
        with self._lock:
            self._ended = self._ended or e
            waiters, self._waiters = self._waiters, []
        for _, q in waiters:
            q.put(e)
        self._connection.close()

    def close(self) -> None:
        """Logs out and ends the session."""
        self._leaving = True
        if not self._ended and self._thread.is_alive():
            try:
                self.send("5", [])
                self._thread.join(2.0)
            except (TransportError, ProtocolError):
                pass  # it had ended
        self._end(ConnectionClosed(1000, "logged out"))
        if self._thread.is_alive():
            self._thread.join(self._timeout)

    def __enter__(self) -> FixClient:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], e: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()


class _Expectation:
    """Messages that answer a request, from before it is sent."""

    def __init__(self, client: FixClient, matches: Callable[[FixMessage], bool]) -> None:
        self._client = client
        self._number = ""  # of the request, which a reject names
        self._queue: queue.Queue[Union[FixMessage, BlockdeskError]] = queue.Queue()
        self._waiter: _Waiter = (lambda m: matches(m) or self._rejects(m), self._queue)

    def __enter__(self) -> _Expectation:
        with self._client._lock:
            if self._client._ended:
                raise self._client._ended
            self._client._waiters.append(self._waiter)
        return self

    def __exit__(self, kind: Optional[type[BaseException]], e: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        with self._client._lock:
            if self._waiter in self._client._waiters:
                self._client._waiters.remove(self._waiter)

    def ask(self, kind: str, fields: Sequence[Field]) -> None:
        """Sends the request."""
        with self._client._lock:  # no answer is handled before its number is known
            self._number = str(self._client._numbers.outgoing)
            self._client._send(kind, fields)

    def _rejects(self, m: FixMessage) -> bool:
        return m.type in ("3", "j") and m.get(45) == self._number

    def get(self, timeout: float) -> FixMessage:
        """The next answer. FixRefused: the request was rejected."""
        try:
            m = self._queue.get(timeout=timeout)
        except queue.Empty:
            raise TimedOut(f"no answer over FIX in {timeout:g} s") from None
        if isinstance(m, BlockdeskError):
            raise m
        if self._rejects(m):
            raise FixRefused(m.get(58) or f"refused: {m}")
        return m


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y%m%d-%H:%M:%S.%f")[:-3]


def _ident() -> str:
    return new_key().replace("-", "")
