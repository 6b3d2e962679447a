"""Is a transaction what was asked for? To be asked before it is signed.

There is no list of what is bad. What a transaction should be follows from the terms,
and it has to be just that: these instructions with these accounts and amounts, no
others, and no right for any key that they do not need. So nothing has to be believed
that the service says about its own bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Optional

from ._decode import decimal
from .errors import VerificationError
from .models import BoundPayment, Build, ClaimPackage, Quote
from .solana import (
    ASSOCIATED_TOKEN_PROGRAM,
    COMPUTE_BUDGET_PROGRAM,
    MEMO_PROGRAM,
    SYSTEM_PROGRAM,
    TOKEN_PROGRAMS,
    UNSIGNED,
    Instruction,
    Transaction,
    associated_token_account,
)

#: Largest compute limit that is signed for.
MAX_UNITS = 400_000
#: Most that a transaction's priority may cost, in lamports: 0.001 SOL.
MAX_PRIORITY_LAMPORTS = 1_000_000
#: Decimals of SOL.
SOL_DECIMALS = 9
#: What the network takes for each signature, in lamports.
LAMPORTS_PER_SIGNATURE = 5_000


@dataclass(frozen=True)
class Leg:
    """A sum that goes to a wallet. ``mint`` None: SOL, in lamports."""

    mint: Optional[str]
    decimals: int
    atoms: int
    to: str


@dataclass(frozen=True)
class Cost:
    """What a transaction costs its fee payer at most, besides what it pays for.

    ``rent`` says whether the signing wallet pays for a token account of its own where
    that is not there yet: about 0.002 SOL, which it gets back when it closes it.
    """

    fee_payer: str
    lamports: int
    rent: bool


def verify_payment(transaction: Transaction, *, wallet: str, payment: Leg, reference: str, memo: str) -> Cost:
    """Holds a transaction to this: the wallet pays this sum, bound by reference and
    memo, pays the fee, and signs alone. VerificationError where it is anything else."""
    shown = list(transaction.instructions)
    priority = _budget(shown)
    # The memo comes right before the payment, as Solana Pay has it; services of 0.1.0 put it last.
    first = len(shown) > 3 and shown[2].program == MEMO_PROGRAM
    paid = shown[3] if first else shown[2] if len(shown) > 2 else None
    expected = [_pay(paid, payment, wallet, reference), _memo(memo)]
    if first:
        expected.reverse()
    _same("what it does", shown[2:], expected)
    _rights(transaction, wallet, expected)
    return Cost(wallet, LAMPORTS_PER_SIGNATURE + priority, rent=False)


def verify_atomic(
    transaction: Transaction, *, wallet: str, payment: Leg, delivery: Leg, reference: str, memo: str, sponsored: bool
) -> Cost:
    """Holds a transaction to this: the wallet pays, and is delivered to by the one
    other signer, both or neither. ``sponsored``: that one pays the network's fee."""
    others = [key for key in transaction.signers if key != wallet]
    if len(others) != 1 or len(transaction.signers) != 2:
        raise VerificationError("it is not signed by the wallet and one other")
    desk = others[0]
    if delivery.to != wallet or payment.to == wallet:
        raise VerificationError("it does not pay the desk and deliver to the wallet")
    shown = list(transaction.instructions)
    priority = _budget(shown)
    if len(shown) != 6:
        raise VerificationError(f"{len(shown)} instructions, not 6")
    create = shown[3]
    rent_payer = create.accounts[0] if create.accounts else ""
    if rent_payer not in (wallet, desk):
        raise VerificationError("a stranger pays the rent")
    program = shown[4].program
    expected = [
        _pay(shown[2], payment, wallet, reference),
        _create(delivery, program, rent_payer),
        _transfer(delivery, program, desk, ()),
        _memo(memo),
    ]
    _same("what it does", shown[2:], expected)
    payer = desk if sponsored else wallet
    _rights(transaction, payer, expected)
    return Cost(payer, 2 * LAMPORTS_PER_SIGNATURE + priority, rent=rent_payer == wallet)


def check_quote(quote: Quote, *, fill_usd: Decimal, rail: str, pair: str, order_id: str, tranche_id: str) -> None:
    """Holds a quote to what was asked, and its numbers to each other."""
    for what, got, want in (
        ("fill_usd", decimal(quote.fill_usd, "fill_usd"), fill_usd), ("rail", quote.rail, rail), ("payment's rail", quote.payment.rail, rail),
        ("pair", quote.pair, pair), ("order_id", quote.order_id, order_id), ("tranche_id", quote.tranche_id, tranche_id),
    ):  # fmt: skip
        _same(what, got, want)
    if rail == "USDC" and quote.payment.amount > fill_usd:
        raise VerificationError(f"{quote.payment.amount} USDC for {fill_usd} dollars")
    decimals = _decimals(quote.base_amount, quote.base_amount_atoms)
    atom = Decimal(1).scaleb(-decimals)
    if (quote.base_amount + atom) * quote.price_usd < fill_usd:
        raise VerificationError(f"{quote.base_amount} at {quote.price_usd} is less than {fill_usd} dollars")


def check_claim(package: ClaimPackage, quote: Quote, wallet: str) -> tuple[Transaction, Cost]:
    """Holds a claim package, and the transaction in it, to the quote that was taken."""
    claim = package.claim
    _same("bot_wallet", claim.bot_wallet, wallet)
    _same_terms(claim, quote)
    payment = _bound(package.payment, quote, package.claim_id)
    transaction = unsigned(package.transaction)
    return transaction, verify_payment(
        transaction, wallet=wallet, payment=payment, reference=package.payment.reference, memo=package.payment.memo
    )


def check_build(build: Build, quote: Quote, wallet: str, base_mint: str, sponsored: bool) -> tuple[Transaction, Cost]:
    """Holds a build, and the transaction in it, to the quote that was taken."""
    _same_terms(build.quote, quote)
    payment = _bound(build.payment, quote, build.claim_id)
    delivery = build.delivery
    _same("what is delivered", (delivery.mint, delivery.amount_atoms), (base_mint, quote.base_amount_atoms))
    transaction = unsigned(build.transaction)
    _same("message_sha256", build.message_sha256, transaction.message_sha256)
    _same("required_signers", tuple(build.required_signers), transaction.signers)
    _same("recent_blockhash", build.recent_blockhash, transaction.blockhash)
    leg = Leg(delivery.mint, _decimals(delivery.amount, delivery.amount_atoms), delivery.amount_atoms, delivery.to)
    return transaction, verify_atomic(
        transaction, wallet=wallet, payment=payment, delivery=leg, reference=build.payment.reference, memo=build.payment.memo, sponsored=sponsored
    )  # fmt: skip


def unsigned(text: str) -> Transaction:
    """The transaction of an answer, which nobody has signed."""
    transaction = Transaction.from_base64(text)
    if any(signature != UNSIGNED for signature in transaction.signatures):
        raise VerificationError("a transaction that somebody has signed")
    return transaction


def _same_terms(terms: object, quote: Quote) -> None:
    for name in ("quote_id", "order_id", "tranche_id", "pair", "fill_usd", "rail", "price_usd", "base_amount_atoms"):
        _same(name, getattr(terms, name), getattr(quote, name))


def _bound(payment: BoundPayment, quote: Quote, claim_id: str) -> Leg:
    q = quote.payment
    _same("payment", (payment.rail, payment.mint, payment.amount_atoms, payment.pay_to), (q.rail, q.mint, q.amount_atoms, q.pay_to))
    _same("memo", payment.memo, claim_id)
    if (payment.rail == "SOL") != (payment.mint is None):
        raise VerificationError(f"rail {payment.rail} with mint {payment.mint}")
    decimals = _decimals(payment.amount, payment.amount_atoms)
    if payment.mint is None and decimals != SOL_DECIMALS:  # of a token the chain holds the transfer to its decimals
        raise VerificationError(f"{payment.amount} SOL is not {payment.amount_atoms} lamports")
    return Leg(payment.mint, decimals, payment.amount_atoms, payment.pay_to)


def _decimals(amount: Decimal, atoms: int) -> int:
    """How many decimals an asset has, by a sum in both units."""
    for decimals in range(19):
        if atoms > 0 and amount.scaleb(decimals) == atoms:
            return decimals
    raise VerificationError(f"{amount} is not {atoms} atoms")


def _same(what: str, got: object, want: object) -> None:
    if got != want:
        raise VerificationError(f"{what}: {got!r:.300}, expected {want!r:.300}")


def _budget(shown: list[Instruction]) -> int:
    """What the compute budget, the first two instructions, costs at most in lamports."""
    if len(shown) < 2 or any(i.program != COMPUTE_BUDGET_PROGRAM or i.accounts for i in shown[:2]):
        raise VerificationError("no compute budget to begin with")
    limit, price = shown[0].data, shown[1].data
    if len(limit) != 5 or limit[0] != 2 or len(price) != 9 or price[0] != 3:
        raise VerificationError("a compute budget of another form")
    units = int.from_bytes(limit[1:], "little")
    cost = -(-units * int.from_bytes(price[1:], "little") // 1_000_000)
    if not 0 < units <= MAX_UNITS or cost > MAX_PRIORITY_LAMPORTS:
        raise VerificationError(f"a compute budget of {units} units for {cost} lamports")
    return cost


def _pay(shown: Optional[Instruction], leg: Leg, wallet: str, reference: str) -> Instruction:
    """The instruction that pays a leg; which token program it calls is as shown."""
    if leg.mint is None:
        data = (2).to_bytes(4, "little") + leg.atoms.to_bytes(8, "little")
        return Instruction(SYSTEM_PROGRAM, (wallet, leg.to, reference), data)
    return _transfer(leg, shown.program if shown else "", wallet, (reference,))


def _transfer(leg: Leg, program: str, owner: str, references: Sequence[str]) -> Instruction:
    if program not in TOKEN_PROGRAMS or leg.mint is None:
        raise VerificationError(f"tokens moved by {program or 'nobody'}")
    source, target = (_account(w, leg.mint, program) for w in (owner, leg.to))
    data = b"\x0c" + leg.atoms.to_bytes(8, "little") + bytes([leg.decimals])
    return Instruction(program, (source, leg.mint, target, owner, *references), data)


def _account(wallet: str, mint: str, program: str) -> str:
    try:
        return associated_token_account(wallet, mint, program)
    except ValueError as e:
        raise VerificationError(f"tokens of {mint!r:.60} for {wallet!r:.60}: {e}") from None


def _create(leg: Leg, program: str, payer: str) -> Instruction:
    if program not in TOKEN_PROGRAMS or leg.mint is None:
        raise VerificationError(f"an account of {program}")
    account = _account(leg.to, leg.mint, program)
    return Instruction(ASSOCIATED_TOKEN_PROGRAM, (payer, account, leg.to, leg.mint, SYSTEM_PROGRAM, program), b"\x01")


def _memo(text: str) -> Instruction:
    return Instruction(MEMO_PROGRAM, (), text.encode("utf-8", "surrogatepass"))


def _rights(transaction: Transaction, fee_payer: str, expected: Sequence[Instruction]) -> None:
    """Checks that signers and writable accounts are those that the instructions need, and no others."""
    signers, writable = [fee_payer], {fee_payer}
    named: set[str] = {fee_payer, COMPUTE_BUDGET_PROGRAM}
    for i in expected:
        named |= {i.program, *i.accounts}
        accounts = i.accounts
        if i.program in (SYSTEM_PROGRAM, ASSOCIATED_TOKEN_PROGRAM):
            signers.append(accounts[0])
            writable |= set(accounts[:2])
        elif i.program in TOKEN_PROGRAMS:
            signers.append(accounts[3])
            writable |= {accounts[0], accounts[2]}
    _same("the fee payer", transaction.signers[0], fee_payer)
    _same("signers", set(transaction.signers), set(signers))
    _same("what may be written", sorted(transaction.writable), sorted(writable))
    _same("accounts", sorted(transaction.keys), sorted(named))
