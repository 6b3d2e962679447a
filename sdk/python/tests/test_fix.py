"""FIX sessions: logon, numbers, gaps, orders, farewells."""

import asyncio
import json
import socket
import tempfile
import threading
import unittest
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, Callable, Optional
from unittest import mock

from blockdesk import (
    AsyncFixClient,
    ConnectionClosed,
    FixClient,
    FixMessage,
    LimitExceeded,
    ProtocolError,
    TimedOut,
    fix,
    fix_state,
)
from blockdesk.fix import FixReader, FixRefused, encode

REPORT = [(37, "O1"), (17, "1"), (150, "0"), (39, "0"), (55, "A/B"), (54, "1"), (151, "5"), (14, "0"), (6, "0")]


class Acceptor:
    """The service's end of a session."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = FixReader()
        self._got: list[FixMessage] = []
        self.out = 1

    def get(self, kind: str) -> FixMessage:
        """The next message that is no heartbeat, which has to be of this kind."""
        while True:
            while not self._got:
                data = self._connection.recv(4096)
                assert data, f"the client has gone, and {kind} was due"
                self._got = self._reader.feed(data)
            m = self._got.pop(0)
            if m.type != "0" or kind == "0":
                assert m.type == kind, f"{m}, not {kind}"
                return m

    def say(self, kind: str, fields: Any = (), *, seq: Optional[int] = None, dup: bool = False) -> None:
        number = self.out if seq is None else seq
        self.out = number + 1
        head: list[Any] = [(35, kind), (34, number), (49, "BLOCKDESK"), (56, "ME")] + ([(43, "Y")] if dup else [])
        self._connection.sendall(encode(head + [(52, "20260105-09:30:00.000")] + list(fields)))

    def logon(self, reset: bool = True) -> FixMessage:
        m = self.get("A")
        self.say("A", [(98, 0), (108, 30)] + ([(141, "Y")] if reset else []))
        return m

    def gone(self) -> None:
        """Waits until the client has closed, and says farewell to a Logout."""
        while data := self._connection.recv(4096):
            if any(m.type == "5" for m in self._reader.feed(data)):
                self.say("5")


class FixTest(unittest.TestCase):
    def play(self, *scripts: Callable[[Acceptor], None]) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        failure: list[BaseException] = []

        def run() -> None:
            try:
                for script in scripts:
                    connection, _ = listener.accept()
                    with connection:
                        connection.settimeout(240)
                        script(Acceptor(connection))
            except BaseException as e:
                failure.append(e)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()

        def end() -> None:
            thread.join(10)
            listener.close()
            if failure:
                raise failure[0]

        self.addCleanup(end)
        return "127.0.0.1:%d" % listener.getsockname()[1]

    def test_logon_order_logout(self) -> None:
        def script(a: Acceptor) -> None:
            m = a.logon()
            assert [m.get(t) for t in (49, 56, 34, 98, 108, 141, 553, 554, 8013)] == [
                "ME",
                "BLOCKDESK",
                "1",
                "0",
                "30",
                "Y",
                "ME",
                "pw",
                "",
            ]
            d = a.get("D")
            a.say("1", [(112, "there?")])
            assert a.get("0").get(112) == "there?"
            assert [d.get(t) for t in (55, 54, 38, 40, 44, 59, 18)] == ["A/B", "1", "5.50", "2", "1.01", "1", "6"], d
            a.say("8", [(11, d.get(11))] + REPORT)
            a.say("8", [(11, d.get(11))] + REPORT)  # nobody waits for it
            f = a.get("F")
            assert (f.get(41), f.get(37)) == (d.get(11), "O1")
            a.say("8", [(11, f.get(11))] + [(t, "4" if t in (150, 39) else v) for t, v in REPORT])
            a.get("5")
            a.say("5")
            a.gone()

        with FixClient(self.play(script), "ME", "pw") as session:
            order = session.order("A/B", "buy", Decimal("5.50"), "1.01", tif="gtc", post_only=True)
            self.assertEqual((order.order_id, order.left, order.ended), ("O1", Decimal(5), False))
            found = session.receive(timeout=240)
            assert found
            self.assertEqual(found.type, "8")
            self.assertTrue(session.cancel(order).ended)
            self.assertIsNone(session.receive(timeout=0))
        with self.assertRaises(ConnectionClosed):
            session.book("A/B")

    def test_an_order_that_does_not_rest(self) -> None:
        def script(a: Acceptor) -> None:
            a.logon()
            d = a.get("D")
            assert (d.get(40), d.get(59), d.get(44)) == ("1", "3", "")
            a.say("8", [(11, d.get(11))] + REPORT)
            filled = {150: "F", 39: "2", 14: "5", 151: "0", 6: "1.5"}
            a.say("8", [(11, d.get(11)), (32, "5"), (31, "1.5")] + [(t, filled.get(t, v)) for t, v in REPORT])
            a.gone()

        session = FixClient(self.play(script), "ME", "pw")
        done = session.order("A/B", "sell", 5)
        self.assertEqual((done.filled, done.average_price, done.last_price), (Decimal(5), Decimal("1.5"), Decimal("1.5")))
        session.close()

    def test_refusals(self) -> None:
        def script(a: Acceptor) -> None:
            a.logon()
            d = a.get("D")
            a.say("8", [(11, d.get(11)), (58, "UNKNOWN_SYMBOL: no"), (37, "NONE"), (150, "8"), (39, "8")])
            a.get("R")
            a.say("j", [(45, 2), (372, "D"), (380, 4), (58, "OTHER: of another request")])
            a.say("j", [(45, 3), (372, "R"), (380, 4), (58, "RATE_LIMITED: slower")])
            v = a.get("V")
            a.say("Y", [(262, v.get(262)), (58, "INVALID_FIELD: x")])
            a.gone()

        session = FixClient(self.play(script), "ME", "pw")
        for request, code in (
            (lambda: session.order("X/Y", "buy", 1, 1), "UNKNOWN_SYMBOL"),
            (lambda: session.quote("A/B", 250), "RATE_LIMITED"),
            (lambda: session.book("A/B"), "INVALID_FIELD"),
        ):
            with self.assertRaises(FixRefused) as caught:
                request()
            self.assertEqual(caught.exception.code, code)
        with self.assertRaises(TypeError):
            session.order("A/B", "buy", 1.5, 1)  # type: ignore[arg-type]
        session.close()

    def test_what_a_session_has_is_asked_for(self) -> None:
        report = [(37, "O1"), (11, "c"), (17, "1"), (150, "I"), (39, "0"), (55, "A/B"), (54, "1"), (38, "5"), (40, "2"), (151, "5"), (14, "0"), (6, "0")]

        def script(a: Acceptor) -> None:
            a.logon()
            af = a.get("AF")
            assert (af.get(585), af.get(55)) == ("7", "")
            a.say("j", [(45, 2), (372, "AF"), (380, 4), (58, "RATE_LIMITED: slower")])
            af = a.get("AF")
            a.say("8", [*report, (584, af.get(584)), (911, 2)])
            a.say("8", [*((t, "D" if t == 40 else v) for t, v in report), (584, af.get(584)), (911, 2), (912, "Y")])
            af = a.get("AF")
            assert (af.get(585), af.get(55)) == ("1", "A/B")
            a.say("8", [(37, "NONE"), (17, "2"), (150, "I"), (39, "8"), (54, "1"), (151, "0"), (14, "0"), (6, "0"), (584, af.get(584)), (911, 0)])
            ad = a.get("AD")
            assert (ad.get(569), ad.get(580), ad.all(75)[0], ad.all(60)[0]) == ("1", "2", "20260105", "20260105-09:30:00.000"), ad
            a.say("AQ", [(568, ad.get(568)), (569, "1"), (748, 1), (749, 0), (750, 0)])
            fill = [(571, "1"), (17, "1-1"), (55, "A/B"), (568, ad.get(568)), (748, 1), (880, "9"), (32, "2"), (31, "1.5")]
            a.say("AE", [*fill, (60, "20260105-09:30:01.500"), (552, 1), (54, "2"), (37, "O1"), (11, "c")])
            an = a.get("AN")
            a.say("AO", [(721, "x"), (710, an.get(710)), (727, 1), (728, 0), (729, 0)])
            a.say("AP", [(721, "y"), (710, an.get(710)), (727, 1), (55, "A/B"), (730, "1.5"), (702, 1), (704, "2"), (705, "5")])
            ad = a.get("AD")
            a.say("AQ", [(568, ad.get(568)), (569, "0"), (748, 0), (749, 99), (750, 2), (58, "TOO_MANY: ask for less")])
            h = a.get("H")
            assert (h.get(37), h.get(55), h.get(54)) == ("O1", "A/B", "1")
            a.say("8", [(11, "later")] + [(t, v) for t, v in report if t != 11])
            a.gone()

        since = datetime(2026, 1, 5, 9, 30, tzinfo=timezone.utc)
        with mock.patch.object(fix_state, "AGAIN_AFTER", 0.0), FixClient(self.play(script), "ME", "pw") as session:
            self.assertEqual([o.order_id for o in session.open_orders()], ["O1"])
            self.assertEqual(session.open_orders("A/B"), [])
            (fill,) = session.fills(since=since)
            self.assertEqual((fill.trade_id, fill.side, fill.quantity, fill.price, fill.order_id), ("9", "sell", Decimal(2), Decimal("1.5"), "O1"))
            self.assertEqual(fill.at, since + timedelta(seconds=1.5))
            self.assertEqual([(p.symbol, p.net) for p in session.positions()], [("A/B", Decimal(-3))])
            with self.assertRaises(FixRefused) as caught:
                session.fills()
            self.assertEqual(caught.exception.code, "TOO_MANY")
            self.assertEqual(session.order_status("A/B", "buy", order_id="O1").cl_ord_id, "later")

    def test_a_refused_logon_moves_no_number(self) -> None:
        def refuse(a: Acceptor) -> None:
            assert a.get("A").get(34) == "7"
            a.say("5", [(58, "LOGON_REFUSED: no")])

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "numbers.json"
            path.write_text('{"in": 9, "out": 7}')
            with self.assertRaises(FixRefused) as caught:
                FixClient(self.play(refuse), "ME", "pw", numbers=path)
            self.assertEqual((caught.exception.code, json.loads(path.read_text())), ("LOGON_REFUSED", {"in": 9, "out": 7}))

    def test_numbers_are_kept_and_gaps_are_filled(self) -> None:
        filled = threading.Event()

        def first(a: Acceptor) -> None:
            assert not a.logon(reset=False).get(141)
            a.say("8", REPORT)
            a.get("5")
            a.say("5")

        def second(a: Acceptor) -> None:
            m = a.get("A")
            assert m.get(34) == "3", m  # a Logon and a Logout were sent before
            a.say("A", [(98, 0), (108, 30)], seq=7)  # 4 to 6 were missed
            ask = a.get("2")
            assert (ask.get(7), ask.get(16)) == ("4", "0")
            a.say("8", [(58, "too early")] + REPORT, seq=8)  # comes again
            a.say("8", [(58, "missed")] + REPORT, seq=4, dup=True)
            a.say("4", [(123, "Y"), (36, 8)], seq=5, dup=True)
            a.say("8", [(58, "too early")] + REPORT, seq=8, dup=True)
            a.say("2", [(7, 2), (16, 0)], seq=9)
            fill = a.get("4")
            assert [fill.get(t) for t in (34, 43, 123, 36)] == ["2", "Y", "Y", "5"], fill
            filled.set()
            a.gone()

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "numbers.json"
            at = self.play(first, second)
            session = FixClient(at, "ME", "pw", numbers=path)
            self.assertIsNotNone(session.receive(timeout=240))
            session.close()
            self.assertEqual(json.loads(path.read_text()), {"in": 4, "out": 3})
            session = FixClient(at, "ME", "pw", numbers=path)
            got = [session.receive(timeout=240) for _ in range(2)]
            self.assertEqual([m.get(58) for m in got if m], ["missed", "too early"])
            self.assertTrue(filled.wait(5))
            session.close()
            self.assertEqual(json.loads(path.read_text())["in"], 11)

    def test_ends(self) -> None:
        def farewell(a: Acceptor) -> None:
            a.logon()
            a.say("5", [(58, "MAINTENANCE: bye")])
            a.get("5")

        session = FixClient(self.play(farewell), "ME", "pw")
        with self.assertRaises(ConnectionClosed) as caught:
            session.receive(timeout=240)
        self.assertIn("MAINTENANCE", str(caught.exception))
        session.close()

        def low(a: Acceptor) -> None:
            a.logon()
            a.say("8", REPORT, seq=1)
            a.gone()

        session = FixClient(self.play(low), "ME", "pw")
        with self.assertRaises(ProtocolError):
            session.receive(timeout=240)
        session.close()

    def test_limits(self) -> None:
        def flood(a: Acceptor) -> None:
            a.logon()
            for _ in range(4):
                a.say("8", REPORT)
            a.gone()

        with mock.patch.object(fix, "MAX_INBOX", 3):
            session = FixClient(self.play(flood), "ME", "pw")
            session._thread.join(240)
            got = [session.receive(timeout=0) for _ in range(3)]
            self.assertEqual(len([m for m in got if m]), 3)
            with self.assertRaises(LimitExceeded):
                session.receive(timeout=0)
            session.close()

    def test_asyncio(self) -> None:
        def script(a: Acceptor) -> None:
            a.logon()
            d = a.get("D")
            a.say("8", [(11, d.get(11))] + REPORT)
            a.say("8", [(58, "unasked")] + REPORT)
            g = a.get("G")
            assert [g.get(t) for t in (41, 38, 44)] == [d.get(11), "6", "1.02"], g
            a.say("8", [(11, g.get(11))] + REPORT)
            q = a.get("q")
            a.say("r", [(11, q.get(11)), (530, "1"), (531, "1"), (533, "1")])
            a.gone()

        async def main() -> None:
            async with AsyncFixClient(self.play(script), "ME", "pw") as session:
                order = await session.order("A/B", "buy", 5, "1.01")
                found = await session.receive(timeout=240)
                self.assertEqual(found and found.get(58), "unasked")
                self.assertIsNone(await session.receive(timeout=0.01))
                await session.replace(order, 6, "1.02")
                self.assertEqual(await session.cancel_all("A/B"), 1)

        asyncio.run(main())
        with self.assertRaises(RuntimeError):
            AsyncFixClient("127.0.0.1:1", "ME", "pw").session.cancel_all()

    def test_no_answer(self) -> None:
        done = threading.Event()

        def silent(a: Acceptor) -> None:
            done.wait(240)

        with self.assertRaises(TimedOut):
            FixClient(self.play(silent), "ME", "pw", timeout=0.2)
        done.set()


if __name__ == "__main__":
    unittest.main()
