"""A bot: claims a piece of the ticket that is for sale, pays, proves it, is delivered.

What it has done stands in a journal of JSON lines before the next step is taken, so
that after a crash it goes on where it was and pays nothing twice.

    python3 sdk/python/examples/bot.py --base http://127.0.0.1:8080 --rpc http://127.0.0.1:8899 --key data/chain/wallet-1.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from blockdesk import Client, Keypair, PaymentFailed


def read(journal: Path) -> dict[str, dict[str, str]]:
    """The claims of the journal that have not ended, with all that is noted of them."""
    claims: dict[str, dict[str, str]] = {}
    for line in journal.read_text("utf-8").splitlines() if journal.exists() else []:
        entry = json.loads(line)
        claims.setdefault(entry["claim_id"], {}).update(entry)
    return {i: c for i, c in claims.items() if "ended" not in c}


def note(journal: Path, claim_id: str, **words: str) -> None:
    """Notes a step of a claim."""
    with journal.open("a", encoding="utf-8") as f:
        f.write(json.dumps({"claim_id": claim_id, **words}) + "\n")


def go_on(client: Client, journal: Path) -> None:
    """Ends what was under way when this program last ended: the desk finds payments by
    itself, so each claim has only to be looked at."""
    for claim_id in read(journal):
        claim = client.follow(claim_id)
        print(f"from before: {claim_id} is {claim.state}")
        note(journal, claim_id, ended=claim.state)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--base", default="http://127.0.0.1:8080", help="the service's main address")
    options.add_argument("--api", default=None, help="its api address, second to prove payments over")
    options.add_argument("--rpc", default="http://127.0.0.1:8899", help="a Solana node")
    options.add_argument("--key", default="data/chain/wallet-1.json", help="keypair file")
    options.add_argument("--fill", default="250", help="dollars: a step of the ladder")
    options.add_argument("--rail", default="USDC", choices=["USDC", "SOL"])
    options.add_argument("--max-amount", help="the most to pay, in USDC or SOL")
    options.add_argument("--journal", type=Path, default=Path("bot-journal.jsonl"))
    o = options.parse_args()
    wallet = Keypair.from_file(o.key)
    with Client(o.base, api_url=o.api, rpc_url=o.rpc) as client:
        go_on(client, o.journal)
        quote = client.quote(o.fill, rail=o.rail, max_amount=o.max_amount)
        print(f"quote {quote.quote_id}: {quote.base_amount} {quote.pair.split('/')[0]} for {quote.payment.amount} {quote.rail}")
        claim = client.claim(quote, wallet)  # proved by its key; the transaction is verified
        print(f"claim {claim.claim_id}: pay until {claim.expires_at:%H:%M:%S}, at most {claim.cost.lamports} lamports of fees")
        # Equal signatures of equal bytes: what is noted here is what pay will send.
        note(o.journal, claim.claim_id, l1_signature=claim.transaction.signed(wallet).signature)
        try:
            signature = client.pay(claim, wallet)
        except PaymentFailed as e:
            raise SystemExit(f"not known to be paid, run it again to look: {e}") from None
        print(f"paid: {signature}")
        verified = client.prove(claim, signature)
        print(f"verified: {verified.state}, delivered to {verified.delivery.to}")
        ended = client.follow(claim.claim_id)
        note(o.journal, claim.claim_id, ended=ended.state)
        print(f"{ended.state}: {ended.delivery.amount} by {ended.delivery.l1_signature}")


if __name__ == "__main__":
    main()
