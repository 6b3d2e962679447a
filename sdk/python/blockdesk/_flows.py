"""What takes several requests: logging in, buying, following. Written once, as steps
that both clients carry out."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Optional, Union

from . import _calls as calls
from . import base58, verify
from ._call import Number, exact, new_key
from ._decode import loads
from ._http import Origin, Response, request
from ._rest import Exchange, Flow, Service, Sleep
from .errors import (
    NotFound,
    PaymentFailed,
    ProtocolError,
    RpcError,
    TimedOut,
    TransportError,
    Unavailable,
    VerificationError,
)
from .models import (
    Build,
    BuildState,
    Claim,
    ClaimPackage,
    Pending,
    Quote,
    Submitted,
    Ticket,
    Token,
    Verification,
)
from .solana import TOKEN_PROGRAMS, Transaction, associated_token_account
from .wallet import Signer

#: Seconds between two looks at a claim or a build.
FOLLOW_EVERY = 1.0
#: Seconds between two looks at a payment on the chain.
CHAIN_EVERY = 0.5
#: Looks at a payment between two sends of it: nodes may drop what they were sent.
RESEND_LOOKS = 8
#: Seconds until a proof of payment is looked at again, where the answer says less.
LEAST_PENDING = 0.2
#: How often a call of a Solana node is tried.
RPC_ATTEMPTS = 5


@dataclass(frozen=True)
class VerifiedClaim:
    """A claim package whose transaction pays just what was quoted."""

    package: ClaimPackage
    quote: Quote
    transaction: Transaction
    cost: verify.Cost

    @property
    def claim_id(self) -> str:
        return self.package.claim_id

    @property
    def expires_at(self) -> datetime:
        """Pay before it."""
        return self.package.expires_at


@dataclass(frozen=True)
class VerifiedBuild:
    """A build whose transaction pays and delivers just what was quoted."""

    build: Build
    quote: Quote
    transaction: Transaction
    cost: verify.Cost

    @property
    def build_id(self) -> str:
        return self.build.build_id


def claim_proof(quote: Quote, signer: Signer) -> str:
    """The signature that proves to the desk that a claim of the quote comes from the
    wallet's owner, as wallet_signature wants it. It is valid for one to two minutes. A
    claim with it is not limited by what others behind the same address reserve."""
    minute = int(time.time() // 60)
    text = f"blockdesk-claim-v1|{quote.order_id}|{quote.tranche_id}|{quote.fill_usd}|{quote.rail}|{minute}"
    return base58.encode(signer.sign(text.encode("ascii")))


class Desk:
    """The flows against one service, and the chain it settles on."""

    def __init__(self, service: Service, chain: Optional[Origin], mints: Mapping[str, str]) -> None:
        self.service = service
        self.chain = chain
        self._known = mints  # by symbol: the integrator's own word
        self._base_mints: dict[str, str] = {}  # by pair: they never change

    def ticket(self, fill_usd: Decimal, pair: Optional[str]) -> Flow[Ticket]:
        """The ticket that sells so many dollars now, of any pair or of one."""
        sellable = (yield from self.service.call(calls.rfq_current_sellable_ticket())).ticket
        if sellable and pair in (None, sellable.pair) and sellable.tranche_for(fill_usd):
            return sellable
        for ticket in (yield from self.service.call(calls.rfq_market_tickets())).tickets:
            if ticket.state == "open" and pair in (None, ticket.pair) and ticket.tranche_for(fill_usd):
                return ticket
        message = f"nothing for sale: {fill_usd} dollars of {pair or 'any pair'}"
        raise NotFound(404, {"code": "NOTHING_FOR_SALE", "error": message})

    def quote(
        self, fill_usd: Number, rail: str, pair: Optional[str], max_price_usd: Optional[Number], max_amount: Optional[Number]
    ) -> Flow[Quote]:
        fill = exact(fill_usd)
        ticket = yield from self.ticket(fill, pair)
        tranche = ticket.tranche_for(fill)
        assert tranche is not None
        quote = yield from self.service.call(calls.rfq_quote(ticket.order_id, tranche.tranche_id, fill_usd, rail))
        verify.check_quote(quote, fill_usd=fill, rail=rail, pair=ticket.pair, order_id=ticket.order_id, tranche_id=tranche.tranche_id)
        for symbol, mint in ((rail, quote.payment.mint), (ticket.pair.split("/")[0], ticket.base_mint)):
            if symbol in self._known and mint != self._known[symbol]:
                raise VerificationError(f"{symbol} is said to be {mint}, and is {self._known[symbol]}")
        self._base_mints[ticket.pair] = ticket.base_mint
        if max_price_usd is not None and quote.price_usd > exact(max_price_usd):
            raise VerificationError(f"{quote.price_usd} dollars a unit, wanted at most {max_price_usd}")
        if max_amount is not None and quote.payment.amount > exact(max_amount):
            raise VerificationError(f"{quote.payment.amount} {rail} to pay, wanted at most {max_amount}")
        return quote

    def login(self, signer: Signer) -> Flow[Token]:
        challenge = yield from self.service.call(calls.dvp_handshake_challenge(signer.address))
        # What is signed is the nonce's text. A text of another kind could be something
        # else that the key signs, a transaction above all.
        try:
            base64.b64decode(challenge.nonce, validate=True)
        except ValueError:
            raise VerificationError("the nonce is no base64") from None
        if challenge.pubkey != signer.address or not 64 <= len(challenge.nonce) <= 512:
            raise VerificationError("a challenge of another form, or for another key")
        proof = base58.encode(signer.sign(challenge.nonce.encode("ascii")))
        token = yield from self.service.call(calls.dvp_handshake_token(signer.address, challenge.nonce, proof))
        self.service.token = token.access_token
        return token

    def claim(self, quote: Quote, wallet: Union[str, Signer]) -> Flow[VerifiedClaim]:
        address, proof = (wallet, None) if isinstance(wallet, str) else (wallet.address, claim_proof(quote, wallet))
        package = yield from self.service.call(
            calls.native_modular_claim_take(
                address,
                quote.order_id,
                quote.tranche_id,
                quote.fill_usd,
                payment_rail=quote.rail,
                quote_id=quote.quote_id,
                wallet_signature=proof,
            )
        )
        transaction, cost = verify.check_claim(package, quote, address)
        return VerifiedClaim(package, quote, transaction, cost)

    def pay(self, claim: VerifiedClaim, signer: Signer, timeout: float) -> Flow[str]:
        signed = claim.transaction.signed(signer)
        deadline = time.monotonic() + timeout
        try:
            yield from self._send(signed, preflight=True)
        except (TransportError, ProtocolError) as e:
            raise PaymentFailed(signed.signature, False, f"the node was not heard: it may have been sent: {e}") from e
        look, trouble, was_alive = 0, "", False
        while time.monotonic() < deadline:
            look += 1
            try:
                status = yield from self._status(signed.signature, history=False)
                if status is None and look % RESEND_LOOKS == 0:
                    # A finalized bank that does not know a blockhash may be too old for
                    # it as well as too new: only a node that knew it before can say that it has expired.
                    alive = yield from self._is_alive(signed)
                    if alive:
                        yield from self._send(signed, preflight=False)
                    elif was_alive:
                        status = yield from self._last_look(signed)
                    was_alive = was_alive or alive
                if _is_final(signed, status):
                    return signed.signature
                trouble = ""
            except (TransportError, ProtocolError, RpcError) as e:
                trouble = f"; the node: {e}"  # it is sent: whether it lands is not the node's to say
            yield Sleep(CHAIN_EVERY)
        raise PaymentFailed(signed.signature, False, f"sent, and not final after {timeout:g} s: it may still be{trouble}")

    def _last_look(self, signed: Transaction) -> Flow[dict[str, Any]]:
        """The status of a payment whose blockhash is over, which has landed or never will."""
        status = yield from self._status(signed.signature, history=True)
        if status is None:
            raise PaymentFailed(signed.signature, False, "its blockhash has expired: it can land no more")
        return status

    def prove(self, claim: VerifiedClaim, signature: str, timeout: float) -> Flow[Verification]:
        deadline = time.monotonic() + timeout
        key = new_key()
        while True:
            answer = yield from self._prove_once(claim, signature, key)
            if isinstance(answer, Verification):
                if answer.claim_id != claim.claim_id:
                    raise ProtocolError(f"{signature} proves {answer.claim_id}, not {claim.claim_id}")
                return answer
            if time.monotonic() > deadline:
                raise TimedOut(f"{signature} is not verified after {timeout:g} s")
            key = new_key()  # what was answered so far would be answered again
            yield Sleep(max(LEAST_PENDING, answer.retry_after_ms / 1000))

    def _prove_once(self, claim: VerifiedClaim, signature: str, key: str) -> Flow[Verification | Pending]:
        """Over the native surface, or the registry backend where that cannot be had."""
        q = claim.quote
        arguments = dict(claim_id=claim.claim_id, fill_usd=q.fill_usd, payment_rail=q.rail, idempotency_key=key)
        try:
            return (yield from self.service.call(calls.native_verify_payment(q.order_id, q.tranche_id, signature, **arguments)))
        except (TransportError, Unavailable):
            if self.service.api is None:
                raise
        return (yield from self.service.call(calls.rfq_verify_payment(q.order_id, q.tranche_id, signature, **arguments)))

    def follow(self, claim_id: str, timeout: float) -> Flow[Claim]:
        deadline = time.monotonic() + timeout
        while True:
            claim = yield from self.service.call(calls.rfq_claim(claim_id))
            if claim.ended:
                return claim
            if time.monotonic() > deadline:
                raise TimedOut(f"claim {claim_id} is {claim.state} after {timeout:g} s")
            yield Sleep(FOLLOW_EVERY)

    def buy(
        self, fill_usd: Number, signer: Signer, rail: str, pair: Optional[str], max_price_usd: Optional[Number],
        max_amount: Optional[Number], timeout: float,
    ) -> Flow[Claim]:  # fmt: skip
        deadline = time.monotonic() + timeout
        quote = yield from self.quote(fill_usd, rail, pair, max_price_usd, max_amount)
        claim = yield from self.claim(quote, signer)
        signature = yield from self.pay(claim, signer, max(1.0, deadline - time.monotonic()))
        yield from self.prove(claim, signature, max(1.0, deadline - time.monotonic()))
        return (yield from self.follow(claim.claim_id, max(1.0, deadline - time.monotonic())))

    def build(self, quote: Quote, wallet: str, sponsored: bool) -> Flow[VerifiedBuild]:
        base_mint = yield from self._base_mint(quote.pair)
        payer = "desk" if sponsored else "taker"
        build = yield from self.service.call(
            calls.dvp_build(quote.order_id, quote.tranche_id, quote.fill_usd, quote.rail, wallet, quote_id=quote.quote_id, fee_payer=payer)
        )
        transaction, cost = verify.check_build(build, quote, wallet, base_mint, sponsored)
        return VerifiedBuild(build, quote, transaction, cost)

    def _base_mint(self, pair: str) -> Flow[str]:
        if pair not in self._base_mints:
            pairs = (yield from self.service.call(calls.rfq_pairs())).pairs
            self._base_mints.update((p.pair, p.base_mint) for p in pairs)
        if pair not in self._base_mints:
            raise ProtocolError(f"a quote of {pair}, which the desk does not sell")
        return self._base_mints[pair]

    def submit(self, build: VerifiedBuild, signer: Signer) -> Flow[Submitted]:
        signed = build.transaction.signed(signer)
        submitted = yield from self.service.call(calls.dvp_submit(build.build_id, transaction=signed.to_base64()))
        if Transaction.from_base64(submitted.transaction).message != signed.message:
            raise ProtocolError(f"build {build.build_id} was submitted as another transaction")
        return submitted

    def follow_build(self, build_id: str, timeout: float) -> Flow[BuildState]:
        deadline = time.monotonic() + timeout
        while True:
            state = yield from self.service.call(calls.dvp_build_state(build_id))
            if state.state in ("finalized", "failed", "expired"):
                return state
            if time.monotonic() > deadline:
                raise TimedOut(f"build {build_id} is {state.state} after {timeout:g} s")
            yield Sleep(FOLLOW_EVERY)

    def trade(
        self, fill_usd: Number, signer: Signer, rail: str, pair: Optional[str], max_price_usd: Optional[Number],
        max_amount: Optional[Number], sponsored: bool, timeout: float,
    ) -> Flow[BuildState]:  # fmt: skip
        deadline = time.monotonic() + timeout
        quote = yield from self.quote(fill_usd, rail, pair, max_price_usd, max_amount)
        build = yield from self.build(quote, signer.address, sponsored)
        yield from self.submit(build, signer)
        return (yield from self.follow_build(build.build_id, max(1.0, deadline - time.monotonic())))

    def balances(self, wallet: str) -> Flow[dict[str, Decimal]]:
        tokens = (yield from self.service.call(calls.market_tokens())).tokens
        places = [(t, associated_token_account(wallet, t.mint, program)) for t in tokens if t.mint for program in TOKEN_PROGRAMS]
        answer = yield from self.rpc("getMultipleAccounts", [[at for _, at in places], {"encoding": "base64", "commitment": "finalized"}])
        values = answer.get("value") if isinstance(answer, dict) else None
        if not isinstance(values, list) or len(values) != len(places):
            raise ProtocolError(f"the node's accounts: {answer!r:.100}")
        out = {t.symbol: Decimal(0) for t in tokens if t.mint}
        for (t, _), account in zip(places, values):
            out[t.symbol] += Decimal(_atoms_of(account, t.mint, wallet)).scaleb(-t.decimals)
        return out

    def rpc(self, method: str, params: list[Any]) -> Flow[Any]:
        """A JSON-RPC call of the chain's node, which has to be one that may be repeated."""
        if self.chain is None:
            raise ValueError("no node to talk to: name one, Client(url, rpc_url=...)")
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        content = request("POST", self.chain, "/", {"Content-Type": "application/json"}, body)
        for attempt in range(1, RPC_ATTEMPTS + 1):
            try:
                response: Response = yield Exchange(self.chain, content, fresh=False)
                if response.status == 200:
                    return _result(loads(response.body))
                failure: Exception = ProtocolError(f"the node answers {response.status}")
            except TransportError as e:
                failure = e
            if attempt == RPC_ATTEMPTS:
                raise failure
            yield Sleep(CHAIN_EVERY * attempt)
        raise AssertionError("unreachable")

    def _send(self, transaction: Transaction, preflight: bool) -> Flow[None]:
        options = {"encoding": "base64", "skipPreflight": not preflight, "preflightCommitment": "confirmed"}
        try:
            signature = yield from self.rpc("sendTransaction", [transaction.to_base64(), options])
        except RpcError as e:
            if isinstance(e.data, dict) and e.data.get("err") == "AlreadyProcessed":
                return  # the send before this one got through, and its answer did not
            raise
        if signature != transaction.signature:
            raise ProtocolError(f"the node names {transaction.signature} {signature!r:.100}")

    def _status(self, signature: str, history: bool) -> Flow[Optional[dict[str, Any]]]:
        answer = yield from self.rpc("getSignatureStatuses", [[signature], {"searchTransactionHistory": history}])
        values = answer.get("value") if isinstance(answer, dict) else None
        if not isinstance(values, list) or len(values) != 1 or not isinstance(values[0], (dict, type(None))):
            raise ProtocolError(f"the node's statuses: {answer!r:.100}")
        return values[0]

    def _is_alive(self, transaction: Transaction) -> Flow[bool]:
        """Whether the finalized bank takes the transaction's blockhash."""
        answer = yield from self.rpc("isBlockhashValid", [transaction.blockhash, {"commitment": "finalized"}])
        if not isinstance(answer, dict) or not isinstance(answer.get("value"), bool):
            raise ProtocolError(f"the node's answer: {answer!r:.100}")
        return bool(answer["value"])


def _atoms_of(account: Any, mint: str, wallet: str) -> int:
    """The atoms in a token account: 0 where there is none."""
    if account is None:
        return 0
    try:
        if account["owner"] not in TOKEN_PROGRAMS:
            return 0
        data = base64.b64decode(account["data"][0], validate=True)
    except (KeyError, IndexError, TypeError, ValueError):
        raise ProtocolError(f"the node's account: {account!r:.100}") from None
    if len(data) < 72 or data[:32] != base58.decode(mint, 32) or data[32:64] != base58.decode(wallet, 32):
        raise ProtocolError(f"the node's account of {mint} is another one")
    return int.from_bytes(data[64:72], "little")


def _is_final(signed: Transaction, status: Optional[dict[str, Any]]) -> bool:
    """Whether no fork can take a payment back. PaymentFailed where it failed."""
    if status is None:
        return False
    if status.get("err") is not None:
        raise PaymentFailed(signed.signature, True, f"failed on the chain: {json.dumps(status['err'], default=str)}")
    return status.get("confirmationStatus") == "finalized"


def _result(answer: Any) -> Any:
    if not isinstance(answer, dict):
        raise ProtocolError("a node's answer that is no object")
    error = answer.get("error")
    if isinstance(error, dict):
        raise RpcError(error.get("code", 0), str(error.get("message", "")), error.get("data"))
    if "result" not in answer:
        raise ProtocolError("a node's answer without a result")
    return answer["result"]
