"""A quant fund: polls the desk and the order book, and quotes where the desk is better.

Each round reads the book for bots and the order books, works out what the same
quantity would cost in the order book, asks the desk for a firm quote, and says which
of the two is cheaper. It buys nothing.

    python3 sdk/python/examples/quant_fund.py --base http://127.0.0.1:8080
"""

from __future__ import annotations

import argparse
import time
from decimal import Decimal
from typing import Optional

from blockdesk import ApiError, Client, Level


def cost_in_book(asks: list[Level], quantity: Decimal) -> Optional[Decimal]:
    """What so much costs by taking the asks; None: there is not as much."""
    cost = Decimal(0)
    for level in asks:
        part = min(quantity, level.quantity)
        cost += part * level.price
        quantity -= part
        if not quantity:
            return cost
    return None


def look(client: Client, pair: str, fill_usd: int) -> None:
    """One round for one pair."""
    rows = [row for row in client.rfq.compact_book().t if row.pair == pair and row.available_usd >= fill_usd]
    if not rows:
        print(f"{pair}: nothing for sale")
        return
    row = min(rows, key=lambda r: r.best_price_usd or Decimal("Infinity"))
    try:
        quote = client.rfq.quote(row.order_id, row.tranche_id, fill_usd, "USDC")
    except ApiError as e:
        print(f"{pair}: no quote: {e.code} {e.reason}")
        return
    book = client.market.depth(pair, limit=100)
    other = cost_in_book(book.asks, quote.base_amount)
    verdict = "only the desk has as much" if other is None else "desk" if quote.payment.amount <= other else "order book"
    print(
        f"{pair}: {quote.base_amount} for {quote.payment.amount} USDC at {quote.price_usd} until {quote.valid_until:%H:%M:%S}, "
        f"in the order book {'-' if other is None else other.quantize(Decimal('0.000001'))}: {verdict}"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--base", default="http://127.0.0.1:8080", help="the service's main address")
    options.add_argument("--pair", default="SLUSD/USDC")
    options.add_argument("--fill", type=int, default=250, help="dollars: a step of the ladder")
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--every", type=float, default=1.0, help="seconds from round to round; prices move every 10")
    o = options.parse_args()
    with Client(o.base) as client:
        ladder = {level.fill_usd: level.discount_bps for level in client.rfq.levels().levels}
        print("discounts:", ", ".join(f"{fill} USD {bps} bps" for fill, bps in ladder.items()))
        for i in range(o.rounds):
            if i:
                time.sleep(o.every)
            look(client, o.pair, o.fill)


if __name__ == "__main__":
    main()
