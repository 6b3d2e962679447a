"""Ed25519 (RFC 8032): sign, and verify strictly.

With the package ``cryptography`` (``pip install "blockdesk[fast]"``) keys and signatures
come from it: microseconds, in a time that does not depend on the key. Without it they
are made in plain Python, which takes milliseconds in a time that depends on the key: sign
like that only where nobody can measure it. Keep a key that holds much in a device of its
own. Anything with an ``address`` and a ``sign`` method can stand in for a
:class:`~blockdesk.Keypair`.

verify accepts a signature only if whoever made it knew the key: it refuses keys and
points that are not canonical or of small order, keys with a small-order part, and
scalars beyond the group's order; the equation is checked without the cofactor, as the
chain and the service check it.
"""

from __future__ import annotations

import hashlib
import importlib
from functools import lru_cache
from typing import Any, Optional

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, P - 2, P) % P
_D2 = 2 * _D % P
_SQRT_M1 = pow(2, (P - 1) // 4, P)

# Extended coordinates: X, Y, Z, T with x = X/Z, y = Y/Z, xy = T/Z.
Point = tuple[int, int, int, int]
_IDENTITY: Point = (0, 1, 1, 0)


def _native() -> Any:
    """The private key class of cryptography; None without it."""
    try:
        return importlib.import_module("cryptography.hazmat.primitives.asymmetric.ed25519").Ed25519PrivateKey
    except ImportError:  # also a version without ed25519
        return None


#: The private key class of cryptography, or None: then plain Python signs.
NATIVE: Any = _native()


def public_key(seed: bytes) -> bytes:
    """The 32 bytes of a seed's public key."""
    if NATIVE is not None:
        return bytes(NATIVE.from_private_bytes(_seed(seed)).public_key().public_bytes_raw())
    scalar, _ = _expand(seed)
    return _compress(_times_base(scalar))


def sign(seed: bytes, message: bytes) -> bytes:
    """The 64 bytes of a signature. The seed is the private key's 32 bytes."""
    if NATIVE is not None:
        return bytes(NATIVE.from_private_bytes(_seed(seed)).sign(message))
    scalar, prefix = _expand(seed)
    key = _compress(_times_base(scalar))
    r = _hash(prefix, message)
    point = _compress(_times_base(r))
    s = (r + _hash(point, key, message) * scalar) % L
    return point + s.to_bytes(32, "little")


def verify(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the signature is the key's over exactly these bytes."""
    if len(signature) != 64 or not valid_key(key):
        return False
    a, r = _decompress(key), _decompress(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= L or _small_order(r):
        return False
    challenge = _hash(signature[:32], key, message)
    return _equal(_times_base(s), _add(r, _times(challenge, a)))


def valid_key(key: bytes) -> bool:
    """Whether signatures prove something about a key: it is the canonical encoding of
    a point of the prime-order group other than its identity."""
    point = _decompress(key)
    return point is not None and not _small_order(point) and _equal(_times(L, point), _IDENTITY)


def on_curve(key: bytes) -> bool:
    """Whether 32 bytes are a point at all, as Solana asks of addresses that nobody may
    have the key of: bytes that are not canonical count as the point they stand for."""
    return _decompress(key, canonical=False) is not None


def _seed(seed: bytes) -> bytes:
    if len(seed) != 32:
        raise ValueError(f"a seed of {len(seed)} bytes, not 32")
    return seed


def _expand(seed: bytes) -> tuple[int, bytes]:
    h = hashlib.sha512(_seed(seed)).digest()
    scalar = int.from_bytes(h[:32], "little")
    return scalar & (1 << 254) - 8 | 1 << 254, h[32:]


def _hash(*parts: bytes) -> int:
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little") % L


def _add(p: Point, q: Point) -> Point:
    a = (p[1] - p[0]) * (q[1] - q[0]) % P
    b = (p[1] + p[0]) * (q[1] + q[0]) % P
    c = p[3] * q[3] % P * _D2 % P
    d = 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def _double(p: Point) -> Point:
    a, b = p[0] * p[0] % P, p[1] * p[1] % P
    c = 2 * p[2] * p[2] % P
    h = a + b
    e = h - (p[0] + p[1]) ** 2 % P
    g = a - b
    f = c + g
    return e * f % P, g * h % P, f * g % P, e * h % P


def _times(n: int, p: Point) -> Point:
    out = _IDENTITY
    for bit in bin(n)[2:]:
        out = _double(out)
        if bit == "1":
            out = _add(out, p)
    return out


@lru_cache(maxsize=1)
def _powers() -> list[list[Point]]:
    """d * 16^i * base for each digit d, so that a product takes 64 additions."""
    y = 4 * pow(5, P - 2, P) % P
    x = _x_of(y, 0)
    assert x is not None
    at: Point = (x, y, 1, x * y % P)
    rows = []
    for _ in range(64):
        row = [_IDENTITY]
        for _ in range(15):
            row.append(_add(row[-1], at))
        rows.append(row)
        at = _add(row[-1], at)
    return rows


def _times_base(n: int) -> Point:
    out = _IDENTITY
    for row in _powers():
        out = _add(out, row[n & 15])
        n >>= 4
    return out


def _equal(p: Point, q: Point) -> bool:
    return (p[0] * q[2] - q[0] * p[2]) % P == 0 and (p[1] * q[2] - q[1] * p[2]) % P == 0


def _small_order(p: Point) -> bool:
    return _equal(_double(_double(_double(p))), _IDENTITY)


def _compress(p: Point) -> bytes:
    inverse = pow(p[2], P - 2, P)
    x, y = p[0] * inverse % P, p[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _x_of(y: int, sign: int) -> Optional[int]:
    """The x of a point; None where there is none."""
    u, v = (y * y - 1) % P, (_D * y * y + 1) % P
    x = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    if v * x * x % P == (P - u) % P:
        x = x * _SQRT_M1 % P
    if v * x * x % P != u:
        return None
    return P - x if x & 1 != sign and x else x


def _decompress(data: bytes, canonical: bool = True) -> Optional[Point]:
    if len(data) != 32:
        return None
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & (1 << 255) - 1
    if canonical and y >= P:
        return None
    y %= P
    x = _x_of(y, sign)
    if x is None or canonical and x == 0 and sign:
        return None
    return x, y, 1, x * y % P
