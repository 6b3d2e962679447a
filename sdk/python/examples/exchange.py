"""An exchange class in the manner of ccxt: the same methods, structures and errors, so
that what is written for ccxt's exchanges takes little to run here. ccxt is not needed.

Numbers are Decimal, or what ``number`` makes of their text: ``Exchange(number=float)``
is what ccxt does. Orders go over FIX. watch_order_book is a coroutine, as in ccxt.pro.

    python3 sdk/python/examples/exchange.py --base http://127.0.0.1:8080 --fix 127.0.0.1:9878
"""

from __future__ import annotations

import argparse
import asyncio
from datetime import datetime
from decimal import Decimal
from typing import Any, Callable, Optional

from blockdesk import AsyncClient, BlockdeskError, BookEvent, Client, FixClient, InvalidRequest, RateLimited, TransportError
from blockdesk.feed import StreamEvent, SubscriptionRefused
from blockdesk.fix import Execution, FixRefused
from blockdesk.stream import AsyncStream


class ExchangeError(Exception):
    """The root of what can go wrong, as in ccxt."""


class NotSupported(ExchangeError):
    """The exchange has no such thing."""


class BadSymbol(ExchangeError):
    """There is no such market."""


class InvalidOrder(ExchangeError):
    """The order was refused."""


class NetworkError(ExchangeError):
    """It may go through when tried again."""


class RateLimitExceeded(NetworkError):
    """Too many requests."""


class Exchange:
    """blockdesk by ccxt's unified methods."""

    id = "blockdesk"
    timeframes = {i: i for i in ("1m", "5m", "15m", "1h", "4h", "1d")}
    has = {
        "fetchMarkets": True, "fetchOrderBook": True, "fetchTicker": True, "fetchTrades": True, "fetchOHLCV": True,
        "createOrder": True, "cancelOrder": True, "watchOrderBook": True, "fetchBalance": False, "fetchMyTrades": False,
    }  # fmt: skip

    def __init__(
        self, base: str = "http://127.0.0.1:8080", fix: Optional[str] = None, user: str = "", password: str = "",
        number: Callable[[str], Any] = Decimal,
    ) -> None:  # fmt: skip
        self._base, self._number = base, number
        self._client = Client(base)
        self._fix_at = (fix, user, password)
        self._fix: Optional[FixClient] = None
        self._orders: dict[str, Execution] = {}
        self._streams: dict[str, AsyncStream] = {}
        self.markets: dict[str, Any] = {}

    def load_markets(self) -> dict[str, Any]:
        """The markets by symbol, asked for once."""
        self.markets = self.markets or {m["symbol"]: m for m in self.fetch_markets()}
        return self.markets

    def fetch_markets(self) -> list[dict[str, Any]]:
        return [
            {
                "id": s.symbol, "symbol": s.symbol, "base": s.base, "quote": s.quote, "spot": True, "type": "spot",
                "active": s.status == "trading", "precision": {"price": self._of(s.tick_size), "amount": self._of(s.lot_size)},
                "limits": {"amount": {"min": self._of(s.min_qty), "max": self._of(s.max_qty)}, "price": {"max": self._of(s.max_price)}},
                "info": s,
            }
            for s in self._ask(self._client.market.symbols).symbols
        ]  # fmt: skip

    def fetch_order_book(self, symbol: str, limit: Optional[int] = None) -> dict[str, Any]:
        d = self._ask(self._client.market.depth, symbol, limit=limit)
        return self._book(symbol, d.bids, d.asks, d.ts, d.seq)

    def fetch_ticker(self, symbol: str) -> dict[str, Any]:
        t = self._ask(self._client.market.ticker, symbol)
        return {
            "symbol": symbol, **_times(t.ts), "high": self._of(t.high_24h), "low": self._of(t.low_24h),
            "bid": self._of(t.bid), "bidVolume": self._of(t.bid_qty), "ask": self._of(t.ask), "askVolume": self._of(t.ask_qty),
            "open": self._of(t.open_24h), "close": self._of(t.last), "last": self._of(t.last),
            "baseVolume": self._of(t.volume_24h), "quoteVolume": self._of(t.quote_volume_24h), "info": t,
        }  # fmt: skip

    def fetch_trades(self, symbol: str, since: Optional[int] = None, limit: Optional[int] = None) -> list[dict[str, Any]]:
        """The newest trades, the oldest first, as ccxt has them."""
        trades = reversed(self._ask(self._client.market.trades, symbol, limit=limit).trades)
        rows = [
            {
                "id": str(t.trade_id), "symbol": symbol, "side": t.side, "price": self._of(t.price), "amount": self._of(t.qty),
                "cost": self._of(t.price * t.qty), **_times(t.ts), "info": t,
            }
            for t in trades
        ]  # fmt: skip
        return [r for r in rows if since is None or r["timestamp"] >= since]

    def fetch_ohlcv(self, symbol: str, timeframe: str = "1m", since: Optional[int] = None, limit: Optional[int] = None) -> list[list[Any]]:
        candles = self._ask(self._client.market.klines, symbol, interval=timeframe, limit=limit).klines
        rows = [[c.open_ms, *map(self._of, (c.open, c.high, c.low, c.close, c.volume))] for c in candles]
        return [r for r in rows if since is None or r[0] >= since]

    def create_order(
        self, symbol: str, type: str, side: str, amount: Any, price: Any = None, params: Optional[dict[str, Any]] = None
    ) -> dict[str, Any]:
        """A limit or market order over FIX; params: timeInForce, postOnly, clientOrderId."""
        p = params or {}
        if type not in ("limit", "market") or (type == "limit") != (price is not None):
            raise InvalidOrder("a limit order with a price, or a market order without one")
        order = self._trade(
            "order", symbol, side, Decimal(str(amount)), None if price is None else Decimal(str(price)),
            tif=str(p.get("timeInForce", "gtc")).lower(), post_only=bool(p.get("postOnly")), cl_ord_id=p.get("clientOrderId"),
        )  # fmt: skip
        self._orders[order.order_id] = order
        return self._order(order)

    def cancel_order(self, id: str, symbol: Optional[str] = None) -> dict[str, Any]:
        if id not in self._orders:
            raise InvalidOrder(f"no order {id} of this session")
        canceled = self._order(self._trade("cancel", self._orders[id]))
        del self._orders[id]  # not before: a caller without an answer asks again
        return canceled

    def fetch_balance(self) -> dict[str, Any]:
        raise NotSupported("blockdesk keeps no balances: assets stay in your wallet until they are exchanged")

    async def watch_order_book(self, symbol: str, limit: Optional[int] = None) -> dict[str, Any]:
        """The order book after its next change; the stream stays open between calls."""
        if symbol not in self._streams:
            self._streams[symbol] = AsyncClient(self._base).stream([symbol], channels=["l2"])
        event: StreamEvent
        try:
            async for event in self._streams[symbol]:
                if isinstance(event, BookEvent):
                    return self._book(symbol, event.book.bids[:limit], event.book.asks[:limit], event.ts, event.book.seq)
        except BlockdeskError as e:
            del self._streams[symbol]  # it has ended: the next call begins another
            raise (BadSymbol if isinstance(e, SubscriptionRefused) else NetworkError)(str(e)) from e
        raise NetworkError("the stream was closed")

    async def close(self) -> None:
        """Ends the FIX session and the streams."""
        for stream in self._streams.values():
            await stream.close()
        if self._fix:
            self._fix.close()
        self._client.close()

    def _session(self) -> FixClient:
        address, user, password = self._fix_at
        if address is None:
            raise NotSupported("orders go over FIX: name its address, user and password")
        self._fix = self._fix or FixClient(address, user, password)
        return self._fix

    def _trade(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Calls a method of the FIX session, which is begun anew after it broke."""
        try:
            return getattr(self._session(), method)(*arguments, **named)
        except FixRefused as e:
            raise (BadSymbol if e.code == "UNKNOWN_SYMBOL" else InvalidOrder)(str(e)) from e
        except TransportError as e:
            session, self._fix = self._fix, None
            if session:
                session.close()
            raise NetworkError(str(e)) from e

    def _ask(self, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except RateLimited as e:
            raise RateLimitExceeded(str(e)) from e
        except TransportError as e:
            raise NetworkError(str(e)) from e
        except InvalidRequest as e:
            raise (BadSymbol if e.code == "UNKNOWN_SYMBOL" else ExchangeError)(str(e)) from e
        except BlockdeskError as e:
            raise ExchangeError(str(e)) from e

    def _of(self, value: Optional[Decimal]) -> Any:
        return None if value is None else self._number(format(value, "f"))

    def _book(self, symbol: str, bids: Any, asks: Any, ts: Optional[datetime], nonce: int) -> dict[str, Any]:
        sides = {
            name: [[self._of(level.price), self._of(level.quantity)] for level in levels]
            for name, levels in (("bids", bids), ("asks", asks))
        }
        return {"symbol": symbol, **sides, **_times(ts), "nonce": nonce}

    def _order(self, e: Execution) -> dict[str, Any]:
        status = {"2": "closed", "4": "canceled", "C": "expired", "8": "rejected"}.get(e.status, "open")
        return {
            "id": e.order_id, "clientOrderId": e.cl_ord_id, "symbol": e.symbol, "side": e.side, "status": status,
            "filled": self._of(e.filled), "remaining": self._of(e.left), "average": self._of(e.average_price), "info": e,
        }  # fmt: skip


def _times(at: Optional[datetime]) -> dict[str, Any]:
    return {
        "timestamp": None if at is None else int(at.timestamp() * 1000),
        "datetime": None if at is None else at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }


async def show(exchange: Exchange, symbol: str) -> None:
    """Uses every method once."""
    print("markets:", ", ".join(exchange.load_markets()))
    book = exchange.fetch_order_book(symbol, 5)
    print("order book:", book["bids"][0], book["asks"][0])
    print("ticker: last", exchange.fetch_ticker(symbol)["last"])
    print("trades:", [(t["side"], str(t["price"])) for t in exchange.fetch_trades(symbol, limit=3)])
    print("ohlcv:", [str(c) for c in exchange.fetch_ohlcv(symbol, "1m", limit=1)[0]])
    best = book["bids"][0][0]
    order = exchange.create_order(symbol, "limit", "buy", 5, (best * Decimal("0.95")).quantize(Decimal("0.001")))
    print("order:", order["status"], "then", exchange.cancel_order(order["id"])["status"])
    for _ in range(3):
        watched = await exchange.watch_order_book(symbol, 1)
        print("watched:", watched["nonce"], watched["bids"], watched["asks"])
    try:
        exchange.fetch_balance()
    except NotSupported as e:
        print("balance:", e)


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--base", default="http://127.0.0.1:8080", help="the service's main address")
    options.add_argument("--fix", default="127.0.0.1:9878", help="the service's FIX address")
    options.add_argument("--user", default="GUEST", help="CompID and user name")
    options.add_argument("--password", default="demo")
    options.add_argument("--symbol", default="SLUSD/USDC")
    o = options.parse_args()
    exchange = Exchange(o.base, o.fix, o.user, o.password)
    try:
        await show(exchange, o.symbol)
    finally:
        await exchange.close()


if __name__ == "__main__":
    asyncio.run(main())
