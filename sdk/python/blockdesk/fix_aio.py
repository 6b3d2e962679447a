"""The FIX session in asyncio: the same session, whose answers are awaited in threads."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Optional

from ._call import Number
from .fix import Execution, Field, FixBook, FixClient, FixFill, FixMessage, FixPosition, FixQuote

#: Seconds that a thread waits for a message before it looks whether it is still wanted.
SLICE = 0.2


class AsyncFixClient:
    """:class:`~blockdesk.FixClient` for tasks: ``async with AsyncFixClient(...) as fix``.

    It takes what FixClient takes, and logs on when it is entered. A request that is
    cancelled may have been sent.
    """

    def __init__(self, address: str, sender: str, password: str, **options: Any) -> None:
        self._open = functools.partial(FixClient, address, sender, password, **options)
        self._session: Optional[FixClient] = None

    async def __aenter__(self) -> AsyncFixClient:
        self._session = await asyncio.to_thread(self._open)
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], e: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.close()

    @property
    def session(self) -> FixClient:
        """The session; RuntimeError before it has been logged on."""
        if self._session is None:
            raise RuntimeError("not logged on: async with AsyncFixClient(...) as fix")
        return self._session

    async def close(self) -> None:
        """Logs out and ends the session."""
        if self._session is not None:
            await asyncio.to_thread(self._session.close)

    async def send(self, kind: str, fields: Sequence[Field]) -> None:
        """See :meth:`FixClient.send`."""
        await asyncio.to_thread(self.session.send, kind, fields)

    async def receive(self, timeout: Optional[float] = None) -> Optional[FixMessage]:
        """See :meth:`FixClient.receive`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = SLICE if deadline is None else min(SLICE, max(0.0, deadline - time.monotonic()))
            m = await asyncio.to_thread(self.session.receive, left)
            if m is not None or deadline is not None and time.monotonic() >= deadline:
                return m

    async def order(
        self,
        symbol: str,
        side: str,
        quantity: Number,
        price: Optional[Number] = None,
        *,
        tif: str = "day",
        post_only: bool = False,
        cl_ord_id: Optional[str] = None,
    ) -> Execution:
        """See :meth:`FixClient.order`."""
        order = functools.partial(self.session.order, tif=tif, post_only=post_only, cl_ord_id=cl_ord_id)
        return await asyncio.to_thread(order, symbol, side, quantity, price)

    async def cancel(self, order: Execution) -> Execution:
        """See :meth:`FixClient.cancel`."""
        return await asyncio.to_thread(self.session.cancel, order)

    async def replace(self, order: Execution, quantity: Number, price: Number) -> Execution:
        """See :meth:`FixClient.replace`."""
        return await asyncio.to_thread(self.session.replace, order, quantity, price)

    async def cancel_all(self, symbol: Optional[str] = None) -> int:
        """See :meth:`FixClient.cancel_all`."""
        return await asyncio.to_thread(self.session.cancel_all, symbol)

    async def quote(self, symbol: str, fill_usd: Number, rail: Optional[str] = None) -> FixQuote:
        """See :meth:`FixClient.quote`."""
        return await asyncio.to_thread(self.session.quote, symbol, fill_usd, rail)

    async def book(self, symbol: str, depth: int = 10) -> FixBook:
        """See :meth:`FixClient.book`."""
        return await asyncio.to_thread(self.session.book, symbol, depth)

    async def order_status(self, symbol: str, side: str, *, order_id: str = "", cl_ord_id: str = "") -> Execution:
        """See :meth:`FixClient.order_status`."""
        status = functools.partial(self.session.order_status, order_id=order_id, cl_ord_id=cl_ord_id)
        return await asyncio.to_thread(status, symbol, side)

    async def open_orders(self, symbol: Optional[str] = None) -> list[Execution]:
        """See :meth:`FixClient.open_orders`."""
        return await asyncio.to_thread(self.session.open_orders, symbol)

    async def fills(self, symbol: Optional[str] = None, since: Optional[datetime] = None) -> list[FixFill]:
        """See :meth:`FixClient.fills`."""
        return await asyncio.to_thread(self.session.fills, symbol, since)

    async def positions(self, symbol: Optional[str] = None) -> list[FixPosition]:
        """See :meth:`FixClient.positions`."""
        return await asyncio.to_thread(self.session.positions, symbol)

    async def subscribe(self, symbol: str, depth: int = 10) -> str:
        """See :meth:`FixClient.subscribe`."""
        return await asyncio.to_thread(self.session.subscribe, symbol, depth)
