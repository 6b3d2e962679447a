"""Blocking connections, in plain text and over TLS: nothing waits but to a deadline."""

import socket
import threading
import time
import unittest
from contextlib import closing, suppress
from typing import Callable

from blockdesk import TimedOut, TransportError
from blockdesk._http import Origin
from blockdesk._net import Connection

from .tls import client_context, server_context

MANY = bytes(range(256)) * (64 << 10)  # more than what lies between two sockets


def until(done: threading.Event) -> Callable[[socket.socket], None]:
    """A peer that says and reads nothing."""

    def serve(_: socket.socket) -> None:
        done.wait(240)

    return serve


class ConnectionTest(unittest.TestCase):
    def connected(self, tls: bool, serve: Callable[[socket.socket], None]) -> Connection:
        listener = socket.create_server(("127.0.0.1", 0))

        def run() -> None:
            with closing(listener), suppress(OSError):  # the client may go first
                peer, _ = listener.accept()
                with closing(server_context().wrap_socket(peer, server_side=True) if tls else peer) as peer:
                    serve(peer)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 20)
        origin = Origin.parse(f"{'https' if tls else 'http'}://127.0.0.1:{listener.getsockname()[1]}")
        connection = Connection(origin, time.monotonic() + 10, client_context())
        self.addCleanup(connection.close)
        return connection

    def test_more_than_fits_is_sent_to_a_slow_reader(self) -> None:
        for tls in (False, True):
            got, begin = bytearray(), threading.Event()

            def serve(peer: socket.socket) -> None:
                assert begin.wait(240)
                while len(got) < len(MANY):
                    got.extend(peer.recv(1 << 16))
                peer.sendall(b"done")

            connection = self.connected(tls, serve)
            threading.Timer(0.2, begin.set).start()
            connection.send(MANY, time.monotonic() + 20)
            self.assertEqual(connection.receive(time.monotonic() + 20), b"done")
            self.assertEqual(bytes(got), MANY)

    def test_nobody_waits_beyond_a_deadline(self) -> None:
        for tls in (False, True):
            done = threading.Event()
            self.addCleanup(done.set)
            connection = self.connected(tls, until(done))
            self.assertIsNone(connection.received())
            for wait in (lambda: connection.receive(time.monotonic() + 0.1), lambda: connection.send(MANY, time.monotonic() + 0.1)):
                start = time.monotonic()
                with self.assertRaises(TimedOut):
                    wait()
                self.assertLess(time.monotonic() - start, 5)
            done.set()

    def test_who_waits_is_told_of_a_close_by_another_thread(self) -> None:
        for tls in (False, True):
            done = threading.Event()
            self.addCleanup(done.set)
            connection = self.connected(tls, until(done))
            threading.Timer(0.2, connection.close).start()
            start = time.monotonic()
            with suppress(TransportError):  # or the end
                self.assertEqual(connection.receive(time.monotonic() + 10), b"")
            self.assertLess(time.monotonic() - start, 5)
            done.set()

    def test_the_end(self) -> None:
        for tls in (False, True):
            connection = self.connected(tls, lambda peer: peer.sendall(b"bye"))
            self.assertEqual(connection.receive(time.monotonic() + 10), b"bye")
            with suppress(TransportError):  # of a TLS that says no goodbye
                self.assertEqual(connection.receive(time.monotonic() + 10), b"")
