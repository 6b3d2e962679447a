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
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Callable, Optional, Union

from . import fix_state
from ._call import Number, exact
from ._http import Origin
from ._net import Connection
from .errors import BlockdeskError, ConnectionClosed, LimitExceeded, ProtocolError, TimedOut, TransportError
from .fix_message import BEGIN, MAX_MESSAGE, Execution, Field, FixMessage, FixReader, FixRefused, encode, fix_time, new_ident
from .fix_state import FixFill, FixPosition
from .models import Level

__all__ = [
    "BEGIN", "MAX_INBOX", "MAX_MESSAGE", "Execution", "Field", "FixBook", "FixClient", "FixFill", "FixMessage", "FixPosition",
    "FixQuote", "FixReader", "FixRefused", "encode",
]  # fmt: skip

#: Messages that wait to be received; beyond it the session ends.
MAX_INBOX = 100_000

_SIDES = {"buy": "1", "sell": "2"}
_TIFS = {"day": "0", "gtc": "1", "ioc": "3", "fok": "4"}


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
        now = fix_time()
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
        ident = cl_ord_id or new_ident()
        fields: list[Field] = [(11, ident), (55, symbol), (54, _SIDES[side]), (60, fix_time()), (38, exact(quantity))]
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
        ident = new_ident()
        fields: list[Field] = [(11, ident), (41, order.cl_ord_id), (55, order.symbol), (54, _SIDES[order.side]), (60, fix_time())]
        return self._executed("F", [(37, order.order_id)] + fields, ident, to_end=True)

    def replace(self, order: Execution, quantity: Number, price: Number) -> Execution:
        """Changes an order's whole quantity and its price."""
        ident = new_ident()
        fields: list[Field] = [
            (37, order.order_id), (11, ident), (41, order.cl_ord_id), (55, order.symbol), (54, _SIDES[order.side]), (60, fix_time()),
            (38, exact(quantity)), (40, "2"), (44, exact(price)),
        ]  # fmt: skip
        return self._executed("G", fields, ident, to_end=False)

    def cancel_all(self, symbol: Optional[str] = None) -> int:
        """Cancels all orders of the participant, or those of a symbol: how many."""
        ident = new_ident()
        fields: list[Field] = [(11, ident), (530, 1 if symbol else 7), (60, fix_time())]
        if symbol:
            fields.insert(2, (55, symbol))
        m = self._ask("q", fields, lambda m: m.type == "r" and m.get(11) == ident)
        if m.get(531) == "0":
            raise FixRefused(m.get(58))
        return int(m.number(533)) if m.get(533) else 0

    def quote(self, symbol: str, fill_usd: Number, rail: Optional[str] = None) -> FixQuote:
        """Asks the desk for a firm price of so many dollars. FixRefused: it has none."""
        ident = new_ident()
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
        ident = new_ident()
        fields: list[Field] = [(262, ident), (263, 0), (264, depth), (267, 3), (269, 0), (269, 1), (269, 2), (146, 1), (55, symbol)]
        m = self._ask("V", fields, lambda m: m.type in ("W", "Y") and m.get(262) == ident)
        if m.type == "Y":
            raise FixRefused(m.get(58))
        rows: dict[str, list[Level]] = {"0": [], "1": [], "2": []}
        for entry in m.groups(269):
            rows.setdefault(entry.get(269), []).append(Level(entry.number(270), entry.number(271)))
        return FixBook(symbol, rows["0"], rows["1"], rows["2"][-1] if rows["2"] else None)

    def order_status(self, symbol: str, side: str, *, order_id: str = "", cl_ord_id: str = "") -> Execution:
        """Where an order stands, by its OrderID or ClOrdID. FixRefused: there is none."""
        return fix_state.order_status(self, symbol, side, order_id=order_id, cl_ord_id=cl_ord_id)

    def open_orders(self, symbol: Optional[str] = None) -> list[Execution]:
        """The open orders of this session, or those of a symbol."""
        return fix_state.open_orders(self, symbol)

    def fills(self, symbol: Optional[str] = None, since: Optional[datetime] = None) -> list[FixFill]:
        """The fills of this session's orders, yesterday's and today's (UTC), oldest first."""
        return fix_state.fills(self, symbol, since)

    def positions(self, symbol: Optional[str] = None) -> list[FixPosition]:
        """What the participant has bought and sold, over all its sessions."""
        return fix_state.positions(self, symbol)

    def subscribe(self, symbol: str, depth: int = 10) -> str:
        """Asks for a snapshot (W) and updates (X) of a book, which receive brings; the
        MDReqID (262) that they have."""
        ident = new_ident()
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
            if not waiting:
                self._keep(m)

    def _keep(self, m: FixMessage) -> None:
        """Keeps a message for receive."""
        if m.type in ("A", "5"):
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
            # A fill right behind the report that this waited for belongs to receive.
            while not self._queue.empty():
                m = self._queue.get_nowait()
                if isinstance(m, FixMessage):
                    self._client._keep(m)

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
