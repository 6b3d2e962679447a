"""TLS for tests: a certificate that nobody trusts, and a line that holds bytes back."""

import socket
import ssl
import tempfile
import threading
from contextlib import suppress

# Of nobody, for a hundred years; made for these tests alone.
_PEM = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg08JLF+bo1iAKVvL0
ccLIVzXLBLz207IJ4/uYDLw+C2ihRANCAARCyfUTXjadxnqXCea5KGrTECW16uR7
BUL0RbzwJUJJ2YADsbOwf/LYEtX8vRjNaBsRYqJMAfpIIlhHMOFkyH3I
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBkTCCATegAwIBAgIUBz1k6/7w+wwxo8YkcCeF7XIoBJkwCgYIKoZIzj0EAwIw
HTEbMBkGA1UEAwwSbm9ib2R5IHRydXN0cyB0aGlzMCAXDTI2MTEyMjIwNTM0MFoY
DzIxMjYxMDI5MjA1MzQwWjAdMRswGQYDVQQDDBJub2JvZHkgdHJ1c3RzIHRoaXMw
WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARCyfUTXjadxnqXCea5KGrTECW16uR7
BUL0RbzwJUJJ2YADsbOwf/LYEtX8vRjNaBsRYqJMAfpIIlhHMOFkyH3Io1MwUTAd
BgNVHQ4EFgQUi6zOAeaEpoL3sT7EWEz8WfEPvmEwHwYDVR0jBBgwFoAUi6zOAeaE
poL3sT7EWEz8WfEPvmEwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBF
AiEAoDNxmfT5xdUwMVkaZwH3/FoaTu0uBVwoAwN+3ZtuZtACIAW1HA/lDoOzLDhj
xQ+hxQw77lNTbFtUl+HtyHh/E+hx
-----END CERTIFICATE-----
"""


def server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(_PEM)
        file.flush()
        context.load_cert_chain(file.name)
    return context


def client_context() -> ssl.SSLContext:
    """One that asks for no certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class HeldLine:
    """Carries bytes between one client and a server. While ``hold`` is set the client
    gets the first half of what comes, once, and the rest after ``release``."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.hold, self.held, self.release = threading.Event(), threading.Event(), threading.Event()

    def to(self, port: int) -> None:
        """The server is there."""
        threading.Thread(target=self._run, args=(port,), daemon=True).start()

    def _run(self, port: int) -> None:
        client, _ = self._listener.accept()
        with client, socket.create_connection(("127.0.0.1", port)) as server:
            back = threading.Thread(target=self._carry, args=(client, server, False), daemon=True)
            back.start()
            self._carry(server, client, True)
            back.join(20)

    def _carry(self, source: socket.socket, to: socket.socket, may_hold: bool) -> None:
        with suppress(OSError):  # either of them may have gone
            while data := source.recv(1 << 16):
                if may_hold and self.hold.is_set() and not self.held.is_set():
                    half = len(data) // 2
                    to.sendall(data[:half])
                    self.held.set()
                    self.release.wait(240)
                    data = data[half:]
                to.sendall(data)
        with suppress(OSError):
            to.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self.release.set()
        self._listener.close()
