"""Streams over connections that break: reconnect, resume, gaps, refusals."""

import asyncio
import base64
import hashlib
import json
import socket
import ssl
import threading
import time
import unittest
from contextlib import closing
from typing import Any, Callable, Optional
from unittest import mock

from blockdesk import (
    ApiError,
    AsyncClient,
    Client,
    Connected,
    ConnectionClosed,
    Interruption,
    ProtocolError,
    stream,
)
from blockdesk import _websocket as ws

from .test_book import SNAPSHOT, SYMBOL, UPDATE, l2
from .test_wire import server_frame, unmask

WELCOME = {"channel": "status", "type": "welcome", "epoch": "e7"}


class Peer:
    """The service's end of one WebSocket connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._file = connection.makefile("rb")

    def head(self) -> dict[str, str]:
        self.line = self._file.readline().decode()
        headers = {}
        for raw in iter(self._file.readline, b"\r\n"):
            name, _, value = raw.decode().partition(":")
            headers[name.lower()] = value.strip()
        return headers

    def raw(self, data: bytes) -> None:
        self._connection.sendall(data)

    def upgrade(self) -> None:
        key = self.head()["sec-websocket-key"]
        accept = base64.b64encode(hashlib.sha1(key.encode() + ws._GUID).digest()).decode()
        self.raw(
            f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n".encode()
        )

    def get(self) -> Any:
        """The next frame of the client's: its JSON, or (opcode, payload)."""
        head = self._file.read(2)
        n = head[1] & 0x7F
        more = self._file.read(2 if n == 126 else 8 if n == 127 else 0)
        n = int.from_bytes(more, "big") if more else n
        opcode, payload = unmask(head + more + self._file.read(4 + n))
        return json.loads(payload) if opcode == ws.TEXT else (opcode, payload)

    def say(self, *messages: dict[str, Any]) -> None:
        self.raw(b"".join(server_frame(ws.TEXT, json.dumps(m).encode()) for m in messages))

    def subscribed(self, resumed: bool = False) -> Any:
        request = self.get()
        rows = [{"channel": "l2", "symbol": SYMBOL, "resumed": resumed}]
        self.say(WELCOME, {"channel": "control", "type": "ack", "action": "SUBSCRIBE_MARKET", "subscribed": rows, "rejected": []})
        return request


class Service:
    """Plays one script for each connection, in order."""

    def __init__(self, *scripts: Callable[[Peer], None], tls: Optional[ssl.SSLContext] = None) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._tls = tls
        self.failure: Optional[BaseException] = None
        self._scripts = scripts
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for script in self._scripts:
                connection, _ = self._listener.accept()
                if self._tls:
                    connection = self._tls.wrap_socket(connection, server_side=True)
                with closing(connection):
                    connection.settimeout(240)
                    script(Peer(connection))
        except BaseException as e:
            self.failure = e

    def close(self) -> None:
        self._thread.join(10)
        self._listener.close()
        if self.failure:
            raise self.failure


class StreamTest(unittest.TestCase):
    def setUp(self) -> None:
        patch = mock.patch.object(stream, "FIRST_WAIT", 0.01)
        patch.start()
        self.addCleanup(patch.stop)

    def play(self, *scripts: Callable[[Peer], None]) -> Service:
        service = Service(*scripts)
        self.addCleanup(service.close)
        return service

    def first(self, p: Peer) -> None:
        p.upgrade()
        p.subscribed()
        p.say(SNAPSHOT)  # and the connection breaks

    def second(self, p: Peer) -> None:
        p.upgrade()
        request = p.subscribed(resumed=True)
        assert request["resume"] == {"epoch": "e7", f"l2:{SYMBOL}": 1042}, request
        p.say(UPDATE)
        assert p.get()[0] == ws.CLOSE

    def kinds(self, events: list[Any]) -> list[str]:
        return [type(e).__name__ for e in events]

    def test_reconnects_and_resumes(self) -> None:
        service = self.play(self.first, self.second)
        at = service.url.replace("http", "ws") + "/ws/rfq"  # as the service prints it
        with Client("http://127.0.0.1:1", ws_url=at).stream([SYMBOL], channels=["l2"]) as s:
            events = [next(s) for _ in range(5)]
            self.assertEqual(self.kinds(events), ["Connected", "BookEvent", "Interruption", "Connected", "BookEvent"])
            self.assertEqual((events[0], events[3]), (Connected("e7", False, (SYMBOL,)), Connected("e7", True, (SYMBOL,))))
            self.assertEqual(s.books[SYMBOL].seq, 1043)
        self.assertEqual(list(s), [], "it has ended")

    def test_the_same_in_asyncio(self) -> None:
        service = self.play(self.first, self.second)

        async def main() -> list[Any]:
            events = []
            async with AsyncClient(service.url).stream([SYMBOL], channels=["l2"]) as s:
                async for event in s:
                    events.append(event)
                    if len(events) == 5:
                        break
            return events

        self.assertEqual(self.kinds(asyncio.run(main())), ["Connected", "BookEvent", "Interruption", "Connected", "BookEvent"])

    def test_a_gap_is_mended_on_the_same_connection(self) -> None:
        def script(p: Peer) -> None:
            p.upgrade()
            p.subscribed()
            p.say(SNAPSHOT, l2(1050, 1049, [], []))
            assert p.get() == {"action": "RESYNC", "channels": ["l2"], "symbols": [SYMBOL]}
            p.raw(server_frame(ws.PING, b"are you there"))
            assert p.get() == (ws.PONG, b"are you there")
            p.say(dict(SNAPSHOT, seq=1051))
            p.get()

        with Client(self.play(script).url).stream([SYMBOL], channels=["l2"]) as s:
            self.assertEqual(self.kinds([next(s) for _ in range(4)]), ["Connected", "BookEvent", "Interruption", "BookEvent"])
            self.assertEqual(s.books[SYMBOL].seq, 1051)
            self.assertIsNone(s.get(timeout=0.01))

    def test_closes(self) -> None:
        def closing_with(code: int) -> Callable[[Peer], None]:
            def script(p: Peer) -> None:
                p.upgrade()
                p.subscribed()
                p.raw(server_frame(ws.CLOSE, code.to_bytes(2, "big") + b"why"))

            return script

        with Client(self.play(closing_with(1012), self.first).url).stream([SYMBOL], channels=["l2"]) as s:
            events = [next(s) for _ in range(4)]
            self.assertEqual(self.kinds(events), ["Connected", "Interruption", "Connected", "BookEvent"])
            self.assertIn("1012", str(events[1]))
        with Client(self.play(closing_with(4009)).url).stream([SYMBOL], channels=["l2"]) as s:
            next(s)
            with self.assertRaises(ConnectionClosed) as caught:
                next(s)
            self.assertEqual((caught.exception.code, caught.exception.reason), (4009, "why"))

    def test_refused_upgrades(self) -> None:
        def refusing(status: int, code: str, after: str = "0") -> Callable[[Peer], None]:
            def script(p: Peer) -> None:
                p.head()
                body = json.dumps({"ok": False, "code": code}).encode()
                p.raw(f"HTTP/1.1 {status} No\r\nRetry-After: {after}\r\nContent-Length: {len(body)}\r\n\r\n".encode("latin-1") + body)

            return script

        with Client(self.play(refusing(429, "RATE_LIMITED"), self.first).url).stream([SYMBOL], channels=["l2"]) as s:
            self.assertEqual(self.kinds([next(s), next(s)]), ["Interruption", "Connected"])
        with Client(self.play(refusing(503, "OVERLOADED", "²"), self.first).url).stream([SYMBOL], channels=["l2"]) as s:
            self.assertEqual(self.kinds([next(s), next(s)]), ["Interruption", "Connected"])
        with Client(self.play(refusing(503, "OVERLOADED", "999999999")).url).stream([SYMBOL], channels=["l2"]) as s:
            self.assertEqual(self.kinds([next(s)]), ["Interruption"])
            self.assertLessEqual(s._lines[0].not_before - time.monotonic(), stream.LONGEST_ASKED)
        with Client(self.play(refusing(404, "ROUTE_INCONNUE")).url).stream([SYMBOL], channels=["l2"]) as s:
            with self.assertRaises(ApiError):
                next(s)

    def test_a_hostile_service(self) -> None:
        def script(p: Peer) -> None:
            p.upgrade()
            p.raw(b"\x83\x00")

        with Client(self.play(script).url).stream([SYMBOL], channels=["l2"]) as s:
            with self.assertRaises(ProtocolError):
                next(s)

    def test_silence(self) -> None:
        ended = threading.Event()

        def silent(p: Peer) -> None:
            p.upgrade()
            ended.wait(240)

        with Client(self.play(silent, self.first).url).stream([SYMBOL], channels=["l2"]) as s:
            with mock.patch.object(stream, "SILENCE", 0.2):
                self.assertIsInstance(next(s), Interruption)
            ended.set()
            self.assertEqual(self.kinds([next(s), next(s)]), ["Connected", "BookEvent"])

    def test_a_reader_that_was_away_does_not_take_that_for_silence(self) -> None:
        read, said = threading.Event(), threading.Event()

        def script(p: Peer) -> None:
            p.upgrade()
            p.subscribed()
            p.say(SNAPSHOT)
            assert read.wait(240)
            p.say(UPDATE)
            said.set()
            assert p.get()[0] == ws.CLOSE

        with Client(self.play(script).url).stream([SYMBOL], channels=["l2"]) as s:
            next(s), next(s)
            read.set()
            self.assertTrue(said.wait(240))
            with mock.patch.object(stream, "SILENCE", 0.0):
                self.assertEqual(self.kinds([next(s)]), ["BookEvent"])

    def test_server_sent_events(self) -> None:
        def events(*messages: dict[str, Any]) -> bytes:
            text = "".join(f"event: {m['channel']}\ndata: {json.dumps(m)}\n\n" for m in messages).encode()
            return b"%x\r\n%s\r\n" % (len(text), text)

        begin = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

        def first(p: Peer) -> None:
            assert "last-event-id" not in p.head()
            assert "symbols=SLUSD/USDC&channels=l2&depth=10 " in p.line, p.line
            mark = b'id: e7-5\nevent: mark\ndata: {"channel":"mark"}\n\n'
            p.raw(begin + events(WELCOME, SNAPSHOT) + b"%x\r\n%s\r\n" % (len(mark), mark))

        def second(p: Peer) -> None:
            assert p.head()["last-event-id"] == "e7-5"
            p.raw(begin + events(UPDATE, UPDATE, l2(1050, 1049, [], [])))  # one again, and a gap

        def third(p: Peer) -> None:
            assert "last-event-id" not in p.head(), "a gap is begun anew from"
            p.raw(begin + events(dict(SNAPSHOT, seq=1060)) + b"0\r\n\r\n")

        with Client(self.play(first, second, third).url).stream([SYMBOL], channels=["l2"], depth=10, via="sse") as s:
            got = [next(s) for _ in range(7)]
            kinds = ["BookEvent", "Interruption", "BookEvent", "Interruption", "Interruption", "BookEvent", "Interruption"]
            self.assertEqual(self.kinds(got), kinds)
            self.assertEqual(s.books[SYMBOL].seq, 1060)


if __name__ == "__main__":
    unittest.main()
