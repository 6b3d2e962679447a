"""Order books and the state of a stream."""

import contextlib
import copy
import json
import random
import unittest
import zlib
from decimal import Decimal
from typing import Any
from unittest import mock

from blockdesk import (
    BlockdeskError,
    BookEvent,
    Connected,
    Interruption,
    OrderBook,
    OrdersEvent,
    ProtocolError,
    SubscriptionRefused,
    TickerEvent,
    TradesEvent,
    TransportError,
)
from blockdesk.book import OutOfStep
from blockdesk.feed import MAX_GAPS, PATIENCE, Feed

SYMBOL = "SLUSD/USDC"


def l2(seq: int, previous: int, bids: list[Any], asks: list[Any], **more: Any) -> dict[str, Any]:
    kind = "update" if previous else "snapshot"
    return {
        "channel": "l2", "type": kind, "symbol": SYMBOL, "epoch": "e7", "seq": seq, "prev_seq": previous, "ts": "2026-01-02T03:04:05.006789Z",
        "bids": bids, "asks": asks, **more,
    }  # fmt: skip


def l3(seq: int, previous: int, bids: list[list[str]], asks: list[list[str]], rest: Any = None) -> dict[str, Any]:
    """An l3 message; rest is the book after it, where it is not what the message has."""
    text = "".join(
        "".join(field.replace(".", "").lstrip("0") for field in order)
        for side in reversed(rest or (bids, asks)) for order in side[:10]
    )  # fmt: skip
    return l2(seq, previous, bids, asks, channel="l3", checksum=zlib.crc32(text.encode()))


SNAPSHOT = l2(1042, 0, [["0.999000", "12000.500000"]], [["0.999100", "5000.000000"]], checksum=789438916)
UPDATE = l2(1043, 1042, [["0.999000", "0"]], [], checksum=2631966548)


class BookTest(unittest.TestCase):
    def test_the_documented_messages(self) -> None:
        book = OrderBook(SYMBOL)
        book.apply(SNAPSHOT)
        self.assertEqual(book.mid, Decimal("0.99905"))
        book.apply(UPDATE)
        self.assertEqual((book.bids, len(book.asks), book.seq), ([], 1, 1043))
        self.assertIsNone(book.mid)

    def test_krakens_example(self) -> None:
        """The worked example of Kraken's guide "Book checksum (WebSocket v2)"."""
        asks = "45285.2 0.00100000 45286.4 1.54571953 45286.6 1.54571109 45289.6 1.54560911 45290.2 0.15890660 45291.8 1.54553491 45294.7 0.04454749 45296.1 0.35380000 45297.5 0.09945542 45299.5 0.18772827 45300.0 0.00000001".split()
        bids = "45283.5 0.10000000 45283.4 1.54582015 45282.1 0.10000000 45281.0 0.10000000 45280.3 1.54592586 45279.0 0.07990000 45277.6 0.03310103 45277.5 0.30000000 45277.3 1.54602737 45276.6 0.15445238 0.1 0.00000001".split()
        book = OrderBook("XBT/USD")
        rows = [[list(p) for p in zip(side[::2], side[1::2])] for side in (bids, asks)]
        book.apply(l2(1, 0, rows[0][::-1], rows[1][::-1], checksum=3310070434))
        assert book.best_ask and book.best_bid
        self.assertEqual((str(book.best_bid.price), str(book.best_ask.price)), ("45283.5", "45285.2"))

    def test_gaps_and_wrong_checksums(self) -> None:
        for message in (
            l2(1044, 1043, [], []), l2(1043, 1041, [], []), l2(1043, 1042, [], [], epoch="e8"),
            l2(1043, 1042, [["0.999000", "0"]], [], checksum=1),
        ):  # fmt: skip
            book = OrderBook(SYMBOL)
            book.apply(SNAPSHOT)
            with self.assertRaises(OutOfStep):
                book.apply(message)

    def test_against_a_plain_model(self) -> None:
        """Random changes: the levels of a dict that is sorted each time, and its checksum
        by the letter of the document."""
        rng = random.Random(11)
        book, plain = OrderBook(SYMBOL), ({}, {})  # type: tuple[OrderBook, tuple[dict[str, str], dict[str, str]]]
        book.apply(l2(1, 0, [], []))
        for seq in range(2, 600):
            changes: list[list[list[str]]] = [[], []]
            for side in (0, 1):
                for _ in range(rng.randrange(4)):
                    price = f"{rng.randrange(1, 40) / 1000 + side:.3f}"
                    quantity = "0" if rng.random() < 0.4 else f"{rng.randrange(1, 10**9)}.5"
                    changes[side].append([price, quantity])
                    plain[side].pop(price, None)
                    if quantity != "0":
                        plain[side][price] = quantity
            book.apply(l2(seq, seq - 1, *changes))
            bids, asks = (sorted(s.items(), key=lambda i: Decimal(i[0]), reverse=r) for s, r in zip(plain, (True, False)))
            self.assertEqual([(str(b.price), str(b.quantity)) for b in book.bids], bids)
            self.assertEqual([(str(a.price), str(a.quantity)) for a in book.asks], asks)
            text = "".join(n.replace(".", "").lstrip("0") for level in asks[:10] + bids[:10] for n in level)
            self.assertEqual(book.checksum(), zlib.crc32(text.encode()))

    def test_limit(self) -> None:
        with mock.patch("blockdesk.book.MAX_LEVELS", 3):
            book = OrderBook(SYMBOL)
            book.apply(l2(1, 0, [[str(n), "1"] for n in range(1, 4)], []))
            with self.assertRaises(ProtocolError):
                book.apply(l2(2, 1, [["4", "1"]], []))

    def test_what_is_no_level(self) -> None:
        for level in (["1"], ["1", "2", "3"], [1, "2"], ["1", 2.5], ["NaN", "1"], ["1e5", "1"], "12", ["", "1"], ["1", "-x"]):
            with self.assertRaises(ProtocolError, msg=repr(level)):
                OrderBook(SYMBOL).apply(l2(1, 0, [level], []))
        for message in ({}, {"seq": 1}, {"seq": "1", "epoch": "e1"}, {"type": "snapshot", "seq": 1, "epoch": "e1", "bids": 3, "asks": []}):
            with self.assertRaises(ProtocolError):
                OrderBook(SYMBOL).apply(message)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all values."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []
    return [at] + [place for key, inner in pairs for place in places(inner, at + (key,))]


def put(value: Any, at: tuple[Any, ...], other: Any) -> Any:
    """A copy with another value at a place."""
    if not at:
        return other
    value = copy.copy(value)
    value[at[0]] = put(value[at[0]], at[1:], other)
    return value


class FeedTest(unittest.TestCase):
    def setUp(self) -> None:
        self.feed = Feed([SYMBOL], ["ticker", "l2", "trades"], 50)

    def take(self, message: dict[str, Any]) -> "tuple[list[Any], list[Any]]":
        events, answers = self.feed.take(json.dumps(message))
        return events, [json.loads(a) for a in answers]

    def trades(self, seq: int, previous: int) -> dict[str, Any]:
        trade = {"trade_id": seq, "price": "1.0", "qty": "2", "side": "buy", "ts": "2026-01-02T03:04:05.006789Z"}
        kind = "update" if previous else "snapshot"
        return {"channel": "trades", "type": kind, "symbol": SYMBOL, "epoch": "e7", "seq": seq, "prev_seq": previous, "trades": [trade]}

    def test_resume(self) -> None:
        first = json.loads(self.feed.subscribe())
        self.assertNotIn("resume", first)
        self.take(SNAPSHOT)
        self.take(UPDATE)
        self.take(self.trades(88, 0))
        again = json.loads(self.feed.subscribe())
        self.assertEqual(again["resume"], {"epoch": "e7", f"l2:{SYMBOL}": 1043, f"trades:{SYMBOL}": 88})
        events, _ = self.take({"channel": "control", "type": "ack", "action": "SUBSCRIBE_MARKET", "rejected": [],
                               "subscribed": [{"channel": "l2", "symbol": SYMBOL, "resumed": True}, {"channel": "ticker", "resumed": False}]})  # fmt: skip
        self.assertEqual(events, [Connected("", True, (SYMBOL,))])
        self.assertEqual(self.take(UPDATE), ([], []), "an update that is there already is left out")
        events, _ = self.take(l2(1044, 1043, [["0.998000", "1"]], []))
        self.assertIsInstance(events[0], BookEvent)

    def test_a_gap_asks_for_a_snapshot_once(self) -> None:
        self.take(SNAPSHOT)
        events, answers = self.take(l2(1045, 1044, [], []))
        self.assertIsInstance(events[0], Interruption)
        self.assertEqual(answers, [{"action": "RESYNC", "channels": ["l2"], "symbols": [SYMBOL]}])
        self.assertEqual(self.take(l2(1046, 1045, [], [])), ([], []), "what comes before the snapshot is of no use")
        self.assertNotIn("resume", json.loads(self.feed.subscribe()))
        events, answers = self.take(l2(1050, 0, [["1", "1"]], []))
        self.assertEqual((events[0].snapshot, answers), (True, []))
        events, answers = self.take(l2(1051, 1050, [["1", "2"]], [], checksum=5))
        self.assertEqual((type(events[0]), answers[0]["action"]), (Interruption, "RESYNC"))

    def test_a_lost_last_message(self) -> None:
        self.take(self.trades(88, 0))
        beat = {"channel": "heartbeat", "seqs": {f"trades:{SYMBOL}": 89, "l2:OTHER": 3, "nonsense": "x"}}
        self.assertEqual(self.take(beat), ([], []), "it may be on its way")
        events, answers = self.take(beat)
        self.assertEqual((type(events[0]), answers[0]["channels"]), (Interruption, ["trades"]))
        self.assertEqual(self.take(beat), ([], []), "a snapshot is on its way")
        self.take(self.trades(89, 0))
        self.assertEqual(self.take(beat), ([], []))

    def test_a_new_epoch(self) -> None:
        self.take(SNAPSHOT)
        self.take(self.trades(88, 0))
        events, _ = self.take(dict(SNAPSHOT, epoch="e8", seq=1, checksum=789438916))
        self.assertTrue(events[0].snapshot)
        self.assertEqual(json.loads(self.feed.subscribe())["resume"], {"epoch": "e8", f"l2:{SYMBOL}": 1})
        events, answers = self.take(self.trades(89, 88))
        self.assertEqual((type(events[0]), len(answers)), (Interruption, 1), "an update of the old epoch")

    def test_events(self) -> None:
        events, _ = self.take(self.trades(5, 0))
        self.assertIsInstance(events[0], TradesEvent)
        self.assertEqual(events[0].trades[0].price, Decimal("1.0"))
        ticker: dict[str, Any] = {name: None for name in TickerEvent.__dataclass_fields__}
        ticker.update(
            channel="ticker",
            type="update",
            epoch="e7",
            symbol=SYMBOL,
            seq=1,
            last="0.99",
            volume_24h="1",
            quote_volume_24h="2",
            trades_24h=3,
            status="trading",
        )
        events, _ = self.take(ticker)
        self.assertEqual((events[0].last, events[0].bid), (Decimal("0.99"), None))

    def test_tickets(self) -> None:
        feed = Feed([SYMBOL], ["tickets"], 50)
        message = {
            "channel": "tickets",
            "type": "snapshot",
            "symbol": SYMBOL,
            "epoch": "e7",
            "seq": 17,
            "prev_seq": 0,
            "tickets": [],
            "gone": [],
        }
        events, _ = feed.take(json.dumps(message))
        self.assertEqual(getattr(events[0], "all"), {})
        events, _ = feed.take(json.dumps(dict(message, type="update", seq=18, prev_seq=17, gone=["T2"])))
        self.assertEqual(getattr(events[0], "gone"), ["T2"])

    def test_orders(self) -> None:
        """The messages of docs/websocket.md, and what does not fit."""
        feed = Feed([SYMBOL], ["l3"], 50)
        bids = [["7000000000012", "0.998900", "40.000000"], ["7000000000019", "0.998900", "15.000000"]]
        first = l3(1043, 0, bids, [["7000000000015", "0.999100", "5000.000000"]])
        events, answers = feed.take(json.dumps(first))
        assert isinstance(events[0], OrdersEvent) and answers == []
        book = events[0].book
        self.assertEqual([o.order_id for o in book.bids], ["7000000000012", "7000000000019"])
        self.assertEqual(book.asks[0].price, Decimal("0.999100"))
        # The first order loses its place, the second one half of its quantity, a third one is better.
        change = [["7000000000012", "0.998900", "0"], ["7000000000019", "0.998900", "7.500000"],
                  ["7000000000012", "0.998900", "50.000000"], ["7000000000023", "0.999000", "10.000000"]]  # fmt: skip
        feed.take(json.dumps(l3(1044, 1043, change, [], rest=(
            [["7000000000023", "0.999000", "10.000000"], ["7000000000019", "0.998900", "7.500000"], ["7000000000012", "0.998900", "50.000000"]],
            [["7000000000015", "0.999100", "5000.000000"]]))))  # fmt: skip
        self.assertEqual([(o.order_id, o.quantity) for o in book.bids],
                         [("7000000000023", 10), ("7000000000019", Decimal("7.5")), ("7000000000012", 50)])  # fmt: skip
        for wrong in (
            l3(1045, 1044, [["7", "0.998900", "0"]], []),  # deletes what is not there
            l3(1045, 1044, [["7000000000012", "0.998800", "50.000000"]], []),  # another price
            dict(l3(1045, 1044, [], []), checksum=1),
            l3(1046, 1045, [], []),
        ):
            with self.assertRaises(OutOfStep):
                copy.deepcopy(book).apply(wrong)
        events, answers = feed.take(json.dumps(l3(1046, 1045, [], [])))
        self.assertIsInstance(events[0], Interruption)
        self.assertIn("RESYNC", answers[0])

    def test_rfq_trades(self) -> None:
        feed = Feed([SYMBOL], ["rfq_trades"], 50)
        sale = {
            "trade_id": 1,
            "price_usd": "0.996003000",
            "fill_usd": "1000",
            "base_amount": "1004.013040",
            "base_amount_atoms": "1004013040",
            "rail": "USDC",
            "payment_amount": "1000.000000",
            "payment_amount_atoms": "1000000000",
            "way": "modular",
            "discount_bps": 30,
            "fee_bps": 500,
            "ts": "2026-11-22T10:45:13.301Z",
            "l1_signature": None,
        }
        message = {"channel": "rfq_trades", "type": "snapshot", "symbol": SYMBOL, "epoch": "e7", "seq": 3, "prev_seq": 0, "rfq_trades": []}
        events, _ = feed.take(json.dumps(message))
        self.assertEqual((getattr(events[0], "rfq_trades"), getattr(events[0], "snapshot")), ([], True))
        events, _ = feed.take(json.dumps(dict(message, type="update", seq=4, prev_seq=3, rfq_trades=[sale])))
        self.assertEqual([s.base_amount for s in getattr(events[0], "rfq_trades")], [Decimal("1004.013040")])
        _, answers = feed.take(json.dumps(dict(message, type="update", seq=6, prev_seq=5, rfq_trades=[sale])))
        self.assertEqual(json.loads(answers[0])["action"], "RESYNC")

    def test_gap_after_gap(self) -> None:
        """A service whose checksums are always wrong is not asked for ever."""
        bad = {**SNAPSHOT, "checksum": 1}
        for _ in range(MAX_GAPS):
            events, answers = self.feed.take(json.dumps(bad))
            self.assertEqual((len(events), len(answers)), (1, 1))
        with self.assertRaises(TransportError):
            self.feed.take(json.dumps(bad))
        self.assertNotIn("resume", json.loads(self.feed.subscribe()))
        self.feed.connected()
        self.feed.take(json.dumps(bad))
        self.assertFalse(self.feed.sound)
        self.feed.take(json.dumps(SNAPSHOT))
        self.feed.take(json.dumps({"channel": "heartbeat", "seqs": {}}))
        self.assertTrue(self.feed.sound)

    def test_a_snapshot_that_does_not_come(self) -> None:
        self.feed.take(json.dumps({**SNAPSHOT, "checksum": 1}))
        beat = json.dumps({"channel": "heartbeat", "seqs": {f"l2:{SYMBOL}": 1042}})
        answers = [len(self.feed.take(beat)[1]) for _ in range(2 * PATIENCE)]
        self.assertEqual(answers, [0, 0, 1, 0, 0, 1])

    def test_hostile_messages(self) -> None:
        """Whatever stands in a message's place of another: an error of ours, or none."""
        ack = {
            "channel": "control", "type": "ack", "action": "SUBSCRIBE_MARKET",
            "subscribed": [{"channel": "l2", "symbol": SYMBOL, "seq": 1, "resumed": True}], "rejected": [],
        }  # fmt: skip
        rejected = {**ack, "rejected": [{"channel": "l2", "symbol": "A/B", "code": "UNKNOWN_SYMBOL"}]}
        trades = {
            "channel": "trades", "type": "snapshot", "symbol": SYMBOL, "epoch": "e7", "seq": 1, "prev_seq": 0,
            "trades": [{"trade_id": 1, "price": "1", "qty": "2", "side": "buy", "ts": "2026-01-02T03:04:05.000001Z"}],
        }  # fmt: skip
        beat = {"channel": "heartbeat", "seqs": {f"l2:{SYMBOL}": 1042}}
        odd = ["null", "true", "-1", "1e9999999999999999999", "1e400000", "9" * 70, '"\u00b2"', '""', "[]", "[null]", "{}", '{"a":[]}']
        for message in (SNAPSHOT, UPDATE, ack, rejected, trades, beat):
            for place in places(message):
                for other in odd:
                    feed = Feed([SYMBOL], ["l2", "trades"], 10)
                    feed.take(json.dumps(SNAPSHOT))
                    with contextlib.suppress(BlockdeskError):
                        feed.take(json.dumps(put(message, place, "@")).replace('"@"', other))

    def test_refusals(self) -> None:
        with self.assertRaises(SubscriptionRefused):
            self.take(
                {
                    "channel": "control",
                    "type": "ack",
                    "action": "SUBSCRIBE_MARKET",
                    "rejected": [{"channel": "l2", "symbol": "X/Y", "code": "UNKNOWN_SYMBOL"}],
                }
            )
        with self.assertRaises(ProtocolError):
            self.take({"channel": "control", "type": "error", "code": "BAD_REQUEST", "retryable": False})
        for text in (
            "[]",
            "x",
            "{}",
            '{"channel":1}',
            '{"channel":"l2"}',
            '{"channel":"l2","symbol":"X","seq":1,"epoch":"e"}',
            "[" * 100_000,
        ):
            with self.assertRaises(ProtocolError, msg=text[:40]):
                self.feed.take(text)
        for symbols, channels, depth in (
            (SYMBOL, ["l2"], 50),
            ([], ["l2"], 50),
            (["A"] * 101, ["l2"], 50),
            ([SYMBOL], [], 50),
            ([SYMBOL], ["x"], 50),
            ([SYMBOL], ["l2"], 51),
        ):
            with self.assertRaises(ValueError):
                Feed(symbols, channels, depth)


if __name__ == "__main__":
    unittest.main()
