"""Asks a running service for all that can be asked without changing anything, and holds
every answer to its type.

    python3 tests/live.py http://127.0.0.1:8000 http://127.0.0.1:8080

First the api address, then the main one: several of them are asked in turn.
"""

from __future__ import annotations

import inspect
import itertools
import sys
from typing import Any

from blockdesk import ApiError, Client, Retry

GROUPS = ("market", "rfq", "dvp", "native", "adapters", "files", "legacy")


def arguments(client: Client) -> dict[str, Any]:
    """A value for every argument that some method needs."""
    block = client.adapters.dexscreener_latest_block().block.blockNumber
    return {
        "symbol": "SLUSD/USDC", "ticker_id": "SLUSD_USDC", "market_pair": "SLUSD_USDC", "fromBlock": max(0, block - 10), "toBlock": block,
        "id": "SLUSD_USDC", "resolution": "60", "claim_id": "C0000000000001", "build_id": "B0000000000001", "pool_address": "1" * 32,
    }  # fmt: skip


def ask(clients: list[Client]) -> list[str]:
    """What is not as it should be."""
    wrong, asked, values = [], 0, arguments(clients[0])
    for group in GROUPS:
        names = [n for n in dir(getattr(clients[0], group)) if not n.startswith("_")]
        for client, name in zip(itertools.cycle(clients), names):
            method = getattr(getattr(client, group), name)
            parameters = inspect.signature(method).parameters
            if "idempotency_key" in parameters or name == "handshake_token":
                continue
            needed = [n for n, p in parameters.items() if p.default is p.empty]
            try:
                method(*(values.get(n, "11111111111111111111111111111112") for n in needed))
                asked += 1
            except ApiError as e:
                # What there is none of: the answer is typed all the same.
                if e.status not in (400, 404) or not needed or not e.request_id:
                    wrong.append(f"{group}.{name}: {e}")
            except Exception as e:
                wrong.append(f"{group}.{name}: {e!r}")
    print(f"{asked} answers")
    return wrong


if __name__ == "__main__":
    api, *bases = sys.argv[1:]
    problems = ask([Client(base, api_url=api, retry=Retry(attempts=4, longest=30.0)) for base in bases])
    print("\n".join(problems), file=sys.stderr)
    sys.exit(len(problems))
