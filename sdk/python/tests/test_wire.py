"""HTTP, WebSocket frames, event lines and FIX: split at every byte, and hostile."""

import random
import unittest
import zlib
from typing import Any, Callable

from blockdesk import _websocket as ws
from blockdesk._http import (
    MAX_CHUNK_LINE,
    MAX_HEAD,
    Origin,
    Response,
    ResponseReader,
    request,
)
from blockdesk.errors import (
    BlockdeskError,
    LimitExceeded,
    ProtocolError,
    TransportError,
)
from blockdesk.fix import FixMessage, FixReader, encode
from blockdesk._link import EventLines


def server_frame(opcode: int, payload: bytes, *, fin: bool = True, rsv: int = 0) -> bytes:
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    n = len(payload)
    if n < 126:
        return head + bytes([n]) + payload
    if n < 1 << 16:
        return head + b"\x7e" + n.to_bytes(2, "big") + payload
    return head + b"\x7f" + n.to_bytes(8, "big") + payload


def unmask(data: bytes) -> "tuple[int, bytes]":
    """Opcode and payload of a client's frame."""
    n, at = data[1] & 0x7F, 2
    if n == 126:
        n, at = int.from_bytes(data[2:4], "big"), 4
    elif n == 127:
        n, at = int.from_bytes(data[2:10], "big"), 10
    mask, payload = data[at : at + 4], data[at + 4 :]
    assert data[1] & 0x80 and len(payload) == n
    return data[0] & 0x0F, bytes(b ^ mask[i % 4] for i, b in enumerate(payload))


class FramesTest(unittest.TestCase):
    reader: type[ws.Reader] = ws.Reader
    strict = True  # about lengths that are not in their shortest form

    def test_split_at_every_byte(self) -> None:
        stream = (
            server_frame(ws.TEXT, b"one") + server_frame(ws.PING, b"p") + server_frame(ws.TEXT, b"zw", fin=False)
            + server_frame(ws.PONG, b"") + server_frame(0, "ö".encode()[:1], fin=False) + server_frame(0, "ö".encode()[1:] + b"lf")
            + server_frame(ws.TEXT, b"x" * 300) + server_frame(ws.TEXT, b"y" * 70000) + server_frame(ws.CLOSE, b"\x03\xe8bye")
        )  # fmt: skip
        want = [
            ws.Message("one"), ws.Ping(b"p"), ws.Pong(b""), ws.Message("zwölf"), ws.Message("x" * 300), ws.Message("y" * 70000),
            ws.Close(1000, "bye"),
        ]  # fmt: skip
        self.assertEqual(self.reader().feed(stream), want)
        for cut in list(range(1, 400)) + [len(stream) - 3]:
            r = self.reader()
            self.assertEqual(r.feed(stream[:cut]) + r.feed(stream[cut:]), want)
        r, got = self.reader(), []
        for i in range(0, len(stream)):
            got += r.feed(stream[i : i + 1])
        self.assertEqual(got, want)

    def test_hostile(self) -> None:
        cases: list[tuple[str, bytes, type[BlockdeskError]]] = [
            ("masked", b"\x81\x80\0\0\0\0", ProtocolError),
            ("opcode 3", server_frame(3, b""), ProtocolError),
            ("opcode 11", server_frame(11, b""), ProtocolError),
            ("reserved bit 1 without deflate", server_frame(ws.TEXT, b"", rsv=4), ProtocolError),
            ("reserved bit 2", server_frame(ws.TEXT, b"", rsv=2), ProtocolError),
            ("long ping", b"\x89\x7e\x00\x7e" + bytes(126), ProtocolError),
            ("ping in pieces", server_frame(ws.PING, b"", fin=False), ProtocolError),
            ("continuation of nothing", server_frame(0, b"x"), ProtocolError),
            ("text within text", server_frame(ws.TEXT, b"x", fin=False) + server_frame(ws.TEXT, b"y"), ProtocolError),
            ("binary", server_frame(ws.BINARY, b"x"), ProtocolError),
            ("no UTF-8", server_frame(ws.TEXT, b"\xff"), ProtocolError),
            ("length in two bytes for 5", b"\x81\x7e\x00\x05hello", ProtocolError),
            ("length in eight bytes for 5", b"\x81\x7f" + (5).to_bytes(8, "big"), ProtocolError),
            ("too long", b"\x81\x7f" + (101).to_bytes(8, "big"), ProtocolError),
            ("close code 1005", server_frame(ws.CLOSE, b"\x03\xed"), ProtocolError),
            ("close code 2999", server_frame(ws.CLOSE, b"\x0b\xb7"), ProtocolError),
            ("close of one byte", server_frame(ws.CLOSE, b"\x03"), ProtocolError),
            ("close reason no UTF-8", server_frame(ws.CLOSE, b"\x03\xe8\xff"), ProtocolError),
        ]
        for name, data, error in cases:
            if not self.strict and name.startswith("length in"):
                continue
            with self.assertRaises(error, msg=name):
                self.reader(max_message=100).feed(data)

    def test_limit(self) -> None:
        exactly = server_frame(ws.TEXT, b"x" * 60, fin=False) + server_frame(0, b"x" * 40)
        self.assertEqual(self.reader(max_message=100).feed(exactly), [ws.Message("x" * 100)])
        with self.assertRaises(LimitExceeded):
            self.reader(max_message=100).feed(server_frame(ws.TEXT, b"x" * 60, fin=False) + server_frame(0, b"x" * 41))
        with self.assertRaises(LimitExceeded):  # before its bytes have come
            self.reader(max_message=1 << 20).feed(b"\x81\x7f" + (1 << 62).to_bytes(8, "big"))

    def test_compressed(self) -> None:
        def squeeze(text: bytes) -> bytes:
            z = zlib.compressobj(wbits=-15)
            return (z.compress(text) + z.flush(zlib.Z_SYNC_FLUSH))[:-4]

        text = b'{"channel":"l2"}' * 50
        whole = squeeze(text)
        r = self.reader(deflate=True, max_message=1000)
        self.assertEqual(r.feed(server_frame(ws.TEXT, whole, rsv=4)), [ws.Message(text.decode())])
        pieces = server_frame(ws.TEXT, whole[:5], fin=False, rsv=4) + server_frame(0, whole[5:])
        self.assertEqual(r.feed(pieces), [ws.Message(text.decode())])
        self.assertEqual(r.feed(server_frame(ws.TEXT, b"plain")), [ws.Message("plain")])
        with self.assertRaises(LimitExceeded):
            self.reader(deflate=True, max_message=1000).feed(server_frame(ws.TEXT, squeeze(b"0" * 1_000_000), rsv=4))
        with self.assertRaises(ProtocolError):
            self.reader(deflate=True).feed(server_frame(ws.TEXT, b"\xff\xff", rsv=4))
        with self.assertRaises(ProtocolError):
            self.reader(deflate=True).feed(server_frame(ws.PING, b"", rsv=4))

    def test_what_is_sent_is_masked(self) -> None:
        for n in (0, 1, 3, 4, 5, 125, 126, 65535, 65536):
            payload = random.Random(n).randbytes(n)
            self.assertEqual(unmask(ws.frame(ws.TEXT, payload)), (ws.TEXT, payload))
        self.assertNotEqual(ws.frame(ws.TEXT, b"same")[2:6], ws.frame(ws.TEXT, b"same")[2:6])
        self.assertEqual(unmask(ws.close_frame(1000, "ö" * 100))[1][:2], b"\x03\xe8")

    def test_upgrade(self) -> None:
        shake = ws.Handshake(Origin.parse("ws://h:1"), "/ws/rfq")
        shake._key = "dGhlIHNhbXBsZSBub25jZQ=="  # RFC 6455, 1.3
        right = {"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="}
        self.assertFalse(shake.accept(Response(101, right))._deflate)
        agreed = dict(right, **{"sec-websocket-extensions": "permessage-deflate; server_no_context_takeover"})
        self.assertTrue(shake.accept(Response(101, agreed))._deflate)
        for name, value in [
            ("sec-websocket-accept", "x"), ("upgrade", "h2c"), ("connection", "close"),
            ("sec-websocket-extensions", "permessage-deflate"), ("sec-websocket-extensions", "other"),
        ]:  # fmt: skip
            with self.assertRaises(ProtocolError, msg=value):
                shake.accept(Response(101, dict(right, **{name: value})))


@unittest.skipIf(ws.LIBRARY is None, "websockets is not installed")
class LibraryFramesTest(FramesTest):
    """The package websockets reads what this one reads, and refuses what it refuses."""

    reader = ws.LibraryReader
    strict = False


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-A: 1\r\nx-a: 2\r\n"


class HTTPTest(unittest.TestCase):
    def read(self, data: bytes, cut: int, *, end: bool = False) -> "tuple[int, bytes, bool, bytes]":
        r = ResponseReader()
        r.feed(data[:cut])
        r.feed(data[cut:])
        if end:
            r.eof()
        assert r.head and r.done
        return r.head.status, r.take(), r.head.reusable, r.rest

    def test_split_at_every_byte(self) -> None:
        sized = ANSWER + b"Content-Length: 5\r\n\r\nhelloHTTP"
        chunked = ANSWER + b"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nT: v\r\n\r\n"
        closed = ANSWER + b"\r\nhello"
        for cut in range(1, len(sized)):
            self.assertEqual(self.read(sized, cut), (200, b"hello", True, b"HTTP"))
        for cut in range(1, len(chunked)):
            self.assertEqual(self.read(chunked, cut), (200, b"hello", True, b""))
        for cut in range(1, len(closed)):
            self.assertEqual(self.read(closed, cut, end=True), (200, b"hello", False, b""))
        early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"
        for cut in range(1, len(early)):
            self.assertEqual(self.read(early, cut), (204, b"", False, b""))

    def test_headers_are_joined(self) -> None:
        r = ResponseReader()
        r.feed(ANSWER + b"Content-Length: 0\r\n\r\n")
        assert r.head
        self.assertEqual(r.head.headers["x-a"], "1, 2")

    def test_hostile(self) -> None:
        cases = [
            b"HTTP/2 200 OK\r\n\r\n", b"nonsense\r\n\r\n", b"HTTP/1.1 2000 OK\r\n\r\n", b"HTTP/1.1 2\xb20 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n folded: x\r\n\r\n", ANSWER + b"Content-Length: -1\r\n\r\n", ANSWER + b"Content-Length: 1e3\r\n\r\n",
            ANSWER + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\n", ANSWER + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            ANSWER + b"Transfer-Encoding: gzip\r\n\r\n", ANSWER + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
            ANSWER + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n", ANSWER + b"Transfer-Encoding: chunked\r\n\r\n1\r\nabc",
            ANSWER + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        ]  # fmt: skip
        for data in cases:
            with self.assertRaises(ProtocolError, msg=repr(data)):
                ResponseReader().feed(data)
        with self.assertRaises(LimitExceeded):
            ResponseReader().feed(b"HTTP/1.1 200 OK\r\nX: " + b"a" * MAX_HEAD)
        with self.assertRaises(LimitExceeded):
            ResponseReader().feed(ANSWER + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * MAX_CHUNK_LINE)
        for data in (b"", ANSWER, ANSWER + b"Content-Length: 5\r\n\r\nhell", ANSWER + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n"):
            r = ResponseReader()
            r.feed(data)
            with self.assertRaises(TransportError):
                r.eof()

    def test_requests(self) -> None:
        at = Origin.parse("http://desk.example:8080/api")
        self.assertEqual(request("GET", at, "/x?a=1", {"A": "b"}), b"GET /api/x?a=1 HTTP/1.1\r\nHost: desk.example:8080\r\nA: b\r\n\r\n")
        self.assertEqual(
            request("POST", Origin.parse("https://h"), "/", {}, b"{}"), b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"
        )
        for target, headers in [("/a b", {}), ("x", {}), ("/\r\nA: b", {}), ("/", {"A": "b\r\nC: d"}), ("/", {"A": "é"})]:
            with self.assertRaises(ValueError, msg=target):
                request("GET", at, target, headers)
        for url in ("ftp://h", "h:80", "http://", "//h"):
            with self.assertRaises(ValueError, msg=url):
                Origin.parse(url)


class EventLinesTest(unittest.TestCase):
    def test_split_at_every_byte(self) -> None:
        data = 'retry: 1000\n\nevent: l2\ndata: {"a":\ndata: "ö"}\n\n: comment\nid: e1-5\r\nevent: mark\ndata:{}\r\n\r\n'.encode()
        want = [("", '{"a":\n"ö"}'), ("e1-5", "{}")]
        for cut in range(len(data)):
            lines = EventLines()
            self.assertEqual(lines.feed(data[:cut]) + lines.feed(data[cut:]), want)

    def test_limit(self) -> None:
        self.assertEqual(EventLines(20).feed(b"data: " + b"x" * 14 + b"\n\n"), [("", "x" * 14)])
        for data in (b"data: " + b"x" * 20, b"data: xxxx\n" * 5):
            with self.assertRaises(LimitExceeded):
                EventLines(20).feed(data)
        with self.assertRaises(ProtocolError):
            EventLines().feed(b"data: \xff\n")


# Of the service's messages.md.
LOGON = "8=FIX.4.4|9=104|35=A|49=FIRM1|56=BLOCKDESK|34=1|52=20260105-09:30:00.000|98=0|108=30|553=FIRM1|554=correct horse|8013=N|10=169|"


class FixWireTest(unittest.TestCase):
    def test_golden(self) -> None:
        fields: list[tuple[int, Any]] = [
            (35, "A"),
            (49, "FIRM1"),
            (56, "BLOCKDESK"),
            (34, 1),
            (52, "20260105-09:30:00.000"),
            (98, 0),
            (108, 30),
            (553, "FIRM1"),
            (554, "correct horse"),
            (8013, "N"),
        ]
        self.assertEqual(encode(fields), LOGON.replace("|", "\x01").encode())

    def test_split_at_every_byte(self) -> None:
        data = LOGON.replace("|", "\x01").encode() * 2
        for cut in range(len(data)):
            r = FixReader()
            got = r.feed(data[:cut]) + r.feed(data[cut:])
            self.assertEqual([m.get(553) for m in got], ["FIRM1"] * 2)

    def test_hostile(self) -> None:
        good = LOGON.replace("|", "\x01")
        for data in (
            "GET / HTTP/1.1", good.replace("FIX.4.4", "FIX.4.2"), good.replace("10=169", "10=170"), good.replace("9=104", "9=99999999"),
            good.replace("9=104", "9=x"), good.replace("9=104", "9=-1"), "8=FIX.4.4\x019=111111111111", good.replace("9=104", "9=103"),
            encode([(35, "0")]).decode().replace("35=0", "35:0"),
        ):  # fmt: skip
            with self.assertRaises(ProtocolError, msg=data):
                r = FixReader()
                r.feed(data.encode())
                r.feed(b"")
        for value in ("", "a\x01b", "é"):
            with self.assertRaises(ValueError):
                encode([(58, value)])

    def test_groups_and_passwords(self) -> None:
        m = FixMessage([(35, "W"), (268, "2"), (269, "0"), (270, "1.5"), (269, "1"), (270, "2"), (554, "secret")])
        self.assertEqual([(g.get(269), str(g.number(270))) for g in m.groups(269)], [("0", "1.5"), ("1", "2")])
        self.assertNotIn("secret", str(m))


class NoiseTest(unittest.TestCase):
    """Random bytes end in an exception of the package, or in nothing."""

    def test_noise(self) -> None:
        rng = random.Random(7)
        makers: list[Callable[[], Any]] = [ws.Reader, lambda: ws.Reader(deflate=True), ResponseReader, EventLines, FixReader]
        for make in makers:
            for _ in range(300):
                reader = make()
                try:
                    for _ in range(4):
                        reader.feed(rng.randbytes(rng.randrange(40)))
                except BlockdeskError:
                    pass


if __name__ == "__main__":
    unittest.main()
