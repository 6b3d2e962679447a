"""Requests against a service that misbehaves: retries, limits, errors, exactness."""

import asyncio
import json
import threading
import unittest
from collections import deque
from datetime import datetime, timezone
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Optional
from unittest import mock

from blockdesk import (
    AsyncClient,
    Client,
    Conflict,
    InvalidRequest,
    LimitExceeded,
    NotAdmitted,
    NotFound,
    PaymentMismatch,
    ProtocolError,
    RateLimited,
    Refused,
    Retry,
    TimedOut,
    TransportError,
    Unavailable,
    decimal,
)
from blockdesk._decode import decode, loads, timestamp
from blockdesk._rest import Pace

Answer = tuple[int, dict[str, str], bytes]
LEVELS = b'{"ok":true,"levels":[{"fill_usd":"250","discount_bps":25}]}'


class Stub:
    """A service that answers what it is told to, in order, then the last one again."""

    def __init__(self) -> None:
        self.answers: deque[Optional[Answer]] = deque()
        self.seen: list[tuple[str, dict[str, str], bytes, int]] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                stub.seen.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body, self.client_address[1]))
                a = stub.answers.popleft() if len(stub.answers) > 1 else stub.answers[0]
                if a is None:  # the connection breaks
                    self.close_connection = True
                    self.connection.close()
                    return
                self.send_response(a[0])
                for name, value in a[1].items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(a[2])))
                self.end_headers()
                self.wfile.write(a[2])

            do_GET = do_POST = answer

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 64

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that has gone is no news."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def problem(status: int, code: str, **more: Any) -> Answer:
    headers = more.pop("headers", {})
    return status, headers, json.dumps({"ok": False, "code": code, "error": "A sentence.", "request_id": "r-1", **more}).encode()


class ClientTest(unittest.TestCase):
    def setUp(self) -> None:
        self.stub = Stub()
        self.addCleanup(self.stub.close)
        self.client = Client(self.stub.url, api_url=self.stub.url, retry=Retry(attempts=3, longest=1.0), token="secret")
        self.addCleanup(self.client.close)

    def test_errors(self) -> None:
        for status, code, kind in [
            (400, "INVALID_FIELD", InvalidRequest), (403, "TAKER_NON_ADMIS_JETON", NotAdmitted), (404, "UNKNOWN_CLAIM", NotFound), (409, "REFUS_DVP", Refused),
            (409, "CAPACITY_EXHAUSTED", Conflict), (422, "PAYMENT_MISMATCH", PaymentMismatch), (429, "RATE_LIMITED", RateLimited), (503, "READ_ONLY", Unavailable),
        ]:  # fmt: skip
            self.stub.answers = deque([problem(status, code, reason="why", field="fill_usd", headers={"Retry-After": "3600"})])
            with self.assertRaises(kind) as caught:
                self.client.rfq.levels()
            e = caught.exception
            self.assertIs(type(e), kind)
            self.assertEqual(
                (e.status, e.code, e.reason, e.field, e.request_id, e.retry_after), (status, code, "why", "fill_usd", "r-1", 3600.0)
            )

    def test_a_proxys_error(self) -> None:
        self.stub.answers = deque([(404, {"X-Request-Id": "p-1"}, b"<html>no</html>")])
        with self.assertRaises(NotFound) as caught:
            self.client.rfq.levels()
        self.assertEqual((caught.exception.code, caught.exception.request_id), ("HTTP_404", "p-1"))

    def test_retries_keep_the_key(self) -> None:
        quote = {"ok": True}
        self.stub.answers = deque([problem(503, "OVERLOADED"), None, (200, {}, json.dumps(quote).encode())])
        with self.assertRaises(ProtocolError):  # it is no quote; but it was asked for until it came
            self.client.rfq.quote("T1", "T1-1", 250, "USDC")
        keys = {headers["idempotency-key"] for _, headers, _, _ in self.stub.seen}
        self.assertEqual((len(self.stub.seen), len(keys)), (3, 1))
        with self.assertRaises(ProtocolError):
            self.client.rfq.quote("T1", "T1-1", Decimal("250"), "USDC", idempotency_key="mine")
        self.assertEqual((self.stub.seen[-1][1]["idempotency-key"], json.loads(self.stub.seen[-1][2])["fill_usd"]), ("mine", "250"))

    def test_attempts_end(self) -> None:
        self.stub.answers = deque([problem(503, "OVERLOADED", headers={"Retry-After": "0"})])
        with self.assertRaises(Unavailable):
            self.client.rfq.levels()
        self.assertEqual(len(self.stub.seen), 3)

    def test_what_must_not_be_sent_twice(self) -> None:
        self.stub.answers = deque([None])
        with self.assertRaises(TransportError):
            self.client.dvp.handshake_token("key", "nonce", "signature")
        self.assertEqual(len(self.stub.seen), 1)

    def test_floats_are_refused(self) -> None:
        with self.assertRaises(TypeError):
            self.client.rfq.quote("T1", "T1-1", 250.0, "USDC")  # type: ignore[arg-type]
        with self.assertRaises(TypeError):
            self.client.quote(250.0)  # type: ignore[arg-type]
        for wrong in ("", "x", "NaN", "Infinity", Decimal("NaN")):
            with self.assertRaises(ValueError):
                self.client.quote(wrong)
        self.assertEqual(self.stub.seen, [])

    def test_connections_are_kept_and_replaced(self) -> None:
        self.stub.answers = deque([(200, {}, LEVELS)])
        for _ in range(3):
            self.assertEqual(self.client.rfq.levels().levels[0].discount_bps, 25)
        self.assertEqual(len({port for *_, port in self.stub.seen}), 1)
        self.stub.answers = deque([None, (200, {}, LEVELS)])
        self.client.rfq.levels()
        self.assertEqual(len({port for *_, port in self.stub.seen}), 2)

    def test_limits(self) -> None:
        self.stub.answers = deque([(200, {}, LEVELS)])
        with mock.patch("blockdesk.client.MAX_BODY", len(LEVELS)):
            self.client.rfq.levels()
        with mock.patch("blockdesk.client.MAX_BODY", len(LEVELS) - 1), self.assertRaises(LimitExceeded):
            self.client.rfq.levels()
        with mock.patch("blockdesk.client.MAX_IDLE", 1):
            together = threading.Barrier(2)

            def ask() -> None:
                together.wait(240)
                for _ in range(5):
                    self.client.rfq.levels()

            threads = [threading.Thread(target=ask) for _ in range(2)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            self.assertEqual([len(idle) for idle in self.client._pool._idle.values()], [1])

    def test_paths_and_tokens(self) -> None:
        self.stub.answers = deque([problem(404, "UNKNOWN_CLAIM")])
        for call in (
            lambda: self.client.rfq.claim("../a b?c"),
            lambda: self.client.market.depth("A/B", limit=5),
            lambda: self.client.dvp.submit("B1", signature="x"),
        ):
            with self.assertRaises(NotFound):
                call()
        self.assertEqual(
            [s[0] for s in self.stub.seen],
            ["/api/v1/rfq/claims/..%2Fa%20b%3Fc", "/api/v1/market/depth?symbol=A/B&limit=5", "/api/v1/dvp/submit"],
        )
        self.assertEqual([s[1].get("authorization") for s in self.stub.seen], [None, None, "Bearer secret"])
        with self.assertRaises(ValueError):
            Client(self.stub.url).dvp.submit("B1", signature="x")
        with self.assertRaises(ValueError):
            Client(self.stub.url).legacy.status()

    def test_timeouts(self) -> None:
        silent = Client(self.stub.url, timeout=0.2, retry=Retry(attempts=1))
        self.stub.answers = deque([(200, {}, LEVELS)])
        lock = threading.Event()
        with mock.patch.object(self.stub, "seen", _Blocking(lock)):
            with self.assertRaises(TimedOut):
                silent.rfq.levels()
            lock.set()
        with self.assertRaises(TransportError):
            Client("http://127.0.0.1:1", retry=Retry(attempts=1)).rfq.levels()

    def test_asyncio(self) -> None:
        async def main() -> None:
            self.stub.answers = deque([problem(503, "OVERLOADED"), None, (200, {}, LEVELS)])
            async with AsyncClient(self.stub.url) as client:
                self.assertEqual((await client.rfq.levels()).levels[0].fill_usd, "250")
                many = await asyncio.gather(*(client.rfq.levels() for _ in range(20)))
                self.assertEqual(len(many), 20)
                self.stub.answers = deque([problem(404, "UNKNOWN_CLAIM")])
                with self.assertRaises(NotFound):
                    await client.rfq.claim("C1")

        asyncio.run(main())


class _Blocking(list[Any]):
    """A list whose append waits."""

    def __init__(self, lock: threading.Event) -> None:
        super().__init__()
        self._lock = lock

    def append(self, value: Any) -> None:
        self._lock.wait(240)


class PaceTest(unittest.TestCase):
    def setUp(self) -> None:
        clock = mock.patch("blockdesk._rest.time.monotonic", return_value=100.0)  # which stands
        clock.start()
        self.addCleanup(clock.stop)

    def note(self, pace: Pace, left: int, *, burst: str = ";burst=20", reset: int = 1) -> None:
        pace.note(
            "GET", "/api/v1/market/depth", {"ratelimit-policy": f'"market";q=60;w=60{burst}', "ratelimit": f'"market";r={left};t={reset}'}
        )

    def test_a_bucket(self) -> None:
        pace = Pace()
        self.assertEqual(pace.wait("GET", "/api/v1/market/depth"), 0)
        self.note(pace, 2)
        waits = [pace.wait("GET", "/api/v1/market/depth") for _ in range(4)]
        self.assertEqual(waits, [0, 0, 1, 2])
        self.assertEqual(pace.wait("GET", "/api/v1/market/ticker"), 0, "its class is not known yet")

    def test_a_window(self) -> None:
        pace = Pace()
        self.note(pace, 1, burst="", reset=60)
        self.assertEqual(pace.wait("GET", "/api/v1/market/depth"), 0)
        self.assertEqual(pace.wait("GET", "/api/v1/market/depth"), 60)

    def test_what_is_no_limit(self) -> None:
        pace = Pace()
        for policy, state in [
            ("x", "y"),
            ('"a";q=0;w=60', '"a";r=0;t=1'),
            ('"a";q=1;w=60', '"b";r=0;t=1'),
            ('"a";q=99999999999;w=60', '"a";r=0;t=1'),
        ]:
            pace.note("GET", "/x", {"ratelimit-policy": policy, "ratelimit": state})
            self.assertEqual(pace.wait("GET", "/x"), 0)


class ExactnessTest(unittest.TestCase):
    def test_decimals(self) -> None:
        for text in ("0", "1", "0.999000", "12345678901234567890.123456789", "-1.5"):
            self.assertEqual(str(decimal(text)), text)
        wrong: Any
        for wrong in ("", "1.", ".5", "01", "+1", "1e5", "NaN", "Infinity", " 1", "1\n", "١", 1.5, None, True, [], "1" * 65):
            with self.assertRaises(ProtocolError, msg=repr(wrong)):
                decimal(wrong)

    def test_json_has_no_floats(self) -> None:
        self.assertEqual(loads(b'{"a":0.1,"b":1}'), {"a": Decimal("0.1"), "b": 1})
        for wrong in ("NaN", "Infinity", "-Infinity", "{", b"\xff", "[" * 100_000, "1" * 65, "0." + "1" * 65):
            with self.assertRaises(ProtocolError, msg=repr(wrong[:10])):
                loads(wrong)

    def test_times(self) -> None:
        self.assertEqual(timestamp("2026-01-02T03:04:05.123456789Z"), datetime(2026, 1, 2, 3, 4, 5, 123456, timezone.utc))
        for wrong in ("", "2026-01-02", "2026-13-02T03:04:05.1Z", "2026-01-02T03:04:05+00:00", 5, None):
            with self.assertRaises(ProtocolError):
                timestamp(wrong)

    def test_types(self) -> None:
        for kind, value in (
            (int, "x"),
            (int, 1.5),
            (int, True),
            (str, 1),
            (bool, 1),
            (list[int], {}),
            (dict[str, int], []),
            (Optional[str], 1),
        ):
            with self.assertRaises(ProtocolError):
                decode(kind, value)
        self.assertIsNone(decode(Optional[str], None))
        self.assertEqual(decode(int, "250000000"), 250000000)


if __name__ == "__main__":
    unittest.main()
