// An exchange class as ccxt has them: its method names, its unified structures,
// its errors' names. It is for programs that are written against ccxt, and needs
// nothing of it. Numbers are strings, as ccxt has them where `number` is String:
// nothing here is a float. The desk's quotes are ccxt's conversions.
//
//   node ccxt.js [--base http://127.0.0.1:8080]
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import {
  ApiError, BlockdeskError, Client, NotAdmittedError, NotFoundError, RateLimitedError, RequestError, TransportError, UnavailableError,
  compareDecimals,
  type Candle, type Feed, type Instrument, type Interval, type Level, type Quote, type Ticker, type Trade,
} from 'blockdesk';

/** Errors by ccxt's names. */
export class BaseError extends Error {}
export class ExchangeError extends BaseError {}
export class AuthenticationError extends ExchangeError {}
export class BadRequest extends ExchangeError {}
export class BadSymbol extends BadRequest {}
export class NetworkError extends BaseError {}
export class ExchangeNotAvailable extends NetworkError {}
export class RateLimitExceeded extends NetworkError {}
export class RequestTimeout extends NetworkError {}

/** translate makes ccxt's error of ours. */
function translate(error: unknown): unknown {
  type Class = new (message: string, options: ErrorOptions) => Error;
  const made = (As: Class): Error => new As(`blockdesk ${String(error)}`, { cause: error });
  if (error instanceof ApiError && error.code === 'UNKNOWN_SYMBOL') return made(BadSymbol);
  if (error instanceof RequestError || error instanceof NotFoundError) return made(BadRequest);
  if (error instanceof NotAdmittedError) return made(AuthenticationError);
  if (error instanceof RateLimitedError) return made(RateLimitExceeded);
  if (error instanceof UnavailableError) return made(ExchangeNotAvailable);
  if (error instanceof TransportError) return made(RequestTimeout);
  return error instanceof BlockdeskError ? made(ExchangeError) : error;
}

const iso = (ts: string | null): { timestamp: number | undefined; datetime: string | undefined } => {
  const timestamp = ts === null ? undefined : Date.parse(ts);
  return { timestamp, datetime: timestamp === undefined ? undefined : new Date(timestamp).toISOString() };
};
const known = (value: string | null): string | undefined => value ?? undefined;

export interface Market {
  id: string; symbol: string; base: string; quote: string; type: 'spot'; spot: true; active: boolean;
  precision: { price: string; amount: string }; limits: { amount: { min: string; max: string }; price: { min: string; max: string } };
  info: Instrument;
}

export interface OrderBook {
  symbol: string; bids: Level[]; asks: Level[]; nonce: number; timestamp: number | undefined; datetime: string | undefined;
}

export class blockdesk {
  readonly id = 'blockdesk';
  readonly name = 'blockdesk';
  readonly rateLimit = 1_000; // ms between two requests, in the long run
  readonly number = String;
  readonly timeframes: Record<string, Interval> = { '1m': '1m', '5m': '5m', '15m': '15m', '1h': '1h', '4h': '4h', '1d': '1d' };
  readonly has = {
    fetchMarkets: true, fetchTicker: true, fetchTickers: true, fetchOrderBook: true, fetchTrades: true, fetchOHLCV: true, fetchStatus: true,
    fetchConvertQuote: true, watchOrderBook: true, createOrder: false, cancelOrder: false, fetchBalance: false,
  };
  markets: Record<string, Market> = {};
  symbols: string[] = [];
  readonly #client: Client;
  #feed: Feed | null = null;
  readonly #watched = new Map<string, AsyncGenerator<{ bids: readonly Level[]; asks: readonly Level[]; seq: number; ts: string | null }>>();

  constructor({ baseUrl = 'http://127.0.0.1:8080' }: { baseUrl?: string } = {}) {
    this.#client = new Client({ baseUrl });
  }

  async #ask<T>(call: (client: Client) => Promise<T>): Promise<T> {
    return call(this.#client).catch((error: unknown) => { throw translate(error); });
  }

  async loadMarkets(reload = false): Promise<Record<string, Market>> {
    if (reload || this.symbols.length === 0) {
      this.markets = Object.fromEntries((await this.fetchMarkets()).map((m) => [m.symbol, m]));
      this.symbols = Object.keys(this.markets).sort();
    }
    return this.markets;
  }

  async fetchMarkets(): Promise<Market[]> {
    const { symbols } = await this.#ask((c) => c.getSymbols());
    return symbols.map((info) => ({
      id: info.symbol, symbol: info.symbol, base: info.base, quote: info.quote, type: 'spot', spot: true, active: info.status === 'trading',
      precision: { price: info.tick_size, amount: info.lot_size },
      limits: { amount: { min: info.min_qty, max: info.max_qty }, price: { min: info.tick_size, max: info.max_price } }, info,
    }));
  }

  async fetchStatus() {
    const { price_policy, chain, ts } = await this.#ask((c) => c.getDeskStatus());
    const status = chain.available ? 'ok' : 'maintenance';
    return { status, updated: Date.parse(ts), eta: undefined, url: undefined, info: { price_policy, chain } };
  }

  async fetchTicker(symbol: string) {
    const t: Ticker = await this.#ask((c) => c.getTicker({ symbol }));
    return {
      symbol, ...iso(t.ts), last: known(t.last), close: known(t.last), bid: known(t.bid), bidVolume: known(t.bid_qty), ask: known(t.ask),
      askVolume: known(t.ask_qty), open: known(t.open_24h), high: known(t.high_24h), low: known(t.low_24h), baseVolume: t.volume_24h,
      quoteVolume: t.quote_volume_24h, info: t,
    };
  }

  async fetchTickers(symbols?: string[]) {
    const names = symbols ?? Object.keys(await this.loadMarkets());
    return Object.fromEntries(await Promise.all(names.map(async (s) => [s, await this.fetchTicker(s)] as const)));
  }

  async fetchOrderBook(symbol: string, limit?: number): Promise<OrderBook> {
    const { bids, asks, seq, ts } = await this.#ask((c) => c.getDepth({ symbol, ...(limit && { limit }) }));
    return { symbol, bids, asks, nonce: seq, ...iso(ts) };
  }

  async fetchTrades(symbol: string, since?: number, limit?: number) {
    const { trades } = await this.#ask((c) => c.getTrades({ symbol, ...(limit && { limit }) }));
    const all = trades.map((t: Trade) => ({
      id: String(t.trade_id), symbol, ...iso(t.ts), price: t.price, amount: t.qty, side: t.side, type: undefined, order: undefined,
      takerOrMaker: undefined, cost: undefined, fee: undefined, info: t,
    })).reverse(); // ccxt has the oldest first
    return since === undefined ? all : all.filter((t) => t.timestamp !== undefined && t.timestamp >= since);
  }

  /** Rows of [time, open, high, low, close, volume]; an interval without trades is absent. */
  async fetchOHLCV(symbol: string, timeframe = '1m', since?: number, limit?: number) {
    const interval = this.timeframes[timeframe];
    if (interval === undefined) throw new BadRequest(`blockdesk has no timeframe ${timeframe}`);
    const { klines } = await this.#ask((c) => c.getKlines({ symbol, interval, ...(limit && { limit }) }));
    return klines.filter(([open]: Candle) => since === undefined || open >= since).map((k: Candle) => k.slice(0, 6));
  }

  /** fetchConvertQuote asks for a firm price of a block: `amount` USD of one of the ladder's steps buys `toCode`. */
  async fetchConvertQuote(fromCode: string, toCode: string, amount: string) {
    if (fromCode !== 'USDC' && fromCode !== 'SOL') throw new BadRequest(`blockdesk is paid in USDC or SOL, not in ${fromCode}`);
    const { tickets } = await this.#ask((c) => c.getMarketTickets());
    const ticket = tickets.find((t) => t.state === 'open' && t.base_symbol === toCode && t.rails.includes(fromCode));
    const tranche = ticket?.tranches.find((t) => t.state === 'open' && compareDecimals(t.available_usd, amount) >= 0);
    if (!ticket || !tranche) throw new ExchangeError(`blockdesk sells no ${toCode} for ${amount} ${fromCode} now`);
    const q: Quote = await this.#ask((c) => c.postQuote({
      order_id: ticket.order_id, tranche_id: tranche.tranche_id, fill_usd: amount as Quote['fill_usd'], rail: fromCode,
    }));
    return {
      id: q.quote_id, ...iso(q.issued_at), fromCurrency: fromCode, fromAmount: q.payment.amount, toCurrency: toCode, toAmount: q.base_amount,
      price: q.price_usd, fee: q.fee.amount, info: q,
    };
  }

  /** watchOrderBook returns the book at its next change. */
  async watchOrderBook(symbol: string, limit?: number): Promise<OrderBook> {
    await this.loadMarkets();
    if (!this.markets[symbol]) throw new BadSymbol(`blockdesk has no ${symbol}`);
    this.#feed ??= this.#client.feed({ symbols: this.symbols, channels: ['l2'] });
    const books = this.#watched.get(symbol) ?? this.#feed.books(symbol);
    this.#watched.set(symbol, books);
    const { value: book } = await books.next();
    if (!book) throw new NetworkError('blockdesk: the feed is closed');
    return { symbol, bids: book.bids.slice(0, limit), asks: book.asks.slice(0, limit), nonce: book.seq, ...iso(book.ts) };
  }

  async close(): Promise<void> {
    await this.#feed?.close();
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { base: { type: 'string', default: 'http://127.0.0.1:8080' } } });
  const exchange = new blockdesk({ baseUrl: values.base });
  const [symbol] = Object.keys(await exchange.loadMarkets());
  if (symbol === undefined) throw new ExchangeError('no markets');
  console.log('symbols', exchange.symbols.join(' '), '· status', (await exchange.fetchStatus()).status);
  const { last, bid, ask } = await exchange.fetchTicker(symbol);
  console.log('ticker', { last, bid, ask });
  console.log('order book', (await exchange.fetchOrderBook(symbol, 1)).bids);
  console.log('trades', (await exchange.fetchTrades(symbol, undefined, 2)).map((t) => `${t.side} ${t.amount} at ${t.price}`));
  console.log('candles', await exchange.fetchOHLCV(symbol, '1m', undefined, 1));
  const quote = await exchange.fetchConvertQuote('USDC', exchange.markets[symbol]!.base, '1000');
  console.log('convert', `${quote.fromAmount} ${quote.fromCurrency} to ${quote.toAmount} ${quote.toCurrency}`);
  for (let i = 0; i < 3; i++) console.log('watch', (await exchange.watchOrderBook(symbol, 1)).nonce);
  await exchange.fetchTicker('NO/SUCH').catch((error: Error) => console.log('refused', error.constructor.name));
  await exchange.close();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
