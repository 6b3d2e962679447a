"""The methods of both clients, by group.

Written by tools/generate.py from the service's OpenAPI document: not to be edited.
"""

from __future__ import annotations

from typing import Any, Optional, Union

from . import _calls as calls
from ._call import AsyncNamespace, Namespace, Number
from .models import (
    AtomicClaimPackage,
    Board,
    Build,
    BuildState,
    Candles,
    Challenge,
    Claim,
    ClaimPackage,
    ClaimTransaction,
    CoinGeckoOrderBook,
    CoinGeckoTicker,
    CoinGeckoTrades,
    CoinMarketCapAsset,
    CoinMarketCapOrderBook,
    CoinMarketCapSummary,
    CoinMarketCapTicker,
    CoinMarketCapTrade,
    CompactBook,
    CurrentSellableTicket,
    Depth,
    DeskStatus,
    Discovery,
    DiscoveryFile,
    HandshakeTerms,
    Klines,
    Levels,
    MarketAdapters,
    MarketClaims,
    MarketDebt,
    MarketExamples,
    MarketFees,
    MarketIntegrationManifest,
    MarketLiteLatestCandle,
    MarketLiteLatestFees,
    MarketLiteLatestPrice,
    MarketLiteLatestTrade,
    MarketLitePairMetadata,
    MarketLitePoolRegistry,
    MarketLiteSummary,
    MarketLiteTokenlist,
    MarketMarketcap,
    MarketMetadata,
    MarketPairMetadata,
    MarketPairs,
    MarketPool,
    MarketPoolRegistry,
    MarketPools,
    MarketPrice,
    MarketProof,
    MarketProviderPacks,
    MarketSchemas,
    MarketStatus,
    MarketSubmissionPacks,
    MarketTickets,
    MarketTokens,
    MarketWalletIndex,
    OracleHeartbeat,
    Pairs,
    Pending,
    Quote,
    RFQStatus,
    RailList,
    RfqTrades,
    RobotManifest,
    ScreenerAsset,
    ScreenerEvents,
    ScreenerLatestBlock,
    ScreenerPair,
    ServiceDescription,
    SolanaPayLabel,
    SolanaPayTransaction,
    Submitted,
    Symbols,
    Ticker,
    Token,
    TokenList,
    Tokens,
    Trades,
    UdfConfig,
    Verification,
    WebSocketHealth,
)


class Market(Namespace):
    """Market data: ``/api/v1/market/``."""

    def symbols(self) -> Symbols:
        """Instruments: ``GET /api/v1/market/symbols``."""
        return self._client.request(calls.market_symbols())

    def ticker(self, symbol: str) -> Ticker:
        """Ticker: last trade, best prices and 24-hour statistics: ``GET /api/v1/market/ticker``.

        symbol: The instrument.
        """
        return self._client.request(calls.market_ticker(symbol))

    def depth(self, symbol: str, *, limit: Optional[int] = None) -> Depth:
        """Order book of an instrument: ``GET /api/v1/market/depth``.

        symbol: The instrument.
        limit: Levels per side. A value above the maximum is refused, not clamped.
        """
        return self._client.request(calls.market_depth(symbol, limit=limit))

    def trades(self, symbol: str, *, limit: Optional[int] = None, before: Optional[int] = None) -> Trades:
        """Last trades of an instrument: ``GET /api/v1/market/trades``.

        symbol: The instrument.
        limit: Number of trades; the maximum is our choice.
        before: A trade_id: returns older trades from the archive. Just after new trades the answer may be 503
            with reason history_behind. Absent: the newest trades. Our choice.
        """
        return self._client.request(calls.market_trades(symbol, limit=limit, before=before))

    def klines(self, symbol: str, *, interval: Optional[str] = None, timeframe: Optional[str] = None, limit: Optional[int] = None, before: Optional[int] = None) -> Klines:
        """Candles of an instrument: ``GET /api/v1/market/klines``.

        symbol: The instrument.
        interval: Length of a candle; absent: one minute (our choice).
        timeframe: The same as interval; send one of the two.
        limit: Maximum number of candles; the newest are returned.
        before: Unix milliseconds: returns the candles that open before it. Use next_before of an answer to page.
            Our choice.
        """
        return self._client.request(calls.market_klines(symbol, interval=interval, timeframe=timeframe, limit=limit, before=before))

    def candles(self, *, symbol: Optional[str] = None, timeframe: Optional[str] = None, interval: Optional[str] = None, limit: Optional[int] = None, before: Optional[int] = None) -> Candles:
        """Candles by timeframe: ``GET /api/v1/market/candles``.

        symbol: The instrument; absent: the first one (our choice).
        timeframe: Length of a candle; absent: one minute (our choice).
        interval: The same as timeframe; send one of the two.
        limit: Maximum number of candles; the newest are returned.
        before: Unix milliseconds: returns the candles that open before it. Use next_before of an answer to page.
            Our choice.
        """
        return self._client.request(calls.market_candles(symbol=symbol, timeframe=timeframe, interval=interval, limit=limit, before=before))

    def oracle_heartbeat(self) -> OracleHeartbeat:
        """Price of each pair with source and age: ``GET /api/v1/market/oracle/heartbeat``."""
        return self._client.request(calls.market_oracle_heartbeat())

    def status(self) -> MarketStatus:
        """Market status record: ``GET /api/v1/market/status``."""
        return self._client.request(calls.market_status())

    def tokens(self) -> MarketTokens:
        """Token catalog: ``GET /api/v1/market/tokens``."""
        return self._client.request(calls.market_tokens())

    def adapters(self) -> MarketAdapters:
        """Families of integration adapters: ``GET /api/v1/market/adapters``."""
        return self._client.request(calls.market_adapters())

    def price(self) -> MarketPrice:
        """Price of each pair in dollars: ``GET /api/v1/market/price``."""
        return self._client.request(calls.market_price())

    def marketcap(self) -> MarketMarketcap:
        """Supply times price of each token: ``GET /api/v1/market/marketcap``."""
        return self._client.request(calls.market_marketcap())

    def pairs(self) -> MarketPairs:
        """Pairs with mints, steps and volumes: ``GET /api/v1/market/pairs``."""
        return self._client.request(calls.market_pairs())

    def pools(self) -> MarketPools:
        """Pools on chain: ``GET /api/v1/market/pools``."""
        return self._client.request(calls.market_pools())

    def fees(self) -> MarketFees:
        """Fee model and collected fees: ``GET /api/v1/market/fees``."""
        return self._client.request(calls.market_fees())

    def claims(self) -> MarketClaims:
        """Sums of the desk's claims: ``GET /api/v1/market/claims``."""
        return self._client.request(calls.market_claims())

    def debt(self) -> MarketDebt:
        """Obligations of the desk: ``GET /api/v1/market/debt``."""
        return self._client.request(calls.market_debt())

    def metadata(self) -> MarketMetadata:
        """Metadata of each token, in Metaplex's fields: ``GET /api/v1/market/metadata``."""
        return self._client.request(calls.market_metadata())

    def pair_metadata(self) -> MarketPairMetadata:
        """Pairs with the metadata of both tokens: ``GET /api/v1/market/pair-metadata``."""
        return self._client.request(calls.market_pair_metadata())

    def tokenlist(self) -> TokenList:
        """Token list: ``GET /api/v1/market/tokenlist``."""
        return self._client.request(calls.market_tokenlist())

    def wallet_index(self) -> MarketWalletIndex:
        """Accounts that the service watches on chain: ``GET /api/v1/market/wallet-index``."""
        return self._client.request(calls.market_wallet_index())

    def pool_registry(self) -> MarketPoolRegistry:
        """Where routers find the pools: ``GET /api/v1/market/pool-registry``."""
        return self._client.request(calls.market_pool_registry())

    def proof(self) -> MarketProof:
        """Program, source and reproducible hash: ``GET /api/v1/market/proof``."""
        return self._client.request(calls.market_proof())

    def integration_manifest(self) -> MarketIntegrationManifest:
        """Index for integrators: ``GET /api/v1/market/integration-manifest``."""
        return self._client.request(calls.market_integration_manifest())

    def submission_packs(self) -> MarketSubmissionPacks:
        """Facts for listing forms, by family: ``GET /api/v1/market/submission-packs``."""
        return self._client.request(calls.market_submission_packs())

    def provider_packs(self) -> MarketProviderPacks:
        """URLs for data providers, by family: ``GET /api/v1/market/provider-packs``."""
        return self._client.request(calls.market_provider_packs())

    def examples(self) -> MarketExamples:
        """Ready-to-run command lines: ``GET /api/v1/market/examples``."""
        return self._client.request(calls.market_examples())

    def lite_market_summary(self) -> MarketLiteSummary:
        """Price and volume of each pair: ``GET /api/v1/market/lite/market-summary``."""
        return self._client.request(calls.market_lite_market_summary())

    def lite_pair_metadata(self) -> MarketLitePairMetadata:
        """Mints of each pair: ``GET /api/v1/market/lite/pair-metadata``."""
        return self._client.request(calls.market_lite_pair_metadata())

    def lite_tokenlist(self) -> MarketLiteTokenlist:
        """Mint and decimals of each token: ``GET /api/v1/market/lite/tokenlist``."""
        return self._client.request(calls.market_lite_tokenlist())

    def lite_pool_registry(self) -> MarketLitePoolRegistry:
        """Address of each pool: ``GET /api/v1/market/lite/pool-registry``."""
        return self._client.request(calls.market_lite_pool_registry())

    def lite_latest_price(self) -> MarketLiteLatestPrice:
        """Price of the canonical pair: ``GET /api/v1/market/lite/latest-price``."""
        return self._client.request(calls.market_lite_latest_price())

    def lite_latest_candle(self) -> MarketLiteLatestCandle:
        """Newest hour with a trade of the canonical pair: ``GET /api/v1/market/lite/latest-candle``."""
        return self._client.request(calls.market_lite_latest_candle())

    def lite_latest_trade(self) -> MarketLiteLatestTrade:
        """Newest trade of the canonical pair: ``GET /api/v1/market/lite/latest-trade``."""
        return self._client.request(calls.market_lite_latest_trade())

    def lite_latest_fees(self) -> MarketLiteLatestFees:
        """The fee and the fees collected: ``GET /api/v1/market/lite/latest-fees``."""
        return self._client.request(calls.market_lite_latest_fees())

    def pool(self, pool_address: str) -> MarketPool:
        """One pool: ``GET /api/v1/market/pools/{pool_address}``.

        pool_address: The pool's address.
        """
        return self._client.request(calls.market_pool(pool_address))

    def schemas(self) -> MarketSchemas:
        """JSON Schemas of the documents: ``GET /api/v1/market/schemas``."""
        return self._client.request(calls.market_schemas())

    def websocket_health(self) -> WebSocketHealth:
        """Health of the WebSocket: ``GET /ws/rfq/health``."""
        return self._client.request(calls.market_websocket_health())

    def openapi(self) -> dict[str, Any]:
        """The same document: ``GET /api/v1/market/openapi.json``."""
        return self._client.request(calls.market_openapi())


class AsyncMarket(AsyncNamespace):
    """Market data: ``/api/v1/market/``."""

    async def symbols(self) -> Symbols:
        """Instruments: ``GET /api/v1/market/symbols``."""
        return await self._client.request(calls.market_symbols())

    async def ticker(self, symbol: str) -> Ticker:
        """Ticker: last trade, best prices and 24-hour statistics: ``GET /api/v1/market/ticker``.

        symbol: The instrument.
        """
        return await self._client.request(calls.market_ticker(symbol))

    async def depth(self, symbol: str, *, limit: Optional[int] = None) -> Depth:
        """Order book of an instrument: ``GET /api/v1/market/depth``.

        symbol: The instrument.
        limit: Levels per side. A value above the maximum is refused, not clamped.
        """
        return await self._client.request(calls.market_depth(symbol, limit=limit))

    async def trades(self, symbol: str, *, limit: Optional[int] = None, before: Optional[int] = None) -> Trades:
        """Last trades of an instrument: ``GET /api/v1/market/trades``.

        symbol: The instrument.
        limit: Number of trades; the maximum is our choice.
        before: A trade_id: returns older trades from the archive. Just after new trades the answer may be 503
            with reason history_behind. Absent: the newest trades. Our choice.
        """
        return await self._client.request(calls.market_trades(symbol, limit=limit, before=before))

    async def klines(self, symbol: str, *, interval: Optional[str] = None, timeframe: Optional[str] = None, limit: Optional[int] = None, before: Optional[int] = None) -> Klines:
        """Candles of an instrument: ``GET /api/v1/market/klines``.

        symbol: The instrument.
        interval: Length of a candle; absent: one minute (our choice).
        timeframe: The same as interval; send one of the two.
        limit: Maximum number of candles; the newest are returned.
        before: Unix milliseconds: returns the candles that open before it. Use next_before of an answer to page.
            Our choice.
        """
        return await self._client.request(calls.market_klines(symbol, interval=interval, timeframe=timeframe, limit=limit, before=before))

    async def candles(self, *, symbol: Optional[str] = None, timeframe: Optional[str] = None, interval: Optional[str] = None, limit: Optional[int] = None, before: Optional[int] = None) -> Candles:
        """Candles by timeframe: ``GET /api/v1/market/candles``.

        symbol: The instrument; absent: the first one (our choice).
        timeframe: Length of a candle; absent: one minute (our choice).
        interval: The same as timeframe; send one of the two.
        limit: Maximum number of candles; the newest are returned.
        before: Unix milliseconds: returns the candles that open before it. Use next_before of an answer to page.
            Our choice.
        """
        return await self._client.request(calls.market_candles(symbol=symbol, timeframe=timeframe, interval=interval, limit=limit, before=before))

    async def oracle_heartbeat(self) -> OracleHeartbeat:
        """Price of each pair with source and age: ``GET /api/v1/market/oracle/heartbeat``."""
        return await self._client.request(calls.market_oracle_heartbeat())

    async def status(self) -> MarketStatus:
        """Market status record: ``GET /api/v1/market/status``."""
        return await self._client.request(calls.market_status())

    async def tokens(self) -> MarketTokens:
        """Token catalog: ``GET /api/v1/market/tokens``."""
        return await self._client.request(calls.market_tokens())

    async def adapters(self) -> MarketAdapters:
        """Families of integration adapters: ``GET /api/v1/market/adapters``."""
        return await self._client.request(calls.market_adapters())

    async def price(self) -> MarketPrice:
        """Price of each pair in dollars: ``GET /api/v1/market/price``."""
        return await self._client.request(calls.market_price())

    async def marketcap(self) -> MarketMarketcap:
        """Supply times price of each token: ``GET /api/v1/market/marketcap``."""
        return await self._client.request(calls.market_marketcap())

    async def pairs(self) -> MarketPairs:
        """Pairs with mints, steps and volumes: ``GET /api/v1/market/pairs``."""
        return await self._client.request(calls.market_pairs())

    async def pools(self) -> MarketPools:
        """Pools on chain: ``GET /api/v1/market/pools``."""
        return await self._client.request(calls.market_pools())

    async def fees(self) -> MarketFees:
        """Fee model and collected fees: ``GET /api/v1/market/fees``."""
        return await self._client.request(calls.market_fees())

    async def claims(self) -> MarketClaims:
        """Sums of the desk's claims: ``GET /api/v1/market/claims``."""
        return await self._client.request(calls.market_claims())

    async def debt(self) -> MarketDebt:
        """Obligations of the desk: ``GET /api/v1/market/debt``."""
        return await self._client.request(calls.market_debt())

    async def metadata(self) -> MarketMetadata:
        """Metadata of each token, in Metaplex's fields: ``GET /api/v1/market/metadata``."""
        return await self._client.request(calls.market_metadata())

    async def pair_metadata(self) -> MarketPairMetadata:
        """Pairs with the metadata of both tokens: ``GET /api/v1/market/pair-metadata``."""
        return await self._client.request(calls.market_pair_metadata())

    async def tokenlist(self) -> TokenList:
        """Token list: ``GET /api/v1/market/tokenlist``."""
        return await self._client.request(calls.market_tokenlist())

    async def wallet_index(self) -> MarketWalletIndex:
        """Accounts that the service watches on chain: ``GET /api/v1/market/wallet-index``."""
        return await self._client.request(calls.market_wallet_index())

    async def pool_registry(self) -> MarketPoolRegistry:
        """Where routers find the pools: ``GET /api/v1/market/pool-registry``."""
        return await self._client.request(calls.market_pool_registry())

    async def proof(self) -> MarketProof:
        """Program, source and reproducible hash: ``GET /api/v1/market/proof``."""
        return await self._client.request(calls.market_proof())

    async def integration_manifest(self) -> MarketIntegrationManifest:
        """Index for integrators: ``GET /api/v1/market/integration-manifest``."""
        return await self._client.request(calls.market_integration_manifest())

    async def submission_packs(self) -> MarketSubmissionPacks:
        """Facts for listing forms, by family: ``GET /api/v1/market/submission-packs``."""
        return await self._client.request(calls.market_submission_packs())

    async def provider_packs(self) -> MarketProviderPacks:
        """URLs for data providers, by family: ``GET /api/v1/market/provider-packs``."""
        return await self._client.request(calls.market_provider_packs())

    async def examples(self) -> MarketExamples:
        """Ready-to-run command lines: ``GET /api/v1/market/examples``."""
        return await self._client.request(calls.market_examples())

    async def lite_market_summary(self) -> MarketLiteSummary:
        """Price and volume of each pair: ``GET /api/v1/market/lite/market-summary``."""
        return await self._client.request(calls.market_lite_market_summary())

    async def lite_pair_metadata(self) -> MarketLitePairMetadata:
        """Mints of each pair: ``GET /api/v1/market/lite/pair-metadata``."""
        return await self._client.request(calls.market_lite_pair_metadata())

    async def lite_tokenlist(self) -> MarketLiteTokenlist:
        """Mint and decimals of each token: ``GET /api/v1/market/lite/tokenlist``."""
        return await self._client.request(calls.market_lite_tokenlist())

    async def lite_pool_registry(self) -> MarketLitePoolRegistry:
        """Address of each pool: ``GET /api/v1/market/lite/pool-registry``."""
        return await self._client.request(calls.market_lite_pool_registry())

    async def lite_latest_price(self) -> MarketLiteLatestPrice:
        """Price of the canonical pair: ``GET /api/v1/market/lite/latest-price``."""
        return await self._client.request(calls.market_lite_latest_price())

    async def lite_latest_candle(self) -> MarketLiteLatestCandle:
        """Newest hour with a trade of the canonical pair: ``GET /api/v1/market/lite/latest-candle``."""
        return await self._client.request(calls.market_lite_latest_candle())

    async def lite_latest_trade(self) -> MarketLiteLatestTrade:
        """Newest trade of the canonical pair: ``GET /api/v1/market/lite/latest-trade``."""
        return await self._client.request(calls.market_lite_latest_trade())

    async def lite_latest_fees(self) -> MarketLiteLatestFees:
        """The fee and the fees collected: ``GET /api/v1/market/lite/latest-fees``."""
        return await self._client.request(calls.market_lite_latest_fees())

    async def pool(self, pool_address: str) -> MarketPool:
        """One pool: ``GET /api/v1/market/pools/{pool_address}``.

        pool_address: The pool's address.
        """
        return await self._client.request(calls.market_pool(pool_address))

    async def schemas(self) -> MarketSchemas:
        """JSON Schemas of the documents: ``GET /api/v1/market/schemas``."""
        return await self._client.request(calls.market_schemas())

    async def websocket_health(self) -> WebSocketHealth:
        """Health of the WebSocket: ``GET /ws/rfq/health``."""
        return await self._client.request(calls.market_websocket_health())

    async def openapi(self) -> dict[str, Any]:
        """The same document: ``GET /api/v1/market/openapi.json``."""
        return await self._client.request(calls.market_openapi())


class Rfq(Namespace):
    """The desk's tickets, quotes and claims: ``/api/v1/rfq/``."""

    def status(self) -> RFQStatus:
        """Global RFQ status and recommended surfaces: ``GET /api/v1/rfq/status``."""
        return self._client.request(calls.rfq_status())

    def current_sellable_ticket(self) -> CurrentSellableTicket:
        """The currently sellable ticket: ``GET /api/v1/rfq/current-sellable-ticket``."""
        return self._client.request(calls.rfq_current_sellable_ticket())

    def market_tickets(self) -> MarketTickets:
        """The full RFQ book: ``GET /api/v1/rfq/market-tickets``."""
        return self._client.request(calls.rfq_market_tickets())

    def compact_book(self) -> CompactBook:
        """Compact book for programs: ``GET /api/v1/rfq/market-tickets.compact``."""
        return self._client.request(calls.rfq_compact_book())

    def levels(self) -> Levels:
        """RFQ fill levels and their discounts: ``GET /api/v1/rfq/levels``."""
        return self._client.request(calls.rfq_levels())

    def trades(self, symbol: str, *, limit: Optional[int] = None, before: Optional[int] = None) -> RfqTrades:
        """The desk's settled claims of a pair: ``GET /api/v1/rfq/trades``.

        symbol: The instrument.
        limit: Number of sales.
        before: A trade_id: returns older sales. Absent: the newest.
        """
        return self._client.request(calls.rfq_trades(symbol, limit=limit, before=before))

    def pairs(self) -> Pairs:
        """Allowed RFQ pairs: ``GET /api/v1/rfq/pairs``."""
        return self._client.request(calls.rfq_pairs())

    def tokens(self) -> Tokens:
        """Tokens and rails: ``GET /api/v1/rfq/tokens``."""
        return self._client.request(calls.rfq_tokens())

    def rails(self) -> RailList:
        """Payment rails by priority: ``GET /api/v1/rfq/rails``."""
        return self._client.request(calls.rfq_rails())

    def robot_manifest(self) -> RobotManifest:
        """Robot manifest: ``GET /api/v1/rfq/robot-manifest``."""
        return self._client.request(calls.rfq_robot_manifest())

    def board(self) -> Board:
        """Offers with a three-layer qualification: ``GET /api/v1/exchange/board``."""
        return self._client.request(calls.rfq_board())

    def claim(self, claim_id: str) -> Claim:
        """A claim with its history: ``GET /api/v1/rfq/claims/{claim_id}``.

        claim_id: The claim.
        """
        return self._client.request(calls.rfq_claim(claim_id))

    def claims__claim_id__transaction(self, claim_id: str) -> ClaimTransaction:
        """A fresh transaction of a modular claim: ``GET /api/v1/rfq/claims/{claim_id}/transaction``.

        claim_id: The claim.
        """
        return self._client.request(calls.rfq_claims__claim_id__transaction(claim_id))

    def claim_pay_label(self, claim_id: str) -> SolanaPayLabel:
        """Solana Pay: who asks for the payment: ``GET /api/v1/rfq/claims/{claim_id}/pay``.

        claim_id: The claim.
        """
        return self._client.request(calls.rfq_claim_pay_label(claim_id))

    def claim_pay(self, claim_id: str, account: str) -> SolanaPayTransaction:
        """Solana Pay: the payment: ``POST /api/v1/rfq/claims/{claim_id}/pay``.

        claim_id: The claim.
        account: A Solana account, base58 of 32 bytes.
        """
        return self._client.request(calls.rfq_claim_pay(claim_id, account))

    def quote(self, order_id: str, tranche_id: str, fill_usd: Number, rail: str, *, idempotency_key: Optional[str] = None) -> Quote:
        """A firm price for one claim: ``POST /api/v1/rfq/quote``.

        order_id: A ticket. Its form is our choice.
        tranche_id: A tranche of a ticket. Its form is our choice.
        fill_usd: A fill size of the ladder, as a string or a whole number.
        rail: A payment rail.
        """
        return self._client.request(calls.rfq_quote(order_id, tranche_id, fill_usd, rail, idempotency_key=idempotency_key))

    def modular_claim_take(self, bot_wallet: str, order_id: str, tranche_id: str, fill_usd: Number, *, payment_rail: Optional[str] = None, quote_id: Optional[str] = None, wallet_signature: Optional[str] = None, idempotency_key: Optional[str] = None) -> ClaimPackage:
        """Public alias of the modular claim: ``POST /api/v1/rfq/modular-claim-take``.

        bot_wallet: A Solana account, base58 of 32 bytes.
        order_id: A ticket. Its form is our choice.
        tranche_id: A tranche of a ticket. Its form is our choice.
        fill_usd: A fill size of the ladder, as a string or a whole number.
        payment_rail: A payment rail.
        quote_id: A quote. Its form is our choice.
        wallet_signature: Our choice. Proves that the claim comes from the owner of `bot_wallet`: its ed25519
            signature, in base58 or base64, of the UTF-8 bytes of `blockdesk-
            claim-v1|order_id|tranche_id|fill_usd|rail|unix_minute`, with the rail of the payment and the present
            Unix time in whole minutes, or the minute before. A wrong signature refuses the claim. Without it,
            and without a DvP token of `bot_wallet`, the claim counts against the limits in
            `price_policy.unproven` of `/api/v1/dvp/status`.
        """
        return self._client.request(calls.rfq_modular_claim_take(bot_wallet, order_id, tranche_id, fill_usd, payment_rail=payment_rail, quote_id=quote_id, wallet_signature=wallet_signature, idempotency_key=idempotency_key))

    def atomic_claim_ticket(self, bot_wallet: str, order_id: str, tranche_id: str, fill_usd: Number, *, payment_rail: Optional[str] = None, quote_id: Optional[str] = None, wallet_signature: Optional[str] = None, idempotency_key: Optional[str] = None) -> AtomicClaimPackage:
        """Public alias of the atomic claim: ``POST /api/v1/rfq/atomic-claim-ticket``.

        bot_wallet: A Solana account, base58 of 32 bytes.
        order_id: A ticket. Its form is our choice.
        tranche_id: A tranche of a ticket. Its form is our choice.
        fill_usd: A fill size of the ladder, as a string or a whole number.
        payment_rail: A payment rail.
        quote_id: A quote. Its form is our choice.
        wallet_signature: Our choice. Proves that the claim comes from the owner of `bot_wallet`: its ed25519
            signature, in base58 or base64, of the UTF-8 bytes of `blockdesk-
            claim-v1|order_id|tranche_id|fill_usd|rail|unix_minute`, with the rail of the payment and the present
            Unix time in whole minutes, or the minute before. A wrong signature refuses the claim. Without it,
            and without a DvP token of `bot_wallet`, the claim counts against the limits in
            `price_policy.unproven` of `/api/v1/dvp/status`.
        """
        return self._client.request(calls.rfq_atomic_claim_ticket(bot_wallet, order_id, tranche_id, fill_usd, payment_rail=payment_rail, quote_id=quote_id, wallet_signature=wallet_signature, idempotency_key=idempotency_key))

    def native_verify_payment(self, order_id: str, tranche_id: str, l1_signature: str, *, claim_id: Optional[str] = None, ticket_label: Optional[str] = None, fill_usd: Optional[Number] = None, payment_rail: Optional[str] = None, idempotency_key: Optional[str] = None) -> Union[Verification, Pending]:
        """Public alias of the primary submission: ``POST /api/v1/rfq/native/settlement/verify-payment``.

        order_id: A ticket. Its form is our choice.
        tranche_id: A tranche of a ticket. Its form is our choice.
        l1_signature: A transaction's signature, base58 of 64 bytes.
        claim_id: A claim. Its form is our choice.
        fill_usd: A fill size of the ladder, as a string or a whole number.
        payment_rail: A payment rail.
        """
        return self._client.request(calls.rfq_native_verify_payment(order_id, tranche_id, l1_signature, claim_id=claim_id, ticket_label=ticket_label, fill_usd=fill_usd, payment_rail=payment_rail, idempotency_key=idempotency_key))

    def verify_payment(self, order_id: str, tranche_id: str, l1_signature: str, *, claim_id: Optional[str] = None, ticket_label: Optional[str] = None, fill_usd: Optional[Number] = None, payment_rail: Optional[str] = None, idempotency_key: Optional[str] = None) -> Union[Verification, Pending]:
        """Fallback submission on the registry backend: ``POST /api/v1/rfq/settlement/verify-payment``.

        order_id: A ticket. Its form is our choice.
        tranche_id: A tranche of a ticket. Its form is our choice.
        l1_signature: A transaction's signature, base58 of 64 bytes.
        claim_id: A claim. Its form is our choice.
        fill_usd: A fill size of the ladder, as a string or a whole number.
        payment_rail: A payment rail.
        """
        return self._client.request(calls.rfq_verify_payment(order_id, tranche_id, l1_signature, claim_id=claim_id, ticket_label=ticket_label, fill_usd=fill_usd, payment_rail=payment_rail, idempotency_key=idempotency_key))


class AsyncRfq(AsyncNamespace):
    """The desk's tickets, quotes and claims: ``/api/v1/rfq/``."""

    async def status(self) -> RFQStatus:
        """Global RFQ status and recommended surfaces: ``GET /api/v1/rfq/status``."""
        return await self._client.request(calls.rfq_status())

    async def current_sellable_ticket(self) -> CurrentSellableTicket:
        """The currently sellable ticket: ``GET /api/v1/rfq/current-sellable-ticket``."""
        return await self._client.request(calls.rfq_current_sellable_ticket())

    async def market_tickets(self) -> MarketTickets:
        """The full RFQ book: ``GET /api/v1/rfq/market-tickets``."""
        return await self._client.request(calls.rfq_market_tickets())

    async def compact_book(self) -> CompactBook:
        """Compact book for programs: ``GET /api/v1/rfq/market-tickets.compact``."""
        return await self._client.request(calls.rfq_compact_book())

    async def levels(self) -> Levels:
        """RFQ fill levels and their discounts: ``GET /api/v1/rfq/levels``."""
        return await self._client.request(calls.rfq_levels())

    async def trades(self, symbol: str, *, limit: Optional[int] = None, before: Optional[int] = None) -> RfqTrades:
        """The desk's settled claims of a pair: ``GET /api/v1/rfq/trades``.

        symbol: The instrument.
        limit: Number of sales.
        before: A trade_id: returns older sales. Absent: the newest.
        """
        return await self._client.request(calls.rfq_trades(symbol, limit=limit, before=before))

    async def pairs(self) -> Pairs:
        """Allowed RFQ pairs: ``GET /api/v1/rfq/pairs``."""
        return await self._client.request(calls.rfq_pairs())

    async def tokens(self) -> Tokens:
        """Tokens and rails: ``GET /api/v1/rfq/tokens``."""
        return await self._client.request(calls.rfq_tokens())

    async def rails(self) -> RailList:
        """Payment rails by priority: ``GET /api/v1/rfq/rails``."""
        return await self._client.request(calls.rfq_rails())

    async def robot_manifest(self) -> RobotManifest:
        """Robot manifest: ``GET /api/v1/rfq/robot-manifest``."""
        return await self._client.request(calls.rfq_robot_manifest())

    async def board(self) -> Board:
        """Offers with a three-layer qualification: ``GET /api/v1/exchange/board``."""
        return await self._client.request(calls.rfq_board())

    async def claim(self, claim_id: str) -> Claim:
        """A claim with its history: ``GET /api/v1/rfq/claims/{claim_id}``.

        claim_id: The claim.
        """
        return await self._client.request(calls.rfq_claim(claim_id))

    async def claims__claim_id__transaction(self, claim_id: str) -> ClaimTransaction:
        """A fresh transaction of a modular claim: ``GET /api/v1/rfq/claims/{claim_id}/transaction``.

        claim_id: The claim.
        """
        return await self._client.request(calls.rfq_claims__claim_id__transaction(claim_id))

    async def claim_pay_label(self, claim_id: str) -> SolanaPayLabel:
        """Solana Pay: who asks for the payment: ``GET /api/v1/rfq/claims/{claim_id}/pay``.

        claim_id: The claim.
        """
        return await self._client.request(calls.rfq_claim_pay_label(claim_id))

    async def claim_pay(self, claim_id: str, account: str) -> SolanaPayTransaction:
        """Solana Pay: the payment: ``POST /api/v1/rfq/claims/{claim_id}/pay``.

        claim_id: The claim.
        account: A Solana account, base58 of 32 bytes.
        """
        return await self._client.request(calls.rfq_claim_pay(claim_id, account))

    async def quote(self, order_id: str, tranche_id: str, fill_usd: Number, rail: str, *, idempotency_key: Optional[str] = None) -> Quote:
        """A firm price for one claim: ``POST /api/v1/rfq/quote``.

        order_id: A ticket. Its form is our choice.
        tranche_id: A tranche of a ticket. Its form is our choice.
        fill_usd: A fill size of the ladder, as a string or a whole number.
        rail: A payment rail.
        """
        return await self._client.request(calls.rfq_quote(order_id, tranche_id, fill_usd, rail, idempotency_key=idempotency_key))

    async def modular_claim_take(self, bot_wallet: str, order_id: str, tranche_id: str, fill_usd: Number, *, payment_rail: Optional[str] = None, quote_id: Optional[str] = None, wallet_signature: Optional[str] = None, idempotency_key: Optional[str] = None) -> ClaimPackage:
        """Public alias of the modular claim: ``POST /api/v1/rfq/modular-claim-take``.

        bot_wallet: A Solana account, base58 of 32 bytes.
        order_id: A ticket. Its form is our choice.
        tranche_id: A tranche of a ticket. Its form is our choice.
        fill_usd: A fill size of the ladder, as a string or a whole number.
        payment_rail: A payment rail.
        quote_id: A quote. Its form is our choice.
        wallet_signature: Our choice. Proves that the claim comes from the owner of `bot_wallet`: its ed25519
            signature, in base58 or base64, of the UTF-8 bytes of `blockdesk-
            claim-v1|order_id|tranche_id|fill_usd|rail|unix_minute`, with the rail of the payment and the present
            Unix time in whole minutes, or the minute before. A wrong signature refuses the claim. Without it,
            and without a DvP token of `bot_wallet`, the claim counts against the limits in
            `price_policy.unproven` of `/api/v1/dvp/status`.
        """
        return await self._client.request(calls.rfq_modular_claim_take(bot_wallet, order_id, tranche_id, fill_usd, payment_rail=payment_rail, quote_id=quote_id, wallet_signature=wallet_signature, idempotency_key=idempotency_key))

    async def atomic_claim_ticket(self, bot_wallet: str, order_id: str, tranche_id: str, fill_usd: Number, *, payment_rail: Optional[str] = None, quote_id: Optional[str] = None, wallet_signature: Optional[str] = None, idempotency_key: Optional[str] = None) -> AtomicClaimPackage:
        """Public alias of the atomic claim: ``POST /api/v1/rfq/atomic-claim-ticket``.

        bot_wallet: A Solana account, base58 of 32 bytes.
        order_id: A ticket. Its form is our choice.
        tranche_id: A tranche of a ticket. Its form is our choice.
        fill_usd: A fill size of the ladder, as a string or a whole number.
        payment_rail: A payment rail.
        quote_id: A quote. Its form is our choice.
        wallet_signature: Our choice. Proves that the claim comes from the owner of `bot_wallet`: its ed25519
            signature, in base58 or base64, of the UTF-8 bytes of `blockdesk-
            claim-v1|order_id|tranche_id|fill_usd|rail|unix_minute`, with the rail of the payment and the present
            Unix time in whole minutes, or the minute before. A wrong signature refuses the claim. Without it,
            and without a DvP token of `bot_wallet`, the claim counts against the limits in
            `price_policy.unproven` of `/api/v1/dvp/status`.
        """
        return await self._client.request(calls.rfq_atomic_claim_ticket(bot_wallet, order_id, tranche_id, fill_usd, payment_rail=payment_rail, quote_id=quote_id, wallet_signature=wallet_signature, idempotency_key=idempotency_key))

    async def native_verify_payment(self, order_id: str, tranche_id: str, l1_signature: str, *, claim_id: Optional[str] = None, ticket_label: Optional[str] = None, fill_usd: Optional[Number] = None, payment_rail: Optional[str] = None, idempotency_key: Optional[str] = None) -> Union[Verification, Pending]:
        """Public alias of the primary submission: ``POST /api/v1/rfq/native/settlement/verify-payment``.

        order_id: A ticket. Its form is our choice.
        tranche_id: A tranche of a ticket. Its form is our choice.
        l1_signature: A transaction's signature, base58 of 64 bytes.
        claim_id: A claim. Its form is our choice.
        fill_usd: A fill size of the ladder, as a string or a whole number.
        payment_rail: A payment rail.
        """
        return await self._client.request(calls.rfq_native_verify_payment(order_id, tranche_id, l1_signature, claim_id=claim_id, ticket_label=ticket_label, fill_usd=fill_usd, payment_rail=payment_rail, idempotency_key=idempotency_key))

    async def verify_payment(self, order_id: str, tranche_id: str, l1_signature: str, *, claim_id: Optional[str] = None, ticket_label: Optional[str] = None, fill_usd: Optional[Number] = None, payment_rail: Optional[str] = None, idempotency_key: Optional[str] = None) -> Union[Verification, Pending]:
        """Fallback submission on the registry backend: ``POST /api/v1/rfq/settlement/verify-payment``.

        order_id: A ticket. Its form is our choice.
        tranche_id: A tranche of a ticket. Its form is our choice.
        l1_signature: A transaction's signature, base58 of 64 bytes.
        claim_id: A claim. Its form is our choice.
        fill_usd: A fill size of the ladder, as a string or a whole number.
        payment_rail: A payment rail.
        """
        return await self._client.request(calls.rfq_verify_payment(order_id, tranche_id, l1_signature, claim_id=claim_id, ticket_label=ticket_label, fill_usd=fill_usd, payment_rail=payment_rail, idempotency_key=idempotency_key))


class Dvp(Namespace):
    """Delivery versus payment: ``/api/v1/dvp/``."""

    def status(self) -> DeskStatus:
        """Locks, price policy and institutional discount corridor: ``GET /api/v1/dvp/status``."""
        return self._client.request(calls.dvp_status())

    def handshake(self) -> HandshakeTerms:
        """The terms of the handshake: ``GET /api/v1/dvp/handshake``."""
        return self._client.request(calls.dvp_handshake())

    def build(self, order_id: str, tranche_id: str, fill_usd: Number, rail: str, taker: str, *, quote_id: Optional[str] = None, fee_payer: Optional[str] = None, idempotency_key: Optional[str] = None) -> Build:
        """Reserve part of a tranche and build the unsigned transaction: ``POST /api/v1/dvp/build``.

        order_id: A ticket. Its form is our choice.
        tranche_id: A tranche of a ticket. Its form is our choice.
        fill_usd: A fill size of the ladder, as a string or a whole number.
        rail: A payment rail.
        taker: The counterparty: the key that the token belongs to. If it is empty or missing, the answer is 409
            `REFUS_DVP`, `empty_counterparty`.
        quote_id: A live quote, whose price the build gets. Without one the build is priced now.
        fee_payer: Payer of the network fee. The taker always pays for the creation of its own token account.
        """
        return self._client.request(calls.dvp_build(order_id, tranche_id, fill_usd, rail, taker, quote_id=quote_id, fee_payer=fee_payer, idempotency_key=idempotency_key))

    def submit(self, build_id: str, *, transaction: Optional[str] = None, signature: Optional[str] = None, idempotency_key: Optional[str] = None) -> Submitted:
        """Submit a build that its taker has signed, for the desk to co-sign and broadcast: ``POST /api/v1/dvp/submit``.

        build_id: Id of a build, with the number of its claim. Its form is our choice.
        transaction: The bytes of the build with the taker's signature in its slot.
        signature: Only the taker's signature.
        """
        return self._client.request(calls.dvp_submit(build_id, transaction=transaction, signature=signature, idempotency_key=idempotency_key))

    def build_state(self, build_id: str) -> BuildState:
        """State of a build: ``GET /api/v1/dvp/builds/{build_id}``.

        build_id: The build.
        """
        return self._client.request(calls.dvp_build_state(build_id))

    def handshake_challenge(self, pubkey: str) -> Challenge:
        """Ask for a nonce to sign."""
        return self._client.request(calls.dvp_handshake_challenge(pubkey))

    def handshake_token(self, pubkey: str, nonce: str, signature: str) -> Token:
        """Prove the key by the signed nonce, and get the token."""
        return self._client.request(calls.dvp_handshake_token(pubkey, nonce, signature))


class AsyncDvp(AsyncNamespace):
    """Delivery versus payment: ``/api/v1/dvp/``."""

    async def status(self) -> DeskStatus:
        """Locks, price policy and institutional discount corridor: ``GET /api/v1/dvp/status``."""
        return await self._client.request(calls.dvp_status())

    async def handshake(self) -> HandshakeTerms:
        """The terms of the handshake: ``GET /api/v1/dvp/handshake``."""
        return await self._client.request(calls.dvp_handshake())

    async def build(self, order_id: str, tranche_id: str, fill_usd: Number, rail: str, taker: str, *, quote_id: Optional[str] = None, fee_payer: Optional[str] = None, idempotency_key: Optional[str] = None) -> Build:
        """Reserve part of a tranche and build the unsigned transaction: ``POST /api/v1/dvp/build``.

        order_id: A ticket. Its form is our choice.
        tranche_id: A tranche of a ticket. Its form is our choice.
        fill_usd: A fill size of the ladder, as a string or a whole number.
        rail: A payment rail.
        taker: The counterparty: the key that the token belongs to. If it is empty or missing, the answer is 409
            `REFUS_DVP`, `empty_counterparty`.
        quote_id: A live quote, whose price the build gets. Without one the build is priced now.
        fee_payer: Payer of the network fee. The taker always pays for the creation of its own token account.
        """
        return await self._client.request(calls.dvp_build(order_id, tranche_id, fill_usd, rail, taker, quote_id=quote_id, fee_payer=fee_payer, idempotency_key=idempotency_key))

    async def submit(self, build_id: str, *, transaction: Optional[str] = None, signature: Optional[str] = None, idempotency_key: Optional[str] = None) -> Submitted:
        """Submit a build that its taker has signed, for the desk to co-sign and broadcast: ``POST /api/v1/dvp/submit``.

        build_id: Id of a build, with the number of its claim. Its form is our choice.
        transaction: The bytes of the build with the taker's signature in its slot.
        signature: Only the taker's signature.
        """
        return await self._client.request(calls.dvp_submit(build_id, transaction=transaction, signature=signature, idempotency_key=idempotency_key))

    async def build_state(self, build_id: str) -> BuildState:
        """State of a build: ``GET /api/v1/dvp/builds/{build_id}``.

        build_id: The build.
        """
        return await self._client.request(calls.dvp_build_state(build_id))

    async def handshake_challenge(self, pubkey: str) -> Challenge:
        """Ask for a nonce to sign."""
        return await self._client.request(calls.dvp_handshake_challenge(pubkey))

    async def handshake_token(self, pubkey: str, nonce: str, signature: str) -> Token:
        """Prove the key by the signed nonce, and get the token."""
        return await self._client.request(calls.dvp_handshake_token(pubkey, nonce, signature))


class Native(Namespace):
    """The native surface, first to claim and to prove payments over: ``/rfq-native/``."""

    def market_tickets(self) -> MarketTickets:
        """The full RFQ book from the native backend: ``GET /rfq-native/market-tickets.json``."""
        return self._client.request(calls.native_market_tickets())

    def current_sellable_ticket(self) -> CurrentSellableTicket:
        """The currently sellable ticket from the native backend: ``GET /rfq-native/current-sellable-ticket.json``."""
        return self._client.request(calls.native_current_sellable_ticket())

    def modular_claim_take(self, bot_wallet: str, order_id: str, tranche_id: str, fill_usd: Number, *, payment_rail: Optional[str] = None, quote_id: Optional[str] = None, wallet_signature: Optional[str] = None, idempotency_key: Optional[str] = None) -> ClaimPackage:
        """Reserve part of a tranche and get the payment to sign (native, preferred): ``POST /rfq-native/modular-claim-take``.

        bot_wallet: A Solana account, base58 of 32 bytes.
        order_id: A ticket. Its form is our choice.
        tranche_id: A tranche of a ticket. Its form is our choice.
        fill_usd: A fill size of the ladder, as a string or a whole number.
        payment_rail: A payment rail.
        quote_id: A quote. Its form is our choice.
        wallet_signature: Our choice. Proves that the claim comes from the owner of `bot_wallet`: its ed25519
            signature, in base58 or base64, of the UTF-8 bytes of `blockdesk-
            claim-v1|order_id|tranche_id|fill_usd|rail|unix_minute`, with the rail of the payment and the present
            Unix time in whole minutes, or the minute before. A wrong signature refuses the claim. Without it,
            and without a DvP token of `bot_wallet`, the claim counts against the limits in
            `price_policy.unproven` of `/api/v1/dvp/status`.
        """
        return self._client.request(calls.native_modular_claim_take(bot_wallet, order_id, tranche_id, fill_usd, payment_rail=payment_rail, quote_id=quote_id, wallet_signature=wallet_signature, idempotency_key=idempotency_key))

    def atomic_claim_ticket(self, bot_wallet: str, order_id: str, tranche_id: str, fill_usd: Number, *, payment_rail: Optional[str] = None, quote_id: Optional[str] = None, wallet_signature: Optional[str] = None, idempotency_key: Optional[str] = None) -> AtomicClaimPackage:
        """Reserve part of a tranche and get both transfers in one transaction (native, preferred): ``POST /rfq-native/atomic-claim-ticket``.

        bot_wallet: A Solana account, base58 of 32 bytes.
        order_id: A ticket. Its form is our choice.
        tranche_id: A tranche of a ticket. Its form is our choice.
        fill_usd: A fill size of the ladder, as a string or a whole number.
        payment_rail: A payment rail.
        quote_id: A quote. Its form is our choice.
        wallet_signature: Our choice. Proves that the claim comes from the owner of `bot_wallet`: its ed25519
            signature, in base58 or base64, of the UTF-8 bytes of `blockdesk-
            claim-v1|order_id|tranche_id|fill_usd|rail|unix_minute`, with the rail of the payment and the present
            Unix time in whole minutes, or the minute before. A wrong signature refuses the claim. Without it,
            and without a DvP token of `bot_wallet`, the claim counts against the limits in
            `price_policy.unproven` of `/api/v1/dvp/status`.
        """
        return self._client.request(calls.native_atomic_claim_ticket(bot_wallet, order_id, tranche_id, fill_usd, payment_rail=payment_rail, quote_id=quote_id, wallet_signature=wallet_signature, idempotency_key=idempotency_key))

    def verify_payment(self, order_id: str, tranche_id: str, l1_signature: str, *, claim_id: Optional[str] = None, ticket_label: Optional[str] = None, fill_usd: Optional[Number] = None, payment_rail: Optional[str] = None, idempotency_key: Optional[str] = None) -> Union[Verification, Pending]:
        """Verify the finalized payment of a claim (native, primary): ``POST /rfq-native/settlement/verify-payment``.

        order_id: A ticket. Its form is our choice.
        tranche_id: A tranche of a ticket. Its form is our choice.
        l1_signature: A transaction's signature, base58 of 64 bytes.
        claim_id: A claim. Its form is our choice.
        fill_usd: A fill size of the ladder, as a string or a whole number.
        payment_rail: A payment rail.
        """
        return self._client.request(calls.native_verify_payment(order_id, tranche_id, l1_signature, claim_id=claim_id, ticket_label=ticket_label, fill_usd=fill_usd, payment_rail=payment_rail, idempotency_key=idempotency_key))


class AsyncNative(AsyncNamespace):
    """The native surface, first to claim and to prove payments over: ``/rfq-native/``."""

    async def market_tickets(self) -> MarketTickets:
        """The full RFQ book from the native backend: ``GET /rfq-native/market-tickets.json``."""
        return await self._client.request(calls.native_market_tickets())

    async def current_sellable_ticket(self) -> CurrentSellableTicket:
        """The currently sellable ticket from the native backend: ``GET /rfq-native/current-sellable-ticket.json``."""
        return await self._client.request(calls.native_current_sellable_ticket())

    async def modular_claim_take(self, bot_wallet: str, order_id: str, tranche_id: str, fill_usd: Number, *, payment_rail: Optional[str] = None, quote_id: Optional[str] = None, wallet_signature: Optional[str] = None, idempotency_key: Optional[str] = None) -> ClaimPackage:
        """Reserve part of a tranche and get the payment to sign (native, preferred): ``POST /rfq-native/modular-claim-take``.

        bot_wallet: A Solana account, base58 of 32 bytes.
        order_id: A ticket. Its form is our choice.
        tranche_id: A tranche of a ticket. Its form is our choice.
        fill_usd: A fill size of the ladder, as a string or a whole number.
        payment_rail: A payment rail.
        quote_id: A quote. Its form is our choice.
        wallet_signature: Our choice. Proves that the claim comes from the owner of `bot_wallet`: its ed25519
            signature, in base58 or base64, of the UTF-8 bytes of `blockdesk-
            claim-v1|order_id|tranche_id|fill_usd|rail|unix_minute`, with the rail of the payment and the present
            Unix time in whole minutes, or the minute before. A wrong signature refuses the claim. Without it,
            and without a DvP token of `bot_wallet`, the claim counts against the limits in
            `price_policy.unproven` of `/api/v1/dvp/status`.
        """
        return await self._client.request(calls.native_modular_claim_take(bot_wallet, order_id, tranche_id, fill_usd, payment_rail=payment_rail, quote_id=quote_id, wallet_signature=wallet_signature, idempotency_key=idempotency_key))

    async def atomic_claim_ticket(self, bot_wallet: str, order_id: str, tranche_id: str, fill_usd: Number, *, payment_rail: Optional[str] = None, quote_id: Optional[str] = None, wallet_signature: Optional[str] = None, idempotency_key: Optional[str] = None) -> AtomicClaimPackage:
        """Reserve part of a tranche and get both transfers in one transaction (native, preferred): ``POST /rfq-native/atomic-claim-ticket``.

        bot_wallet: A Solana account, base58 of 32 bytes.
        order_id: A ticket. Its form is our choice.
        tranche_id: A tranche of a ticket. Its form is our choice.
        fill_usd: A fill size of the ladder, as a string or a whole number.
        payment_rail: A payment rail.
        quote_id: A quote. Its form is our choice.
        wallet_signature: Our choice. Proves that the claim comes from the owner of `bot_wallet`: its ed25519
            signature, in base58 or base64, of the UTF-8 bytes of `blockdesk-
            claim-v1|order_id|tranche_id|fill_usd|rail|unix_minute`, with the rail of the payment and the present
            Unix time in whole minutes, or the minute before. A wrong signature refuses the claim. Without it,
            and without a DvP token of `bot_wallet`, the claim counts against the limits in
            `price_policy.unproven` of `/api/v1/dvp/status`.
        """
        return await self._client.request(calls.native_atomic_claim_ticket(bot_wallet, order_id, tranche_id, fill_usd, payment_rail=payment_rail, quote_id=quote_id, wallet_signature=wallet_signature, idempotency_key=idempotency_key))

    async def verify_payment(self, order_id: str, tranche_id: str, l1_signature: str, *, claim_id: Optional[str] = None, ticket_label: Optional[str] = None, fill_usd: Optional[Number] = None, payment_rail: Optional[str] = None, idempotency_key: Optional[str] = None) -> Union[Verification, Pending]:
        """Verify the finalized payment of a claim (native, primary): ``POST /rfq-native/settlement/verify-payment``.

        order_id: A ticket. Its form is our choice.
        tranche_id: A tranche of a ticket. Its form is our choice.
        l1_signature: A transaction's signature, base58 of 64 bytes.
        claim_id: A claim. Its form is our choice.
        fill_usd: A fill size of the ladder, as a string or a whole number.
        payment_rail: A payment rail.
        """
        return await self._client.request(calls.native_verify_payment(order_id, tranche_id, l1_signature, claim_id=claim_id, ticket_label=ticket_label, fill_usd=fill_usd, payment_rail=payment_rail, idempotency_key=idempotency_key))


class Adapters(Namespace):
    """What aggregators read, in their formats."""

    def coingecko_tickers(self) -> list[CoinGeckoTicker]:
        """CoinGecko: tickers: ``GET /api/v1/market/adapters/coingecko/tickers``."""
        return self._client.request(calls.adapters_coingecko_tickers())

    def coinmarketcap_summary(self) -> list[CoinMarketCapSummary]:
        """CoinMarketCap: summary: ``GET /api/v1/market/adapters/coinmarketcap/summary``."""
        return self._client.request(calls.adapters_coinmarketcap_summary())

    def coinmarketcap_assets(self) -> dict[str, CoinMarketCapAsset]:
        """CoinMarketCap: assets: ``GET /api/v1/market/adapters/coinmarketcap/assets``."""
        return self._client.request(calls.adapters_coinmarketcap_assets())

    def coinmarketcap_ticker(self) -> dict[str, CoinMarketCapTicker]:
        """CoinMarketCap: ticker: ``GET /api/v1/market/adapters/coinmarketcap/ticker``."""
        return self._client.request(calls.adapters_coinmarketcap_ticker())

    def coingecko_orderbook(self, ticker_id: str, *, depth: Optional[int] = None) -> CoinGeckoOrderBook:
        """CoinGecko: order book: ``GET /api/v1/market/adapters/coingecko/orderbook``.

        ticker_id: The pair, as in `tickers`.
        depth: Levels of both sides together; 0 or absent: all. There are at most 200.
        """
        return self._client.request(calls.adapters_coingecko_orderbook(ticker_id, depth=depth))

    def coingecko_historical_trades(self, ticker_id: str, *, type: Optional[str] = None, limit: Optional[int] = None, start_time: Optional[int] = None, end_time: Optional[int] = None) -> CoinGeckoTrades:
        """CoinGecko: historical trades: ``GET /api/v1/market/adapters/coingecko/historical_trades``.

        ticker_id: The pair, as in `tickers`.
        type: One side; absent: both.
        limit: Maximum number of trades per side; 0: as many as one answer has, 10,000.
        start_time: Unix seconds or milliseconds; inclusive.
        end_time: Unix seconds or milliseconds; inclusive.
        """
        return self._client.request(calls.adapters_coingecko_historical_trades(ticker_id, type=type, limit=limit, start_time=start_time, end_time=end_time))

    def coinmarketcap_orderbook(self, market_pair: str, *, depth: Optional[int] = None, level: Optional[int] = None) -> CoinMarketCapOrderBook:
        """CoinMarketCap: order book: ``GET /api/v1/market/adapters/coinmarketcap/orderbook/{market_pair}``.

        market_pair: The pair, as in `summary`.
        depth: Levels of both sides together; 0 or absent: all. There are at most 200.
        level: 1: the best bid and ask; 2 (and 0): the levels. Single orders, level 3, are not published.
        """
        return self._client.request(calls.adapters_coinmarketcap_orderbook(market_pair, depth=depth, level=level))

    def coinmarketcap_trades(self, market_pair: str, *, type: Optional[str] = None, limit: Optional[int] = None, since: Optional[int] = None, before: Optional[int] = None) -> list[CoinMarketCapTrade]:
        """CoinMarketCap: trades: ``GET /api/v1/market/adapters/coinmarketcap/trades/{market_pair}``.

        market_pair: The pair, as in `summary`.
        type: One side; absent: both.
        limit: Maximum number of trades; 0: as many as one answer has, 10,000.
        since: Unix seconds or milliseconds, inclusive; absent: 24 hours ago. Our choice.
        before: A trade_id: returns older trades. Our choice.
        """
        return self._client.request(calls.adapters_coinmarketcap_trades(market_pair, type=type, limit=limit, since=since, before=before))

    def dexscreener_latest_block(self) -> ScreenerLatestBlock:
        """DEX Screener: latest block: ``GET /api/v1/market/adapters/dexscreener/latest-block``."""
        return self._client.request(calls.adapters_dexscreener_latest_block())

    def dexscreener_asset(self, id: str) -> ScreenerAsset:
        """DEX Screener: asset: ``GET /api/v1/market/adapters/dexscreener/asset``.

        id: A mint, or the symbol of a token without one.
        """
        return self._client.request(calls.adapters_dexscreener_asset(id))

    def dexscreener_pair(self, id: str) -> ScreenerPair:
        """DEX Screener: pair: ``GET /api/v1/market/adapters/dexscreener/pair``.

        id: The pair.
        """
        return self._client.request(calls.adapters_dexscreener_pair(id))

    def dexscreener_events(self, fromBlock: int, toBlock: int) -> ScreenerEvents:
        """DEX Screener: events: ``GET /api/v1/market/adapters/dexscreener/events``.

        fromBlock: The first block.
        toBlock: The last block, inclusive.
        """
        return self._client.request(calls.adapters_dexscreener_events(fromBlock, toBlock))


class AsyncAdapters(AsyncNamespace):
    """What aggregators read, in their formats."""

    async def coingecko_tickers(self) -> list[CoinGeckoTicker]:
        """CoinGecko: tickers: ``GET /api/v1/market/adapters/coingecko/tickers``."""
        return await self._client.request(calls.adapters_coingecko_tickers())

    async def coinmarketcap_summary(self) -> list[CoinMarketCapSummary]:
        """CoinMarketCap: summary: ``GET /api/v1/market/adapters/coinmarketcap/summary``."""
        return await self._client.request(calls.adapters_coinmarketcap_summary())

    async def coinmarketcap_assets(self) -> dict[str, CoinMarketCapAsset]:
        """CoinMarketCap: assets: ``GET /api/v1/market/adapters/coinmarketcap/assets``."""
        return await self._client.request(calls.adapters_coinmarketcap_assets())

    async def coinmarketcap_ticker(self) -> dict[str, CoinMarketCapTicker]:
        """CoinMarketCap: ticker: ``GET /api/v1/market/adapters/coinmarketcap/ticker``."""
        return await self._client.request(calls.adapters_coinmarketcap_ticker())

    async def coingecko_orderbook(self, ticker_id: str, *, depth: Optional[int] = None) -> CoinGeckoOrderBook:
        """CoinGecko: order book: ``GET /api/v1/market/adapters/coingecko/orderbook``.

        ticker_id: The pair, as in `tickers`.
        depth: Levels of both sides together; 0 or absent: all. There are at most 200.
        """
        return await self._client.request(calls.adapters_coingecko_orderbook(ticker_id, depth=depth))

    async def coingecko_historical_trades(self, ticker_id: str, *, type: Optional[str] = None, limit: Optional[int] = None, start_time: Optional[int] = None, end_time: Optional[int] = None) -> CoinGeckoTrades:
        """CoinGecko: historical trades: ``GET /api/v1/market/adapters/coingecko/historical_trades``.

        ticker_id: The pair, as in `tickers`.
        type: One side; absent: both.
        limit: Maximum number of trades per side; 0: as many as one answer has, 10,000.
        start_time: Unix seconds or milliseconds; inclusive.
        end_time: Unix seconds or milliseconds; inclusive.
        """
        return await self._client.request(calls.adapters_coingecko_historical_trades(ticker_id, type=type, limit=limit, start_time=start_time, end_time=end_time))

    async def coinmarketcap_orderbook(self, market_pair: str, *, depth: Optional[int] = None, level: Optional[int] = None) -> CoinMarketCapOrderBook:
        """CoinMarketCap: order book: ``GET /api/v1/market/adapters/coinmarketcap/orderbook/{market_pair}``.

        market_pair: The pair, as in `summary`.
        depth: Levels of both sides together; 0 or absent: all. There are at most 200.
        level: 1: the best bid and ask; 2 (and 0): the levels. Single orders, level 3, are not published.
        """
        return await self._client.request(calls.adapters_coinmarketcap_orderbook(market_pair, depth=depth, level=level))

    async def coinmarketcap_trades(self, market_pair: str, *, type: Optional[str] = None, limit: Optional[int] = None, since: Optional[int] = None, before: Optional[int] = None) -> list[CoinMarketCapTrade]:
        """CoinMarketCap: trades: ``GET /api/v1/market/adapters/coinmarketcap/trades/{market_pair}``.

        market_pair: The pair, as in `summary`.
        type: One side; absent: both.
        limit: Maximum number of trades; 0: as many as one answer has, 10,000.
        since: Unix seconds or milliseconds, inclusive; absent: 24 hours ago. Our choice.
        before: A trade_id: returns older trades. Our choice.
        """
        return await self._client.request(calls.adapters_coinmarketcap_trades(market_pair, type=type, limit=limit, since=since, before=before))

    async def dexscreener_latest_block(self) -> ScreenerLatestBlock:
        """DEX Screener: latest block: ``GET /api/v1/market/adapters/dexscreener/latest-block``."""
        return await self._client.request(calls.adapters_dexscreener_latest_block())

    async def dexscreener_asset(self, id: str) -> ScreenerAsset:
        """DEX Screener: asset: ``GET /api/v1/market/adapters/dexscreener/asset``.

        id: A mint, or the symbol of a token without one.
        """
        return await self._client.request(calls.adapters_dexscreener_asset(id))

    async def dexscreener_pair(self, id: str) -> ScreenerPair:
        """DEX Screener: pair: ``GET /api/v1/market/adapters/dexscreener/pair``.

        id: The pair.
        """
        return await self._client.request(calls.adapters_dexscreener_pair(id))

    async def dexscreener_events(self, fromBlock: int, toBlock: int) -> ScreenerEvents:
        """DEX Screener: events: ``GET /api/v1/market/adapters/dexscreener/events``.

        fromBlock: The first block.
        toBlock: The last block, inclusive.
        """
        return await self._client.request(calls.adapters_dexscreener_events(fromBlock, toBlock))


class Files(Namespace):
    """Static files and discovery documents."""

    def udf_config(self) -> UdfConfig:
        """UDF: configuration: ``GET /udf/config``."""
        return self._client.request(calls.files_udf_config())

    def udf_symbols(self, symbol: str) -> Any:
        """UDF: a symbol: ``GET /udf/symbols``.

        symbol: The instrument, with or without the exchange and a colon before it.
        """
        return self._client.request(calls.files_udf_symbols(symbol))

    def udf_search(self, *, query: Optional[str] = None, type: Optional[str] = None, exchange: Optional[str] = None, limit: Optional[int] = None) -> Any:
        """UDF: symbols that contain a text: ``GET /udf/search``.

        query: Text in any case; absent: all symbols.
        type: Type of the symbols, empty or `crypto`.
        exchange: Exchange of the symbols; empty: any.
        limit: Number of symbols.
        """
        return self._client.request(calls.files_udf_search(query=query, type=type, exchange=exchange, limit=limit))

    def udf_history(self, symbol: str, resolution: str, *, from_: Optional[int] = None, to: Optional[int] = None, countback: Optional[int] = None) -> Any:
        """UDF: bars: ``GET /udf/history``.

        symbol: The instrument, with or without the exchange and a colon before it.
        resolution: Length of a bar: minutes, or a day.
        from: Unix time in seconds.
        to: Unix time in seconds, not inclusive.
        countback: Number of bars.
        """
        return self._client.request(calls.files_udf_history(symbol, resolution, from_=from_, to=to, countback=countback))

    def udf_time(self) -> int:
        """UDF: time of the service: ``GET /udf/time``."""
        return self._client.request(calls.files_udf_time())

    def well_known_svc_rfq(self) -> Discovery:
        """RFQ discovery document: ``GET /.well-known/svc-rfq.json``."""
        return self._client.request(calls.files_well_known_svc_rfq())

    def specification(self) -> dict[str, Any]:
        """This document: ``GET /public-sdk/openapi/svc_public_api_v1.json``."""
        return self._client.request(calls.files_specification())

    def market(self) -> MarketStatus:
        """Market status record: ``GET /market.json``."""
        return self._client.request(calls.files_market())

    def adapters(self) -> MarketAdapters:
        """Families of integration adapters: ``GET /adapters.json``."""
        return self._client.request(calls.files_adapters())

    def price(self) -> MarketPrice:
        """Price of each pair in dollars: ``GET /price.json``."""
        return self._client.request(calls.files_price())

    def pair(self) -> MarketPairs:
        """Pairs with mints, steps and volumes: ``GET /pair.json``."""
        return self._client.request(calls.files_pair())

    def fees(self) -> MarketFees:
        """Fee model and collected fees: ``GET /fees.json``."""
        return self._client.request(calls.files_fees())

    def metadata(self) -> MarketMetadata:
        """Metadata of each token, in Metaplex's fields: ``GET /metadata.json``."""
        return self._client.request(calls.files_metadata())

    def pair_metadata(self) -> MarketPairMetadata:
        """Pairs with the metadata of both tokens: ``GET /pair-metadata.json``."""
        return self._client.request(calls.files_pair_metadata())

    def tokenlist(self) -> TokenList:
        """Token list: ``GET /tokenlist.json``."""
        return self._client.request(calls.files_tokenlist())

    def wallet_index(self) -> MarketWalletIndex:
        """Accounts that the service watches on chain: ``GET /wallet-index.json``."""
        return self._client.request(calls.files_wallet_index())

    def wallets(self) -> MarketWalletIndex:
        """Accounts that the service watches on chain: ``GET /wallets.json``."""
        return self._client.request(calls.files_wallets())

    def pool_registry(self) -> MarketPoolRegistry:
        """Where routers find the pools: ``GET /pool-registry.json``."""
        return self._client.request(calls.files_pool_registry())

    def proof(self) -> MarketProof:
        """Program, source and reproducible hash: ``GET /proof.json``."""
        return self._client.request(calls.files_proof())

    def integration_manifest(self) -> MarketIntegrationManifest:
        """Index for integrators: ``GET /integration-manifest.json``."""
        return self._client.request(calls.files_integration_manifest())

    def submission_packs(self) -> MarketSubmissionPacks:
        """Facts for listing forms, by family: ``GET /submission-packs.json``."""
        return self._client.request(calls.files_submission_packs())

    def provider_packs(self) -> MarketProviderPacks:
        """URLs for data providers, by family: ``GET /provider-packs.json``."""
        return self._client.request(calls.files_provider_packs())

    def examples(self) -> MarketExamples:
        """Ready-to-run command lines: ``GET /examples.json``."""
        return self._client.request(calls.files_examples())

    def market_summary(self) -> MarketLiteSummary:
        """Price and volume of each pair: ``GET /market-summary.json``."""
        return self._client.request(calls.files_market_summary())

    def pair_metadata_lite(self) -> MarketLitePairMetadata:
        """Mints of each pair: ``GET /pair-metadata-lite.json``."""
        return self._client.request(calls.files_pair_metadata_lite())

    def tokenlist_lite(self) -> MarketLiteTokenlist:
        """Mint and decimals of each token: ``GET /tokenlist-lite.json``."""
        return self._client.request(calls.files_tokenlist_lite())

    def pool_registry_lite(self) -> MarketLitePoolRegistry:
        """Address of each pool: ``GET /pool-registry-lite.json``."""
        return self._client.request(calls.files_pool_registry_lite())

    def latest_price(self) -> MarketLiteLatestPrice:
        """Price of the canonical pair: ``GET /latest-price.json``."""
        return self._client.request(calls.files_latest_price())

    def latest_candle(self) -> MarketLiteLatestCandle:
        """Newest hour with a trade of the canonical pair: ``GET /latest-candle.json``."""
        return self._client.request(calls.files_latest_candle())

    def latest_trade(self) -> MarketLiteLatestTrade:
        """Newest trade of the canonical pair: ``GET /latest-trade.json``."""
        return self._client.request(calls.files_latest_trade())

    def latest_fees(self) -> MarketLiteLatestFees:
        """The fee and the fees collected: ``GET /latest-fees.json``."""
        return self._client.request(calls.files_latest_fees())

    def schemas(self) -> MarketSchemas:
        """JSON Schemas of the documents: ``GET /schemas.json``."""
        return self._client.request(calls.files_schemas())

    def well_known_svc_discovery(self) -> DiscoveryFile:
        """Discovery: all resources: ``GET /.well-known/svc-discovery.json``."""
        return self._client.request(calls.files_well_known_svc_discovery())

    def well_known_svc_program(self) -> DiscoveryFile:
        """Discovery: where trades execute: ``GET /.well-known/svc-program.json``."""
        return self._client.request(calls.files_well_known_svc_program())

    def well_known_svc_ecosystem(self) -> DiscoveryFile:
        """Discovery: tokens and pairs: ``GET /.well-known/svc-ecosystem.json``."""
        return self._client.request(calls.files_well_known_svc_ecosystem())

    def well_known_svc_wallets(self) -> DiscoveryFile:
        """Discovery: wallets: ``GET /.well-known/svc-wallets.json``."""
        return self._client.request(calls.files_well_known_svc_wallets())

    def well_known_svc_integrators(self) -> DiscoveryFile:
        """Discovery: integrators: ``GET /.well-known/svc-integrators.json``."""
        return self._client.request(calls.files_well_known_svc_integrators())

    def well_known_svc(self) -> DiscoveryFile:
        """Discovery: this service: ``GET /.well-known/svc.json``."""
        return self._client.request(calls.files_well_known_svc())

    def trades(self, *, symbol: Optional[str] = None, limit: Optional[int] = None, before: Optional[int] = None) -> Trades:
        """Last trades of an instrument: ``GET /trades.json``.

        symbol: The instrument; absent: the first one (our choice).
        limit: Number of trades; the maximum is our choice.
        before: A trade_id: returns older trades from the archive. Just after new trades the answer may be 503
            with reason history_behind. Absent: the newest trades. Our choice.
        """
        return self._client.request(calls.files_trades(symbol=symbol, limit=limit, before=before))

    def candles(self, *, symbol: Optional[str] = None, timeframe: Optional[str] = None, interval: Optional[str] = None, limit: Optional[int] = None, before: Optional[int] = None) -> Candles:
        """Candles by timeframe: ``GET /candles.json``.

        symbol: The instrument; absent: the first one (our choice).
        timeframe: Length of a candle; absent: one minute (our choice).
        interval: The same as timeframe; send one of the two.
        limit: Maximum number of candles; the newest are returned.
        before: Unix milliseconds: returns the candles that open before it. Use next_before of an answer to page.
            Our choice.
        """
        return self._client.request(calls.files_candles(symbol=symbol, timeframe=timeframe, interval=interval, limit=limit, before=before))

    def openapi(self) -> dict[str, Any]:
        """The same document: ``GET /openapi.json``."""
        return self._client.request(calls.files_openapi())


class AsyncFiles(AsyncNamespace):
    """Static files and discovery documents."""

    async def udf_config(self) -> UdfConfig:
        """UDF: configuration: ``GET /udf/config``."""
        return await self._client.request(calls.files_udf_config())

    async def udf_symbols(self, symbol: str) -> Any:
        """UDF: a symbol: ``GET /udf/symbols``.

        symbol: The instrument, with or without the exchange and a colon before it.
        """
        return await self._client.request(calls.files_udf_symbols(symbol))

    async def udf_search(self, *, query: Optional[str] = None, type: Optional[str] = None, exchange: Optional[str] = None, limit: Optional[int] = None) -> Any:
        """UDF: symbols that contain a text: ``GET /udf/search``.

        query: Text in any case; absent: all symbols.
        type: Type of the symbols, empty or `crypto`.
        exchange: Exchange of the symbols; empty: any.
        limit: Number of symbols.
        """
        return await self._client.request(calls.files_udf_search(query=query, type=type, exchange=exchange, limit=limit))

    async def udf_history(self, symbol: str, resolution: str, *, from_: Optional[int] = None, to: Optional[int] = None, countback: Optional[int] = None) -> Any:
        """UDF: bars: ``GET /udf/history``.

        symbol: The instrument, with or without the exchange and a colon before it.
        resolution: Length of a bar: minutes, or a day.
        from: Unix time in seconds.
        to: Unix time in seconds, not inclusive.
        countback: Number of bars.
        """
        return await self._client.request(calls.files_udf_history(symbol, resolution, from_=from_, to=to, countback=countback))

    async def udf_time(self) -> int:
        """UDF: time of the service: ``GET /udf/time``."""
        return await self._client.request(calls.files_udf_time())

    async def well_known_svc_rfq(self) -> Discovery:
        """RFQ discovery document: ``GET /.well-known/svc-rfq.json``."""
        return await self._client.request(calls.files_well_known_svc_rfq())

    async def specification(self) -> dict[str, Any]:
        """This document: ``GET /public-sdk/openapi/svc_public_api_v1.json``."""
        return await self._client.request(calls.files_specification())

    async def market(self) -> MarketStatus:
        """Market status record: ``GET /market.json``."""
        return await self._client.request(calls.files_market())

    async def adapters(self) -> MarketAdapters:
        """Families of integration adapters: ``GET /adapters.json``."""
        return await self._client.request(calls.files_adapters())

    async def price(self) -> MarketPrice:
        """Price of each pair in dollars: ``GET /price.json``."""
        return await self._client.request(calls.files_price())

    async def pair(self) -> MarketPairs:
        """Pairs with mints, steps and volumes: ``GET /pair.json``."""
        return await self._client.request(calls.files_pair())

    async def fees(self) -> MarketFees:
        """Fee model and collected fees: ``GET /fees.json``."""
        return await self._client.request(calls.files_fees())

    async def metadata(self) -> MarketMetadata:
        """Metadata of each token, in Metaplex's fields: ``GET /metadata.json``."""
        return await self._client.request(calls.files_metadata())

    async def pair_metadata(self) -> MarketPairMetadata:
        """Pairs with the metadata of both tokens: ``GET /pair-metadata.json``."""
        return await self._client.request(calls.files_pair_metadata())

    async def tokenlist(self) -> TokenList:
        """Token list: ``GET /tokenlist.json``."""
        return await self._client.request(calls.files_tokenlist())

    async def wallet_index(self) -> MarketWalletIndex:
        """Accounts that the service watches on chain: ``GET /wallet-index.json``."""
        return await self._client.request(calls.files_wallet_index())

    async def wallets(self) -> MarketWalletIndex:
        """Accounts that the service watches on chain: ``GET /wallets.json``."""
        return await self._client.request(calls.files_wallets())

    async def pool_registry(self) -> MarketPoolRegistry:
        """Where routers find the pools: ``GET /pool-registry.json``."""
        return await self._client.request(calls.files_pool_registry())

    async def proof(self) -> MarketProof:
        """Program, source and reproducible hash: ``GET /proof.json``."""
        return await self._client.request(calls.files_proof())

    async def integration_manifest(self) -> MarketIntegrationManifest:
        """Index for integrators: ``GET /integration-manifest.json``."""
        return await self._client.request(calls.files_integration_manifest())

    async def submission_packs(self) -> MarketSubmissionPacks:
        """Facts for listing forms, by family: ``GET /submission-packs.json``."""
        return await self._client.request(calls.files_submission_packs())

    async def provider_packs(self) -> MarketProviderPacks:
        """URLs for data providers, by family: ``GET /provider-packs.json``."""
        return await self._client.request(calls.files_provider_packs())

    async def examples(self) -> MarketExamples:
        """Ready-to-run command lines: ``GET /examples.json``."""
        return await self._client.request(calls.files_examples())

    async def market_summary(self) -> MarketLiteSummary:
        """Price and volume of each pair: ``GET /market-summary.json``."""
        return await self._client.request(calls.files_market_summary())

    async def pair_metadata_lite(self) -> MarketLitePairMetadata:
        """Mints of each pair: ``GET /pair-metadata-lite.json``."""
        return await self._client.request(calls.files_pair_metadata_lite())

    async def tokenlist_lite(self) -> MarketLiteTokenlist:
        """Mint and decimals of each token: ``GET /tokenlist-lite.json``."""
        return await self._client.request(calls.files_tokenlist_lite())

    async def pool_registry_lite(self) -> MarketLitePoolRegistry:
        """Address of each pool: ``GET /pool-registry-lite.json``."""
        return await self._client.request(calls.files_pool_registry_lite())

    async def latest_price(self) -> MarketLiteLatestPrice:
        """Price of the canonical pair: ``GET /latest-price.json``."""
        return await self._client.request(calls.files_latest_price())

    async def latest_candle(self) -> MarketLiteLatestCandle:
        """Newest hour with a trade of the canonical pair: ``GET /latest-candle.json``."""
        return await self._client.request(calls.files_latest_candle())

    async def latest_trade(self) -> MarketLiteLatestTrade:
        """Newest trade of the canonical pair: ``GET /latest-trade.json``."""
        return await self._client.request(calls.files_latest_trade())

    async def latest_fees(self) -> MarketLiteLatestFees:
        """The fee and the fees collected: ``GET /latest-fees.json``."""
        return await self._client.request(calls.files_latest_fees())

    async def schemas(self) -> MarketSchemas:
        """JSON Schemas of the documents: ``GET /schemas.json``."""
        return await self._client.request(calls.files_schemas())

    async def well_known_svc_discovery(self) -> DiscoveryFile:
        """Discovery: all resources: ``GET /.well-known/svc-discovery.json``."""
        return await self._client.request(calls.files_well_known_svc_discovery())

    async def well_known_svc_program(self) -> DiscoveryFile:
        """Discovery: where trades execute: ``GET /.well-known/svc-program.json``."""
        return await self._client.request(calls.files_well_known_svc_program())

    async def well_known_svc_ecosystem(self) -> DiscoveryFile:
        """Discovery: tokens and pairs: ``GET /.well-known/svc-ecosystem.json``."""
        return await self._client.request(calls.files_well_known_svc_ecosystem())

    async def well_known_svc_wallets(self) -> DiscoveryFile:
        """Discovery: wallets: ``GET /.well-known/svc-wallets.json``."""
        return await self._client.request(calls.files_well_known_svc_wallets())

    async def well_known_svc_integrators(self) -> DiscoveryFile:
        """Discovery: integrators: ``GET /.well-known/svc-integrators.json``."""
        return await self._client.request(calls.files_well_known_svc_integrators())

    async def well_known_svc(self) -> DiscoveryFile:
        """Discovery: this service: ``GET /.well-known/svc.json``."""
        return await self._client.request(calls.files_well_known_svc())

    async def trades(self, *, symbol: Optional[str] = None, limit: Optional[int] = None, before: Optional[int] = None) -> Trades:
        """Last trades of an instrument: ``GET /trades.json``.

        symbol: The instrument; absent: the first one (our choice).
        limit: Number of trades; the maximum is our choice.
        before: A trade_id: returns older trades from the archive. Just after new trades the answer may be 503
            with reason history_behind. Absent: the newest trades. Our choice.
        """
        return await self._client.request(calls.files_trades(symbol=symbol, limit=limit, before=before))

    async def candles(self, *, symbol: Optional[str] = None, timeframe: Optional[str] = None, interval: Optional[str] = None, limit: Optional[int] = None, before: Optional[int] = None) -> Candles:
        """Candles by timeframe: ``GET /candles.json``.

        symbol: The instrument; absent: the first one (our choice).
        timeframe: Length of a candle; absent: one minute (our choice).
        interval: The same as timeframe; send one of the two.
        limit: Maximum number of candles; the newest are returned.
        before: Unix milliseconds: returns the candles that open before it. Use next_before of an answer to page.
            Our choice.
        """
        return await self._client.request(calls.files_candles(symbol=symbol, timeframe=timeframe, interval=interval, limit=limit, before=before))

    async def openapi(self) -> dict[str, Any]:
        """The same document: ``GET /openapi.json``."""
        return await self._client.request(calls.files_openapi())


class Legacy(Namespace):
    """The legacy surface of the api address."""

    def status(self) -> MarketStatus:
        """Market status record: ``GET /status``."""
        return self._client.request(calls.legacy_status())

    def pairs(self) -> MarketPairs:
        """Pairs with mints, steps and volumes: ``GET /pairs``."""
        return self._client.request(calls.legacy_pairs())

    def proof(self) -> MarketProof:
        """Program, source and reproducible hash: ``GET /proof``."""
        return self._client.request(calls.legacy_proof())


class AsyncLegacy(AsyncNamespace):
    """The legacy surface of the api address."""

    async def status(self) -> MarketStatus:
        """Market status record: ``GET /status``."""
        return await self._client.request(calls.legacy_status())

    async def pairs(self) -> MarketPairs:
        """Pairs with mints, steps and volumes: ``GET /pairs``."""
        return await self._client.request(calls.legacy_pairs())

    async def proof(self) -> MarketProof:
        """Program, source and reproducible hash: ``GET /proof``."""
        return await self._client.request(calls.legacy_proof())


class Service(Namespace):
    """The service's description of itself."""

    def describe(self) -> ServiceDescription:
        """What the service is and where its endpoints are: ``GET /``."""
        return self._client.request(calls.service_describe())


class AsyncService(AsyncNamespace):
    """The service's description of itself."""

    async def describe(self) -> ServiceDescription:
        """What the service is and where its endpoints are: ``GET /``."""
        return await self._client.request(calls.service_describe())
