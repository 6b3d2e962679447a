"""An order book, by levels or by orders, kept by a snapshot and the updates after it."""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Optional

from ._decode import decimal
from .errors import ProtocolError
from .models import Level

#: Levels a side that the checksum is over.
CHECKSUM_LEVELS = 10
#: Most levels a side that a book keeps, and most orders: more than the service has.
MAX_LEVELS = 10_000


class OutOfStep(ProtocolError):
    """The book is not the service's any more: a gap, or another checksum."""


class OrderBook:
    """The order book of one symbol, made from the stream.

    ``seq`` and ``epoch`` say where it stands; they are REST's too. Prices and
    quantities are exact. Not safe for concurrent use: it belongs to its stream.
    """

    def __init__(self, symbol: str) -> None:
        self.symbol = symbol
        self.epoch = ""
        self.seq = 0
        self._bids = _Side(descending=True)
        self._asks = _Side(descending=False)

    @property
    def bids(self) -> list[Level]:
        """Bids, the highest price first."""
        return self._bids.levels()

    @property
    def asks(self) -> list[Level]:
        """Asks, the lowest price first."""
        return self._asks.levels()

    @property
    def best_bid(self) -> Optional[Level]:
        """The first of bids; None where there is none."""
        return self._bids.best()

    @property
    def best_ask(self) -> Optional[Level]:
        """The first of asks; None where there is none."""
        return self._asks.best()

    @property
    def mid(self) -> Optional[Decimal]:
        """The middle of the two best prices; None where a side is empty."""
        bid, ask = self.best_bid, self.best_ask
        return (bid.price + ask.price) / 2 if bid and ask else None

    def __repr__(self) -> str:
        bid, ask = (str(level.price) if level else "none" for level in (self.best_bid, self.best_ask))
        return f"OrderBook({self.symbol} {self.epoch} {self.seq}: {bid} / {ask})"

    def apply(self, message: dict[str, Any]) -> None:
        """Takes in an l2 message of the stream.

        OutOfStep where it does not follow what is there, or where the book has not
        its checksum afterwards: what is there is not to be used until a snapshot came.
        """
        seq, previous, epoch = message.get("seq"), message.get("prev_seq"), message.get("epoch")
        if not isinstance(seq, int) or not isinstance(epoch, str):
            raise ProtocolError("an l2 message without seq and epoch")
        if message.get("type") == "snapshot":
            self._bids.clear()
            self._asks.clear()
        elif epoch != self.epoch or previous != self.seq:
            raise OutOfStep(f"{self.symbol}: {epoch} {seq} after {previous}, and the book is at {self.epoch} {self.seq}")
        self._bids.change(message.get("bids"))
        self._asks.change(message.get("asks"))
        self.epoch, self.seq = epoch, seq
        want = message.get("checksum")
        if want is not None and want != self.checksum():
            raise OutOfStep(f"{self.symbol}: checksum {self.checksum()} at {epoch} {seq}, the service has {want}")

    def checksum(self) -> int:
        """CRC-32 over the first ten asks, then the first ten bids, best first: of each
        the digits of price and quantity without the point and leading zeros."""
        digits = self._asks.digits(CHECKSUM_LEVELS) + self._bids.digits(CHECKSUM_LEVELS)
        return zlib.crc32(digits.encode("ascii"))


class _Side:
    def __init__(self, descending: bool) -> None:
        self._descending = descending
        self._keys: list[Decimal] = []  # prices, best first; negated for bids
        self._levels: dict[Decimal, tuple[Level, str]] = {}  # with its digits

    def clear(self) -> None:
        self._keys.clear()
        self._levels.clear()

    def change(self, changes: Any) -> None:
        if not isinstance(changes, list):
            raise ProtocolError("an l2 message without its levels")
        for change in changes:
            if not isinstance(change, list) or len(change) != 2 or not all(isinstance(n, str) for n in change):
                raise ProtocolError(f"no level: {change!r:.80}")
            self._set(change)

    def _set(self, change: Sequence[str]) -> None:
        price, quantity = decimal(change[0], "price"), decimal(change[1], "quantity")
        key = price.copy_negate() if self._descending else price  # exact, whatever the context's precision
        at = bisect_left(self._keys, key)
        there = at < len(self._keys) and self._keys[at] == key
        if quantity == 0:
            if there:
                del self._keys[at], self._levels[key]
            return
        if not there:
            if len(self._keys) >= MAX_LEVELS:
                raise ProtocolError(f"a book of more than {MAX_LEVELS} levels")
            self._keys.insert(at, key)
        self._levels[key] = (Level(price, quantity), _digits(change[0]) + _digits(change[1]))

    def best(self) -> Optional[Level]:
        return self._levels[self._keys[0]][0] if self._keys else None

    def levels(self) -> list[Level]:
        return [self._levels[key][0] for key in self._keys]

    def digits(self, count: int) -> str:
        return "".join(self._levels[key][1] for key in self._keys[:count])


@dataclass(frozen=True)
class BookOrder:
    """A displayed order. Its owner has ``order_id`` as the OrderID of its reports."""

    order_id: str
    price: Decimal
    quantity: Decimal


class OrdersBook:
    """The order book of one symbol, order by order, made from the channel ``l3``.

    ``seq`` and ``epoch`` are those of l2. Not safe for concurrent use: it belongs to
    its stream.
    """

    def __init__(self, symbol: str) -> None:
        self.symbol = symbol
        self.epoch = ""
        self.seq = 0
        self._bids = _Queues(descending=True)
        self._asks = _Queues(descending=False)

    @property
    def bids(self) -> list[BookOrder]:
        """Bids, the highest price first, each price in the order of its priority."""
        return [order for order, _ in self._bids.orders()]

    @property
    def asks(self) -> list[BookOrder]:
        """Asks, the lowest price first, each price in the order of its priority."""
        return [order for order, _ in self._asks.orders()]

    def __repr__(self) -> str:
        return f"OrdersBook({self.symbol} {self.epoch} {self.seq}: {len(self.bids)} bids, {len(self.asks)} asks)"

    def apply(self, message: dict[str, Any]) -> None:
        """Takes in an l3 message of the stream.

        OutOfStep as in :meth:`OrderBook.apply`.
        """
        seq, previous, epoch = message.get("seq"), message.get("prev_seq"), message.get("epoch")
        if not isinstance(seq, int) or not isinstance(epoch, str):
            raise ProtocolError("an l3 message without seq and epoch")
        if message.get("type") == "snapshot":
            self._bids.clear()
            self._asks.clear()
        elif epoch != self.epoch or previous != self.seq:
            raise OutOfStep(f"{self.symbol}: {epoch} {seq} after {previous}, and the orders are at {self.epoch} {self.seq}")
        self._bids.change(message.get("bids"))
        self._asks.change(message.get("asks"))
        self.epoch, self.seq = epoch, seq
        if message.get("checksum") != self.checksum():
            raise OutOfStep(f"{self.symbol}: checksum {self.checksum()} at {epoch} {seq}, the service has {message.get('checksum')}")

    def checksum(self) -> int:
        """CRC-32 over the first ten asks, then the first ten bids: of each its id, then
        the digits of price and quantity without the point and leading zeros."""
        digits = self._asks.digits(CHECKSUM_LEVELS) + self._bids.digits(CHECKSUM_LEVELS)
        return zlib.crc32(digits.encode("ascii"))


class _Queues:
    """The orders of one side: a queue for each price."""

    def __init__(self, descending: bool) -> None:
        self._descending = descending
        self._keys: list[Decimal] = []  # prices, best first; negated for bids
        self._queues: dict[Decimal, dict[str, tuple[BookOrder, str]]] = {}  # by id, with its digits
        self._key_of: dict[str, Decimal] = {}

    def clear(self) -> None:
        self._keys.clear()
        self._queues.clear()
        self._key_of.clear()

    def change(self, changes: Any) -> None:
        if not isinstance(changes, list):
            raise ProtocolError("an l3 message without its orders")
        for change in changes:
            if not isinstance(change, list) or len(change) != 3 or not all(isinstance(n, str) for n in change):
                raise ProtocolError(f"no order: {change!r:.80}")
            self._set(*change)

    def _set(self, order_id: str, price_text: str, quantity_text: str) -> None:
        price, quantity = decimal(price_text, "price"), decimal(quantity_text, "quantity")
        key = price.copy_negate() if self._descending else price
        known = self._key_of.get(order_id)
        if quantity == 0:
            if known is None:
                raise OutOfStep(f"order {order_id} is deleted and was not there")
            del self._key_of[order_id], self._queues[known][order_id]
            if not self._queues[known]:
                del self._queues[known], self._keys[bisect_left(self._keys, known)]
            return
        if known is not None and known != key:
            raise OutOfStep(f"order {order_id} has another price and was not deleted")
        if known is None and len(self._key_of) >= MAX_LEVELS:
            raise ProtocolError(f"a book of more than {MAX_LEVELS} orders")
        if key not in self._queues:
            self._keys.insert(bisect_left(self._keys, key), key)
            self._queues[key] = {}
        self._key_of[order_id] = key
        # A dict keeps the place of an order that it has, and puts a new one behind the others.
        self._queues[key][order_id] = (BookOrder(order_id, price, quantity), order_id + _digits(price_text) + _digits(quantity_text))

    def orders(self) -> Iterator[tuple[BookOrder, str]]:
        for key in self._keys:
            yield from self._queues[key].values()

    def digits(self, count: int) -> str:
        return "".join(digits for _, (_, digits) in zip(range(count), self.orders()))


def _digits(text: str) -> str:
    return text.replace(".", "").lstrip("0")
