"""An OTC desk: delivery versus payment. Handshake, build, sign, submit.

Both legs are in one transaction, so no side is ever owed anything. It is verified
before it is signed: it pays what was quoted and brings what was quoted, or there is no
signature. The token is kept in a file, since a client address gets one an hour.

    python3 sdk/python/examples/otc_desk.py --base http://127.0.0.1:8080 --key data/chain/wallet-1.json
"""

from __future__ import annotations

import argparse
import os
from decimal import Decimal
from pathlib import Path

from blockdesk import Client, Keypair, NotAdmitted, VerificationError
from blockdesk.wallet import Signer


def log_in(client: Client, signer: Signer, keep: Path) -> None:
    """Proves the key and keeps the token where only its owner reads it."""
    token = client.login(signer)
    with os.fdopen(os.open(keep, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
        f.write(token.access_token)
    print(f"logged in until {token.expires_at:%Y-%m-%d %H:%M}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--base", default="http://127.0.0.1:8080", help="the service's main address")
    options.add_argument("--key", default="data/chain/wallet-1.json", help="keypair file")
    options.add_argument("--token", type=Path, default=Path("dvp-token"), help="where the token is kept")
    options.add_argument("--fill", default="250", help="dollars: a step of the ladder")
    options.add_argument("--rail", default="USDC", choices=["USDC", "SOL"])
    options.add_argument("--max-amount", help="the most to pay, in USDC or SOL")
    options.add_argument("--max-price", type=Decimal, default=None, help="dollars a unit")
    o = options.parse_args()
    wallet = Keypair.from_file(o.key)
    kept = o.token.read_text() if o.token.exists() else None
    with Client(o.base, token=kept) as client:
        if kept is None:
            log_in(client, wallet, o.token)
        try:
            quote = client.quote(o.fill, rail=o.rail, max_price_usd=o.max_price, max_amount=o.max_amount)
            build = client.build(quote, wallet.address)
        except NotAdmitted:  # it was of another key, has ended or was revoked
            log_in(client, wallet, o.token)
            quote = client.quote(o.fill, rail=o.rail, max_price_usd=o.max_price, max_amount=o.max_amount)
            build = client.build(quote, wallet.address)
        except VerificationError as e:
            raise SystemExit(f"not what was asked for, nothing is signed: {e}") from None
        print(
            f"build {build.build_id}: pays {quote.payment.amount} {quote.rail}, brings {quote.base_amount}; fee by {build.cost.fee_payer}"
        )
        submitted = client.submit(build, wallet)
        print(f"{submitted.state}: {submitted.signature}")
        state = client.follow_build(build.build_id)
        print(f"{state.state} in slot {state.slot}")


if __name__ == "__main__":
    main()
