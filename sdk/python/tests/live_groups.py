"""Follows symbols of two groups of a running service, in every way, from one address.

    python3 tests/live_groups.py http://127.0.0.1:8080 SLUSD/USDC 92C/SLUSD

The address is the first symbol's group's.
"""

from __future__ import annotations

import asyncio
import sys
import time

from blockdesk import ApiError, AsyncClient, BookEvent, Client, Connected, StreamEvent

#: Seconds that all symbols have to come in.
PATIENCE = 240.0


class Seen:
    """What a stream has told of."""

    def __init__(self, symbols: list[str]) -> None:
        self.missing = set(symbols)
        self.epochs: dict[str, str] = {}

    def take(self, event: StreamEvent) -> bool:
        """Whether all symbols have a book."""
        if isinstance(event, Connected):
            self.epochs.update((symbol, event.epoch) for symbol in event.symbols)
        elif isinstance(event, BookEvent) and event.book.epoch == self.epochs[event.symbol]:
            self.missing.discard(event.symbol)
        return not self.missing


def blocking(base: str, symbols: list[str]) -> None:
    seen, end = Seen(symbols), time.monotonic() + PATIENCE
    with Client(base).stream(symbols, channels=["l2", "trades"]) as stream:
        while time.monotonic() < end:
            event = stream.get(timeout=240)
            if event is not None and seen.take(event):
                return
    raise SystemExit(f"no book of {seen.missing}")


async def in_asyncio(base: str, symbols: list[str]) -> None:
    seen = Seen(symbols)
    async with AsyncClient(base).stream(symbols, channels=["l2", "tickets"]) as stream:
        async for event in stream:
            if seen.take(event):
                return


def server_sent(base: str, own: str, other: str) -> None:
    with Client(base).stream([other], channels=["l2"], via="sse") as stream:
        while not isinstance(stream.get(timeout=PATIENCE), BookEvent):
            pass
    with Client(base).stream([own, other], via="sse") as stream:
        try:
            next(stream)
        except ApiError as e:
            if e.code == "OTHER_GROUP":
                return
    raise SystemExit("one event stream carries symbols of two groups")


if __name__ == "__main__":
    base, own, other = sys.argv[1:]
    blocking(base, [own, other])
    blocking(base, [other])
    asyncio.run(asyncio.wait_for(in_asyncio(base, [other, own]), PATIENCE))
    server_sent(base, own, other)
    print("followed")
