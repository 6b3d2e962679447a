"""Market data without the network: messages of the stream into events and books.

It keeps each stream of messages without a gap: if a message does not follow the one
before, it requests a snapshot and reports an :class:`Interruption`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Optional, Union

from ._decode import decode, loads
from .book import OrderBook, OrdersBook, OutOfStep
from .errors import BlockdeskError, ProtocolError, TransportError
from .models import CallAuction, RfqTrade, Ticket

#: Symbols and channels that there may be in one stream.
MAX_SYMBOLS = 100
CHANNELS = ("ticker", "l2", "l3", "trades", "tickets", "rfq_trades")
DEPTHS = (10, 25, 50, 100)
#: Heartbeats that a snapshot which was asked for may take.
PATIENCE = 3
#: Gaps since all was well, after which the connection is given up: fewer than the
#: service takes for abuse.
MAX_GAPS = 8
#: What a group of nodes says of a symbol that another one serves.
OTHER_GROUP = "OTHER_GROUP"


class SubscriptionRefused(BlockdeskError):
    """The service has no such channel or symbol, or it is served at an address that
    the stream may not be sent to."""


@dataclass(frozen=True)
class BookEvent:
    """An order book has changed. ``book`` is the live one: copy what you keep."""

    symbol: str
    book: OrderBook
    snapshot: bool
    ts: Optional[datetime]


@dataclass(frozen=True)
class OrdersEvent:
    """The orders of a book have changed. ``book`` is the live one: copy what you keep."""

    symbol: str
    book: OrdersBook
    snapshot: bool
    ts: Optional[datetime]


@dataclass(frozen=True)
class StreamTrade:
    """A trade; side is the aggressor's, ``buy`` or ``sell``."""

    trade_id: int
    price: Decimal
    qty: Decimal
    side: str
    ts: datetime


@dataclass(frozen=True)
class TradesEvent:
    """Trades, the oldest first. A snapshot has the newest ones from before."""

    symbol: str
    trades: list[StreamTrade]
    snapshot: bool


@dataclass(frozen=True)
class TickerEvent:
    """The last trade, the best prices and the last 24 hours. A price that there is
    not is None."""

    symbol: str
    seq: int
    ts: Optional[datetime]
    last: Optional[Decimal]
    last_qty: Optional[Decimal]
    bid: Optional[Decimal]
    bid_qty: Optional[Decimal]
    ask: Optional[Decimal]
    ask_qty: Optional[Decimal]
    mid: Optional[Decimal]
    spread: Optional[Decimal]
    open_24h: Optional[Decimal]
    high_24h: Optional[Decimal]
    low_24h: Optional[Decimal]
    volume_24h: Decimal
    quote_volume_24h: Decimal
    trades_24h: int
    status: str
    #: With status ``auction``.
    auction: Optional[CallAuction] = None


@dataclass(frozen=True)
class TicketsEvent:
    """The desk's tickets of a pair: ``tickets`` are new or changed, ``gone`` are shown
    no more. ``all`` are those that there are now, by order_id."""

    symbol: str
    tickets: list[Ticket]
    gone: list[str]
    snapshot: bool
    all: dict[str, Ticket]


@dataclass(frozen=True)
class RfqTradesEvent:
    """Settled claims of the desk, the oldest first. A snapshot has the newest ones from
    before."""

    symbol: str
    rfq_trades: list[RfqTrade]
    snapshot: bool


@dataclass(frozen=True)
class Interruption:
    """The data may be old: of one symbol, or of all if symbol is None. The next event of
    a symbol means that it is up to date again. Stop quoting until then."""

    symbol: Optional[str]
    reason: str


@dataclass(frozen=True)
class Connected:
    """The stream is connected, for the first time or again. ``resumed``: nothing was
    missed, and no snapshot comes. Where several groups of nodes serve the symbols there
    is a connection to each: ``symbols`` are this one's, and ``epoch`` is its group's."""

    epoch: str
    resumed: bool
    symbols: tuple[str, ...]


@dataclass(frozen=True)
class _Subscribed:
    channel: str
    resumed: bool = False


@dataclass(frozen=True)
class _Rejected:
    channel: str
    code: str
    symbol: Optional[str] = None
    ws_url: Optional[str] = None

    def __str__(self) -> str:
        return f"{self.channel} {self.symbol}: {self.code}{' ' + self.ws_url if self.ws_url else ''}"


StreamEvent = Union[BookEvent, OrdersEvent, TradesEvent, TickerEvent, TicketsEvent, RfqTradesEvent, Interruption, Connected]
_Key = tuple[str, str]


class Feed:
    """The state of one client's streams of one group of nodes, over all connections."""

    def __init__(self, symbols: Sequence[str], channels: Sequence[str], depth: int) -> None:
        if isinstance(symbols, str) or not 0 < len(symbols) <= MAX_SYMBOLS:
            raise ValueError(f"symbols: a list of 1 to {MAX_SYMBOLS}")
        if isinstance(channels, str) or not channels or set(channels) - set(CHANNELS):
            raise ValueError(f"channels: a list of some of {', '.join(CHANNELS)}")
        if depth not in DEPTHS:
            raise ValueError(f"depth: one of {DEPTHS}")
        self.symbols, self.channels, self.depth = list(dict.fromkeys(symbols)), list(channels), depth
        self.books = {symbol: OrderBook(symbol) for symbol in symbols}
        self.orders = {symbol: OrdersBook(symbol) for symbol in symbols}
        self.tickets: dict[str, dict[str, Ticket]] = {symbol: {} for symbol in symbols}
        self.epoch = ""  # of the numbers below
        self._life = ""  # the service's epoch, as it has said last
        self._seqs: dict[_Key, int] = {}
        self._waiting: dict[_Key, int] = {}  # for a snapshot, since so many heartbeats
        self._gaps = 0  # since a heartbeat found all well
        #: The last heartbeat of this connection found all well.
        self.sound = False
        self._behind: dict[_Key, int] = {}  # what the last heartbeat knew and we did not
        #: Symbols that the service has said are served elsewhere, with the address; they
        #: are to be taken out by split.
        self.elsewhere: dict[str, str] = {}

    def split(self, symbols: Sequence[str]) -> Feed:
        """Takes symbols out, into a feed of their own that begins from nothing. Their
        books are the same ones."""
        other = Feed(symbols, self.channels, self.depth)
        for symbol in symbols:
            self.symbols.remove(symbol)
            self.elsewhere.pop(symbol, None)
            other.books[symbol] = self.books.pop(symbol)
            other.orders[symbol] = self.orders.pop(symbol)
            del self.tickets[symbol]
        for key in [key for key in self._seqs if key[1] in other.books]:
            del self._seqs[key]
        for key in [key for key in self._waiting if key[1] in other.books]:
            del self._waiting[key]
        return other

    def connected(self) -> None:
        """A new connection: what was heard over the last one says nothing of it."""
        self._behind.clear()
        self._gaps, self.sound = 0, False

    def subscribe(self) -> str:
        """The message that begins, or resumes, all streams on a new connection."""
        message: dict[str, Any] = {
            "action": "SUBSCRIBE_MARKET", "channels": self.channels, "symbols": self.symbols, "heartbeat": True, "id": "1",
        }  # fmt: skip
        if "l2" in self.channels:
            message["depth"] = self.depth
        if self.epoch and self._seqs:
            message["resume"] = {"epoch": self.epoch, **{f"{c}:{s}": seq for (c, s), seq in self._seqs.items()}}
        return json.dumps(message)

    def forget(self) -> None:
        """Begins from nothing at the next subscribe."""
        self.epoch = ""
        self._seqs.clear()
        self._waiting.clear()

    def take(self, text: str) -> tuple[list[StreamEvent], list[str]]:
        """Takes in a message: what it means, and what is to be sent in answer."""
        message = loads(text)
        if not isinstance(message, dict) or not isinstance(message.get("channel"), str):
            raise ProtocolError(f"no message of the stream: {text!r:.80}")
        channel = message["channel"]
        if channel == "control":
            return self._control(message), []
        if channel == "heartbeat":
            return self._heartbeat(message)
        if channel in CHANNELS:
            return self._market(channel, message)
        if channel == "status" and message.get("type") == "welcome":
            self._life = str(message.get("epoch"))
        return [], []  # mark, and what may come one day

    def _control(self, message: dict[str, Any]) -> list[StreamEvent]:
        kind = message.get("type")
        if kind == "error" and not message.get("retryable"):
            raise ProtocolError(f"the service refuses: {message.get('code')}: {message.get('message')}")
        if kind != "ack" or message.get("action") != "SUBSCRIBE_MARKET":
            return []
        rejected = decode(list[_Rejected], message.get("rejected"), "rejected")
        moved: dict[str, str] = {}
        for r in rejected:
            if r.code != OTHER_GROUP or r.symbol is None or r.symbol not in self.books or not r.ws_url:
                raise SubscriptionRefused("; ".join(map(str, rejected)))
            moved[r.symbol] = r.ws_url
        self.elsewhere = moved
        subscribed = decode(list[_Subscribed], message.get("subscribed"), "subscribed")
        numbered = [s for s in subscribed if s.channel != "ticker"]
        resumed = bool(numbered) and all(s.resumed for s in numbered)
        symbols = tuple(s for s in self.symbols if s not in moved)
        return [Connected(self._life, resumed, symbols)] if symbols else []

    def _market(self, channel: str, message: dict[str, Any]) -> tuple[list[StreamEvent], list[str]]:
        symbol, seq, epoch = message.get("symbol"), message.get("seq"), message.get("epoch")
        if not isinstance(symbol, str) or symbol not in self.books or not isinstance(seq, int) or not isinstance(epoch, str):
            raise ProtocolError(f"a message of {channel} for {symbol!r:.40}")
        key, snapshot = (channel, symbol), message.get("type") == "snapshot"
        if channel == "ticker":
            return [decode(TickerEvent, message, channel)], []
        if not snapshot and key in self._waiting:
            return [], []
        have = self._seqs.get(key)
        if not snapshot and epoch == self.epoch and have is not None and seq <= have:
            return [], []  # again, after a resume
        if not snapshot and (epoch != self.epoch or message.get("prev_seq") != have):
            return self._resync(key, f"{channel} {symbol}: {seq} after {message.get('prev_seq')}, not after {have}")
        try:
            event = self._apply(channel, symbol, snapshot, message)
        except OutOfStep as e:
            return self._resync(key, str(e))
        if epoch != self.epoch:  # of a new life of the service: what is known of the old one counts no more
            self._seqs = {}
            self.epoch = epoch
        self._seqs[key] = seq
        self._waiting.pop(key, None)
        return [event], []

    def _apply(self, channel: str, symbol: str, snapshot: bool, message: dict[str, Any]) -> StreamEvent:
        if channel == "l2":
            book = self.books[symbol]
            book.apply(message)
            return BookEvent(symbol, book, snapshot, decode(Optional[datetime], message.get("ts"), "ts"))
        if channel == "l3":
            orders = self.orders[symbol]
            orders.apply(message)
            return OrdersEvent(symbol, orders, snapshot, decode(Optional[datetime], message.get("ts"), "ts"))
        if channel == "trades":
            return TradesEvent(symbol, decode(list[StreamTrade], message.get("trades"), "trades"), snapshot)
        if channel == "rfq_trades":
            sales = decode(list[RfqTrade], message.get("rfq_trades"), "rfq_trades")
            return RfqTradesEvent(symbol, sales, snapshot)
        changed = decode(list[Ticket], message.get("tickets"), "tickets")
        gone = decode(list[str], message.get("gone", []), "gone")
        all_ = {} if snapshot else self.tickets[symbol]
        all_.update((ticket.order_id, ticket) for ticket in changed)
        for order_id in gone:
            all_.pop(order_id, None)
        self.tickets[symbol] = all_
        return TicketsEvent(symbol, changed, gone, snapshot, dict(all_))

    def _heartbeat(self, message: dict[str, Any]) -> tuple[list[StreamEvent], list[str]]:
        """The last message of a stream may be lost and nobody sees it: what two
        heartbeats in a row know and we do not is. So may a snapshot."""
        events: list[StreamEvent] = []
        answers: list[str] = []
        for key, heartbeats in list(self._waiting.items()):
            self._waiting[key] = heartbeats + 1
            if heartbeats + 1 >= PATIENCE:
                lost = self._resync(key, f"{key[0]} {key[1]}: no snapshot came")
                events, answers = events + lost[0], answers + lost[1]
        seqs = message.get("seqs")
        behind: dict[_Key, int] = {}
        for name, newest in seqs.items() if isinstance(seqs, dict) else []:
            channel, _, symbol = name.partition(":")
            key = (channel, symbol)
            have = self._seqs.get(key)
            if have is None or key in self._waiting or not isinstance(newest, int) or newest <= have:
                continue
            if have < self._behind.get(key, 0):
                lost = self._resync(key, f"{name}: the newest is {newest}, and {have} came last")
                events, answers = events + lost[0], answers + lost[1]
            else:
                behind[key] = newest
        self._behind = behind
        self.sound = not self._waiting
        if self.sound:
            self._gaps = 0
        return events, answers

    def _resync(self, key: _Key, why: str) -> tuple[list[StreamEvent], list[str]]:
        self._gaps += 1
        if self._gaps > MAX_GAPS:
            self.forget()
            raise TransportError(f"gap after gap, the last: {why}")
        self._waiting[key] = 0
        self._seqs.pop(key, None)
        channel, symbol = key
        return [Interruption(symbol, why)], [json.dumps({"action": "RESYNC", "channels": [channel], "symbols": [symbol]})]
