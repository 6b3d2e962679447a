"""Uses blockdesk.exchange, which has ccxt's methods, structures and exceptions, so that what
is written for ccxt's exchanges takes little to run here.

    python3 sdk/python/examples/exchange.py --base http://127.0.0.1:8080 --fix 127.0.0.1:9878
"""

from __future__ import annotations

import argparse
import asyncio

from blockdesk.ccxt_errors import NotSupported
from blockdesk.exchange import Exchange


async def show(exchange: Exchange, symbol: str) -> None:
    """Uses most methods once."""
    print("markets:", ", ".join(exchange.load_markets()))
    book = exchange.fetch_order_book(symbol, 5)
    print("order book:", book["bids"][0], book["asks"][0])
    print("ticker: last", exchange.fetch_ticker(symbol)["last"])
    print("trades:", [(t["side"], str(t["price"])) for t in exchange.fetch_trades(symbol, limit=3)])
    print("ohlcv:", [str(c) for c in exchange.fetch_ohlcv(symbol, "1m", limit=1)[0]])
    best = book["bids"][0][0]
    order = exchange.create_order(symbol, "limit", "buy", 5, exchange.price_to_precision(symbol, float(best) * 0.95))
    print("open orders:", [o["id"] == order["id"] for o in exchange.fetch_open_orders(symbol)])
    print("order:", exchange.fetch_order(order["id"])["status"], "then", exchange.cancel_order(order["id"])["status"])
    print("own trades:", len(exchange.fetch_my_trades(symbol)), "positions:", len(exchange.fetch_positions()))
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
