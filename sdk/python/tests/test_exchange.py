"""The ccxt-style exchange over sessions and streams that break."""

import asyncio
import unittest
from decimal import Decimal
from typing import Any
from unittest import mock

from blockdesk import TransportError, ccxt_errors, exchange
from blockdesk.feed import SubscriptionRefused
from blockdesk.fix import Execution, FixMessage, FixRefused

REPORT = [
    (35, "8"), (37, "7"), (11, "c"), (17, "1"), (150, "0"), (39, "0"), (55, "SLUSD/USDC"), (54, "1"), (38, "5"), (40, "2"), (44, "0.9"),
    (59, "1"), (18, "6"), (151, "5"), (14, "0"), (6, "0"), (60, "20260105-09:30:00.123456"),
]  # fmt: skip


def execution(**changed: str) -> Execution:
    """An order's report, with some tags of other values: t39="2"."""
    values = {int(tag[1:]): value for tag, value in changed.items()}
    return Execution.of(FixMessage([(tag, values.get(tag, value)) for tag, value in REPORT]))


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
        self.sessions[0].order.return_value = execution()
        placed: dict[str, Any] = self.exchange.create_order("SLUSD/USDC", "limit", "buy", "5", "0.9")
        return placed

    def test_a_cancel_that_is_not_answered_is_asked_again(self) -> None:
        order = self.order()
        self.sessions[0].cancel.side_effect = TransportError("broken")
        with self.assertRaises(ccxt_errors.NetworkError):
            self.exchange.cancel_order(order["id"])
        self.sessions[0].close.assert_called_once()
        self.sessions[1].cancel.side_effect = FixRefused("TOO_LATE: filled")
        with self.assertRaises(ccxt_errors.InvalidOrder):
            self.exchange.cancel_order(order["id"])
        self.sessions[1].cancel.side_effect = None
        self.sessions[1].cancel.return_value = self.sessions[0].order.return_value
        self.exchange.cancel_order(order["id"])
        self.sessions[1].open_orders.return_value = []
        with self.assertRaises(ccxt_errors.OrderNotFound):
            self.exchange.cancel_order(order["id"])

    def test_an_order_has_ccxts_members(self) -> None:
        order = self.order()
        for name, wanted in {
            "id": "7", "clientOrderId": "c", "status": "open", "type": "limit", "timeInForce": "GTC", "postOnly": True, "side": "buy",
            "price": Decimal("0.9"), "amount": Decimal(5), "filled": Decimal(0), "remaining": Decimal(5), "average": None, "cost": Decimal(0),
            "datetime": "2026-01-05T09:30:00.123Z", "timestamp": 1767605400123,
        }.items():  # fmt: skip
            self.assertEqual(order[name], wanted, name)

    def test_orders_are_found_after_a_restart(self) -> None:
        self.sessions[0].open_orders.return_value = [execution()]
        self.sessions[0].order_status.return_value = execution(t39="2", t14="5", t151="0", t6="0.9")
        got = self.exchange.fetch_order("7", "SLUSD/USDC")
        self.assertEqual((got["status"], got["filled"], got["cost"]), ("closed", Decimal(5), Decimal("4.5")))
        with self.assertRaises(ccxt_errors.OrderNotFound):
            self.exchange.fetch_order("8", "SLUSD/USDC")
        self.assertEqual([o["id"] for o in self.exchange.fetch_open_orders()], ["7"])

    def test_a_session_that_is_refused(self) -> None:
        with mock.patch.object(exchange, "FixClient", side_effect=FixRefused("BAD_CREDENTIALS: no")), self.assertRaises(ccxt_errors.AuthenticationError):
            self.exchange.fetch_open_orders()
        with self.assertRaises(ccxt_errors.NotSupported):
            exchange.Exchange("http://127.0.0.1:1").fetch_open_orders()

    def test_precision(self) -> None:
        self.exchange.markets = {"A/B": {"precision": {"price": Decimal("0.0005"), "amount": Decimal("0.01")}}}
        self.assertEqual(self.exchange.price_to_precision("A/B", 1.00025), "1.0005")
        self.assertEqual(self.exchange.amount_to_precision("A/B", "1.999"), "1.99")
        with self.assertRaises(ccxt_errors.BadSymbol):
            self.exchange.market("C/D")

    def test_orders_that_are_refused(self) -> None:
        for error, wanted in (
            (FixRefused("UNKNOWN_SYMBOL: no"), ccxt_errors.BadSymbol), (FixRefused("PRICE: no"), ccxt_errors.InvalidOrder),
        ):  # fmt: skip
            self.sessions[0].order.side_effect = error
            with self.assertRaises(wanted):
                self.exchange.create_order("A/B", "limit", "buy", "5", "0.9")

    def test_a_stream_that_has_ended(self) -> None:
        for error, wanted in ((SubscriptionRefused("no"), ccxt_errors.BadSymbol), (TransportError("no"), ccxt_errors.NetworkError)):
            self.exchange._streams["A/B", "l2"] = Stream(error)  # type: ignore[assignment]
            with self.assertRaises(wanted):
                asyncio.run(self.exchange.watch_order_book("A/B"))
            self.assertNotIn(("A/B", "l2"), self.exchange._streams)


if __name__ == "__main__":
    unittest.main()
