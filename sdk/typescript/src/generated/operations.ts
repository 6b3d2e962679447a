// Made by tools/generate.mjs of the OpenAPI document. Not to be edited.

import type { CallOptions, Input, KeyedOptions, Operation } from '../call.js';
import type * as schemas from './schemas.js';

/** Operations has a method for each endpoint that answers JSON, by its operationId. */
export abstract class Operations {
  /** call sends one request and returns the answer. */
  protected abstract call<T>(operation: Operation, input: Input, options: CallOptions | undefined): Promise<T>;

  /**
   * What the service is and where its endpoints are.
   *
   * The operator and its contacts, the versions, and each endpoint with its method and public URL, by group. `qualification` is the operator's own declaration of what guarantees the offers.
   *
   * `GET /`
   */
  getService(options?: CallOptions): Promise<schemas.ServiceDescription> {
    return this.call({ method: 'GET', path: '/' }, {}, options);
  }

  /**
   * Instruments.
   *
   * Each instrument with tick size, lot size, precision, book source (`matched` here or `mirrored` from the chain) and trading status.
   *
   * `GET /api/v1/market/symbols`
   */
  getSymbols(options?: CallOptions): Promise<schemas.Symbols> {
    return this.call({ method: 'GET', path: '/api/v1/market/symbols' }, {}, options);
  }

  /**
   * Ticker: last trade, best prices and 24-hour statistics.
   *
   * Statistics count real trades only. `epoch` and `seq` are those of the WebSocket's `ticker`, so that a client can start here and continue there.
   *
   * `GET /api/v1/market/ticker`
   */
  getTicker(query: { symbol: schemas.PairSymbol }, options?: CallOptions): Promise<schemas.Ticker> {
    return this.call({ method: 'GET', path: '/api/v1/market/ticker' }, { query }, options);
  }

  /**
   * Order book of an instrument.
   *
   * Price levels, best first. `epoch` and `seq` are those of the WebSocket's `l2`, so that a client can start here and continue there without a gap.
   *
   * `GET /api/v1/market/depth`
   */
  getDepth(
    query: { symbol: schemas.PairSymbol; limit?: number },
    options?: CallOptions,
  ): Promise<schemas.Depth> {
    return this.call({ method: 'GET', path: '/api/v1/market/depth' }, { query }, options);
  }

  /**
   * Last trades of an instrument.
   *
   * Newest first. `side` is the aggressor's. `before` pages to older trades.
   *
   * `GET /api/v1/market/trades`
   */
  getTrades(
    query: { symbol: schemas.PairSymbol; limit?: number; before?: number },
    options?: CallOptions,
  ): Promise<schemas.Trades> {
    return this.call({ method: 'GET', path: '/api/v1/market/trades' }, { query }, options);
  }

  /**
   * Candles of an instrument.
   *
   * Each is `[open_ms, open, high, low, close, volume, quote_volume, trades]`. An interval without trades is absent. `interval` and `timeframe` are two names of one parameter.
   *
   * `GET /api/v1/market/klines`
   */
  getKlines(
    query: { symbol: schemas.PairSymbol; interval?: schemas.Interval; timeframe?: schemas.Interval; limit?: number; before?: number },
    options?: CallOptions,
  ): Promise<schemas.Klines> {
    return this.call({ method: 'GET', path: '/api/v1/market/klines' }, { query }, options);
  }

  /**
   * Candles by timeframe.
   *
   * The candles of `klines` under another name. An interval without trades is absent.
   *
   * `GET /api/v1/market/candles`
   */
  getCandles(
    query: { symbol?: schemas.PairSymbol; timeframe?: schemas.Interval; interval?: schemas.Interval; limit?: number; before?: number } = {},
    options?: CallOptions,
  ): Promise<schemas.Candles> {
    return this.call({ method: 'GET', path: '/api/v1/market/candles' }, { query }, options);
  }

  /**
   * Price of each pair with source and age.
   *
   * For monitoring. The fields are our choice. `price` is the last trade, else the middle of best bid and best ask, else null with the reason in `degradation_state`. The answer changes every second and with each change of a book.
   *
   * `GET /api/v1/market/oracle/heartbeat`
   */
  getOracleHeartbeat(options?: CallOptions): Promise<schemas.OracleHeartbeat> {
    return this.call({ method: 'GET', path: '/api/v1/market/oracle/heartbeat' }, {}, options);
  }

  /**
   * Market status record.
   *
   * docs/specification.md 2.5 lists the members. A price without a source is null; a window that is not proven is zero with its status. Refreshed in a 10 s cycle.
   *
   * `GET /api/v1/market/status`
   */
  getMarketStatus(options?: CallOptions): Promise<schemas.MarketStatus> {
    return this.call({ method: 'GET', path: '/api/v1/market/status' }, {}, options);
  }

  /**
   * Token catalog.
   *
   * Each token with its mint, its decimals and where it is traded.
   *
   * `GET /api/v1/market/tokens`
   */
  getMarketTokens(options?: CallOptions): Promise<schemas.MarketTokens> {
    return this.call({ method: 'GET', path: '/api/v1/market/tokens' }, {}, options);
  }

  /**
   * Families of integration adapters.
   *
   * For each family of integrators: its members, the formats that they expect, and their URLs.
   *
   * `GET /api/v1/market/adapters`
   */
  getMarketAdapters(options?: CallOptions): Promise<schemas.MarketAdapters> {
    return this.call({ method: 'GET', path: '/api/v1/market/adapters' }, {}, options);
  }

  /**
   * Price of each pair in dollars.
   *
   * Each price with its source and age; null without a source.
   *
   * `GET /api/v1/market/price`
   */
  getMarketPrice(options?: CallOptions): Promise<schemas.MarketPrice> {
    return this.call({ method: 'GET', path: '/api/v1/market/price' }, {}, options);
  }

  /**
   * Supply times price of each token.
   *
   * `status` says how exact each value is.
   *
   * `GET /api/v1/market/marketcap`
   */
  getMarketMarketcap(options?: CallOptions): Promise<schemas.MarketMarketcap> {
    return this.call({ method: 'GET', path: '/api/v1/market/marketcap' }, {}, options);
  }

  /**
   * Pairs with mints, steps and volumes.
   *
   * What a router or an aggregator needs to know about each pair.
   *
   * `GET /api/v1/market/pairs`
   */
  getMarketPairs(options?: CallOptions): Promise<schemas.MarketPairs> {
    return this.call({ method: 'GET', path: '/api/v1/market/pairs' }, {}, options);
  }

  /**
   * Pools on chain.
   *
   * Each mirrored pool with its reserves and slot. `pools/{pool_address}` returns a single pool.
   *
   * `GET /api/v1/market/pools`
   */
  getMarketPools(options?: CallOptions): Promise<schemas.MarketPools> {
    return this.call({ method: 'GET', path: '/api/v1/market/pools' }, {}, options);
  }

  /**
   * Fee model and collected fees.
   *
   * The rate as a number and in basis points, and the fees of claims and pools.
   *
   * `GET /api/v1/market/fees`
   */
  getMarketFees(options?: CallOptions): Promise<schemas.MarketFees> {
    return this.call({ method: 'GET', path: '/api/v1/market/fees' }, {}, options);
  }

  /**
   * Sums of the desk's claims.
   *
   * The desk's capacity, and what is open, in progress and settled. No claim is named.
   *
   * `GET /api/v1/market/claims`
   */
  getMarketClaims(options?: CallOptions): Promise<schemas.MarketClaims> {
    return this.call({ method: 'GET', path: '/api/v1/market/claims' }, {}, options);
  }

  /**
   * Obligations of the desk.
   *
   * Amounts reserved for open claims, and payments with a refund due.
   *
   * `GET /api/v1/market/debt`
   */
  getMarketDebt(options?: CallOptions): Promise<schemas.MarketDebt> {
    return this.call({ method: 'GET', path: '/api/v1/market/debt' }, {}, options);
  }

  /**
   * Metadata of each token, in Metaplex's fields.
   *
   * Name, symbol, image and attributes of each token, as wallets read them.
   *
   * `GET /api/v1/market/metadata`
   */
  getMarketMetadata(options?: CallOptions): Promise<schemas.MarketMetadata> {
    return this.call({ method: 'GET', path: '/api/v1/market/metadata' }, {}, options);
  }

  /**
   * Pairs with the metadata of both tokens.
   *
   * Each pair with the name, symbol, mint and decimals of its base and its quote.
   *
   * `GET /api/v1/market/pair-metadata`
   */
  getMarketPairMetadata(options?: CallOptions): Promise<schemas.MarketPairMetadata> {
    return this.call({ method: 'GET', path: '/api/v1/market/pair-metadata' }, {}, options);
  }

  /**
   * Token list.
   *
   * Follows Uniswap's token list schema, with Solana's chain id. Tokens without a mint are omitted; if no token has one, the list is empty, which the schema does not allow. A removed token changes the major version, an added one the minor version, any other change the patch; version and `timestamp` survive restarts. Our choice.
   *
   * `GET /api/v1/market/tokenlist`
   */
  getMarketTokenlist(options?: CallOptions): Promise<schemas.TokenList> {
    return this.call({ method: 'GET', path: '/api/v1/market/tokenlist' }, {}, options);
  }

  /**
   * Accounts that the service watches on chain.
   *
   * Each account with its purpose, and its balance at a slot. `/wallet` is the same as an HTML page.
   *
   * `GET /api/v1/market/wallet-index`
   */
  getMarketWalletIndex(options?: CallOptions): Promise<schemas.MarketWalletIndex> {
    return this.call({ method: 'GET', path: '/api/v1/market/wallet-index' }, {}, options);
  }

  /**
   * Where routers find the pools.
   *
   * The program, the mints and the addresses of each pool, without its balances.
   *
   * `GET /api/v1/market/pool-registry`
   */
  getMarketPoolRegistry(options?: CallOptions): Promise<schemas.MarketPoolRegistry> {
    return this.call({ method: 'GET', path: '/api/v1/market/pool-registry' }, {}, options);
  }

  /**
   * Program, source and reproducible hash.
   *
   * `proof_hash` is the SHA-256 of the bytes of `subject`; the status record has the same value. A pool's `proof_hash` covers the pool in `subject.pools` without its `proof_hash`. `executable_hash` is the hash of the running program.
   *
   * `GET /api/v1/market/proof`
   */
  getMarketProof(options?: CallOptions): Promise<schemas.MarketProof> {
    return this.call({ method: 'GET', path: '/api/v1/market/proof' }, {}, options);
  }

  /**
   * Index for integrators.
   *
   * Documents, files, surfaces, SDKs and limits with their public URLs.
   *
   * `GET /api/v1/market/integration-manifest`
   */
  getMarketIntegrationManifest(options?: CallOptions): Promise<schemas.MarketIntegrationManifest> {
    return this.call({ method: 'GET', path: '/api/v1/market/integration-manifest' }, {}, options);
  }

  /**
   * Facts for listing forms, by family.
   *
   * For each family: its members, and the facts that their forms ask for.
   *
   * `GET /api/v1/market/submission-packs`
   */
  getMarketSubmissionPacks(options?: CallOptions): Promise<schemas.MarketSubmissionPacks> {
    return this.call({ method: 'GET', path: '/api/v1/market/submission-packs' }, {}, options);
  }

  /**
   * URLs for data providers, by family.
   *
   * For each family: its members, and the URLs that they read.
   *
   * `GET /api/v1/market/provider-packs`
   */
  getMarketProviderPacks(options?: CallOptions): Promise<schemas.MarketProviderPacks> {
    return this.call({ method: 'GET', path: '/api/v1/market/provider-packs' }, {}, options);
  }

  /**
   * Ready-to-run command lines.
   *
   * `curl` lines with this service's own URLs.
   *
   * `GET /api/v1/market/examples`
   */
  getMarketExamples(options?: CallOptions): Promise<schemas.MarketExamples> {
    return this.call({ method: 'GET', path: '/api/v1/market/examples' }, {}, options);
  }

  /**
   * Price and volume of each pair.
   *
   * A small form of `pairs` for frequent polling.
   *
   * `GET /api/v1/market/lite/market-summary`
   */
  getMarketLiteMarketSummary(options?: CallOptions): Promise<schemas.MarketLiteSummary> {
    return this.call({ method: 'GET', path: '/api/v1/market/lite/market-summary' }, {}, options);
  }

  /**
   * Mints of each pair.
   *
   * A small form of `pair-metadata`.
   *
   * `GET /api/v1/market/lite/pair-metadata`
   */
  getMarketLitePairMetadata(options?: CallOptions): Promise<schemas.MarketLitePairMetadata> {
    return this.call({ method: 'GET', path: '/api/v1/market/lite/pair-metadata' }, {}, options);
  }

  /**
   * Mint and decimals of each token.
   *
   * A small form of the token list.
   *
   * `GET /api/v1/market/lite/tokenlist`
   */
  getMarketLiteTokenlist(options?: CallOptions): Promise<schemas.MarketLiteTokenlist> {
    return this.call({ method: 'GET', path: '/api/v1/market/lite/tokenlist' }, {}, options);
  }

  /**
   * Address of each pool.
   *
   * A small form of `pool-registry`.
   *
   * `GET /api/v1/market/lite/pool-registry`
   */
  getMarketLitePoolRegistry(options?: CallOptions): Promise<schemas.MarketLitePoolRegistry> {
    return this.call({ method: 'GET', path: '/api/v1/market/lite/pool-registry' }, {}, options);
  }

  /**
   * Price of the canonical pair.
   *
   * A small form of `price`; null without a source.
   *
   * `GET /api/v1/market/lite/latest-price`
   */
  getMarketLiteLatestPrice(options?: CallOptions): Promise<schemas.MarketLiteLatestPrice> {
    return this.call({ method: 'GET', path: '/api/v1/market/lite/latest-price' }, {}, options);
  }

  /**
   * Newest hour with a trade of the canonical pair.
   *
   * Null if there was no trade yet.
   *
   * `GET /api/v1/market/lite/latest-candle`
   */
  getMarketLiteLatestCandle(options?: CallOptions): Promise<schemas.MarketLiteLatestCandle> {
    return this.call({ method: 'GET', path: '/api/v1/market/lite/latest-candle' }, {}, options);
  }

  /**
   * Newest trade of the canonical pair.
   *
   * Null if there was no trade yet.
   *
   * `GET /api/v1/market/lite/latest-trade`
   */
  getMarketLiteLatestTrade(options?: CallOptions): Promise<schemas.MarketLiteLatestTrade> {
    return this.call({ method: 'GET', path: '/api/v1/market/lite/latest-trade' }, {}, options);
  }

  /**
   * The fee and the fees collected.
   *
   * A small form of `fees`.
   *
   * `GET /api/v1/market/lite/latest-fees`
   */
  getMarketLiteLatestFees(options?: CallOptions): Promise<schemas.MarketLiteLatestFees> {
    return this.call({ method: 'GET', path: '/api/v1/market/lite/latest-fees' }, {}, options);
  }

  /**
   * CoinGecko: tickers.
   *
   * In the public format of the aggregator. Adapters have their own rate limit.
   *
   * `GET /api/v1/market/adapters/coingecko/tickers`
   */
  getMarketAdaptersCoingeckoTickers(options?: CallOptions): Promise<schemas.CoinGeckoTickers> {
    return this.call({ method: 'GET', path: '/api/v1/market/adapters/coingecko/tickers' }, {}, options);
  }

  /**
   * CoinMarketCap: summary.
   *
   * In the public format of the aggregator. Adapters have their own rate limit.
   *
   * `GET /api/v1/market/adapters/coinmarketcap/summary`
   */
  getMarketAdaptersCoinmarketcapSummary(options?: CallOptions): Promise<schemas.CoinMarketCapSummary> {
    return this.call({ method: 'GET', path: '/api/v1/market/adapters/coinmarketcap/summary' }, {}, options);
  }

  /**
   * CoinMarketCap: assets.
   *
   * In the public format of the aggregator. Adapters have their own rate limit.
   *
   * `GET /api/v1/market/adapters/coinmarketcap/assets`
   */
  getMarketAdaptersCoinmarketcapAssets(options?: CallOptions): Promise<schemas.CoinMarketCapAssets> {
    return this.call({ method: 'GET', path: '/api/v1/market/adapters/coinmarketcap/assets' }, {}, options);
  }

  /**
   * CoinMarketCap: ticker.
   *
   * In the public format of the aggregator. Adapters have their own rate limit.
   *
   * `GET /api/v1/market/adapters/coinmarketcap/ticker`
   */
  getMarketAdaptersCoinmarketcapTicker(options?: CallOptions): Promise<schemas.CoinMarketCapTicker> {
    return this.call({ method: 'GET', path: '/api/v1/market/adapters/coinmarketcap/ticker' }, {}, options);
  }

  /**
   * One pool.
   *
   * The pool's entry in `pools`. An unknown address is 404 `UNKNOWN_POOL`.
   *
   * `GET /api/v1/market/pools/{pool_address}`
   */
  getMarketPool(path: { pool_address: string }, options?: CallOptions): Promise<schemas.MarketPool> {
    return this.call({ method: 'GET', path: '/api/v1/market/pools/{pool_address}' }, { path }, options);
  }

  /**
   * JSON Schemas of the documents.
   *
   * One schema per market document, by its name. Every document conforms to its schema.
   *
   * `GET /api/v1/market/schemas`
   */
  getMarketSchemas(options?: CallOptions): Promise<schemas.MarketSchemas> {
    return this.call({ method: 'GET', path: '/api/v1/market/schemas' }, {}, options);
  }

  /**
   * CoinGecko: order book.
   *
   * In the public format of the aggregator. Adapters have their own rate limit.
   *
   * `GET /api/v1/market/adapters/coingecko/orderbook`
   */
  getCoinGeckoOrderBook(
    query: { ticker_id: string; depth?: number },
    options?: CallOptions,
  ): Promise<schemas.CoinGeckoOrderBook> {
    return this.call({ method: 'GET', path: '/api/v1/market/adapters/coingecko/orderbook' }, { query }, options);
  }

  /**
   * CoinGecko: historical trades.
   *
   * In the public format of the aggregator. Adapters have their own rate limit. The newest trades of the time span, newest first.
   *
   * `GET /api/v1/market/adapters/coingecko/historical_trades`
   */
  getCoinGeckoTrades(
    query: { ticker_id: string; type?: 'buy' | 'sell'; limit?: number; start_time?: number; end_time?: number },
    options?: CallOptions,
  ): Promise<schemas.CoinGeckoTrades> {
    return this.call({ method: 'GET', path: '/api/v1/market/adapters/coingecko/historical_trades' }, { query }, options);
  }

  /**
   * CoinMarketCap: order book.
   *
   * In the public format of the aggregator. Adapters have their own rate limit. At most 100 levels per side.
   *
   * `GET /api/v1/market/adapters/coinmarketcap/orderbook/{market_pair}`
   */
  getCoinMarketCapOrderBook(
    path: { market_pair: string },
    query: { depth?: number; level?: number } = {},
    options?: CallOptions,
  ): Promise<schemas.CoinMarketCapOrderBook> {
    return this.call({ method: 'GET', path: '/api/v1/market/adapters/coinmarketcap/orderbook/{market_pair}' }, { path, query }, options);
  }

  /**
   * CoinMarketCap: trades.
   *
   * CoinMarketCap: trades. Newest first, by default those of the last 24 hours.
   *
   * `GET /api/v1/market/adapters/coinmarketcap/trades/{market_pair}`
   */
  getCoinMarketCapTrades(
    path: { market_pair: string },
    query: { type?: 'buy' | 'sell'; limit?: number; since?: number; before?: number } = {},
    options?: CallOptions,
  ): Promise<schemas.CoinMarketCapTrades> {
    return this.call({ method: 'GET', path: '/api/v1/market/adapters/coinmarketcap/trades/{market_pair}' }, { path, query }, options);
  }

  /**
   * DEX Screener: latest block.
   *
   * In the public format of the aggregator. Adapters have their own rate limit. A block is a command of the engine; its number never decreases (our choice). This is the newest block with a trade, or 0.
   *
   * `GET /api/v1/market/adapters/dexscreener/latest-block`
   */
  getScreenerLatestBlock(options?: CallOptions): Promise<schemas.ScreenerLatestBlock> {
    return this.call({ method: 'GET', path: '/api/v1/market/adapters/dexscreener/latest-block' }, {}, options);
  }

  /**
   * DEX Screener: asset.
   *
   * In the public format of the aggregator. Adapters have their own rate limit.
   *
   * `GET /api/v1/market/adapters/dexscreener/asset`
   */
  getScreenerAsset(query: { id: string }, options?: CallOptions): Promise<schemas.ScreenerAsset> {
    return this.call({ method: 'GET', path: '/api/v1/market/adapters/dexscreener/asset' }, { query }, options);
  }

  /**
   * DEX Screener: pair.
   *
   * In the public format of the aggregator. Adapters have their own rate limit.
   *
   * `GET /api/v1/market/adapters/dexscreener/pair`
   */
  getScreenerPair(query: { id: string }, options?: CallOptions): Promise<schemas.ScreenerPair> {
    return this.call({ method: 'GET', path: '/api/v1/market/adapters/dexscreener/pair' }, { query }, options);
  }

  /**
   * DEX Screener: events.
   *
   * In the public format of the aggregator. Adapters have their own rate limit. A swap of a mirrored pair has its signature, its fee payer, its atoms and its slot; traders of the own book are not named. At most 5,000 events of several blocks: ask for fewer where there are more. One block is answered whole, up to 50,000 events.
   *
   * `GET /api/v1/market/adapters/dexscreener/events`
   */
  getScreenerEvents(
    query: { fromBlock: number; toBlock: number },
    options?: CallOptions,
  ): Promise<schemas.ScreenerEvents> {
    return this.call({ method: 'GET', path: '/api/v1/market/adapters/dexscreener/events' }, { query }, options);
  }

  /**
   * UDF: configuration.
   *
   * TradingView's Universal Data Feed: a chart's UDF adapter is configured with `/udf`. Adapters have their own rate limit. Our choice.
   *
   * `GET /udf/config`
   */
  getUdfConfig(options?: CallOptions): Promise<schemas.UdfConfig> {
    return this.call({ method: 'GET', path: '/udf/config' }, {}, options);
  }

  /**
   * UDF: a symbol.
   *
   * The symbol, or `s` error with `unknown_symbol`. Our choice.
   *
   * `GET /udf/symbols`
   */
  getUdfSymbol(query: { symbol: string }, options?: CallOptions): Promise<Record<string, unknown>> {
    return this.call({ method: 'GET', path: '/udf/symbols' }, { query }, options);
  }

  /**
   * UDF: symbols that contain a text.
   *
   * At most 100. Our choice.
   *
   * `GET /udf/search`
   */
  searchUdfSymbols(
    query: { query?: string; type?: string; exchange?: string; limit?: number } = {},
    options?: CallOptions,
  ): Promise<Record<string, unknown>> {
    return this.call({ method: 'GET', path: '/udf/search' }, { query }, options);
  }

  /**
   * UDF: bars.
   *
   * Bars that open from `from` to before `to`, oldest first; with `countback` the newest so many before `to`, whatever `from` is. An interval without trades is absent. At most 3,000 bars: more are refused with `s` error, never cut off. Our choice.
   *
   * `GET /udf/history`
   */
  getUdfHistory(
    query: { symbol: string; resolution: '1' | '5' | '15' | '60' | '240' | '1D' | 'D'; from?: number; to?: number; countback?: number },
    options?: CallOptions,
  ): Promise<Record<string, unknown>> {
    return this.call({ method: 'GET', path: '/udf/history' }, { query }, options);
  }

  /**
   * UDF: time of the service.
   *
   * Unix time in seconds. Our choice.
   *
   * `GET /udf/time`
   */
  getUdfTime(options?: CallOptions): Promise<number> {
    return this.call({ method: 'GET', path: '/udf/time', number: true }, {}, options);
  }

  /**
   * Global RFQ status and recommended surfaces.
   *
   * Whether claims are accepted, the volumes of the tickets, the locks, the state of the chain, and which surface to use for what.
   *
   * `GET /api/v1/rfq/status`
   */
  getRFQStatus(options?: CallOptions): Promise<schemas.RFQStatus> {
    return this.call({ method: 'GET', path: '/api/v1/rfq/status' }, {}, options);
  }

  /**
   * The currently sellable ticket.
   *
   * The open ticket with capacity for the smallest fill that is first by priority, then by age; `ticket` is null if there is none.
   *
   * `GET /api/v1/rfq/current-sellable-ticket`
   */
  getCurrentSellableTicket(options?: CallOptions): Promise<schemas.CurrentSellableTicket> {
    return this.call({ method: 'GET', path: '/api/v1/rfq/current-sellable-ticket' }, {}, options);
  }

  /**
   * The full RFQ book.
   *
   * Public mirror on the base address; registry backend, for confirmation, on the api address.
   *
   * `GET /api/v1/rfq/market-tickets`
   */
  getMarketTickets(options?: CallOptions): Promise<schemas.MarketTickets> {
    return this.call({ method: 'GET', path: '/api/v1/rfq/market-tickets' }, {}, options);
  }

  /**
   * Compact book for programs.
   *
   * One row for each tranche that can be claimed; its columns are order_id, tranche_id, pair, available_usd, best_price_usd, expires_unix_ms.
   *
   * `GET /api/v1/rfq/market-tickets.compact`
   */
  getCompactBook(options?: CallOptions): Promise<schemas.CompactBook> {
    return this.call({ method: 'GET', path: '/api/v1/rfq/market-tickets.compact' }, {}, options);
  }

  /**
   * RFQ fill levels and their discounts.
   *
   * The fill sizes in dollars, each with its discount in basis points.
   *
   * `GET /api/v1/rfq/levels`
   */
  getLevels(options?: CallOptions): Promise<schemas.Levels> {
    return this.call({ method: 'GET', path: '/api/v1/rfq/levels' }, {}, options);
  }

  /**
   * The desk's settled claims of a pair.
   *
   * Newest first, with totals of their own: no figure of the pair's book has them. Members say nothing of the client. `before` pages to older ones. Our choice.
   *
   * `GET /api/v1/rfq/trades`
   */
  getRfqTrades(
    query: { symbol: schemas.PairSymbol; limit?: number; before?: number },
    options?: CallOptions,
  ): Promise<schemas.RfqTrades> {
    return this.call({ method: 'GET', path: '/api/v1/rfq/trades' }, { query }, options);
  }

  /**
   * Allowed RFQ pairs.
   *
   * Each pair with its mints, rails and, if there is one, its reference price.
   *
   * `GET /api/v1/rfq/pairs`
   */
  getPairs(options?: CallOptions): Promise<schemas.Pairs> {
    return this.call({ method: 'GET', path: '/api/v1/rfq/pairs' }, {}, options);
  }

  /**
   * Tokens and rails.
   *
   * The tokens of all pairs with their mints and decimals, and the rails that pay for them.
   *
   * `GET /api/v1/rfq/tokens`
   */
  getTokens(options?: CallOptions): Promise<schemas.Tokens> {
    return this.call({ method: 'GET', path: '/api/v1/rfq/tokens' }, {}, options);
  }

  /**
   * Payment rails by priority.
   *
   * The active rails, and the order in which one is chosen for a claim that names none.
   *
   * `GET /api/v1/rfq/rails`
   */
  getRails(options?: CallOptions): Promise<schemas.RailList> {
    return this.call({ method: 'GET', path: '/api/v1/rfq/rails' }, {}, options);
  }

  /**
   * Robot manifest.
   *
   * The truth rule, the surfaces in their order and the steps of a claim, for programs.
   *
   * `GET /api/v1/rfq/robot-manifest`
   */
  getRobotManifest(options?: CallOptions): Promise<schemas.RobotManifest> {
    return this.call({ method: 'GET', path: '/api/v1/rfq/robot-manifest' }, {}, options);
  }

  /**
   * The full RFQ book from the native backend.
   *
   * The same bytes as `/api/v1/rfq/market-tickets`.
   *
   * `GET /rfq-native/market-tickets.json`
   */
  getNativeMarketTickets(options?: CallOptions): Promise<schemas.MarketTickets> {
    return this.call({ method: 'GET', path: '/rfq-native/market-tickets.json' }, {}, options);
  }

  /**
   * The currently sellable ticket from the native backend.
   *
   * The same bytes as `/api/v1/rfq/current-sellable-ticket`.
   *
   * `GET /rfq-native/current-sellable-ticket.json`
   */
  getNativeCurrentSellableTicket(options?: CallOptions): Promise<schemas.CurrentSellableTicket> {
    return this.call({ method: 'GET', path: '/rfq-native/current-sellable-ticket.json' }, {}, options);
  }

  /**
   * RFQ discovery document.
   *
   * The RFQ surfaces with their URLs and purposes.
   *
   * `GET /.well-known/svc-rfq.json`
   */
  getRFQDiscovery(options?: CallOptions): Promise<schemas.Discovery> {
    return this.call({ method: 'GET', path: '/.well-known/svc-rfq.json' }, {}, options);
  }

  /**
   * Offers with a three-layer qualification.
   *
   * Each offer with what guarantees it, what the operator declares, and `montant_verifie_independamment`: false, because nobody has verified the amount independently.
   *
   * `GET /api/v1/exchange/board`
   */
  getBoard(options?: CallOptions): Promise<schemas.Board> {
    return this.call({ method: 'GET', path: '/api/v1/exchange/board' }, {}, options);
  }

  /**
   * Locks, price policy and institutional discount corridor.
   *
   * The locks with their reasons, the pricing policy and corridor, the inventory, and the state of the chain.
   *
   * `GET /api/v1/dvp/status`
   */
  getDeskStatus(options?: CallOptions): Promise<schemas.DeskStatus> {
    return this.call({ method: 'GET', path: '/api/v1/dvp/status' }, {}, options);
  }

  /**
   * The terms of the handshake.
   *
   * They depend only on the configuration.
   *
   * `GET /api/v1/dvp/handshake`
   */
  getHandshake(options?: CallOptions): Promise<schemas.HandshakeTerms> {
    return this.call({ method: 'GET', path: '/api/v1/dvp/handshake' }, {}, options);
  }

  /**
   * A nonce to sign, or a token for a signed one.
   *
   * `pubkey` alone: a nonce. With `nonce` and `signature`: a token. A nonce is valid for one attempt. A failed proof does not use up the hour in which a client address gets one token. An Idempotency-Key has no effect here: a token is returned once.
   *
   * `POST /api/v1/dvp/handshake`
   */
  postHandshake(
    body: schemas.HandshakeRequest,
    options?: CallOptions,
  ): Promise<schemas.Challenge | schemas.Token> {
    return this.call({ method: 'POST', path: '/api/v1/dvp/handshake' }, { body }, options);
  }

  /**
   * Reserve part of a tranche and build the unsigned transaction.
   *
   * Never signs. Idempotency keys belong to the taker. While the settlement chain cannot be reached, a valid request is answered 503 `CHAIN_UNAVAILABLE`, and nothing is reserved. The limit is checked first, then the token, then the body.
   *
   * `POST /api/v1/dvp/build`
   */
  postBuild(body: schemas.BuildRequest, options?: KeyedOptions): Promise<schemas.Build> {
    return this.call({ method: 'POST', path: '/api/v1/dvp/build', keyed: true, bearer: true }, { body }, options);
  }

  /**
   * Submit a build that its taker has signed, for the desk to co-sign and broadcast.
   *
   * Idempotent without a key: a build is signed at most once, and repeating the submission returns its present state. Of a key, only the hash of the body is stored; another body is 409. Nothing is signed or broadcast without the taker's ed25519 signature of exactly the stored bytes.
   *
   * `POST /api/v1/dvp/submit`
   */
  postSubmit(body: schemas.Submission, options?: KeyedOptions): Promise<schemas.Submitted> {
    return this.call({ method: 'POST', path: '/api/v1/dvp/submit', keyed: true, bearer: true }, { body }, options);
  }

  /**
   * State of a build.
   *
   * Our choice. Like a claim, a build is public and needs no token.
   *
   * `GET /api/v1/dvp/builds/{build_id}`
   */
  getBuild(path: { build_id: schemas.BuildID }, options?: CallOptions): Promise<schemas.BuildState> {
    return this.call({ method: 'GET', path: '/api/v1/dvp/builds/{build_id}' }, { path }, options);
  }

  /**
   * A claim with its history.
   *
   * Our choice. A claim is public, because its outcome is public on the chain.
   *
   * `GET /api/v1/rfq/claims/{claim_id}`
   */
  getClaim(path: { claim_id: schemas.ClaimID }, options?: CallOptions): Promise<schemas.Claim> {
    return this.call({ method: 'GET', path: '/api/v1/rfq/claims/{claim_id}' }, { path }, options);
  }

  /**
   * A fresh transaction of a modular claim.
   *
   * Our choice. A blockhash lives 60 to 90 s, a claim longer: until its deadline this returns its payment again, unsigned, with a new blockhash. If you have sent an earlier one, wait until its `last_valid_block_height` has passed before you sign this one: of two payments one is refunded. Counts as an RFQ write.
   *
   * `GET /api/v1/rfq/claims/{claim_id}/transaction`
   */
  getClaimTransaction(
    path: { claim_id: schemas.ClaimID },
    options?: CallOptions,
  ): Promise<schemas.ClaimTransaction> {
    return this.call({ method: 'GET', path: '/api/v1/rfq/claims/{claim_id}/transaction' }, { path }, options);
  }

  /**
   * Solana Pay: who asks for the payment.
   *
   * The GET of a transaction request of Solana Pay 1.1, which the wallet makes. Our choice.
   *
   * `GET /api/v1/rfq/claims/{claim_id}/pay`
   */
  getClaimPay(path: { claim_id: schemas.ClaimID }, options?: CallOptions): Promise<schemas.SolanaPayLabel> {
    return this.call({ method: 'GET', path: '/api/v1/rfq/claims/{claim_id}/pay' }, { path }, options);
  }

  /**
   * Solana Pay: the payment.
   *
   * The POST of a transaction request of Solana Pay 1.1: the claim's payment, unsigned, with a new blockhash, for the wallet that took the claim. The same warning as for the claim's `transaction`. Counts as an RFQ write. Our choice.
   *
   * `POST /api/v1/rfq/claims/{claim_id}/pay`
   */
  postClaimPay(
    path: { claim_id: schemas.ClaimID },
    body: schemas.SolanaPayAccount,
    options?: CallOptions,
  ): Promise<schemas.SolanaPayTransaction> {
    return this.call({ method: 'POST', path: '/api/v1/rfq/claims/{claim_id}/pay' }, { path, body }, options);
  }

  /**
   * A firm price for one claim.
   *
   * Firm until valid_until: a claim that names the quote_id in time gets this price. A quote reserves nothing.
   *
   * `POST /api/v1/rfq/quote`
   */
  postQuote(body: schemas.QuoteRequest, options?: KeyedOptions): Promise<schemas.Quote> {
    return this.call({ method: 'POST', path: '/api/v1/rfq/quote', keyed: true }, { body }, options);
  }

  /**
   * Reserve part of a tranche and get the payment to sign (native, preferred).
   *
   * While the settlement chain cannot be reached, a valid request is answered 503 `CHAIN_UNAVAILABLE`, and nothing is reserved. A claim is proved by `wallet_signature` or by a DvP token of `bot_wallet` in `Authorization`; one without proof is limited (our choice).
   *
   * `POST /rfq-native/modular-claim-take`
   */
  postNativeModularClaim(body: schemas.ClaimRequest, options?: KeyedOptions): Promise<schemas.ClaimPackage> {
    return this.call({ method: 'POST', path: '/rfq-native/modular-claim-take', keyed: true }, { body }, options);
  }

  /**
   * Public alias of the modular claim.
   *
   * While the settlement chain cannot be reached, a valid request is answered 503 `CHAIN_UNAVAILABLE`, and nothing is reserved. A claim is proved by `wallet_signature` or by a DvP token of `bot_wallet` in `Authorization`; one without proof is limited (our choice).
   *
   * `POST /api/v1/rfq/modular-claim-take`
   */
  postModularClaim(body: schemas.ClaimRequest, options?: KeyedOptions): Promise<schemas.ClaimPackage> {
    return this.call({ method: 'POST', path: '/api/v1/rfq/modular-claim-take', keyed: true }, { body }, options);
  }

  /**
   * Reserve part of a tranche and get both transfers in one transaction (native, preferred).
   *
   * While the settlement chain cannot be reached, a valid request is answered 503 `CHAIN_UNAVAILABLE`, and nothing is reserved. Sign the transaction and send it to the URL in `submit`. A claim is proved by `wallet_signature` or by a DvP token of `bot_wallet` in `Authorization`; one without proof is limited (our choice).
   *
   * `POST /rfq-native/atomic-claim-ticket`
   */
  postNativeAtomicClaim(
    body: schemas.ClaimRequest,
    options?: KeyedOptions,
  ): Promise<schemas.AtomicClaimPackage> {
    return this.call({ method: 'POST', path: '/rfq-native/atomic-claim-ticket', keyed: true }, { body }, options);
  }

  /**
   * Public alias of the atomic claim.
   *
   * While the settlement chain cannot be reached, a valid request is answered 503 `CHAIN_UNAVAILABLE`, and nothing is reserved. Sign the transaction and send it to the URL in `submit`. A claim is proved by `wallet_signature` or by a DvP token of `bot_wallet` in `Authorization`; one without proof is limited (our choice).
   *
   * `POST /api/v1/rfq/atomic-claim-ticket`
   */
  postAtomicClaim(body: schemas.ClaimRequest, options?: KeyedOptions): Promise<schemas.AtomicClaimPackage> {
    return this.call({ method: 'POST', path: '/api/v1/rfq/atomic-claim-ticket', keyed: true }, { body }, options);
  }

  /**
   * Verify the finalized payment of a claim (native, primary).
   *
   * Three members are required; the others must agree if they are sent. While the settlement chain cannot be reached, a valid request is answered 503 `CHAIN_UNAVAILABLE`, and the payment is not examined.
   *
   * `POST /rfq-native/settlement/verify-payment`
   */
  postNativeVerifyPayment(
    body: schemas.PaymentProof,
    options?: KeyedOptions,
  ): Promise<schemas.Verification | schemas.Pending> {
    return this.call({ method: 'POST', path: '/rfq-native/settlement/verify-payment', keyed: true }, { body }, options);
  }

  /**
   * Public alias of the primary submission.
   *
   * Three members are required; the others must agree if they are sent. While the settlement chain cannot be reached, a valid request is answered 503 `CHAIN_UNAVAILABLE`, and the payment is not examined.
   *
   * `POST /api/v1/rfq/native/settlement/verify-payment`
   */
  postAliasVerifyPayment(
    body: schemas.PaymentProof,
    options?: KeyedOptions,
  ): Promise<schemas.Verification | schemas.Pending> {
    return this.call({ method: 'POST', path: '/api/v1/rfq/native/settlement/verify-payment', keyed: true }, { body }, options);
  }

  /**
   * Fallback submission on the registry backend.
   *
   * Three members are required; the others must agree if they are sent. While the settlement chain cannot be reached, a valid request is answered 503 `CHAIN_UNAVAILABLE`, and the payment is not examined.
   *
   * `POST /api/v1/rfq/settlement/verify-payment`
   */
  postFallbackVerifyPayment(
    body: schemas.PaymentProof,
    options?: KeyedOptions,
  ): Promise<schemas.Verification | schemas.Pending> {
    return this.call({ method: 'POST', path: '/api/v1/rfq/settlement/verify-payment', on: 'api', keyed: true }, { body }, options);
  }

  /**
   * Health of the WebSocket.
   *
   * Connections, subscriptions, messages sent, slow consumers, the epoch and the lag behind the journal.
   *
   * `GET /ws/rfq/health`
   */
  getWebSocketHealth(options?: CallOptions): Promise<schemas.WebSocketHealth> {
    return this.call({ method: 'GET', path: '/ws/rfq/health', on: 'api' }, {}, options);
  }

  /**
   * This document.
   *
   * OpenAPI 3.1.0, with the public URLs of this service instead of the default ones.
   *
   * `GET /public-sdk/openapi/svc_public_api_v1.json`
   */
  getSpecification(options?: CallOptions): Promise<Record<string, unknown>> {
    return this.call({ method: 'GET', path: '/public-sdk/openapi/svc_public_api_v1.json' }, {}, options);
  }

  /**
   * The same document.
   *
   * The same bytes as `/public-sdk/openapi/svc_public_api_v1.json`, under the rate limit of market data.
   *
   * `GET /api/v1/market/openapi.json`
   */
  getSpecificationAlias(options?: CallOptions): Promise<Record<string, unknown>> {
    return this.call({ method: 'GET', path: '/api/v1/market/openapi.json' }, {}, options);
  }

  /**
   * Market status record.
   *
   * The same document as /api/v1/market/status.
   *
   * `GET /market.json`
   */
  getFileMarketJson(options?: CallOptions): Promise<schemas.MarketStatus> {
    return this.call({ method: 'GET', path: '/market.json' }, {}, options);
  }

  /**
   * Market status record.
   *
   * Legacy surface: the same document as /api/v1/market/status.
   *
   * `GET /status`
   */
  getLegacyStatus(options?: CallOptions): Promise<schemas.MarketStatus> {
    return this.call({ method: 'GET', path: '/status', on: 'api' }, {}, options);
  }

  /**
   * Families of integration adapters.
   *
   * The same document as /api/v1/market/adapters.
   *
   * `GET /adapters.json`
   */
  getFileAdaptersJson(options?: CallOptions): Promise<schemas.MarketAdapters> {
    return this.call({ method: 'GET', path: '/adapters.json' }, {}, options);
  }

  /**
   * Price of each pair in dollars.
   *
   * The same document as /api/v1/market/price.
   *
   * `GET /price.json`
   */
  getFilePriceJson(options?: CallOptions): Promise<schemas.MarketPrice> {
    return this.call({ method: 'GET', path: '/price.json' }, {}, options);
  }

  /**
   * Pairs with mints, steps and volumes.
   *
   * The same document as /api/v1/market/pairs.
   *
   * `GET /pair.json`
   */
  getFilePairJson(options?: CallOptions): Promise<schemas.MarketPairs> {
    return this.call({ method: 'GET', path: '/pair.json' }, {}, options);
  }

  /**
   * Pairs with mints, steps and volumes.
   *
   * Legacy surface: the same document as /api/v1/market/pairs.
   *
   * `GET /pairs`
   */
  getLegacyPairs(options?: CallOptions): Promise<schemas.MarketPairs> {
    return this.call({ method: 'GET', path: '/pairs', on: 'api' }, {}, options);
  }

  /**
   * Fee model and collected fees.
   *
   * The same document as /api/v1/market/fees.
   *
   * `GET /fees.json`
   */
  getFileFeesJson(options?: CallOptions): Promise<schemas.MarketFees> {
    return this.call({ method: 'GET', path: '/fees.json' }, {}, options);
  }

  /**
   * Metadata of each token, in Metaplex's fields.
   *
   * The same document as /api/v1/market/metadata.
   *
   * `GET /metadata.json`
   */
  getFileMetadataJson(options?: CallOptions): Promise<schemas.MarketMetadata> {
    return this.call({ method: 'GET', path: '/metadata.json' }, {}, options);
  }

  /**
   * Pairs with the metadata of both tokens.
   *
   * The same document as /api/v1/market/pair-metadata.
   *
   * `GET /pair-metadata.json`
   */
  getFilePairMetadataJson(options?: CallOptions): Promise<schemas.MarketPairMetadata> {
    return this.call({ method: 'GET', path: '/pair-metadata.json' }, {}, options);
  }

  /**
   * Token list.
   *
   * The same document as /api/v1/market/tokenlist.
   *
   * `GET /tokenlist.json`
   */
  getFileTokenlistJson(options?: CallOptions): Promise<schemas.TokenList> {
    return this.call({ method: 'GET', path: '/tokenlist.json' }, {}, options);
  }

  /**
   * Accounts that the service watches on chain.
   *
   * The same document as /api/v1/market/wallet-index.
   *
   * `GET /wallet-index.json`
   */
  getFileWalletIndexJson(options?: CallOptions): Promise<schemas.MarketWalletIndex> {
    return this.call({ method: 'GET', path: '/wallet-index.json' }, {}, options);
  }

  /**
   * Accounts that the service watches on chain.
   *
   * The same document as /api/v1/market/wallet-index.
   *
   * `GET /wallets.json`
   */
  getFileWalletsJson(options?: CallOptions): Promise<schemas.MarketWalletIndex> {
    return this.call({ method: 'GET', path: '/wallets.json' }, {}, options);
  }

  /**
   * Where routers find the pools.
   *
   * The same document as /api/v1/market/pool-registry.
   *
   * `GET /pool-registry.json`
   */
  getFilePoolRegistryJson(options?: CallOptions): Promise<schemas.MarketPoolRegistry> {
    return this.call({ method: 'GET', path: '/pool-registry.json' }, {}, options);
  }

  /**
   * Program, source and reproducible hash.
   *
   * The same document as /api/v1/market/proof.
   *
   * `GET /proof.json`
   */
  getFileProofJson(options?: CallOptions): Promise<schemas.MarketProof> {
    return this.call({ method: 'GET', path: '/proof.json' }, {}, options);
  }

  /**
   * Program, source and reproducible hash.
   *
   * Legacy surface: the same document as /api/v1/market/proof.
   *
   * `GET /proof`
   */
  getLegacyProof(options?: CallOptions): Promise<schemas.MarketProof> {
    return this.call({ method: 'GET', path: '/proof', on: 'api' }, {}, options);
  }

  /**
   * Index for integrators.
   *
   * The same document as /api/v1/market/integration-manifest.
   *
   * `GET /integration-manifest.json`
   */
  getFileIntegrationManifestJson(options?: CallOptions): Promise<schemas.MarketIntegrationManifest> {
    return this.call({ method: 'GET', path: '/integration-manifest.json' }, {}, options);
  }

  /**
   * Facts for listing forms, by family.
   *
   * The same document as /api/v1/market/submission-packs.
   *
   * `GET /submission-packs.json`
   */
  getFileSubmissionPacksJson(options?: CallOptions): Promise<schemas.MarketSubmissionPacks> {
    return this.call({ method: 'GET', path: '/submission-packs.json' }, {}, options);
  }

  /**
   * URLs for data providers, by family.
   *
   * The same document as /api/v1/market/provider-packs.
   *
   * `GET /provider-packs.json`
   */
  getFileProviderPacksJson(options?: CallOptions): Promise<schemas.MarketProviderPacks> {
    return this.call({ method: 'GET', path: '/provider-packs.json' }, {}, options);
  }

  /**
   * Ready-to-run command lines.
   *
   * The same document as /api/v1/market/examples.
   *
   * `GET /examples.json`
   */
  getFileExamplesJson(options?: CallOptions): Promise<schemas.MarketExamples> {
    return this.call({ method: 'GET', path: '/examples.json' }, {}, options);
  }

  /**
   * Price and volume of each pair.
   *
   * The same document as /api/v1/market/lite/market-summary.
   *
   * `GET /market-summary.json`
   */
  getFileMarketSummaryJson(options?: CallOptions): Promise<schemas.MarketLiteSummary> {
    return this.call({ method: 'GET', path: '/market-summary.json' }, {}, options);
  }

  /**
   * Mints of each pair.
   *
   * The same document as /api/v1/market/lite/pair-metadata.
   *
   * `GET /pair-metadata-lite.json`
   */
  getFilePairMetadataLiteJson(options?: CallOptions): Promise<schemas.MarketLitePairMetadata> {
    return this.call({ method: 'GET', path: '/pair-metadata-lite.json' }, {}, options);
  }

  /**
   * Mint and decimals of each token.
   *
   * The same document as /api/v1/market/lite/tokenlist.
   *
   * `GET /tokenlist-lite.json`
   */
  getFileTokenlistLiteJson(options?: CallOptions): Promise<schemas.MarketLiteTokenlist> {
    return this.call({ method: 'GET', path: '/tokenlist-lite.json' }, {}, options);
  }

  /**
   * Address of each pool.
   *
   * The same document as /api/v1/market/lite/pool-registry.
   *
   * `GET /pool-registry-lite.json`
   */
  getFilePoolRegistryLiteJson(options?: CallOptions): Promise<schemas.MarketLitePoolRegistry> {
    return this.call({ method: 'GET', path: '/pool-registry-lite.json' }, {}, options);
  }

  /**
   * Price of the canonical pair.
   *
   * The same document as /api/v1/market/lite/latest-price.
   *
   * `GET /latest-price.json`
   */
  getFileLatestPriceJson(options?: CallOptions): Promise<schemas.MarketLiteLatestPrice> {
    return this.call({ method: 'GET', path: '/latest-price.json' }, {}, options);
  }

  /**
   * Newest hour with a trade of the canonical pair.
   *
   * The same document as /api/v1/market/lite/latest-candle.
   *
   * `GET /latest-candle.json`
   */
  getFileLatestCandleJson(options?: CallOptions): Promise<schemas.MarketLiteLatestCandle> {
    return this.call({ method: 'GET', path: '/latest-candle.json' }, {}, options);
  }

  /**
   * Newest trade of the canonical pair.
   *
   * The same document as /api/v1/market/lite/latest-trade.
   *
   * `GET /latest-trade.json`
   */
  getFileLatestTradeJson(options?: CallOptions): Promise<schemas.MarketLiteLatestTrade> {
    return this.call({ method: 'GET', path: '/latest-trade.json' }, {}, options);
  }

  /**
   * The fee and the fees collected.
   *
   * The same document as /api/v1/market/lite/latest-fees.
   *
   * `GET /latest-fees.json`
   */
  getFileLatestFeesJson(options?: CallOptions): Promise<schemas.MarketLiteLatestFees> {
    return this.call({ method: 'GET', path: '/latest-fees.json' }, {}, options);
  }

  /**
   * JSON Schemas of the documents.
   *
   * The same document as /api/v1/market/schemas.
   *
   * `GET /schemas.json`
   */
  getFileSchemasJson(options?: CallOptions): Promise<schemas.MarketSchemas> {
    return this.call({ method: 'GET', path: '/schemas.json' }, {}, options);
  }

  /**
   * Discovery: all resources.
   *
   * The operator of the service, and links to all resources.
   *
   * `GET /.well-known/svc-discovery.json`
   */
  getWellKnownSvcDiscovery(options?: CallOptions): Promise<schemas.DiscoveryFile> {
    return this.call({ method: 'GET', path: '/.well-known/svc-discovery.json' }, {}, options);
  }

  /**
   * Discovery: where trades execute.
   *
   * The operator of the service, and links to where trades execute.
   *
   * `GET /.well-known/svc-program.json`
   */
  getWellKnownSvcProgram(options?: CallOptions): Promise<schemas.DiscoveryFile> {
    return this.call({ method: 'GET', path: '/.well-known/svc-program.json' }, {}, options);
  }

  /**
   * Discovery: tokens and pairs.
   *
   * The operator of the service, and links to tokens and pairs.
   *
   * `GET /.well-known/svc-ecosystem.json`
   */
  getWellKnownSvcEcosystem(options?: CallOptions): Promise<schemas.DiscoveryFile> {
    return this.call({ method: 'GET', path: '/.well-known/svc-ecosystem.json' }, {}, options);
  }

  /**
   * Discovery: wallets.
   *
   * The operator of the service, and links for wallets.
   *
   * `GET /.well-known/svc-wallets.json`
   */
  getWellKnownSvcWallets(options?: CallOptions): Promise<schemas.DiscoveryFile> {
    return this.call({ method: 'GET', path: '/.well-known/svc-wallets.json' }, {}, options);
  }

  /**
   * Discovery: integrators.
   *
   * The operator of the service, and links for integrators.
   *
   * `GET /.well-known/svc-integrators.json`
   */
  getWellKnownSvcIntegrators(options?: CallOptions): Promise<schemas.DiscoveryFile> {
    return this.call({ method: 'GET', path: '/.well-known/svc-integrators.json' }, {}, options);
  }

  /**
   * Discovery: this service.
   *
   * The operator of the service, and links to start from.
   *
   * `GET /.well-known/svc.json`
   */
  getWellKnownSvc(options?: CallOptions): Promise<schemas.DiscoveryFile> {
    return this.call({ method: 'GET', path: '/.well-known/svc.json' }, {}, options);
  }

  /**
   * Last trades of an instrument.
   *
   * Like /api/v1/market/trades, but without a symbol it returns the first instrument (our choice).
   *
   * `GET /trades.json`
   */
  getFileTradesJson(
    query: { symbol?: schemas.PairSymbol; limit?: number; before?: number } = {},
    options?: CallOptions,
  ): Promise<schemas.Trades> {
    return this.call({ method: 'GET', path: '/trades.json' }, { query }, options);
  }

  /**
   * Candles by timeframe.
   *
   * Like /api/v1/market/candles: without a symbol it returns the first instrument (our choice).
   *
   * `GET /candles.json`
   */
  getFileCandlesJson(
    query: { symbol?: schemas.PairSymbol; timeframe?: schemas.Interval; interval?: schemas.Interval; limit?: number; before?: number } = {},
    options?: CallOptions,
  ): Promise<schemas.Candles> {
    return this.call({ method: 'GET', path: '/candles.json' }, { query }, options);
  }

  /**
   * The same document.
   *
   * The same bytes as `/public-sdk/openapi/svc_public_api_v1.json`.
   *
   * `GET /openapi.json`
   */
  getFileOpenapiJson(options?: CallOptions): Promise<Record<string, unknown>> {
    return this.call({ method: 'GET', path: '/openapi.json' }, {}, options);
  }
}
