"""The service as an exchange of ccxt: its unified methods, structures and exceptions.

    from blockdesk.exchange import Exchange

    exchange = Exchange("http://127.0.0.1:8080", fix="127.0.0.1:9878", user="GUEST", password="demo")
    print(exchange.fetch_ticker("SLUSD/USDC")["last"])

ccxt is not needed; where it is installed, the exceptions are its own, so ``except
ccxt.BadSymbol`` works. Numbers are Decimal, or what ``number`` makes of their text:
``Exchange(number=float)`` is what ccxt does. Orders go over FIX. ``watch_`` methods are
coroutines, as in ccxt.pro.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from datetime import datetime, timezone
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from typing import Any, Callable, Optional

from .aio import AsyncClient
from .ccxt_errors import (
    AuthenticationError,
    BadRequest,
    BadSymbol,
    DuplicateOrderId,
    ExchangeError,
    ExchangeNotAvailable,
    InvalidOrder,
    NetworkError,
    NotSupported,
    OrderNotFound,
    RateLimitExceeded,
    RequestTimeout,
)
from .client import Client
from .errors import BlockdeskError, InvalidRequest, RateLimited, TimedOut, TransportError, Unavailable
from .feed import BookEvent, StreamEvent, SubscriptionRefused, TickerEvent, TradesEvent
from .fix import Execution, FixClient, FixFill, FixMessage, FixRefused
from .stream import AsyncStream

#: Statuses of an order (39) by ccxt's words.
_STATUS = {"2": "closed", "4": "canceled", "C": "expired", "8": "rejected"}
#: TimeInForce (59) by ccxt's words; a day has no end here.
_TIF = {"0": "GTC", "1": "GTC", "3": "IOC", "4": "FOK", "6": "GTC"}
_TYPES = {"1": "market", "2": "limit", "3": "market", "4": "limit"}
_REFUSALS = {"UNKNOWN_SYMBOL": BadSymbol, "DUPLICATE_CLORDID": DuplicateOrderId, "UNKNOWN_ORDER": OrderNotFound, "RATE_LIMITED": RateLimitExceeded}


class Exchange:
    """blockdesk by ccxt's unified methods. Use it from one thread."""

    id, name = "blockdesk", "blockdesk"
    timeframes = {i: i for i in ("1m", "5m", "15m", "1h", "4h", "1d")}
    has = {
        "fetchMarkets": True, "fetchCurrencies": True, "fetchOrderBook": True, "fetchTicker": True, "fetchTickers": True, "fetchTrades": True, "fetchOHLCV": True,
        "createOrder": True, "editOrder": True, "cancelOrder": True, "cancelAllOrders": True, "fetchOrder": True, "fetchOpenOrders": True,
        "fetchMyTrades": True, "fetchPositions": True, "fetchBalance": True, "fetchOrders": False, "fetchClosedOrders": False,
        "watchOrderBook": True, "watchTicker": True, "watchTrades": True, "watchOrders": True,
    }  # fmt: skip

    def __init__(
        self, base: str = "http://127.0.0.1:8080", fix: Optional[str] = None, user: str = "", password: str = "",
        number: Callable[[str], Any] = Decimal, *, wallet: Optional[str] = None, rpc_url: Optional[str] = None,
    ) -> None:  # fmt: skip
        """fix is the FIX address for orders; wallet and rpc_url are for fetch_balance."""
        self._base, self._number, self._wallet = base, number, wallet
        self._client = Client(base, rpc_url=rpc_url)
        self._fix_at = (fix, user, password)
        self._fix: Optional[FixClient] = None
        self._orders: dict[str, Execution] = {}
        self._streams: dict[tuple[str, str], AsyncStream] = {}
        self.markets: dict[str, Any] = {}
        self.currencies: dict[str, Any] = {}

    # Markets.

    def load_markets(self, reload: bool = False) -> dict[str, Any]:
        """The markets by symbol, asked for once."""
        if reload or not self.markets:
            self.markets = {m["symbol"]: m for m in self.fetch_markets()}
            self.currencies = self.fetch_currencies()
        return self.markets

    def market(self, symbol: str) -> dict[str, Any]:
        """One market. BadSymbol: there is none."""
        try:
            found: dict[str, Any] = self.load_markets()[symbol]
        except KeyError:
            raise BadSymbol(f"{self.id} has no market {symbol}") from None
        return found

    def price_to_precision(self, symbol: str, price: Any) -> str:
        """A price as a multiple of the tick, half up."""
        return _multiple(price, self.market(symbol)["precision"]["price"], ROUND_HALF_UP)

    def amount_to_precision(self, symbol: str, amount: Any) -> str:
        """An amount as a multiple of the lot, rounded down."""
        return _multiple(amount, self.market(symbol)["precision"]["amount"], ROUND_DOWN)

    def fetch_markets(self) -> list[dict[str, Any]]:
        return [
            {
                "id": s.symbol, "symbol": s.symbol, "base": s.base, "quote": s.quote, "baseId": s.base, "quoteId": s.quote,
                "active": s.status == "trading", "type": "spot", "spot": True, "margin": False, "swap": False, "future": False,
                "option": False, "contract": False, "linear": None, "inverse": None, "contractSize": None, "settle": None, "settleId": None,
                "expiry": None, "expiryDatetime": None, "strike": None, "optionType": None, "subType": None,
                "taker": self._number("0"), "maker": self._number("0"), "created": None, "marginModes": {"cross": False, "isolated": False},
                "precision": {"price": self._of(s.tick_size), "amount": self._of(s.lot_size), "cost": None},
                "limits": {
                    "amount": {"min": self._of(s.min_qty), "max": self._of(s.max_qty)},
                    "price": {"min": self._of(s.tick_size), "max": self._of(s.max_price)},
                    "cost": {"min": None, "max": None}, "leverage": {"min": None, "max": None},
                },
                "info": _raw(s),
            }
            for s in self._ask(self._client.market.symbols).symbols
        ]  # fmt: skip

    def fetch_currencies(self) -> dict[str, Any]:
        """The tokens by symbol."""
        return {
            t.symbol: {
                "id": t.symbol, "code": t.symbol, "numericId": None, "name": t.name, "type": "crypto", "active": True, "margin": None,
                "deposit": False, "withdraw": False, "fee": None, "fees": {}, "networks": {}, "precision": self._of(Decimal(1).scaleb(-t.decimals)),
                "limits": {"deposit": {"min": None, "max": None}, "withdraw": {"min": None, "max": None}, "amount": {"min": None, "max": None}},
                "info": _raw(t),
            }
            for t in self._ask(self._client.market.tokens).tokens
        }  # fmt: skip

    # Market data.

    def fetch_order_book(self, symbol: str, limit: Optional[int] = None) -> dict[str, Any]:
        d = self._ask(self._client.market.depth, symbol, limit=limit)
        return self._book(symbol, d.bids, d.asks, d.ts, d.seq)

    def fetch_ticker(self, symbol: str) -> dict[str, Any]:
        return self._ticker(symbol, self._ask(self._client.market.ticker, symbol))

    def fetch_tickers(self, symbols: Optional[list[str]] = None) -> dict[str, Any]:
        return {symbol: self.fetch_ticker(symbol) for symbol in symbols or self.load_markets()}

    def fetch_trades(self, symbol: str, since: Optional[int] = None, limit: Optional[int] = None) -> list[dict[str, Any]]:
        """The newest trades, the oldest first, as ccxt has them."""
        trades = reversed(self._ask(self._client.market.trades, symbol, limit=limit).trades)
        return _since([self._trade(symbol, t) for t in trades], since)

    def fetch_ohlcv(self, symbol: str, timeframe: str = "1m", since: Optional[int] = None, limit: Optional[int] = None) -> list[list[Any]]:
        candles = self._ask(self._client.market.klines, symbol, interval=timeframe, limit=limit).klines
        rows = [[c.open_ms, *map(self._of, (c.open, c.high, c.low, c.close, c.volume))] for c in candles]
        return [r for r in rows if since is None or r[0] >= since]

    # Orders.

    def create_order(
        self, symbol: str, type: str, side: str, amount: Any, price: Any = None, params: Optional[dict[str, Any]] = None
    ) -> dict[str, Any]:
        """A limit or market order over FIX; params: timeInForce, postOnly, clientOrderId."""
        p = params or {}
        if type not in ("limit", "market") or (type == "limit") != (price is not None):
            raise InvalidOrder("a limit order with a price, or a market order without one")
        return self._keep(self._order_over_fix(
            "order", symbol, side, Decimal(str(amount)), None if price is None else Decimal(str(price)),
            tif=str(p.get("timeInForce", "gtc")).lower(), post_only=bool(p.get("postOnly")), cl_ord_id=p.get("clientOrderId"),
        ))  # fmt: skip

    def edit_order(self, id: str, symbol: str, type: str, side: str, amount: Any = None, price: Any = None) -> dict[str, Any]:
        """Changes the whole amount and the price of a limit order."""
        e = self._execution(id, symbol)
        if type != "limit" or side != e.side:
            raise InvalidOrder("type and side of an order stay")
        amount = e.filled + e.left if amount is None else Decimal(str(amount))
        price = e.message.number(44) if price is None else Decimal(str(price))
        return self._keep(self._order_over_fix("replace", e, amount, price))

    def cancel_order(self, id: str, symbol: Optional[str] = None) -> dict[str, Any]:
        canceled = self._order_over_fix("cancel", self._execution(id, symbol))
        self._orders.pop(id, None)  # not before: a caller without an answer asks again
        return self._order(canceled)

    def cancel_all_orders(self, symbol: Optional[str] = None) -> list[dict[str, Any]]:
        """Cancels the participant's orders, and returns those of this session that it ended."""
        open_before = self._order_over_fix("open_orders", symbol)
        self._order_over_fix("cancel_all", symbol)
        left = {e.order_id for e in self._order_over_fix("open_orders", symbol)}
        ended = [e for e in open_before if e.order_id not in left]
        for e in ended:
            self._orders.pop(e.order_id, None)
        return [{**self._order(e), "status": "canceled"} for e in ended]

    def fetch_order(self, id: str, symbol: Optional[str] = None) -> dict[str, Any]:
        """An order of this session: an open one, or one that this object has placed."""
        e = self._execution(id, symbol)
        return self._keep(self._order_over_fix("order_status", e.symbol, e.side, order_id=id, cl_ord_id=e.cl_ord_id))

    def fetch_open_orders(self, symbol: Optional[str] = None, since: Optional[int] = None, limit: Optional[int] = None) -> list[dict[str, Any]]:
        orders = _since([self._keep(e) for e in self._order_over_fix("open_orders", symbol)], since)
        return orders if limit is None else orders[-limit:]

    def fetch_my_trades(self, symbol: Optional[str] = None, since: Optional[int] = None, limit: Optional[int] = None) -> list[dict[str, Any]]:
        """Fills of this session's orders of yesterday and today (UTC), the oldest first."""
        begin = None if since is None else datetime.fromtimestamp(since / 1000, timezone.utc)
        trades = [self._own_trade(f) for f in self._order_over_fix("fills", symbol, begin)]
        return trades if limit is None else trades[-limit:]

    def fetch_positions(self, symbols: Optional[list[str]] = None) -> list[dict[str, Any]]:
        """What the participant has bought less what it has sold."""
        return [
            {
                "symbol": p.symbol, "side": "long" if p.net >= 0 else "short", "contracts": self._of(abs(p.net)),
                "contractSize": self._number("1"), "lastPrice": self._of(p.last_price), **_times(None), "info": _raw(p),
            }
            for p in self._order_over_fix("positions")
            if symbols is None or p.symbol in symbols
        ]  # fmt: skip

    def fetch_balance(self) -> dict[str, Any]:
        """What the wallet holds on the chain: the service keeps no balances."""
        if self._wallet is None:
            raise NotSupported("blockdesk keeps no balances: name your wallet and a Solana node, Exchange(wallet=..., rpc_url=...)")
        held = {code: self._of(amount) for code, amount in self._ask(self._client.balances, self._wallet).items()}
        nothing = {code: self._number("0") for code in held}
        each = {code: {"free": amount, "used": nothing[code], "total": amount} for code, amount in held.items()}
        return {"info": {code: str(amount) for code, amount in held.items()}, **_times(None), **each, "free": dict(held), "used": nothing, "total": dict(held)}

    # Streams.

    async def watch_order_book(self, symbol: str, limit: Optional[int] = None) -> dict[str, Any]:
        """The order book after its next change; the stream stays open between calls."""
        async for event in self._events(symbol, "l2"):
            if isinstance(event, BookEvent):
                return self._book(symbol, event.book.bids[:limit], event.book.asks[:limit], event.ts, event.book.seq)
        raise NetworkError("the stream was closed")

    async def watch_ticker(self, symbol: str) -> dict[str, Any]:
        """The ticker after its next change."""
        async for event in self._events(symbol, "ticker"):
            if isinstance(event, TickerEvent):
                return self._ticker(symbol, event)
        raise NetworkError("the stream was closed")

    async def watch_trades(self, symbol: str) -> list[dict[str, Any]]:
        """The next trades."""
        async for event in self._events(symbol, "trades"):
            if isinstance(event, TradesEvent) and event.trades:
                return [self._trade(symbol, t) for t in event.trades]
        raise NetworkError("the stream was closed")

    async def watch_orders(self, symbol: Optional[str] = None) -> list[dict[str, Any]]:
        """The next change of an order that no call of this object waits for, such as a fill."""
        session = self._session()
        while True:
            try:
                m = await asyncio.to_thread(session.receive, 0.2)
            except BlockdeskError as e:
                raise NetworkError(str(e)) from e
            if m is not None and m.type == "8" and m.get(40) != "D" and symbol in (None, m.get(55)):
                return [self._keep(Execution.of(m))]

    async def close(self) -> None:
        """Ends the FIX session and the streams."""
        for stream in self._streams.values():
            await stream.close()
        self._streams.clear()
        if self._fix:
            self._fix.close()
        self._client.close()

    async def _events(self, symbol: str, channel: str) -> AsyncIterator[StreamEvent]:
        key = (symbol, channel)
        if key not in self._streams:
            self._streams[key] = AsyncClient(self._base).stream([symbol], channels=[channel])
        try:
            async for event in self._streams[key]:
                yield event
        except BlockdeskError as e:
            del self._streams[key]  # it has ended: the next call begins another
            raise (BadSymbol if isinstance(e, SubscriptionRefused) else NetworkError)(str(e)) from e

    # Calls and their failures.

    def _session(self) -> FixClient:
        address, user, password = self._fix_at
        if address is None:
            raise NotSupported("orders go over FIX: name its address, user and password")
        if self._fix is None:
            try:
                self._fix = FixClient(address, user, password)
            except FixRefused as e:
                raise AuthenticationError(str(e)) from e
            except TransportError as e:
                raise NetworkError(str(e)) from e
        return self._fix

    def _order_over_fix(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Calls a method of the FIX session, which is begun anew after it broke."""
        session = self._session()
        try:
            return getattr(session, method)(*arguments, **named)
        except FixRefused as e:
            raise _REFUSALS.get(e.code, InvalidOrder)(str(e)) from e
        except TransportError as e:
            self._fix = None
            session.close()
            raise (RequestTimeout if isinstance(e, TimedOut) else NetworkError)(str(e)) from e

    def _ask(self, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except RateLimited as e:
            raise RateLimitExceeded(str(e)) from e
        except Unavailable as e:
            raise ExchangeNotAvailable(str(e)) from e
        except TimedOut as e:
            raise RequestTimeout(str(e)) from e
        except TransportError as e:
            raise NetworkError(str(e)) from e
        except InvalidRequest as e:
            raise (BadSymbol if e.code == "UNKNOWN_SYMBOL" else BadRequest)(str(e)) from e
        except BlockdeskError as e:
            raise ExchangeError(str(e)) from e

    # Structures.

    def _keep(self, e: Execution) -> dict[str, Any]:
        self._orders[e.order_id] = e
        return self._order(e)

    def _execution(self, id: str, symbol: Optional[str]) -> Execution:
        if id not in self._orders:
            for e in self._order_over_fix("open_orders", symbol):
                self._orders[e.order_id] = e
        if id not in self._orders:
            raise OrderNotFound(f"no order {id} of this session")
        return self._orders[id]

    def _of(self, value: Optional[Decimal]) -> Any:
        return None if value is None else self._number(format(value, "f"))

    def _book(self, symbol: str, bids: Any, asks: Any, ts: Optional[datetime], nonce: int) -> dict[str, Any]:
        sides = {
            name: [[self._of(level.price), self._of(level.quantity)] for level in levels]
            for name, levels in (("bids", bids), ("asks", asks))
        }
        return {"symbol": symbol, **sides, **_times(ts), "nonce": nonce}

    def _ticker(self, symbol: str, t: Any) -> dict[str, Any]:
        vwap = t.quote_volume_24h / t.volume_24h if t.volume_24h else None
        change = None if t.last is None or t.open_24h is None else t.last - t.open_24h
        return {
            "symbol": symbol, **_times(t.ts), "high": self._of(t.high_24h), "low": self._of(t.low_24h),
            "bid": self._of(t.bid), "bidVolume": self._of(t.bid_qty), "ask": self._of(t.ask), "askVolume": self._of(t.ask_qty),
            "vwap": self._of(vwap), "open": self._of(t.open_24h), "close": self._of(t.last), "last": self._of(t.last),
            "previousClose": None, "change": self._of(change), "percentage": self._of(change / t.open_24h * 100 if change is not None else None),
            "average": self._of(None if change is None else (t.last + t.open_24h) / 2),
            "baseVolume": self._of(t.volume_24h), "quoteVolume": self._of(t.quote_volume_24h), "info": _raw(t),
        }  # fmt: skip

    def _trade(self, symbol: str, t: Any) -> dict[str, Any]:
        return {
            "id": str(t.trade_id), "order": None, "symbol": symbol, "type": None, "side": t.side, "takerOrMaker": "taker",
            "price": self._of(t.price), "amount": self._of(t.qty), "cost": self._of(t.price * t.qty), "fee": None, "fees": [],
            **_times(t.ts), "info": _raw(t),
        }  # fmt: skip

    def _own_trade(self, f: FixFill) -> dict[str, Any]:
        return {
            "id": f.trade_id, "order": f.order_id, "symbol": f.symbol, "type": None, "side": f.side,
            "takerOrMaker": {"1": "maker", "2": "taker"}.get(f.message.get(851)), "price": self._of(f.price), "amount": self._of(f.quantity),
            "cost": self._of(f.price * f.quantity), "fee": None, "fees": [], **_times(f.at), "info": _raw(f.message),
        }  # fmt: skip

    def _order(self, e: Execution) -> dict[str, Any]:
        m = e.message
        price = m.number(44) if m.get(44) else None
        return {
            "id": e.order_id, "clientOrderId": e.cl_ord_id, "symbol": e.symbol, "side": e.side, "status": _STATUS.get(e.status, "open"),
            **_times(_fix_moment(m.get(60))), "lastTradeTimestamp": None, "type": _TYPES.get(m.get(40)), "timeInForce": _TIF.get(m.get(59)),
            "postOnly": "6" in m.get(18).split(), "price": self._of(price), "stopPrice": self._of(m.number(99) if m.get(99) else None),
            "triggerPrice": self._of(m.number(99) if m.get(99) else None), "amount": self._of(m.number(38) if m.get(38) else e.filled + e.left),
            "cost": self._of(e.filled * e.average_price), "filled": self._of(e.filled), "remaining": self._of(e.left),
            "average": self._of(e.average_price or None), "fee": None, "fees": [], "trades": [], "info": _raw(m),
        }  # fmt: skip


def _multiple(value: Any, step: Any, rounding: str) -> str:
    unit = Decimal(str(step)) if not isinstance(step, float) else Decimal(repr(step))
    return format((Decimal(str(value)) / unit).quantize(Decimal(1), rounding) * unit, "f")


def _raw(value: Any) -> Any:
    """What the service answered, as JSON has it; of a FIX message its values by their tags."""
    if isinstance(value, FixMessage):
        return {str(tag): text for tag, text in value.fields}
    if dataclasses.is_dataclass(value):
        return {f.name: _raw(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, (list, tuple)):
        return [_raw(one) for one in value]
    if isinstance(value, Decimal):
        return format(value, "f")
    return value.isoformat() if isinstance(value, datetime) else value


def _since(rows: list[dict[str, Any]], since: Optional[int]) -> list[dict[str, Any]]:
    return [r for r in rows if since is None or r["timestamp"] is not None and r["timestamp"] >= since]


def _fix_moment(text: str) -> Optional[datetime]:
    """A UTCTimestamp of FIX; None where it is none."""
    for form in ("%Y%m%d-%H:%M:%S.%f", "%Y%m%d-%H:%M:%S"):
        try:
            return datetime.strptime(text[:24], form).replace(tzinfo=timezone.utc)
        except ValueError:
            continue
    return None


def _times(at: Optional[datetime]) -> dict[str, Any]:
    return {
        "timestamp": None if at is None else int(at.timestamp() * 1000),
        "datetime": None if at is None else at.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
