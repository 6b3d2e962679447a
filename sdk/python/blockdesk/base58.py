"""Base58 with Bitcoin's alphabet: how Solana writes keys, hashes and signatures."""

from __future__ import annotations

from typing import Optional, Union

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_VALUE = {c: i for i, c in enumerate(_ALPHABET)}

#: Longest text and most bytes: the work grows with the square of the length.
MAX_TEXT = 256
MAX_BYTES = 184


def encode(data: Union[bytes, bytearray]) -> str:
    """The text of data. A leading zero byte is a leading "1"."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"base58: {len(data)} bytes, at most {MAX_BYTES}")
    number = int.from_bytes(data, "big")
    digits = []
    while number:
        number, digit = divmod(number, 58)
        digits.append(_ALPHABET[digit])
    zeros = len(data) - len(data.lstrip(b"\0"))
    return "1" * zeros + "".join(reversed(digits))


def decode(text: str, length: Optional[int] = None) -> bytes:
    """The bytes of text; ValueError if it is no base58, or not of that length."""
    if len(text) > MAX_TEXT:
        raise ValueError(f"base58: {len(text)} characters, at most {MAX_TEXT}")
    number = 0
    for c in text:
        if c not in _VALUE:
            raise ValueError(f"base58: {c!r}")
        number = number * 58 + _VALUE[c]
    zeros = len(text) - len(text.lstrip("1"))
    data = b"\0" * zeros + number.to_bytes((number.bit_length() + 7) // 8, "big")
    if length is not None and len(data) != length:
        raise ValueError(f"base58: {len(data)} bytes, not {length}")
    return data
