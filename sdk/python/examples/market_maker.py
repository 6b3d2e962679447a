"""A market maker: rebuilds the order book from the stream, and quotes around its middle.

The book is kept without a gap and held to its checksum. While it is not known to be
right, after a gap or a broken connection, nothing is quoted. Both quotes are post-only
and are cancelled by the service should this program die.

    python3 sdk/python/examples/market_maker.py --base http://127.0.0.1:8080 --fix 127.0.0.1:9878
"""

from __future__ import annotations

import argparse
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Optional

from blockdesk import BookEvent, Client, Connected, FixClient, Interruption
from blockdesk.fix import Execution, FixRefused


class Quoter:
    """One bid and one ask, which follow the middle of the book."""

    def __init__(self, fix: FixClient, symbol: str, tick: Decimal, quantity: Decimal, half_spread: Decimal) -> None:
        self._fix, self._symbol, self._tick = fix, symbol, tick
        self._quantity, self._half = quantity, half_spread
        self._orders: dict[str, Execution] = {}
        self._prices: dict[str, Decimal] = {}

    def follow(self, mid: Decimal) -> None:
        """Moves the quotes where the middle has moved by more than half of their distance."""
        for side, sign, rounding in (("buy", -1, ROUND_FLOOR), ("sell", 1, ROUND_CEILING)):
            steps = (mid * (1 + sign * self._half) / self._tick).to_integral_value(rounding)
            price = steps * self._tick
            if abs(price - self._prices.get(side, Decimal(0))) <= mid * self._half / 2:
                continue
            self._pull(side)
            try:
                self._orders[side] = self._fix.order(self._symbol, side, self._quantity, price, post_only=True)
                self._prices[side] = price
                print(f"quote {side} {self._quantity} at {price}")
            except FixRefused as e:
                print(f"no {side} at {price}: {e}")

    def stop(self) -> None:
        """Takes both quotes away."""
        for side in list(self._orders):
            self._pull(side)

    def _pull(self, side: str) -> None:
        self._prices.pop(side, None)
        order: Optional[Execution] = self._orders.pop(side, None)
        if order and not order.ended:
            try:
                self._fix.cancel(order)
            except FixRefused as e:
                print(f"{side} is gone already: {e.code}")  # filled: its report has come


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--base", default="http://127.0.0.1:8080", help="the service's main address")
    options.add_argument("--fix", default="127.0.0.1:9878", help="the service's FIX address")
    options.add_argument("--user", default="GUEST", help="CompID and user name")
    options.add_argument("--password", default="demo")
    options.add_argument("--symbol", default="SLUSD/USDC")
    options.add_argument("--quantity", type=Decimal, default=Decimal(5))
    options.add_argument("--half-spread", type=Decimal, default=Decimal("0.003"))
    options.add_argument("--updates", type=int, default=30, help="book updates until it ends; 0: it does not")
    o = options.parse_args()
    client = Client(o.base)
    tick = next(s.tick_size for s in client.market.symbols().symbols if s.symbol == o.symbol)
    updates = 0
    with FixClient(o.fix, o.user, o.password) as fix, client.stream([o.symbol], channels=["l2"]) as stream:
        quoter = Quoter(fix, o.symbol, tick, o.quantity, o.half_spread)
        for event in stream:
            if isinstance(event, Interruption):
                print(f"stopped: {event.reason}")
                quoter.stop()
            elif isinstance(event, Connected):
                print(f"connected: epoch {event.epoch}, resumed {event.resumed}")
            elif isinstance(event, BookEvent):
                updates += 1
                if event.snapshot:
                    print(f"snapshot: {len(event.book.bids)} bids, {len(event.book.asks)} asks, checksum {event.book.checksum()}")
                if event.book.mid is not None:
                    quoter.follow(event.book.mid)
                while (report := fix.receive(timeout=0)) is not None:
                    print("report:", report.get(150), report.get(58), report.get(32), report.get(31))
                if updates == o.updates:
                    break
        quoter.stop()
    print(f"{updates} updates: {stream.books[o.symbol]}")


if __name__ == "__main__":
    main()
