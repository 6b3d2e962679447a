"""The asyncio client. tools/generate.py writes it from client.py."""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from decimal import Decimal
from types import TracebackType
from typing import Any, Optional, TypeVar, Union

from . import _namespaces as groups
from ._call import Call, Number
from ._flows import Desk, VerifiedBuild, VerifiedClaim
from ._group import Group, parse_groups
from ._http import MAX_BODY, Origin, Response, ResponseReader
from ._link import WEBSOCKET_PATH
from ._net import AsyncConnection
from ._rest import Exchange, Flow, Pace, Retry, Service, Sleep
from .errors import BlockdeskError, LimitExceeded, TransportError
from .models import (
    BuildState,
    Claim,
    Quote,
    ServiceDescription,
    Submitted,
    Token,
    Verification,
)
from .stream import DEFAULT_CHANNELS, AsyncStream
from .wallet import Signer

T = TypeVar("T")

#: Connections of one origin that are kept for the next request.
MAX_IDLE = 8
#: Seconds after which such a connection is not used any more.
IDLE_SECONDS = 30.0


class AsyncClient:
    """The service, for one integrator. It belongs to one event loop, and many tasks may use it.

    ``client.market``, ``client.rfq``, ``client.dvp`` and the other groups have every
    endpoint of the service as a method. Beside them the client has what takes several
    requests: quote, buy, login, trade, stream.
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8080",
        *,
        api_url: Optional[str] = None,
        ws_url: Optional[str] = None,
        nodes: Sequence[str] = (),
        other_groups: Sequence[Sequence[str]] = (),
        rpc_url: Optional[str] = None,
        token: Optional[str] = None,
        mints: Optional[Mapping[str, str]] = None,
        timeout: float = 10.0,
        retry: Optional[Retry] = None,
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        """base_url is the service's main address. api_url is its api address: the
        registry backend, second to prove payments over, and the legacy surface.
        ws_url is its WebSocket address; without it the base address serves that too.
        nodes are the main addresses of the other nodes, where a group of them serves: one
        that does not answer is left for the next, and one that sends to the leader is
        followed, to hosts that are named here alone, since a token may go with it.
        other_groups are, where instruments are split over groups, the main addresses of
        each other group's nodes: a stream of their symbols goes there, to hosts that are
        named here or in nodes, or to its own, and nowhere else. Requests need none: any
        group answers them.
        rpc_url is a Solana node to pay over. token is a Bearer token from before. mints
        are those that you know by their symbols, such as USDC's: a quote of any other is
        refused, whatever the service says that it is.
        timeout is in seconds, of one exchange. ssl_context: other than the default's
        checks of certificates and names.
        """
        base = Origin.parse(base_url)
        group = [base, *map(Origin.parse, nodes)]
        api = Group([Origin.parse(api_url)], group) if api_url else None
        self._service = Service(Group(group), api, retry or Retry(), Pace(), token)
        self._desk = Desk(self._service, Origin.parse(rpc_url) if rpc_url else None, dict(mints or {}))
        self._ws = Origin.parse(ws_url.rstrip("/").removesuffix(WEBSOCKET_PATH)) if ws_url else base
        self._group = group
        self._other_groups = parse_groups(other_groups)
        self._context = ssl_context
        self._timeout = timeout
        self._pool = _Pool(ssl_context)
        self.market = groups.AsyncMarket(self)
        self.rfq = groups.AsyncRfq(self)
        self.dvp = groups.AsyncDvp(self)
        self.native = groups.AsyncNative(self)
        self.adapters = groups.AsyncAdapters(self)
        self.files = groups.AsyncFiles(self)
        self.legacy = groups.AsyncLegacy(self)
        self._root = groups.AsyncService(self)

    @property
    def token(self) -> Optional[str]:
        """The Bearer token of build and submit. Keep it: a client address gets one an hour."""
        return self._service.token

    async def service(self) -> ServiceDescription:
        """The service's description of itself: ``GET /``."""
        return await self._root.describe()

    async def request(self, call: Call[T]) -> T:
        """Sends one request, again where that is safe, and returns its answer."""
        return await self._run(self._service.call(call))

    # What takes several requests.

    async def quote(
        self,
        fill_usd: Number,
        *,
        rail: str = "USDC",
        pair: Optional[str] = None,
        max_price_usd: Optional[Number] = None,
        max_amount: Optional[Number] = None,
    ) -> Quote:
        """A firm quote for so many dollars of the ticket that is for sale now.

        fill_usd is a step of the ladder. Without pair it may be of any. The quote is
        held to what was asked; VerificationError where it is not that, dearer than
        max_price_usd a unit, or of more than max_amount to pay, in units of the rail.
        USDC is never more than fill_usd; how much SOL that is the service alone says,
        so name max_amount with ``rail="SOL"``.
        """
        return await self._run(self._desk.quote(fill_usd, rail, pair, max_price_usd, max_amount))

    async def claim(self, quote: Quote, wallet: Union[str, Signer]) -> VerifiedClaim:
        """Takes a quote for a wallet: the claim's payment, unsigned and verified. A signer
        proves the claim; one for an address alone counts against the limits of claims
        without proof, and waits for its payment for less time."""
        return await self._run(self._desk.claim(quote, wallet))

    async def pay(self, claim: VerifiedClaim, signer: Signer, *, timeout: float = 120.0) -> str:
        """Signs a claim's payment, sends it to the chain, waits until it is final, and
        returns its signature. PaymentFailed where it does not get there."""
        return await self._run(self._desk.pay(claim, signer, timeout))

    async def prove(self, claim: VerifiedClaim, signature: str, *, timeout: float = 120.0) -> Verification:
        """Tells the desk which transaction pays a claim, until it has verified it."""
        return await self._run(self._desk.prove(claim, signature, timeout))

    async def follow(self, claim_id: str, *, timeout: float = 300.0) -> Claim:
        """Waits until a claim has ended, and returns it."""
        return await self._run(self._desk.follow(claim_id, timeout))

    async def buy(
        self,
        fill_usd: Number,
        signer: Signer,
        *,
        rail: str = "USDC",
        pair: Optional[str] = None,
        max_price_usd: Optional[Number] = None,
        max_amount: Optional[Number] = None,
        timeout: float = 300.0,
    ) -> Claim:
        """Quote, claim, pay, prove and follow: returns the claim when it has ended.

        It stops with an exception at the step that fails. A payment that was sent is
        never lost by that: the desk finds it by itself, and ``client.follow`` and
        ``client.rfq.claim`` return its state. For a program that has to know
        its claims after a crash take the steps one by one, and note each.
        """
        return await self._run(self._desk.buy(fill_usd, signer, rail, pair, max_price_usd, max_amount, timeout))

    async def login(self, signer: Signer) -> Token:
        """The handshake: proves the key, and keeps the Bearer token for what follows."""
        return await self._run(self._desk.login(signer))

    async def build(self, quote: Quote, wallet: str, *, sponsored: bool = True) -> VerifiedBuild:
        """Both legs of a quote in one transaction, unsigned and verified. Needs a token
        of the wallet. sponsored: the desk pays the network's fee."""
        return await self._run(self._desk.build(quote, wallet, sponsored))

    async def submit(self, build: VerifiedBuild, signer: Signer) -> Submitted:
        """Signs a build and submits it; the desk signs it last and sends it."""
        return await self._run(self._desk.submit(build, signer))

    async def follow_build(self, build_id: str, *, timeout: float = 180.0) -> BuildState:
        """Waits until a build has ended, and returns its state."""
        return await self._run(self._desk.follow_build(build_id, timeout))

    async def trade(
        self,
        fill_usd: Number,
        signer: Signer,
        *,
        rail: str = "USDC",
        pair: Optional[str] = None,
        max_price_usd: Optional[Number] = None,
        max_amount: Optional[Number] = None,
        sponsored: bool = True,
        timeout: float = 180.0,
    ) -> BuildState:
        """Quote, build, sign, submit and follow. Needs a token: ``login`` first."""
        return await self._run(self._desk.trade(fill_usd, signer, rail, pair, max_price_usd, max_amount, sponsored, timeout))

    async def balances(self, wallet: str) -> dict[str, Decimal]:
        """What a wallet holds of the service's tokens, by symbol, on the finalized chain.
        The client needs rpc_url, and believes that node."""
        return await self._run(self._desk.balances(wallet))

    def stream(
        self,
        symbols: Sequence[str],
        *,
        channels: Sequence[str] = DEFAULT_CHANNELS,
        depth: int = 50,
        via: str = "websocket",
    ) -> AsyncStream:
        """Market data as it changes; iterate over it by ``async for``, and close it. It reconnects and
        resumes by itself; see :class:`~blockdesk.stream.AsyncStream`. via: ``websocket``,
        or ``sse`` where a proxy lets nothing else through. Symbols that another group of
        nodes serves are followed there, see other_groups; SubscriptionRefused where that
        may not be. By ``sse`` all symbols have to be of one group."""
        origin = self._ws if via == "websocket" else self._group[0]
        return AsyncStream(
            origin, symbols, channels, depth, via=via, timeout=self._timeout, context=self._context, nodes=self._group[1:],
            other_groups=self._other_groups,
        )  # fmt: skip

    async def close(self) -> None:
        """Closes the connections that are kept. The client may be used again."""
        await self._pool.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], e: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.close()

    async def _run(self, flow: Flow[T]) -> T:
        """Carries out the steps of a flow."""
        try:
            effect = next(flow)
            while True:
                try:
                    result = await self._perform(effect)
                except BlockdeskError as e:
                    effect = flow.throw(e)
                else:
                    effect = flow.send(result)
        except StopIteration as stop:
            value: T = stop.value
            return value

    async def _perform(self, effect: Any) -> Optional[Response]:
        if isinstance(effect, Sleep):
            await asyncio.sleep(effect.seconds)
            return None
        exchange: Exchange = effect
        return await self._pool.exchange(exchange, time.monotonic() + self._timeout)


class _Pool:
    """Connections that are kept between requests."""

    def __init__(self, context: Optional[ssl.SSLContext]) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._idle: dict[Origin, list[tuple[float, AsyncConnection]]] = {}

    async def exchange(self, exchange: Exchange, deadline: float) -> Response:
        kept = None if exchange.fresh else await self._take(exchange.origin)
        if kept:
            try:
                return await self._over(kept, exchange, deadline)
            except TransportError:
                # The service may have closed it in this very moment. What is sent
                # here may be sent twice.
                if time.monotonic() >= deadline:
                    raise
        connection = await AsyncConnection.open(exchange.origin, deadline, self._context)
        return await self._over(connection, exchange, deadline)

    async def _over(self, connection: AsyncConnection, exchange: Exchange, deadline: float) -> Response:
        reader, kept = ResponseReader(), False
        try:
            await connection.send(exchange.content, deadline)
            while not reader.done:
                data = await connection.receive(deadline)
                if data:
                    reader.feed(data)
                else:
                    reader.eof()
                if reader.pending > MAX_BODY:
                    raise LimitExceeded(f"an answer of more than {MAX_BODY} bytes")
            head = reader.head
            assert head is not None
            kept = head.reusable and not reader.rest and self._keep(exchange.origin, connection)
            return Response(head.status, head.headers, reader.take())
        finally:
            if not kept:
                await connection.close()

    async def _take(self, origin: Origin) -> Optional[AsyncConnection]:
        while True:
            with self._lock:
                idle = self._idle.get(origin)
                if not idle:
                    return None
                since, connection = idle.pop()
            if time.monotonic() - since < IDLE_SECONDS and connection.idle:
                return connection
            await connection.close()

    def _keep(self, origin: Origin, connection: AsyncConnection) -> bool:
        with self._lock:
            idle = self._idle.setdefault(origin, [])
            if len(idle) >= MAX_IDLE:
                return False
            idle.append((time.monotonic(), connection))
            return True

    async def close(self) -> None:
        with self._lock:
            kept = [connection for idle in self._idle.values() for _, connection in idle]
            self._idle.clear()
        for connection in kept:
            await connection.close()
