"""No transaction is signed that is not what was asked for.

packages.json has real quotes, claim packages and builds of a demo service. Whatever is
changed in them, they have to be refused.
"""

import base64
import contextlib
import copy
import json
import unittest
from decimal import Decimal
from pathlib import Path
from typing import Any, Callable

from blockdesk import BlockdeskError, Keypair, VerificationError, base58
from blockdesk._decode import decode
from blockdesk.models import Build, ClaimPackage, Quote
from blockdesk.solana import (
    MEMO_PROGRAM,
    TOKEN_2022_PROGRAM,
    Transaction,
    associated_token_account,
)
from blockdesk.verify import (
    MAX_PRIORITY_LAMPORTS,
    MAX_UNITS,
    check_build,
    check_claim,
    check_quote,
)

REAL: dict[str, Any] = json.loads((Path(__file__).parent / "packages.json").read_text("ascii"))
WALLET: str = REAL["wallet"]
NAMES = ["claim_USDC", "claim_SOL", "build_USDC", "build_SOL"]


def check(name: str, case: dict[str, Any]) -> Transaction:
    quote = decode(Quote, case["quote"])
    if name.startswith("claim"):
        return check_claim(decode(ClaimPackage, case["package"]), quote, WALLET)[0]
    return check_build(decode(Build, case["package"]), quote, WALLET, case["base_mint"], case["sponsored"])[0]


def with_transaction(case: dict[str, Any], raw: bytes) -> dict[str, Any]:
    case = copy.deepcopy(case)
    case["package"]["transaction"] = base64.b64encode(raw).decode()
    return case


def leaves(value: Any, at: tuple[Any, ...] = ()) -> "list[tuple[Any, ...]]":
    """The places of all scalars."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []
    return [place for key, inner in pairs for place in leaves(inner, at + (key,))] or [at]


class RealPackagesTest(unittest.TestCase):
    def test_they_are_right(self) -> None:
        for name in NAMES:
            transaction = check(name, REAL[name])
            self.assertEqual(transaction.to_base64(), REAL[name]["package"]["transaction"])

    def test_a_changed_bit_of_any_byte_is_refused(self) -> None:
        """Of the bits that are signed only those pass that do no harm: another
        blockhash, where the answer names none, and a cheaper or dearer compute budget
        within its caps."""
        for name in NAMES:
            raw = base64.b64decode(REAL[name]["package"]["transaction"])
            t = Transaction.parse(raw)
            start = len(raw) - len(t.message)
            hash_at = raw.index(base58.decode(t.blockhash, 32))
            budget = range(raw.index(t.instructions[0].data) + 1, raw.index(t.instructions[1].data) + 9)
            harmless = list(range(hash_at, hash_at + 32)) + list(budget) if name.startswith("claim") else []
            for at in range(len(raw)):
                bit = 5 * at % 8
                changed = bytearray(raw)
                changed[at] ^= 1 << bit
                if at in harmless:
                    continue
                with self.assertRaises(VerificationError, msg=f"{name}: bit {bit} of byte {at - start} of the message"):
                    check(name, with_transaction(REAL[name], bytes(changed)))

    def test_cut_and_longer(self) -> None:
        for name in NAMES:
            raw = base64.b64decode(REAL[name]["package"]["transaction"])
            for cut in range(0, len(raw), 3):
                with self.assertRaises(VerificationError, msg=f"{name} {cut}"):
                    check(name, with_transaction(REAL[name], raw[:cut]))
            for more in (raw + b"\0", raw + raw, raw[:1] + bytes(1232)):
                with self.assertRaises(VerificationError):
                    check(name, with_transaction(REAL[name], more))
        for text in ("", "!", "AAAA", "A" * 5000):
            with self.assertRaises(VerificationError):
                Transaction.from_base64(text)

    def test_answers_that_say_something_else(self) -> None:
        """Every member that tells what is bought is held to the quote."""
        told = {
            "claim_id", "claim.bot_wallet", "claim.quote_id", "claim.order_id", "claim.tranche_id", "claim.pair", "claim.fill_usd", "claim.rail",
            "claim.price_usd", "claim.base_amount_atoms", "payment.rail", "payment.mint", "payment.amount", "payment.amount_atoms",
            "payment.pay_to", "payment.reference", "payment.memo", "delivery.to", "delivery.mint", "delivery.amount", "delivery.amount_atoms",
            "quote.quote_id", "quote.order_id", "quote.tranche_id", "quote.pair", "quote.fill_usd", "quote.rail", "quote.price_usd",
            "quote.base_amount_atoms", "message_sha256", "required_signers.0", "required_signers.1", "recent_blockhash",
        }  # fmt: skip
        for name in NAMES:
            for place in leaves(REAL[name]["package"]):
                if ".".join(map(str, place)) not in told:
                    continue
                case = copy.deepcopy(REAL[name])
                inside = case["package"]
                for key in place[:-1]:
                    inside = inside[key]
                old = inside[place[-1]]
                inside[place[-1]] = another(old)
                with self.assertRaises(VerificationError, msg=f"{name} {place}"):
                    check(name, case)

    def test_another_wallet(self) -> None:
        other = Keypair(bytes(32)).address
        for name in ("claim_USDC", "claim_SOL"):
            case = copy.deepcopy(REAL[name])
            case["package"]["claim"]["bot_wallet"] = other
            with self.assertRaises(VerificationError):
                check_claim(decode(ClaimPackage, case["package"]), decode(Quote, case["quote"]), other)
        case = REAL["build_USDC"]
        build, quote = decode(Build, case["package"]), decode(Quote, case["quote"])
        for wallet, mint, sponsored in ((other, case["base_mint"], True), (WALLET, other, True), (WALLET, case["base_mint"], False)):
            with self.assertRaises(VerificationError):
                check_build(build, quote, wallet, mint, sponsored)

    def test_odd_values(self) -> None:
        """Whatever stands there, on one side or on both: an error of ours."""
        asked: dict[str, Any] = dict(fill_usd=Decimal(250), rail="USDC", pair="SLUSD/USDC", order_id="T1", tranche_id="T1-1")
        odd: list[Any] = [None, True, -1, 2**70, "", "x", "\ud800", "-5", "0", "9" * 64, "1" * 44, {}]
        for name in NAMES:
            for place in leaves(REAL[name]["quote"]):
                for value in odd:
                    case = copy.deepcopy(REAL[name])
                    parts = [case["quote"], case["package"]["quote" if "quote" in case["package"] else "claim"], case["package"]]
                    for part in parts:
                        for key in place[:-1]:
                            part = part.get(key, {})
                        if place[-1] in part:
                            part[place[-1]] = value
                        with contextlib.suppress(BlockdeskError):
                            check(name, case)
                    with contextlib.suppress(BlockdeskError):
                        check_quote(decode(Quote, case["quote"]), **asked)
            case = copy.deepcopy(REAL[name])
            case["package"]["claim_id"] = case["package"]["payment"]["memo"] = "Cé"
            with self.assertRaises(VerificationError):
                check(name, case)

    def test_sol_has_nine_decimals(self) -> None:
        """A text that shows a person a hundredth of the lamports that would be signed."""
        case = copy.deepcopy(REAL["claim_SOL"])
        shown = format(Decimal(case["quote"]["payment"]["amount"]).scaleb(-2), "f")
        case["quote"]["payment"]["amount"] = case["package"]["payment"]["amount"] = shown
        with self.assertRaisesRegex(VerificationError, "lamports"):
            check("claim_SOL", case)

    def test_signed_by_somebody_already(self) -> None:
        raw = bytearray(base64.b64decode(REAL["build_USDC"]["package"]["transaction"]))
        raw[1 + 64] = 1
        with self.assertRaises(VerificationError):
            check("build_USDC", with_transaction(REAL["build_USDC"], bytes(raw)))


def another(value: Any) -> Any:
    """A value of the same form that is not this one."""
    if value is None:
        return WALLET
    if isinstance(value, str) and value.replace(".", "").isdigit():
        return "1" + value
    if value in ("USDC", "SOL"):
        return "SOL" if value == "USDC" else "USDC"
    return Keypair(bytes(32)).address


class BudgetTest(unittest.TestCase):
    def change(self, at: int, data: bytes) -> None:
        raw = base64.b64decode(REAL["claim_USDC"]["package"]["transaction"])
        old = Transaction.parse(raw).instructions[at].data
        check("claim_USDC", with_transaction(REAL["claim_USDC"], raw.replace(old, data)))

    def test_limits(self) -> None:
        self.change(0, b"\x02" + MAX_UNITS.to_bytes(4, "little"))
        with self.assertRaises(VerificationError):
            self.change(0, b"\x02" + (MAX_UNITS + 1).to_bytes(4, "little"))
        with self.assertRaises(VerificationError):
            self.change(0, b"\x02" + bytes(4))
        raw = base64.b64decode(REAL["claim_USDC"]["package"]["transaction"])
        units = int.from_bytes(Transaction.parse(raw).instructions[0].data[1:], "little")
        most = MAX_PRIORITY_LAMPORTS * 1_000_000 // units
        self.change(1, b"\x03" + most.to_bytes(8, "little"))
        with self.assertRaises(VerificationError):
            self.change(1, b"\x03" + (most + 1_000_000).to_bytes(8, "little"))


class QuoteTest(unittest.TestCase):
    def test_quotes_are_held_to_what_was_asked(self) -> None:
        asked = dict(
            fill_usd=Decimal(250),
            rail="USDC",
            pair="SLUSD/USDC",
            order_id=REAL["claim_USDC"]["quote"]["order_id"],
            tranche_id=REAL["claim_USDC"]["quote"]["tranche_id"],
        )
        changes: list[Callable[[Any], Any]] = [
            lambda q: q.update(fill_usd="1000"), lambda q: q.update(rail="SOL"), lambda q: q.update(pair="92C/SLUSD"), lambda q: q.update(order_id="T99"), lambda q: q.update(tranche_id="T99-1"),
            lambda q: q["payment"].update(rail="SOL"), lambda q: q["payment"].update(amount="250.000001"),
            lambda q: q.update(base_amount="100.000000", base_amount_atoms="100000000"), lambda q: q.update(base_amount_atoms="1"),
        ]  # fmt: skip
        check_quote(decode(Quote, REAL["claim_USDC"]["quote"]), **asked)
        for change in changes:
            quote = copy.deepcopy(REAL["claim_USDC"]["quote"])
            change(quote)
            with self.assertRaises(VerificationError):
                check_quote(decode(Quote, quote), **asked)


class SigningTest(unittest.TestCase):
    def test_only_signers_sign(self) -> None:
        t = Transaction.from_base64(REAL["claim_USDC"]["package"]["transaction"])
        with self.assertRaises(VerificationError):
            t.signed(Keypair(bytes(32)))

    def test_a_signer_that_signs_wrong(self) -> None:
        class Wrong:
            address = WALLET

            def sign(self, message: bytes) -> bytes:
                return Keypair(bytes(32)).sign(message)

        with self.assertRaises(VerificationError):
            Transaction.from_base64(REAL["claim_USDC"]["package"]["transaction"]).signed(Wrong())

    def test_derived_accounts(self) -> None:
        # As the demo's chain has made them.
        self.assertEqual(
            associated_token_account(WALLET, "8LNcMh2TqrE6yUJWMZnR2mKcymu6XYU9mYxY1LVC15Zk"), "3amct2biwVyf2WhoouyAFp4G6UutcDHopbdxQJP8nW6v"
        )
        desk, mint = "Hk7BeHS9qR6KoaKb4FFoQmyzhZctE4TbyBBj3pD6fQn", "A2qZvQ5dfYP6TFecjFkqJ1i9n5EnS3hFfSiZYWFHXzge"
        self.assertEqual(associated_token_account(desk, mint, TOKEN_2022_PROGRAM), "6ePAfhc8HgiJfj4SoiqH1cCwBadJj9gjMViJz2DCa49L")
        self.assertEqual(base58.decode(MEMO_PROGRAM, 32)[:4].hex(), "054a535a")


if __name__ == "__main__":
    unittest.main()
