"""Keys that sign."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Protocol, Union

from . import base58, ed25519


class Signer(Protocol):
    """A signer: a :class:`Keypair`, or your own class that asks a device.

    ``address`` is its public key in base58. ``sign`` returns the 64 bytes of an
    ed25519 signature over exactly the bytes that it is given.
    """

    @property
    def address(self) -> str: ...

    def sign(self, message: bytes) -> bytes: ...


class Keypair:
    """A key in memory. Its repr shows the address alone."""

    def __init__(self, seed: bytes) -> None:
        """seed: the private key's 32 bytes."""
        self._seed = bytes(seed)
        self._address = base58.encode(ed25519.public_key(self._seed))

    @classmethod
    def generate(cls) -> Keypair:
        """A new key of the system's random bytes."""
        return cls(os.urandom(32))

    @classmethod
    def from_file(cls, path: Union[str, os.PathLike[str]]) -> Keypair:
        """The key of a keypair file in Solana's form: a JSON list of 64 numbers.

        ValueError where it is none, or where its two halves are not one key's.
        """
        try:
            numbers = json.loads(Path(path).read_text("ascii"))
            secret = bytes(numbers) if isinstance(numbers, list) else b""
        except (TypeError, ValueError):
            secret = b""  # the text is not shown: it may be a key all the same
        if len(secret) != 64:
            raise ValueError(f"{path}: no keypair in Solana's form")
        pair = cls(secret[:32])
        if base58.decode(pair.address, 32) != secret[32:]:
            raise ValueError(f"{path}: its private and public half do not belong together")
        return pair

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes a keypair file that only its owner reads; FileExistsError if there is one."""
        secret = self._seed + base58.decode(self._address, 32)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as f:
            f.write(json.dumps(list(secret)) + "\n")

    @property
    def address(self) -> str:
        """The public key in base58."""
        return self._address

    def sign(self, message: bytes) -> bytes:
        """The signature over exactly these bytes."""
        return ed25519.sign(self._seed, message)

    def __repr__(self) -> str:
        return f"Keypair({self._address})"
