import { type Instrument, type Interval, type Level, type Quote, type Ticker, type Trade } from 'blockdesk';
/** Errors by ccxt's names. */
export declare class BaseError extends Error {
}
export declare class ExchangeError extends BaseError {
}
export declare class AuthenticationError extends ExchangeError {
}
export declare class BadRequest extends ExchangeError {
}
export declare class BadSymbol extends BadRequest {
}
export declare class NetworkError extends BaseError {
}
export declare class ExchangeNotAvailable extends NetworkError {
}
export declare class RateLimitExceeded extends NetworkError {
}
export declare class RequestTimeout extends NetworkError {
}
export interface Market {
    id: string;
    symbol: string;
    base: string;
    quote: string;
    type: 'spot';
    spot: true;
    active: boolean;
    precision: {
        price: string;
        amount: string;
    };
    limits: {
        amount: {
            min: string;
            max: string;
        };
        price: {
            min: string;
            max: string;
        };
    };
    info: Instrument;
}
export interface OrderBook {
    symbol: string;
    bids: Level[];
    asks: Level[];
    nonce: number;
    timestamp: number | undefined;
    datetime: string | undefined;
}
export declare class blockdesk {
    #private;
    readonly id = "blockdesk";
    readonly name = "blockdesk";
    readonly rateLimit = 1000;
    readonly number: StringConstructor;
    readonly timeframes: Record<string, Interval>;
    readonly has: {
        fetchMarkets: boolean;
        fetchTicker: boolean;
        fetchTickers: boolean;
        fetchOrderBook: boolean;
        fetchTrades: boolean;
        fetchOHLCV: boolean;
        fetchStatus: boolean;
        fetchConvertQuote: boolean;
        watchOrderBook: boolean;
        createOrder: boolean;
        cancelOrder: boolean;
        fetchBalance: boolean;
    };
    markets: Record<string, Market>;
    symbols: string[];
    constructor({ baseUrl }?: {
        baseUrl?: string;
    });
    loadMarkets(reload?: boolean): Promise<Record<string, Market>>;
    fetchMarkets(): Promise<Market[]>;
    fetchStatus(): Promise<{
        status: string;
        updated: number;
        eta: undefined;
        url: undefined;
        info: {
            price_policy: {
                rounding: string;
                fee_bps: import("blockdesk").Bps;
                fee_included: true;
                quote_ttl_s: number;
                claim_ttl_s: number;
                grace_s?: number;
                unproven?: {
                    ttl_s: number;
                    usd_per_client: import("blockdesk").Decimal;
                    share_bps: import("blockdesk").Bps;
                };
                dust?: {
                    USDC: import("blockdesk").Decimal;
                    SOL: import("blockdesk").Decimal;
                };
                pairs: Array<{
                    pair: import("blockdesk").PairSymbol;
                    source: 'book' | 'operator';
                    via: import("blockdesk").PairSymbol | null;
                    corridor_bps: import("blockdesk").Bps;
                    max_age_s: number;
                    anchor_price_usd: import("blockdesk").Decimal | null;
                    anchored_at: import("blockdesk").Timestamp | null;
                    anchor_source?: 'pyth' | 'pool' | 'operator' | 'unknown' | null;
                    published_at?: import("blockdesk").Timestamp | null;
                    anchor_age_s?: number | null;
                    confidence_usd?: import("blockdesk").Decimal | null;
                    firm_bps?: {
                        USDC: import("blockdesk").Bps;
                        SOL: import("blockdesk").Bps;
                    };
                    min_reference_usd: import("blockdesk").Decimal | null;
                    max_reference_usd: import("blockdesk").Decimal | null;
                    reference_price_usd: import("blockdesk").Decimal | null;
                    reason: string | null;
                }>;
            };
            chain: import("blockdesk").DeskChain;
        };
    }>;
    fetchTicker(symbol: string): Promise<{
        timestamp: number | undefined;
        datetime: string | undefined;
        symbol: string;
        last: string | undefined;
        close: string | undefined;
        bid: string | undefined;
        bidVolume: string | undefined;
        ask: string | undefined;
        askVolume: string | undefined;
        open: string | undefined;
        high: string | undefined;
        low: string | undefined;
        baseVolume: string;
        quoteVolume: string;
        info: Ticker;
    }>;
    fetchTickers(symbols?: string[]): Promise<{
        [k: string]: {
            timestamp: number | undefined;
            datetime: string | undefined;
            symbol: string;
            last: string | undefined;
            close: string | undefined;
            bid: string | undefined;
            bidVolume: string | undefined;
            ask: string | undefined;
            askVolume: string | undefined;
            open: string | undefined;
            high: string | undefined;
            low: string | undefined;
            baseVolume: string;
            quoteVolume: string;
            info: Ticker;
        };
    }>;
    fetchOrderBook(symbol: string, limit?: number): Promise<OrderBook>;
    fetchTrades(symbol: string, since?: number, limit?: number): Promise<{
        timestamp: number | undefined;
        datetime: string | undefined;
        id: string;
        symbol: string;
        price: string;
        amount: string;
        side: "buy" | "sell";
        type: undefined;
        order: undefined;
        takerOrMaker: undefined;
        cost: undefined;
        fee: undefined;
        info: Trade;
    }[]>;
    /** Rows of [time, open, high, low, close, volume]; an interval without trades is absent. */
    fetchOHLCV(symbol: string, timeframe?: string, since?: number, limit?: number): Promise<(string | number)[][]>;
    /** fetchConvertQuote asks for a firm price of a block: `amount` USD of one of the ladder's steps buys `toCode`. */
    fetchConvertQuote(fromCode: string, toCode: string, amount: string): Promise<{
        timestamp: number | undefined;
        datetime: string | undefined;
        id: string;
        fromCurrency: string;
        fromAmount: string;
        toCurrency: string;
        toAmount: string;
        price: string;
        fee: string;
        info: Quote;
    }>;
    /** watchOrderBook returns the book at its next change. */
    watchOrderBook(symbol: string, limit?: number): Promise<OrderBook>;
    close(): Promise<void>;
}
