"""A group of nodes: whom a client asks, and whom it follows with what it sends."""

import asyncio
import unittest
from typing import Any

from blockdesk import AsyncClient, Client, Retry, Unavailable
from blockdesk import _websocket as ws
from blockdesk._group import MAX_HOPS

from . import test_stream as streams
from .test_book import SYMBOL
from .test_client import Stub, problem
from .test_stream import Peer
from .test_wire import server_frame

OK: tuple[int, dict[str, str], bytes] = (200, {}, b'{"ok":true,"levels":[{"fill_usd":"250","discount_bps":25}]}')
QUOTE: dict[str, Any] = {"order_id": "T1", "tranche_id": "T1-1", "fill_usd": "250", "rail": "USDC"}


class GroupTest(unittest.TestCase):
    def stub(self, *answers: Any) -> Stub:
        stub = Stub()
        self.addCleanup(stub.close)
        stub.answers.extend(answers)
        return stub

    def away(self, to: str) -> Any:
        return problem(307, "LEADER_CHANGED", headers={"Location": to, "Retry-After": "1"}, leader={"id": "b", "url": to})

    def test_a_redirect_is_followed_with_body_key_and_token(self) -> None:
        leader = self.stub(problem(409, "CAPACITY_EXHAUSTED"))
        first = self.stub(self.away(f"{leader.url}/elsewhere?x=1"))
        with Client(first.url, token="secret", retry=Retry(attempts=1)) as client:
            with self.assertRaises(Exception) as caught:
                client.dvp.build(**QUOTE, taker="11111111111111111111111111111111", idempotency_key="k1")
        self.assertIn("CAPACITY_EXHAUSTED", str(caught.exception))
        (_, headers, body, _), (path, moved, same, _) = first.seen[0], leader.seen[0]
        self.assertEqual((path, moved["idempotency-key"], moved["authorization"], same), ("/elsewhere?x=1", "k1", "Bearer secret", body))
        self.assertEqual(headers["idempotency-key"], "k1")

    def test_nobody_else_is_followed(self) -> None:
        other = self.stub(OK)
        for to in (other.url.replace("127.0.0.1", "localhost"), "http://127.0.0.1@evil.test/", "ftp://127.0.0.1/", "/levels", "http://[", ""):
            first = self.stub(self.away(to))
            with Client(first.url, retry=Retry(attempts=1)) as client, self.assertRaises(Unavailable) as caught:
                client.rfq.levels()
            self.assertEqual((caught.exception.status, caught.exception.leader), (307, to or None))
        self.assertEqual(other.seen, [])
        named = other.url.replace("127.0.0.1", "localhost")
        with Client(self.stub(self.away(named + "/x")).url, nodes=[named]) as client:
            client.rfq.levels()
        self.assertEqual(len(other.seen), 1)

    def test_a_circle_ends(self) -> None:
        stub = self.stub(OK)
        stub.answers.clear()
        stub.answers.append(self.away(stub.url + "/again"))
        with Client(stub.url, retry=Retry(attempts=1)) as client, self.assertRaises(Unavailable):
            client.rfq.levels()
        self.assertEqual(len(stub.seen), MAX_HOPS + 1)

    def test_the_next_node_is_asked_with_the_same_key(self) -> None:
        unknown = problem(503, "LEADER_CHANGED", headers={"Retry-After": "0"}, reason="outcome_unknown")
        first, broken, leader = self.stub(unknown), self.stub(None), self.stub(OK)
        with Client(first.url, nodes=[broken.url, leader.url]) as client:
            client.rfq.levels()
            client.rfq.levels()  # the one that answers is asked first from now on
        self.assertEqual((len(first.seen), len(leader.seen)), (1, 2))
        self.assertGreaterEqual(len(broken.seen), 1)

    def test_what_must_not_be_sent_twice_is_not(self) -> None:
        unknown = problem(503, "LEADER_CHANGED", headers={"Retry-After": "0"}, reason="outcome_unknown")
        stub = self.stub(unknown)
        with Client(stub.url) as client, self.assertRaises(Unavailable):
            client.dvp.handshake_token("key", "nonce", "signature")
        self.assertEqual(len(stub.seen), 1)

    def test_asyncio(self) -> None:
        leader = self.stub(OK)
        first = self.stub(self.away(leader.url + "/x"))

        async def main() -> None:
            async with AsyncClient(first.url) as client:
                await client.rfq.levels()

        asyncio.run(main())
        self.assertEqual([s[0] for s in leader.seen], ["/x"])

    def test_a_stream_goes_on_where_the_leader_is(self) -> None:
        feed = streams.StreamTest()
        feed.addCleanup = self.addCleanup  # type: ignore[method-assign]
        leader = feed.play(feed.first)

        def closing(p: Peer) -> None:
            p.upgrade()
            reason = f"LEADER_CHANGED: {leader.url.replace('http', 'ws')}/ws/rfq".encode()
            p.raw(server_frame(ws.CLOSE, (1012).to_bytes(2, "big") + reason))

        with Client(feed.play(closing).url).stream([SYMBOL], channels=["l2"]) as s:
            kinds = [type(next(s)).__name__ for _ in range(3)]
        self.assertEqual(kinds, ["Interruption", "Connected", "BookEvent"])
