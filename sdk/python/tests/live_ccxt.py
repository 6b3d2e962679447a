"""Holds what blockdesk.exchange returns to ccxt's own checks of its structures, on a service
that runs. ccxt has to be installed.

    python3 -m tests.live_ccxt BASE FIX RPC WALLET
"""

import asyncio
import sys
import time
from typing import Any

import ccxt
from ccxt.test.exchange.base.test_balance import test_balance as balance_is_sound
from ccxt.test.exchange.base.test_currency import test_currency as currency_is_sound
from ccxt.test.exchange.base.test_market import test_market as market_is_sound
from ccxt.test.exchange.base.test_ohlcv import test_ohlcv as ohlcv_is_sound
from ccxt.test.exchange.base.test_order import test_order as order_is_sound
from ccxt.test.exchange.base.test_order_book import test_order_book as order_book_is_sound
from ccxt.test.exchange.base.test_ticker import test_ticker as ticker_is_sound
from ccxt.test.exchange.base.test_trade import test_trade as trade_is_sound

from blockdesk.exchange import Exchange

SYMBOL = "SLUSD/USDC"


def refuses(error: type[Exception], call: Any, *arguments: Any) -> None:
    try:
        call(*arguments)
    except error:
        return
    raise AssertionError(f"{call.__name__}{arguments} is not refused by {error}")


def main(base: str, fix: str, rpc: str, wallet: str) -> None:
    x = Exchange(base, fix, "GUEST", "demo", number=float, wallet=wallet, rpc_url=rpc)
    judge = ccxt.Exchange()  # whose helpers the checks use
    judge.id = x.id
    judge.has["prediction"] = False
    judge.markets = x.load_markets()
    judge.currencies, judge.currencies_by_id = x.currencies, x.currencies
    now = int(time.time() * 1000)
    for currency in x.currencies.values():
        currency_is_sound(judge, {}, "fetchCurrencies", currency)
    for market in x.markets.values():
        market_is_sound(judge, {}, "fetchMarkets", market)
    for symbol in x.markets:
        order_book_is_sound(judge, {}, "fetchOrderBook", x.fetch_order_book(symbol, 10), symbol)
        ticker_is_sound(judge, {}, "fetchTicker", x.fetch_ticker(symbol), symbol)
        for trade in x.fetch_trades(symbol, limit=20):
            trade_is_sound(judge, {}, "fetchTrades", trade, symbol, now, True)
        for candle in x.fetch_ohlcv(symbol, "1m", limit=20):
            ohlcv_is_sound(judge, {}, "fetchOHLCV", candle, symbol, now)
    best = x.fetch_order_book(SYMBOL, 1)["bids"][0][0]
    price = float(x.price_to_precision(SYMBOL, best * 0.95))
    order = x.create_order(SYMBOL, "limit", "buy", 5, price)
    order_is_sound(judge, {}, "createOrder", order, SYMBOL, now)
    assert order["id"] in [o["id"] for o in x.fetch_open_orders(SYMBOL)]
    order_is_sound(judge, {}, "editOrder", x.edit_order(order["id"], SYMBOL, "limit", "buy", 6, price), SYMBOL, now)
    found = x.fetch_order(order["id"])
    order_is_sound(judge, {}, "fetchOrder", found, SYMBOL, now)
    assert (found["amount"], found["status"], found["price"]) == (6.0, "open", price), found
    assert x.cancel_order(order["id"])["status"] == "canceled"
    bought = x.create_order(SYMBOL, "market", "buy", 1)
    order_is_sound(judge, {}, "createOrder", bought, SYMBOL, now)
    assert bought["filled"] == 1.0, bought
    mine = [t for t in x.fetch_my_trades(SYMBOL) if t["order"] == bought["id"]]
    assert sum(t["amount"] for t in mine) == 1.0, mine
    for trade in mine:
        trade_is_sound(judge, {}, "fetchMyTrades", trade, SYMBOL, now, False)
    assert [p["symbol"] for p in x.fetch_positions([SYMBOL])] == [SYMBOL]
    x.create_order(SYMBOL, "limit", "buy", 5, price)
    assert len(x.cancel_all_orders(SYMBOL)) == 1 and x.fetch_open_orders() == []
    balance_is_sound(judge, {}, "fetchBalance", x.fetch_balance())
    refuses(ccxt.BadSymbol, x.fetch_ticker, "NO/SUCH")
    refuses(ccxt.BadSymbol, x.create_order, "NO/SUCH", "limit", "buy", 5, 1)
    refuses(ccxt.OrderNotFound, x.cancel_order, "1")
    refuses(ccxt.InvalidOrder, x.create_order, SYMBOL, "limit", "buy", "0.0000001", price)
    refuses(ccxt.AuthenticationError, Exchange(base, fix, "GUEST", "wrong").fetch_open_orders)
    asyncio.run(streams(x, judge))
    print(f"ccxt {ccxt.__version__}: all structures are sound")


async def streams(x: Exchange, judge: Any) -> None:
    order_book_is_sound(judge, {}, "watchOrderBook", await x.watch_order_book(SYMBOL, 5), SYMBOL)
    ticker_is_sound(judge, {}, "watchTicker", await x.watch_ticker(SYMBOL), SYMBOL)
    for trade in await x.watch_trades(SYMBOL):
        trade_is_sound(judge, {}, "watchTrades", trade, SYMBOL, int(time.time() * 1000), True)
    await x.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
