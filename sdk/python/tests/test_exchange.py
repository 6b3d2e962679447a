"""The ccxt-style example over sessions and streams that break."""

import asyncio
import importlib.util
import unittest
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

from blockdesk import TransportError
from blockdesk.feed import SubscriptionRefused
from blockdesk.fix import FixRefused

_spec = importlib.util.spec_from_file_location("exchange", Path(__file__).parent.parent / "examples" / "exchange.py")
assert _spec and _spec.loader
exchange: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(exchange)


class Stream:
    """A stream that ends by an error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __aiter__(self) -> "Stream":
        return self

    async def __anext__(self) -> Any:
        raise self.error


class ExchangeTest(unittest.TestCase):
    def setUp(self) -> None:
        self.sessions = [mock.Mock(), mock.Mock()]
        patch = mock.patch.object(exchange, "FixClient", side_effect=self.sessions)
        patch.start()
        self.addCleanup(patch.stop)
        self.exchange = exchange.Exchange("http://127.0.0.1:1", "127.0.0.1:1", "GUEST", "demo")

    def order(self) -> dict[str, Any]:
        one = mock.Mock(order_id="7", status="0", filled=Decimal(0), left=Decimal(5), average_price=None)
        self.sessions[0].order.return_value = one
        placed: dict[str, Any] = self.exchange.create_order("SLUSD/USDC", "limit", "buy", "5", "0.9")
        return placed

    def test_a_cancel_that_is_not_answered_is_asked_again(self) -> None:
        order = self.order()
        self.sessions[0].cancel.side_effect = TransportError("broken")
        with self.assertRaises(exchange.NetworkError):
            self.exchange.cancel_order(order["id"])
        self.sessions[0].close.assert_called_once()
        self.sessions[1].cancel.side_effect = FixRefused("TOO_LATE: filled")
        with self.assertRaises(exchange.InvalidOrder):
            self.exchange.cancel_order(order["id"])
        self.sessions[1].cancel.side_effect = None
        self.sessions[1].cancel.return_value = self.sessions[0].order.return_value
        self.exchange.cancel_order(order["id"])
        with self.assertRaises(exchange.InvalidOrder):
            self.exchange.cancel_order(order["id"])

    def test_orders_that_are_refused(self) -> None:
        for error, wanted in (
            (FixRefused("UNKNOWN_SYMBOL: no"), exchange.BadSymbol), (FixRefused("PRICE: no"), exchange.InvalidOrder),
        ):  # fmt: skip
            self.sessions[0].order.side_effect = error
            with self.assertRaises(wanted):
                self.exchange.create_order("A/B", "limit", "buy", "5", "0.9")

    def test_a_stream_that_has_ended(self) -> None:
        for error, wanted in ((SubscriptionRefused("no"), exchange.BadSymbol), (TransportError("no"), exchange.NetworkError)):
            self.exchange._streams["A/B"] = Stream(error)
            with self.assertRaises(wanted):
                asyncio.run(self.exchange.watch_order_book("A/B"))
            self.assertNotIn("A/B", self.exchange._streams)


if __name__ == "__main__":
    unittest.main()
