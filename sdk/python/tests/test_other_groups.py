"""Symbols of several groups: one stream, a connection to each group that serves some."""

import asyncio
import json
import threading
import unittest
from typing import Any, Callable, Optional
from unittest import mock

from blockdesk import ApiError, AsyncClient, BookEvent, Client, Connected, Interruption, SubscriptionRefused, stream
from blockdesk._group import Group
from blockdesk._http import Origin
from blockdesk._net import Connection
from blockdesk import _websocket as ws

from .test_book import SNAPSHOT, SYMBOL, UPDATE
from .test_stream import Peer, Service
from .tls import HeldLine, client_context, server_context

OTHER = "92C/SLUSD"
WELCOME = {"channel": "status", "type": "welcome"}


def ack(subscribed: list[str], rejected: list[dict[str, Any]]) -> dict[str, Any]:
    rows = [{"channel": "l2", "symbol": symbol, "resumed": False} for symbol in subscribed]
    return {"channel": "control", "type": "ack", "action": "SUBSCRIBE_MARKET", "subscribed": rows, "rejected": rejected}


def elsewhere(symbol: str, url: str) -> dict[str, Any]:
    return {"channel": "l2", "symbol": symbol, "code": "OTHER_GROUP", "ws_url": url}


def of(symbol: str, epoch: str, message: dict[str, Any]) -> dict[str, Any]:
    return dict(message, symbol=symbol, epoch=epoch)


def sends(url: str, own: Optional[str] = SYMBOL, other: str = OTHER, then: Callable[[Peer], None] = lambda p: None) -> Callable[[Peer], None]:
    """A group that has own, if any, and sends for other to a URL."""

    def script(p: Peer) -> None:
        p.upgrade()
        p.get()
        p.say(dict(WELCOME, epoch="e7"), ack([own] if own else [], [elsewhere(other, url)]))
        if own:
            p.say(SNAPSHOT)
            then(p)
        assert p.get()[0] == ws.CLOSE

    return script


def socket_url(service: Service, host: str = "127.0.0.1") -> str:
    return service.url.replace("http", "ws").replace("127.0.0.1", host)


class OtherGroupsTest(unittest.TestCase):
    def setUp(self) -> None:
        patch = mock.patch.object(stream, "FIRST_WAIT", 0.01)
        patch.start()
        self.addCleanup(patch.stop)

    def play(self, *scripts: Callable[[Peer], None]) -> Service:
        service = Service(*scripts)
        self.addCleanup(service.close)
        return service

    def breaks(self, p: Peer) -> None:
        """Another group's connection, which breaks."""
        p.upgrade()
        request = p.get()
        assert request["symbols"] == [OTHER] and "resume" not in request, request
        p.say(dict(WELCOME, epoch="e3"), ack([OTHER], []), of(OTHER, "e3", SNAPSHOT))

    def resumes(self, p: Peer) -> None:
        p.upgrade()
        request = p.get()
        assert request["resume"] == {"epoch": "e3", f"l2:{OTHER}": 1042}, request
        p.say(dict(WELCOME, epoch="e3"), dict(ack([OTHER], []), subscribed=[{"channel": "l2", "resumed": True}]), of(OTHER, "e3", UPDATE))
        self.updated.set()
        assert p.get()[0] == ws.CLOSE

    def two_groups(self) -> Service:
        self.updated = threading.Event()

        def then(p: Peer) -> None:
            assert self.updated.wait(240)
            p.say(UPDATE)

        return self.play(sends(socket_url(self.play(self.breaks, self.resumes)), then=then))

    def told(self, events: list[Any]) -> None:
        """What a stream of both symbols has told: each group's part is in order."""
        own = [e for e in events if e == Connected("e7", False, (SYMBOL,)) or getattr(e, "symbol", None) == SYMBOL]
        other = [e for e in events if e not in own]
        self.assertEqual([type(e).__name__ for e in own], ["Connected", "BookEvent", "BookEvent"])
        self.assertEqual([type(e).__name__ for e in other], ["Connected", "BookEvent", "Interruption", "Connected", "BookEvent"])
        self.assertEqual([other[0], other[3]], [Connected("e3", False, (OTHER,)), Connected("e3", True, (OTHER,))])
        self.assertEqual(other[2].symbol, OTHER)

    def test_one_stream_over_two_groups(self) -> None:
        with Client(self.two_groups().url).stream([SYMBOL, OTHER], channels=["l2"]) as s:
            self.told([next(s) for _ in range(8)])
            self.assertEqual([(s.books[b].epoch, s.books[b].seq) for b in (SYMBOL, OTHER)], [("e7", 1043), ("e3", 1043)])

    def test_the_same_in_asyncio(self) -> None:
        async def main() -> None:
            async with AsyncClient(self.two_groups().url).stream([SYMBOL, OTHER], channels=["l2"]) as s:
                self.told([await asyncio.wait_for(s.__anext__(), 20) for _ in range(8)])
                self.assertEqual([(s.books[b].epoch, s.books[b].seq) for b in (SYMBOL, OTHER)], [("e7", 1043), ("e3", 1043)])

        asyncio.run(main())

    def test_a_part_of_a_tls_record_keeps_no_other_waiting(self) -> None:
        mine, line = threading.Event(), HeldLine()
        self.addCleanup(line.close)

        def own(p: Peer) -> None:
            assert mine.wait(240)
            line.hold.set()
            p.say(UPDATE)

        def other(p: Peer) -> None:
            p.upgrade()
            p.get()
            p.say(dict(WELCOME, epoch="e3"), ack([OTHER], []), of(OTHER, "e3", SNAPSHOT))
            assert line.held.wait(240)
            p.say(of(OTHER, "e3", UPDATE))
            assert p.get()[0] == ws.CLOSE

        tls = server_context()
        second = Service(other, tls=tls)
        self.addCleanup(second.close)
        first = Service(sends(socket_url(second), then=own), tls=tls)
        self.addCleanup(first.close)
        line.to(first.port)
        client = Client(f"https://127.0.0.1:{line.port}", timeout=6.0, ssl_context=client_context())
        with client.stream([SYMBOL, OTHER], channels=["l2"]) as s:
            events = [s.get(240) for _ in range(4)]  # two connections, two books
            mine.set()
            update = s.get(240)
            self.assertEqual((type(update), getattr(update, "symbol", None)), (BookEvent, OTHER), events)
            self.assertIsNone(s.get(7))  # longer than the client's timeout: half a record breaks nothing
            line.release.set()
            update = s.get(240)
            self.assertEqual((type(update), getattr(update, "symbol", None)), (BookEvent, SYMBOL))

    def serves(self, p: Peer) -> None:
        p.upgrade()
        p.get()
        p.say(dict(WELCOME, epoch="e3"), ack([OTHER], []), of(OTHER, "e3", SNAPSHOT))
        assert p.get()[0] == ws.CLOSE

    def test_a_connection_that_carries_nothing_is_ended(self) -> None:
        first = self.play(sends(socket_url(self.play(self.serves)), own=None))
        with Client(first.url).stream([OTHER], channels=["l2"]) as s:
            self.assertEqual([type(next(s)) for _ in range(2)], [Connected, BookEvent])
            first.close()  # it has had its goodbye

        async def main() -> None:
            first = self.play(sends(socket_url(self.play(self.serves)), own=None))
            async with AsyncClient(first.url).stream([OTHER], channels=["l2"]) as s:
                self.assertEqual([type(await s.__anext__()) for _ in range(2)], [Connected, BookEvent])
                first.close()

        asyncio.run(main())

    def test_a_group_that_does_not_answer_keeps_no_other_waiting(self) -> None:
        answers, dialled = threading.Event(), threading.Event()
        self.addCleanup(answers.set)

        connect = Connection.__init__

        def slowly(self: Connection, origin: Origin, *more: Any) -> None:
            if origin.port == 1:
                dialled.set()
                answers.wait(240)
            connect(self, origin, *more)

        def then(p: Peer) -> None:
            assert dialled.wait(240)
            p.say(UPDATE)

        with mock.patch.object(Connection, "__init__", slowly):
            with Client(self.play(sends("ws://127.0.0.1:1", then=then)).url).stream([SYMBOL, OTHER], channels=["l2"]) as s:
                self.assertEqual([type(next(s)) for _ in range(3)], [Connected, BookEvent, BookEvent])
                self.assertIsNone(s.get(timeout=0.01))
                self.assertFalse(answers.is_set())

    def test_another_thread_may_close_it(self) -> None:
        """While it listens, and while it connects."""
        for own, symbols in ((SYMBOL, [SYMBOL, OTHER]), (None, [OTHER])):
            s = Client(self.play(sends("ws://127.0.0.1:1", own=own)).url).stream(symbols, channels=["l2"])
            while not isinstance(next(s), Interruption):
                pass
            closer = threading.Timer(0.05, s.close)
            closer.start()
            for _ in s:
                pass
            closer.join()
            self.assertIsNone(s.get())

    def test_the_other_nodes_of_another_group(self) -> None:
        alive = self.play(self.serves)
        first = self.play(sends("ws://127.0.0.1:1", own=None))
        with Client(first.url, other_groups=[["http://desk.test"], ["http://127.0.0.1:1", alive.url]]).stream([OTHER], channels=["l2"]) as s:
            self.assertEqual([type(next(s)) for _ in range(3)], [Interruption, Connected, BookEvent])

    def refused(self, script: Callable[[Peer], None], symbols: Optional[list[str]] = None, **more: Any) -> str:
        """What a stream says that ends, after at most a connection and a book."""
        with Client(self.play(script).url, **more).stream(symbols or [SYMBOL, OTHER], channels=["l2"]) as s:
            with self.assertRaises(SubscriptionRefused) as caught:
                for _ in range(3):
                    next(s)
            with self.assertRaises(SubscriptionRefused):
                next(s)
        return str(caught.exception)

    def gives_up(self, url: str, other: str = OTHER) -> Callable[[Peer], None]:
        def script(p: Peer) -> None:
            p.upgrade()
            p.get()
            p.say(dict(WELCOME, epoch="e7"), ack([SYMBOL], [elsewhere(other, url)]))

        return script

    def test_nobody_goes_where_nobody_has_named(self) -> None:
        other = self.play(self.serves)
        strange = socket_url(other, "localhost")
        for url in (strange, "ws://127.0.0.1@evil.test", "ftp://127.0.0.1", "127.0.0.1", "ws://[", "ws://127.0.0.1:x"):
            said = self.refused(self.gives_up(url))
            self.assertIn(f"{OTHER}: OTHER_GROUP {url}, where this stream may not go", said)
        self.assertIn("OTHER_GROUP", self.refused(self.gives_up("")))
        first = self.play(sends(strange, own=None))
        with Client(first.url, other_groups=[["http://localhost"]]).stream([OTHER], channels=["l2"]) as s:
            self.assertEqual([type(next(s)) for _ in range(2)], [Connected, BookEvent])

    def test_nobody_is_sent_from_tls_to_plain_text(self) -> None:
        group = Group([Origin.parse("https://desk.test")], [Origin.parse("https://us.test")])
        by = Origin.parse("wss://desk.test")
        self.assertEqual(group.moved("wss://us.test:8081", by), (Origin("us.test", 8081, True, ""), "/"))
        self.assertIsNone(group.moved("ws://us.test:8081", by))

    def test_nobody_is_sent_on_twice(self) -> None:
        again = self.play(self.gives_up("ws://127.0.0.1:1"))
        self.assertIn("ws://127.0.0.1:1, where this stream may not go", self.refused(sends(socket_url(again))))

    def test_limit(self) -> None:
        symbols = [f"A{n}/USDC" for n in range(stream.MAX_OTHER_GROUPS + 1)]
        places = [elsewhere(symbol, f"ws://127.0.0.1:{n + 1}") for n, symbol in enumerate(symbols)]

        def script(rejected: list[dict[str, Any]], stays: bool) -> Callable[[Peer], None]:
            def script(p: Peer) -> None:
                p.upgrade()
                p.get()
                p.say(dict(WELCOME, epoch="e7"), ack([SYMBOL], rejected))
                if stays:
                    assert p.get()[0] == ws.CLOSE

            return script

        said = self.refused(script(places, False), [SYMBOL, *symbols])
        self.assertIn(f"a stream goes to {stream.MAX_OTHER_GROUPS} other groups at most", said)
        with Client(self.play(script(places[:-1], True)).url).stream([SYMBOL, *symbols[:-1]], channels=["l2"]) as s:
            self.assertIsInstance(next(s), Connected)  # and then nobody answers at the others
            missing = set(symbols[:-1])
            while missing:
                event = next(s)
                assert isinstance(event, Interruption) and event.symbol
                missing.discard(event.symbol)

    def test_server_sent_events(self) -> None:
        def answers(status: int, body: bytes, *headers: str) -> Callable[[Peer], None]:
            def script(p: Peer) -> None:
                p.head()
                lines = [f"HTTP/1.1 {status} X", *headers, f"Content-Length: {len(body)}", "", ""]
                p.raw("\r\n".join(lines).encode() + body)

            return script

        def events(p: Peer) -> None:
            assert "symbols=92C/SLUSD&" in (p.head() and p.line), p.line
            text = "".join(f"data: {json.dumps(m)}\n\n" for m in (dict(WELCOME, epoch="e3"), of(OTHER, "e3", SNAPSHOT)))
            p.raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + text.encode())

        other = self.play(events)
        moved = b'{"ok":false,"code":"OTHER_GROUP","reason":"other_group","error":"Another group serves these symbols."}'
        to = f"Location: {other.url}/api/v1/market/stream?symbols=92C/SLUSD"
        with Client(self.play(answers(307, moved, to)).url).stream([OTHER], channels=["l2"], via="sse") as s:
            self.assertEqual([type(next(s)) for _ in range(2)], [BookEvent, Interruption])
        with Client(self.play(answers(307, moved, "Location: http://evil.test/")).url).stream([OTHER], channels=["l2"], via="sse") as s:
            with self.assertRaises(SubscriptionRefused):
                next(s)
        with Client(self.play(answers(400, moved)).url).stream([SYMBOL, OTHER], channels=["l2"], via="sse") as s:
            with self.assertRaises(ApiError) as caught:
                next(s)
            self.assertEqual(caught.exception.code, "OTHER_GROUP")

    def test_what_are_no_groups(self) -> None:
        wrong: Any
        for wrong in ("http://us.test", ["http://us.test"], [["us.test"]]):
            for client in (Client, AsyncClient):
                with self.assertRaises(ValueError):
                    client(other_groups=wrong)


if __name__ == "__main__":
    unittest.main()
