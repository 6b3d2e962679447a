"""What takes several requests, step by step against answers that are made up."""

import base64
import copy
import inspect
import json
import unittest
from collections import deque
from collections.abc import Mapping
from typing import Any, Optional, Union
from unittest import mock

from blockdesk import (
    AsyncClient,
    Client,
    Keypair,
    PaymentFailed,
    ProtocolError,
    RpcError,
    TransportError,
    VerificationError,
    base58,
    ed25519,
)
from blockdesk._decode import decode
from blockdesk._flows import RESEND_LOOKS, Desk, VerifiedClaim
from blockdesk._group import Group
from blockdesk._http import Origin, Response
from blockdesk._rest import Effect, Exchange, Flow, Pace, Retry, Service
from blockdesk.models import Quote
from blockdesk.solana import Transaction
from blockdesk.verify import Cost

from .test_verify import REAL, WALLET

CASE = REAL["claim_USDC"]
QUOTE = CASE["quote"]
SEED = bytes(range(32))
KEY = Keypair(SEED)
Step = Union[Any, Exception]


def desk(mints: Optional[Mapping[str, str]] = None) -> Desk:
    here = Origin.parse("http://127.0.0.1:1")
    return Desk(Service(Group([here]), None, Retry(attempts=1), Pace(), None), here, mints or {})


def carry_out(flow: Flow[Any], *steps: Step) -> tuple[Any, list[Any]]:
    """Runs a flow over answers in their order; its result, and the bodies that were sent."""
    answers, sent = deque(steps), []
    try:
        effect: Effect = next(flow)
        while True:
            if not isinstance(effect, Exchange):
                effect = flow.send(None)
                continue
            head, _, body = effect.content.partition(b"\r\n\r\n")
            sent.append(json.loads(body) if body else head.split(b" ")[1].decode())
            answer = answers.popleft()
            if isinstance(answer, Exception):
                effect = flow.throw(answer)
            else:
                effect = flow.send(Response(200, {}, json.dumps(answer).encode()))
    except StopIteration as stop:
        return stop.value, sent


def ticket(**change: Any) -> dict[str, Any]:
    tranche = {
        "tranche_id": QUOTE["tranche_id"], "capacity_usd": "250", "available_usd": "250", "reserved_usd": "0", "filled_usd": "0", "state": "open",
    }  # fmt: skip
    return {
        "order_id": QUOTE["order_id"], "ticket_label": "x", "pair": QUOTE["pair"], "side": "sell", "state": "open", "base_mint": WALLET,
        "base_symbol": "SLUSD", "rails": ["USDC"], "tranches": [tranche], "reference_price_usd": "1",
        "guarantee": {"libelle": "x", "montant_verifie_independamment": False}, "created_at": "2026-01-02T03:04:05.000Z",
        "updated_at": "2026-01-02T03:04:05.000Z", "expires_at": None, "seq": 1, **change,
    }  # fmt: skip


class QuoteTest(unittest.TestCase):
    def ask(
        self, sold: dict[str, Any], mints: Optional[Mapping[str, str]] = None, most: Optional[str] = None, most_paid: Optional[str] = None
    ) -> Any:
        flow = desk(mints).quote(250, "USDC", None, most, most_paid)
        return carry_out(flow, {"ok": True, "seq": 1, "ticket": sold}, QUOTE)[0]

    def test_known_mints(self) -> None:
        usdc = QUOTE["payment"]["mint"]
        for mints in (None, {"USDC": usdc}, {"USDC": usdc, "SLUSD": WALLET}, {"OTHER": WALLET}):
            self.assertEqual(self.ask(ticket(), mints).quote_id, QUOTE["quote_id"])
        for mints in ({"USDC": WALLET}, {"SLUSD": usdc}):
            with self.assertRaises(VerificationError):
                self.ask(ticket(), mints)

    def test_a_quote_of_another_ticket(self) -> None:
        with self.assertRaises(VerificationError):
            self.ask(ticket(pair="92C/SLUSD"))
        with self.assertRaises(VerificationError):
            self.ask(ticket(), most="0.99")
        self.ask(ticket(), most="0.999")
        with self.assertRaises(VerificationError):
            self.ask(ticket(), most_paid="249.999999")
        self.ask(ticket(), most_paid="250")

    def test_sol_has_to_be_named(self) -> None:
        """Where nothing is said the service does not choose what pays."""
        flow = desk().quote(250, "USDC", None, None, None)
        _, sent = carry_out(flow, {"ok": True, "seq": 1, "ticket": ticket(rails=["SOL", "USDC"])}, QUOTE)
        self.assertEqual(sent[-1]["rail"], "USDC")
        for method in (Client.quote, Client.buy, Client.trade, AsyncClient.quote, AsyncClient.buy, AsyncClient.trade):
            self.assertEqual(inspect.signature(method).parameters["rail"].default, "USDC")


class LoginTest(unittest.TestCase):
    def test_what_is_signed(self) -> None:
        nonce = base64.b64encode(bytes(90)).decode()
        challenge = {"ok": True, "pubkey": KEY.address, "nonce": nonce, "expires_at": "2026-01-02T03:04:05.000Z"}
        token = {
            "ok": True,
            "access_token": "t",
            "token_type": "Bearer",
            "expires_in": 604800,
            "expires_at": "2026-01-02T03:04:05.000Z",
            "pubkey": KEY.address,
        }
        d = desk()
        _, sent = carry_out(d.login(KEY), challenge, token)
        self.assertTrue(ed25519.verify(base58.decode(KEY.address), nonce.encode(), base58.decode(sent[1]["signature"])))
        self.assertEqual(d.service.token, "t")
        for change in ({"nonce": nonce[:32]}, {"nonce": "!" * 64}, {"pubkey": WALLET}, {"nonce": "A" * 600}):
            with self.assertRaises(VerificationError):
                carry_out(desk().login(KEY), {**challenge, **change})


class PayTest(unittest.TestCase):
    def setUp(self) -> None:
        """A package as the real one, but of a wallet whose key is here."""
        raw = base64.b64decode(CASE["package"]["transaction"]).replace(base58.decode(WALLET), base58.decode(KEY.address))
        self.transaction = Transaction.parse(raw)
        package = mock.Mock(claim_id=CASE["package"]["claim_id"])
        self.claim = VerifiedClaim(package, decode(Quote, copy.deepcopy(QUOTE)), self.transaction, Cost(KEY.address, 6000, False))
        self.signature = self.transaction.signed(KEY).signature

    def pay(self, *steps: Step, timeout: float = 60) -> tuple[Any, list[Any]]:
        return carry_out(desk().pay(self.claim, KEY, timeout), *steps)

    def sent(self) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": 1, "result": self.signature}

    @staticmethod
    def status(value: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": 1, "result": {"context": {"slot": 1}, "value": [value]}}

    FINAL = {"slot": 1, "err": None, "confirmationStatus": "finalized"}
    NODE_DOWN = TransportError("gone")

    def test_final(self) -> None:
        confirmed = {"slot": 1, "err": None, "confirmationStatus": "confirmed"}
        signature, sent = self.pay(self.sent(), self.status(None), self.status(confirmed), self.status(self.FINAL))
        self.assertEqual(signature, self.signature)
        transaction = Transaction.from_base64(sent[0]["params"][0])
        self.assertTrue(ed25519.verify(base58.decode(KEY.address), self.transaction.message, transaction.signatures[0]))

    def test_a_node_that_errs_once_it_is_sent(self) -> None:
        behind = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32005, "message": "Node is behind"}}
        odd = {"jsonrpc": "2.0", "id": 1, "result": 5}
        signature, _ = self.pay(self.sent(), behind, odd, *[self.NODE_DOWN] * 5, self.status(self.FINAL))
        self.assertEqual(signature, self.signature)

    def test_sent_already(self) -> None:
        again = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32002, "message": "x", "data": {"err": "AlreadyProcessed"}}}
        self.assertEqual(self.pay(self.NODE_DOWN, again, self.status(self.FINAL))[0], self.signature)

    def test_refused(self) -> None:
        poor = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32002, "message": "no funds", "data": {"err": "InsufficientFunds"}}}
        with self.assertRaises(RpcError):
            self.pay(poor)
        with self.assertRaises(PaymentFailed) as caught:
            self.pay(*[self.NODE_DOWN] * 5)
        self.assertEqual((caught.exception.signature, caught.exception.landed), (self.signature, False))
        with self.assertRaises(PaymentFailed):
            self.pay({"jsonrpc": "2.0", "id": 1, "result": "another signature"})

    def test_failed_on_the_chain(self) -> None:
        with self.assertRaises(PaymentFailed) as caught:
            self.pay(
                self.sent(), self.status({"slot": 1, "err": {"InstructionError": [2, {"Custom": 1}]}, "confirmationStatus": "processed"})
            )
        self.assertTrue(caught.exception.landed)

    def test_expired(self) -> None:
        unseen = [self.status(None)] * RESEND_LOOKS
        valid = {"jsonrpc": "2.0", "id": 1, "result": {"context": {"slot": 1}, "value": True}}
        over = copy.deepcopy(valid)
        over["result"]["value"] = False  # type: ignore[index]
        with self.assertRaises(PaymentFailed) as caught:
            self.pay(self.sent(), *unseen, valid, self.sent(), *unseen, over, self.status(None))
        self.assertIn("no more", str(caught.exception))
        self.assertEqual(self.pay(self.sent(), *unseen, valid, self.sent(), *unseen, over, self.status(self.FINAL))[0], self.signature)
        # A node that does not know the blockhash yet says nothing about its end.
        self.assertEqual(self.pay(self.sent(), *unseen, over, self.status(self.FINAL))[0], self.signature)

    def test_time_is_up(self) -> None:
        with self.assertRaises(PaymentFailed) as caught:
            self.pay(self.sent(), timeout=0)
        self.assertIn("may still be", str(caught.exception))

    def test_only_a_signer_pays(self) -> None:
        with self.assertRaises(VerificationError):
            carry_out(desk().pay(self.claim, Keypair(bytes(32)), 60))


class RpcTest(unittest.TestCase):
    def test_answers(self) -> None:
        self.assertEqual(carry_out(desk().rpc("getSlot", []), {"jsonrpc": "2.0", "id": 1, "result": 7})[0], 7)
        answers: list[Any] = [[], {}, {"jsonrpc": "2.0"}]
        for answer in answers:
            with self.assertRaises(ProtocolError):
                carry_out(desk().rpc("getSlot", []), answer)


if __name__ == "__main__":
    unittest.main()
