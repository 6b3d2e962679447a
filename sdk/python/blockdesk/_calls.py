"""Every request of the service, described and not yet sent.

Written by tools/generate.py from the service's OpenAPI document: not to be edited.
"""

from __future__ import annotations

from typing import Any, Optional, Union

from ._call import Call, Number, new_key, path_of
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


def service_describe() -> Call[ServiceDescription]:
    return Call("GET", "/", kinds={200: ServiceDescription})


def market_symbols() -> Call[Symbols]:
    return Call("GET", "/api/v1/market/symbols", kinds={200: Symbols})


def market_ticker(symbol: str) -> Call[Ticker]:
    return Call("GET", "/api/v1/market/ticker", kinds={200: Ticker}, query={"symbol": symbol})


def market_depth(symbol: str, *, limit: Optional[int] = None) -> Call[Depth]:
    return Call("GET", "/api/v1/market/depth", kinds={200: Depth}, query={"symbol": symbol, "limit": limit})


def market_trades(symbol: str, *, limit: Optional[int] = None, before: Optional[int] = None) -> Call[Trades]:
    return Call("GET", "/api/v1/market/trades", kinds={200: Trades}, query={"symbol": symbol, "limit": limit, "before": before})


def market_klines(symbol: str, *, interval: Optional[str] = None, timeframe: Optional[str] = None, limit: Optional[int] = None, before: Optional[int] = None) -> Call[Klines]:
    return Call("GET", "/api/v1/market/klines", kinds={200: Klines}, query={"symbol": symbol, "interval": interval, "timeframe": timeframe, "limit": limit, "before": before})


def market_candles(*, symbol: Optional[str] = None, timeframe: Optional[str] = None, interval: Optional[str] = None, limit: Optional[int] = None, before: Optional[int] = None) -> Call[Candles]:
    return Call("GET", "/api/v1/market/candles", kinds={200: Candles}, query={"symbol": symbol, "timeframe": timeframe, "interval": interval, "limit": limit, "before": before})


def market_oracle_heartbeat() -> Call[OracleHeartbeat]:
    return Call("GET", "/api/v1/market/oracle/heartbeat", kinds={200: OracleHeartbeat})


def market_status() -> Call[MarketStatus]:
    return Call("GET", "/api/v1/market/status", kinds={200: MarketStatus})


def market_tokens() -> Call[MarketTokens]:
    return Call("GET", "/api/v1/market/tokens", kinds={200: MarketTokens})


def market_adapters() -> Call[MarketAdapters]:
    return Call("GET", "/api/v1/market/adapters", kinds={200: MarketAdapters})


def market_price() -> Call[MarketPrice]:
    return Call("GET", "/api/v1/market/price", kinds={200: MarketPrice})


def market_marketcap() -> Call[MarketMarketcap]:
    return Call("GET", "/api/v1/market/marketcap", kinds={200: MarketMarketcap})


def market_pairs() -> Call[MarketPairs]:
    return Call("GET", "/api/v1/market/pairs", kinds={200: MarketPairs})


def market_pools() -> Call[MarketPools]:
    return Call("GET", "/api/v1/market/pools", kinds={200: MarketPools})


def market_fees() -> Call[MarketFees]:
    return Call("GET", "/api/v1/market/fees", kinds={200: MarketFees})


def market_claims() -> Call[MarketClaims]:
    return Call("GET", "/api/v1/market/claims", kinds={200: MarketClaims})


def market_debt() -> Call[MarketDebt]:
    return Call("GET", "/api/v1/market/debt", kinds={200: MarketDebt})


def market_metadata() -> Call[MarketMetadata]:
    return Call("GET", "/api/v1/market/metadata", kinds={200: MarketMetadata})


def market_pair_metadata() -> Call[MarketPairMetadata]:
    return Call("GET", "/api/v1/market/pair-metadata", kinds={200: MarketPairMetadata})


def market_tokenlist() -> Call[TokenList]:
    return Call("GET", "/api/v1/market/tokenlist", kinds={200: TokenList})


def market_wallet_index() -> Call[MarketWalletIndex]:
    return Call("GET", "/api/v1/market/wallet-index", kinds={200: MarketWalletIndex})


def market_pool_registry() -> Call[MarketPoolRegistry]:
    return Call("GET", "/api/v1/market/pool-registry", kinds={200: MarketPoolRegistry})


def market_proof() -> Call[MarketProof]:
    return Call("GET", "/api/v1/market/proof", kinds={200: MarketProof})


def market_integration_manifest() -> Call[MarketIntegrationManifest]:
    return Call("GET", "/api/v1/market/integration-manifest", kinds={200: MarketIntegrationManifest})


def market_submission_packs() -> Call[MarketSubmissionPacks]:
    return Call("GET", "/api/v1/market/submission-packs", kinds={200: MarketSubmissionPacks})


def market_provider_packs() -> Call[MarketProviderPacks]:
    return Call("GET", "/api/v1/market/provider-packs", kinds={200: MarketProviderPacks})


def market_examples() -> Call[MarketExamples]:
    return Call("GET", "/api/v1/market/examples", kinds={200: MarketExamples})


def market_lite_market_summary() -> Call[MarketLiteSummary]:
    return Call("GET", "/api/v1/market/lite/market-summary", kinds={200: MarketLiteSummary})


def market_lite_pair_metadata() -> Call[MarketLitePairMetadata]:
    return Call("GET", "/api/v1/market/lite/pair-metadata", kinds={200: MarketLitePairMetadata})


def market_lite_tokenlist() -> Call[MarketLiteTokenlist]:
    return Call("GET", "/api/v1/market/lite/tokenlist", kinds={200: MarketLiteTokenlist})


def market_lite_pool_registry() -> Call[MarketLitePoolRegistry]:
    return Call("GET", "/api/v1/market/lite/pool-registry", kinds={200: MarketLitePoolRegistry})


def market_lite_latest_price() -> Call[MarketLiteLatestPrice]:
    return Call("GET", "/api/v1/market/lite/latest-price", kinds={200: MarketLiteLatestPrice})


def market_lite_latest_candle() -> Call[MarketLiteLatestCandle]:
    return Call("GET", "/api/v1/market/lite/latest-candle", kinds={200: MarketLiteLatestCandle})


def market_lite_latest_trade() -> Call[MarketLiteLatestTrade]:
    return Call("GET", "/api/v1/market/lite/latest-trade", kinds={200: MarketLiteLatestTrade})


def market_lite_latest_fees() -> Call[MarketLiteLatestFees]:
    return Call("GET", "/api/v1/market/lite/latest-fees", kinds={200: MarketLiteLatestFees})


def adapters_coingecko_tickers() -> Call[list[CoinGeckoTicker]]:
    return Call("GET", "/api/v1/market/adapters/coingecko/tickers", kinds={200: list[CoinGeckoTicker]})


def adapters_coinmarketcap_summary() -> Call[list[CoinMarketCapSummary]]:
    return Call("GET", "/api/v1/market/adapters/coinmarketcap/summary", kinds={200: list[CoinMarketCapSummary]})


def adapters_coinmarketcap_assets() -> Call[dict[str, CoinMarketCapAsset]]:
    return Call("GET", "/api/v1/market/adapters/coinmarketcap/assets", kinds={200: dict[str, CoinMarketCapAsset]})


def adapters_coinmarketcap_ticker() -> Call[dict[str, CoinMarketCapTicker]]:
    return Call("GET", "/api/v1/market/adapters/coinmarketcap/ticker", kinds={200: dict[str, CoinMarketCapTicker]})


def market_pool(pool_address: str) -> Call[MarketPool]:
    return Call("GET", path_of("/api/v1/market/pools/{pool_address}", pool_address=pool_address), kinds={200: MarketPool})


def market_schemas() -> Call[MarketSchemas]:
    return Call("GET", "/api/v1/market/schemas", kinds={200: MarketSchemas})


def adapters_coingecko_orderbook(ticker_id: str, *, depth: Optional[int] = None) -> Call[CoinGeckoOrderBook]:
    return Call("GET", "/api/v1/market/adapters/coingecko/orderbook", kinds={200: CoinGeckoOrderBook}, query={"ticker_id": ticker_id, "depth": depth})


def adapters_coingecko_historical_trades(ticker_id: str, *, type: Optional[str] = None, limit: Optional[int] = None, start_time: Optional[int] = None, end_time: Optional[int] = None) -> Call[CoinGeckoTrades]:
    return Call("GET", "/api/v1/market/adapters/coingecko/historical_trades", kinds={200: CoinGeckoTrades}, query={"ticker_id": ticker_id, "type": type, "limit": limit, "start_time": start_time, "end_time": end_time})


def adapters_coinmarketcap_orderbook(market_pair: str, *, depth: Optional[int] = None, level: Optional[int] = None) -> Call[CoinMarketCapOrderBook]:
    return Call("GET", path_of("/api/v1/market/adapters/coinmarketcap/orderbook/{market_pair}", market_pair=market_pair), kinds={200: CoinMarketCapOrderBook}, query={"depth": depth, "level": level})


def adapters_coinmarketcap_trades(market_pair: str, *, type: Optional[str] = None, limit: Optional[int] = None, since: Optional[int] = None, before: Optional[int] = None) -> Call[list[CoinMarketCapTrade]]:
    return Call("GET", path_of("/api/v1/market/adapters/coinmarketcap/trades/{market_pair}", market_pair=market_pair), kinds={200: list[CoinMarketCapTrade]}, query={"type": type, "limit": limit, "since": since, "before": before})


def adapters_dexscreener_latest_block() -> Call[ScreenerLatestBlock]:
    return Call("GET", "/api/v1/market/adapters/dexscreener/latest-block", kinds={200: ScreenerLatestBlock})


def adapters_dexscreener_asset(id: str) -> Call[ScreenerAsset]:
    return Call("GET", "/api/v1/market/adapters/dexscreener/asset", kinds={200: ScreenerAsset}, query={"id": id})


def adapters_dexscreener_pair(id: str) -> Call[ScreenerPair]:
    return Call("GET", "/api/v1/market/adapters/dexscreener/pair", kinds={200: ScreenerPair}, query={"id": id})


def adapters_dexscreener_events(fromBlock: int, toBlock: int) -> Call[ScreenerEvents]:
    return Call("GET", "/api/v1/market/adapters/dexscreener/events", kinds={200: ScreenerEvents}, query={"fromBlock": fromBlock, "toBlock": toBlock})


def files_udf_config() -> Call[UdfConfig]:
    return Call("GET", "/udf/config", kinds={200: UdfConfig})


def files_udf_symbols(symbol: str) -> Call[Any]:
    return Call("GET", "/udf/symbols", kinds={200: Any}, query={"symbol": symbol})


def files_udf_search(*, query: Optional[str] = None, type: Optional[str] = None, exchange: Optional[str] = None, limit: Optional[int] = None) -> Call[Any]:
    return Call("GET", "/udf/search", kinds={200: Any}, query={"query": query, "type": type, "exchange": exchange, "limit": limit})


def files_udf_history(symbol: str, resolution: str, *, from_: Optional[int] = None, to: Optional[int] = None, countback: Optional[int] = None) -> Call[Any]:
    return Call("GET", "/udf/history", kinds={200: Any}, query={"symbol": symbol, "resolution": resolution, "from": from_, "to": to, "countback": countback})


def files_udf_time() -> Call[int]:
    return Call("GET", "/udf/time", kinds={200: int})


def rfq_status() -> Call[RFQStatus]:
    return Call("GET", "/api/v1/rfq/status", kinds={200: RFQStatus})


def rfq_current_sellable_ticket() -> Call[CurrentSellableTicket]:
    return Call("GET", "/api/v1/rfq/current-sellable-ticket", kinds={200: CurrentSellableTicket})


def rfq_market_tickets() -> Call[MarketTickets]:
    return Call("GET", "/api/v1/rfq/market-tickets", kinds={200: MarketTickets})


def rfq_compact_book() -> Call[CompactBook]:
    return Call("GET", "/api/v1/rfq/market-tickets.compact", kinds={200: CompactBook})


def rfq_levels() -> Call[Levels]:
    return Call("GET", "/api/v1/rfq/levels", kinds={200: Levels})


def rfq_trades(symbol: str, *, limit: Optional[int] = None, before: Optional[int] = None) -> Call[RfqTrades]:
    return Call("GET", "/api/v1/rfq/trades", kinds={200: RfqTrades}, query={"symbol": symbol, "limit": limit, "before": before})


def rfq_pairs() -> Call[Pairs]:
    return Call("GET", "/api/v1/rfq/pairs", kinds={200: Pairs})


def rfq_tokens() -> Call[Tokens]:
    return Call("GET", "/api/v1/rfq/tokens", kinds={200: Tokens})


def rfq_rails() -> Call[RailList]:
    return Call("GET", "/api/v1/rfq/rails", kinds={200: RailList})


def rfq_robot_manifest() -> Call[RobotManifest]:
    return Call("GET", "/api/v1/rfq/robot-manifest", kinds={200: RobotManifest})


def native_market_tickets() -> Call[MarketTickets]:
    return Call("GET", "/rfq-native/market-tickets.json", kinds={200: MarketTickets})


def native_current_sellable_ticket() -> Call[CurrentSellableTicket]:
    return Call("GET", "/rfq-native/current-sellable-ticket.json", kinds={200: CurrentSellableTicket})


def files_well_known_svc_rfq() -> Call[Discovery]:
    return Call("GET", "/.well-known/svc-rfq.json", kinds={200: Discovery})


def rfq_board() -> Call[Board]:
    return Call("GET", "/api/v1/exchange/board", kinds={200: Board})


def dvp_status() -> Call[DeskStatus]:
    return Call("GET", "/api/v1/dvp/status", kinds={200: DeskStatus})


def dvp_handshake() -> Call[HandshakeTerms]:
    return Call("GET", "/api/v1/dvp/handshake", kinds={200: HandshakeTerms})


def dvp_build(order_id: str, tranche_id: str, fill_usd: Number, rail: str, taker: str, *, quote_id: Optional[str] = None, fee_payer: Optional[str] = None, idempotency_key: Optional[str] = None) -> Call[Build]:
    return Call("POST", "/api/v1/dvp/build", kinds={200: Build}, body={"order_id": order_id, "tranche_id": tranche_id, "fill_usd": fill_usd, "rail": rail, "taker": taker, "quote_id": quote_id, "fee_payer": fee_payer}, key=idempotency_key or new_key(), auth=True)


def dvp_submit(build_id: str, *, transaction: Optional[str] = None, signature: Optional[str] = None, idempotency_key: Optional[str] = None) -> Call[Submitted]:
    return Call("POST", "/api/v1/dvp/submit", kinds={200: Submitted}, body={"build_id": build_id, "transaction": transaction, "signature": signature}, key=idempotency_key or new_key(), auth=True)


def dvp_build_state(build_id: str) -> Call[BuildState]:
    return Call("GET", path_of("/api/v1/dvp/builds/{build_id}", build_id=build_id), kinds={200: BuildState})


def rfq_claim(claim_id: str) -> Call[Claim]:
    return Call("GET", path_of("/api/v1/rfq/claims/{claim_id}", claim_id=claim_id), kinds={200: Claim})


def rfq_claims__claim_id__transaction(claim_id: str) -> Call[ClaimTransaction]:
    return Call("GET", path_of("/api/v1/rfq/claims/{claim_id}/transaction", claim_id=claim_id), kinds={200: ClaimTransaction})


def rfq_claim_pay_label(claim_id: str) -> Call[SolanaPayLabel]:
    return Call("GET", path_of("/api/v1/rfq/claims/{claim_id}/pay", claim_id=claim_id), kinds={200: SolanaPayLabel})


def rfq_claim_pay(claim_id: str, account: str) -> Call[SolanaPayTransaction]:
    return Call("POST", path_of("/api/v1/rfq/claims/{claim_id}/pay", claim_id=claim_id), kinds={200: SolanaPayTransaction}, body={"account": account})


def rfq_quote(order_id: str, tranche_id: str, fill_usd: Number, rail: str, *, idempotency_key: Optional[str] = None) -> Call[Quote]:
    return Call("POST", "/api/v1/rfq/quote", kinds={200: Quote}, body={"order_id": order_id, "tranche_id": tranche_id, "fill_usd": fill_usd, "rail": rail}, key=idempotency_key or new_key())


def native_modular_claim_take(bot_wallet: str, order_id: str, tranche_id: str, fill_usd: Number, *, payment_rail: Optional[str] = None, quote_id: Optional[str] = None, wallet_signature: Optional[str] = None, idempotency_key: Optional[str] = None) -> Call[ClaimPackage]:
    return Call("POST", "/rfq-native/modular-claim-take", kinds={200: ClaimPackage}, body={"bot_wallet": bot_wallet, "order_id": order_id, "tranche_id": tranche_id, "fill_usd": fill_usd, "payment_rail": payment_rail, "quote_id": quote_id, "wallet_signature": wallet_signature}, key=idempotency_key or new_key())


def rfq_modular_claim_take(bot_wallet: str, order_id: str, tranche_id: str, fill_usd: Number, *, payment_rail: Optional[str] = None, quote_id: Optional[str] = None, wallet_signature: Optional[str] = None, idempotency_key: Optional[str] = None) -> Call[ClaimPackage]:
    return Call("POST", "/api/v1/rfq/modular-claim-take", kinds={200: ClaimPackage}, body={"bot_wallet": bot_wallet, "order_id": order_id, "tranche_id": tranche_id, "fill_usd": fill_usd, "payment_rail": payment_rail, "quote_id": quote_id, "wallet_signature": wallet_signature}, key=idempotency_key or new_key())


def native_atomic_claim_ticket(bot_wallet: str, order_id: str, tranche_id: str, fill_usd: Number, *, payment_rail: Optional[str] = None, quote_id: Optional[str] = None, wallet_signature: Optional[str] = None, idempotency_key: Optional[str] = None) -> Call[AtomicClaimPackage]:
    return Call("POST", "/rfq-native/atomic-claim-ticket", kinds={200: AtomicClaimPackage}, body={"bot_wallet": bot_wallet, "order_id": order_id, "tranche_id": tranche_id, "fill_usd": fill_usd, "payment_rail": payment_rail, "quote_id": quote_id, "wallet_signature": wallet_signature}, key=idempotency_key or new_key())


def rfq_atomic_claim_ticket(bot_wallet: str, order_id: str, tranche_id: str, fill_usd: Number, *, payment_rail: Optional[str] = None, quote_id: Optional[str] = None, wallet_signature: Optional[str] = None, idempotency_key: Optional[str] = None) -> Call[AtomicClaimPackage]:
    return Call("POST", "/api/v1/rfq/atomic-claim-ticket", kinds={200: AtomicClaimPackage}, body={"bot_wallet": bot_wallet, "order_id": order_id, "tranche_id": tranche_id, "fill_usd": fill_usd, "payment_rail": payment_rail, "quote_id": quote_id, "wallet_signature": wallet_signature}, key=idempotency_key or new_key())


def native_verify_payment(order_id: str, tranche_id: str, l1_signature: str, *, claim_id: Optional[str] = None, ticket_label: Optional[str] = None, fill_usd: Optional[Number] = None, payment_rail: Optional[str] = None, idempotency_key: Optional[str] = None) -> Call[Union[Verification, Pending]]:
    return Call("POST", "/rfq-native/settlement/verify-payment", kinds={200: Verification, 202: Pending}, body={"order_id": order_id, "tranche_id": tranche_id, "l1_signature": l1_signature, "claim_id": claim_id, "ticket_label": ticket_label, "fill_usd": fill_usd, "payment_rail": payment_rail}, key=idempotency_key or new_key())


def rfq_native_verify_payment(order_id: str, tranche_id: str, l1_signature: str, *, claim_id: Optional[str] = None, ticket_label: Optional[str] = None, fill_usd: Optional[Number] = None, payment_rail: Optional[str] = None, idempotency_key: Optional[str] = None) -> Call[Union[Verification, Pending]]:
    return Call("POST", "/api/v1/rfq/native/settlement/verify-payment", kinds={200: Verification, 202: Pending}, body={"order_id": order_id, "tranche_id": tranche_id, "l1_signature": l1_signature, "claim_id": claim_id, "ticket_label": ticket_label, "fill_usd": fill_usd, "payment_rail": payment_rail}, key=idempotency_key or new_key())


def rfq_verify_payment(order_id: str, tranche_id: str, l1_signature: str, *, claim_id: Optional[str] = None, ticket_label: Optional[str] = None, fill_usd: Optional[Number] = None, payment_rail: Optional[str] = None, idempotency_key: Optional[str] = None) -> Call[Union[Verification, Pending]]:
    return Call("POST", "/api/v1/rfq/settlement/verify-payment", kinds={200: Verification, 202: Pending}, body={"order_id": order_id, "tranche_id": tranche_id, "l1_signature": l1_signature, "claim_id": claim_id, "ticket_label": ticket_label, "fill_usd": fill_usd, "payment_rail": payment_rail}, key=idempotency_key or new_key(), api=True)


def market_websocket_health() -> Call[WebSocketHealth]:
    return Call("GET", "/ws/rfq/health", kinds={200: WebSocketHealth}, api=True)


def files_specification() -> Call[dict[str, Any]]:
    return Call("GET", "/public-sdk/openapi/svc_public_api_v1.json", kinds={200: dict[str, Any]})


def market_openapi() -> Call[dict[str, Any]]:
    return Call("GET", "/api/v1/market/openapi.json", kinds={200: dict[str, Any]})


def files_market() -> Call[MarketStatus]:
    return Call("GET", "/market.json", kinds={200: MarketStatus})


def legacy_status() -> Call[MarketStatus]:
    return Call("GET", "/status", kinds={200: MarketStatus}, api=True)


def files_adapters() -> Call[MarketAdapters]:
    return Call("GET", "/adapters.json", kinds={200: MarketAdapters})


def files_price() -> Call[MarketPrice]:
    return Call("GET", "/price.json", kinds={200: MarketPrice})


def files_pair() -> Call[MarketPairs]:
    return Call("GET", "/pair.json", kinds={200: MarketPairs})


def legacy_pairs() -> Call[MarketPairs]:
    return Call("GET", "/pairs", kinds={200: MarketPairs}, api=True)


def files_fees() -> Call[MarketFees]:
    return Call("GET", "/fees.json", kinds={200: MarketFees})


def files_metadata() -> Call[MarketMetadata]:
    return Call("GET", "/metadata.json", kinds={200: MarketMetadata})


def files_pair_metadata() -> Call[MarketPairMetadata]:
    return Call("GET", "/pair-metadata.json", kinds={200: MarketPairMetadata})


def files_tokenlist() -> Call[TokenList]:
    return Call("GET", "/tokenlist.json", kinds={200: TokenList})


def files_wallet_index() -> Call[MarketWalletIndex]:
    return Call("GET", "/wallet-index.json", kinds={200: MarketWalletIndex})


def files_wallets() -> Call[MarketWalletIndex]:
    return Call("GET", "/wallets.json", kinds={200: MarketWalletIndex})


def files_pool_registry() -> Call[MarketPoolRegistry]:
    return Call("GET", "/pool-registry.json", kinds={200: MarketPoolRegistry})


def files_proof() -> Call[MarketProof]:
    return Call("GET", "/proof.json", kinds={200: MarketProof})


def legacy_proof() -> Call[MarketProof]:
    return Call("GET", "/proof", kinds={200: MarketProof}, api=True)


def files_integration_manifest() -> Call[MarketIntegrationManifest]:
    return Call("GET", "/integration-manifest.json", kinds={200: MarketIntegrationManifest})


def files_submission_packs() -> Call[MarketSubmissionPacks]:
    return Call("GET", "/submission-packs.json", kinds={200: MarketSubmissionPacks})


def files_provider_packs() -> Call[MarketProviderPacks]:
    return Call("GET", "/provider-packs.json", kinds={200: MarketProviderPacks})


def files_examples() -> Call[MarketExamples]:
    return Call("GET", "/examples.json", kinds={200: MarketExamples})


def files_market_summary() -> Call[MarketLiteSummary]:
    return Call("GET", "/market-summary.json", kinds={200: MarketLiteSummary})


def files_pair_metadata_lite() -> Call[MarketLitePairMetadata]:
    return Call("GET", "/pair-metadata-lite.json", kinds={200: MarketLitePairMetadata})


def files_tokenlist_lite() -> Call[MarketLiteTokenlist]:
    return Call("GET", "/tokenlist-lite.json", kinds={200: MarketLiteTokenlist})


def files_pool_registry_lite() -> Call[MarketLitePoolRegistry]:
    return Call("GET", "/pool-registry-lite.json", kinds={200: MarketLitePoolRegistry})


def files_latest_price() -> Call[MarketLiteLatestPrice]:
    return Call("GET", "/latest-price.json", kinds={200: MarketLiteLatestPrice})


def files_latest_candle() -> Call[MarketLiteLatestCandle]:
    return Call("GET", "/latest-candle.json", kinds={200: MarketLiteLatestCandle})


def files_latest_trade() -> Call[MarketLiteLatestTrade]:
    return Call("GET", "/latest-trade.json", kinds={200: MarketLiteLatestTrade})


def files_latest_fees() -> Call[MarketLiteLatestFees]:
    return Call("GET", "/latest-fees.json", kinds={200: MarketLiteLatestFees})


def files_schemas() -> Call[MarketSchemas]:
    return Call("GET", "/schemas.json", kinds={200: MarketSchemas})


def files_well_known_svc_discovery() -> Call[DiscoveryFile]:
    return Call("GET", "/.well-known/svc-discovery.json", kinds={200: DiscoveryFile})


def files_well_known_svc_program() -> Call[DiscoveryFile]:
    return Call("GET", "/.well-known/svc-program.json", kinds={200: DiscoveryFile})


def files_well_known_svc_ecosystem() -> Call[DiscoveryFile]:
    return Call("GET", "/.well-known/svc-ecosystem.json", kinds={200: DiscoveryFile})


def files_well_known_svc_wallets() -> Call[DiscoveryFile]:
    return Call("GET", "/.well-known/svc-wallets.json", kinds={200: DiscoveryFile})


def files_well_known_svc_integrators() -> Call[DiscoveryFile]:
    return Call("GET", "/.well-known/svc-integrators.json", kinds={200: DiscoveryFile})


def files_well_known_svc() -> Call[DiscoveryFile]:
    return Call("GET", "/.well-known/svc.json", kinds={200: DiscoveryFile})


def files_trades(*, symbol: Optional[str] = None, limit: Optional[int] = None, before: Optional[int] = None) -> Call[Trades]:
    return Call("GET", "/trades.json", kinds={200: Trades}, query={"symbol": symbol, "limit": limit, "before": before})


def files_candles(*, symbol: Optional[str] = None, timeframe: Optional[str] = None, interval: Optional[str] = None, limit: Optional[int] = None, before: Optional[int] = None) -> Call[Candles]:
    return Call("GET", "/candles.json", kinds={200: Candles}, query={"symbol": symbol, "timeframe": timeframe, "interval": interval, "limit": limit, "before": before})


def files_openapi() -> Call[dict[str, Any]]:
    return Call("GET", "/openapi.json", kinds={200: dict[str, Any]})


def dvp_handshake_challenge(pubkey: str) -> Call[Challenge]:
    return Call("POST", "/api/v1/dvp/handshake", kinds={200: Challenge, 201: Challenge}, body={"pubkey": pubkey}, once=False)


def dvp_handshake_token(pubkey: str, nonce: str, signature: str) -> Call[Token]:
    return Call("POST", "/api/v1/dvp/handshake", kinds={200: Token, 201: Token}, body={"pubkey": pubkey, "nonce": nonce, "signature": signature}, once=True)
