"""Solana's transactions, as far as this service makes them: version 0, from exact
bytes and back. What is not in its one shortest form is refused, so that what is shown
is all that is signed.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache

from . import base58, ed25519
from .errors import VerificationError
from .wallet import Signer

SYSTEM_PROGRAM = "11111111111111111111111111111111"
TOKEN_PROGRAM = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"
TOKEN_2022_PROGRAM = "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb"
TOKEN_PROGRAMS = (TOKEN_PROGRAM, TOKEN_2022_PROGRAM)
ASSOCIATED_TOKEN_PROGRAM = "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL"
MEMO_PROGRAM = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr"
COMPUTE_BUDGET_PROGRAM = "ComputeBudget111111111111111111111111111111"

#: Largest transaction, signatures included, in bytes.
MAX_TRANSACTION = 1232
#: An empty signature slot.
UNSIGNED = bytes(64)


@dataclass(frozen=True)
class Instruction:
    """A call of a program, with accounts by their addresses."""

    program: str
    accounts: tuple[str, ...]
    data: bytes


@dataclass(frozen=True)
class Transaction:
    """A version 0 transaction without address tables.

    ``message`` is what signers sign. ``signers`` are the keys that must, in the order
    of ``signatures``; the first pays the fee. ``writable`` are the keys that it may
    write.
    """

    message: bytes
    signatures: tuple[bytes, ...]
    signers: tuple[str, ...]
    keys: tuple[str, ...]
    writable: frozenset[str]
    blockhash: str
    instructions: tuple[Instruction, ...]

    @classmethod
    def parse(cls, raw: bytes) -> Transaction:
        """Reads a whole transaction. VerificationError where it is not one of these,
        or has anything that its signers would not see."""
        if len(raw) > MAX_TRANSACTION:
            raise VerificationError(f"a transaction of {len(raw)} bytes")
        r = _Reader(raw)
        signatures = tuple(r.take(64) for _ in range(r.count()))
        message = r.rest()
        if r.byte() != 0x80:
            raise VerificationError("no version 0 transaction")
        required, readonly_signed, readonly_unsigned = r.byte(), r.byte(), r.byte()
        keys = tuple(base58.encode(r.take(32)) for _ in range(r.count()))
        if not 0 < required <= len(keys) - readonly_unsigned or readonly_signed >= required:
            raise VerificationError("a header that does not fit its keys")
        if len(set(keys)) < len(keys) or len(signatures) != required:
            raise VerificationError("keys or signatures that do not fit")
        blockhash = base58.encode(r.take(32))
        instructions = tuple(_instruction(r, keys) for _ in range(r.count()))
        if r.count() != 0:
            raise VerificationError("an address table: its accounts cannot be seen")
        if r.rest():
            raise VerificationError("bytes after the transaction")
        writable = keys[: required - readonly_signed] + keys[required : len(keys) - readonly_unsigned]
        return cls(message, signatures, keys[:required], keys, frozenset(writable), blockhash, instructions)

    @classmethod
    def from_base64(cls, text: str) -> Transaction:
        """Reads a transaction as the service's answers have it."""
        try:
            raw = base64.b64decode(text, validate=True)
        except ValueError:
            raise VerificationError("a transaction that is no base64") from None
        return cls.parse(raw)

    @property
    def message_sha256(self) -> str:
        """The hash of the message, hexadecimal."""
        return hashlib.sha256(self.message).hexdigest()

    @property
    def signature(self) -> str:
        """The first signature, which names the transaction on the chain."""
        return base58.encode(self.signatures[0])

    def signed(self, signer: Signer) -> Transaction:
        """The transaction with the signer's signature in its place.

        It looks at nothing: verify first. VerificationError where the signer is not
        to sign it, or where what it signs with is not its key.
        """
        if signer.address not in self.signers:
            raise VerificationError(f"{signer.address} is not to sign this transaction")
        signature = signer.sign(self.message)
        if not ed25519.verify(base58.decode(signer.address, 32), self.message, signature):
            raise VerificationError(f"{signer.address}: its signature does not verify")
        at = self.signers.index(signer.address)
        return replace(self, signatures=self.signatures[:at] + (signature,) + self.signatures[at + 1 :])

    def to_bytes(self) -> bytes:
        """The transaction's bytes."""
        return bytes([len(self.signatures)]) + b"".join(self.signatures) + self.message

    def to_base64(self) -> str:
        """The transaction as the service and nodes take it."""
        return base64.b64encode(self.to_bytes()).decode("ascii")


def _instruction(r: _Reader, keys: tuple[str, ...]) -> Instruction:
    program = r.byte()
    accounts = r.take(r.count())
    data = r.take(r.count())
    if max(program, *accounts, 0) >= len(keys):
        raise VerificationError("an instruction whose accounts are not there")
    return Instruction(keys[program], tuple(keys[a] for a in accounts), data)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def rest(self) -> bytes:
        return self._data[self._at :]

    def take(self, n: int) -> bytes:
        if n > len(self._data) - self._at:
            raise VerificationError("a transaction that is cut off")
        self._at += n
        return self._data[self._at - n : self._at]

    def byte(self) -> int:
        return self.take(1)[0]

    def count(self) -> int:
        """A compact-u16 in its shortest form, as the chain demands."""
        n = 0
        for i in range(3):
            b = self.byte()
            n |= (b & 0x7F) << (7 * i)
            if not b & 0x80:
                if i and not b or n > 0xFFFF:
                    break
                return n
        raise VerificationError("a count that is not in its shortest form")


@lru_cache(maxsize=4096)
def associated_token_account(wallet: str, mint: str, program: str = TOKEN_PROGRAM) -> str:
    """The account that holds a wallet's tokens of a mint. ValueError for no addresses."""
    seeds = b"".join(base58.decode(part, 32) for part in (wallet, program, mint))
    for bump in range(255, -1, -1):
        tail = bytes([bump]) + base58.decode(ASSOCIATED_TOKEN_PROGRAM, 32) + b"ProgramDerivedAddress"
        address = hashlib.sha256(seeds + tail).digest()
        if not ed25519.on_curve(address):
            return base58.encode(address)
    raise ValueError(f"no associated token account of {wallet} for {mint}")
