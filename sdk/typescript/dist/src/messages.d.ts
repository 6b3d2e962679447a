import type { RfqTrade, Ticker as TickerAnswer, Ticket } from './generated/schemas.js';
/** Channel is what can be followed. `tickets` and `rfq_trades` are there where the desk sells, `l3` of books that are no mirrors. */
export type Channel = 'l2' | 'l3' | 'trades' | 'ticker' | 'tickets' | 'rfq_trades';
/** Level is a price and the quantity there, both exact decimals. */
export type Level = readonly [price: string, quantity: string];
/** BookOrder is a displayed order: its id, which its owner has as OrderID, price and quantity. */
export type BookOrder = readonly [id: string, price: string, quantity: string];
/** Place is where a message stands in its stream. */
export interface Place {
    readonly symbol: string;
    /** Changes when the service starts anew, and the numbers with it. */
    readonly epoch: string;
    readonly seq: number;
    /** Of the message before; 0 in a snapshot. */
    readonly prev_seq: number;
    /** The number of the last command that the message may come from. */
    readonly engine_seq: number;
    readonly ts: string | null;
}
interface Of<C extends string> {
    readonly channel: C;
    readonly type: 'snapshot' | 'update';
}
/** BookMessage: a snapshot replaces all levels, an update's quantity `0` deletes one. */
export interface BookMessage extends Of<'l2'>, Place {
    readonly bids: readonly Level[];
    readonly asks: readonly Level[];
    readonly checksum: number;
}
/**
 * OrdersMessage: a snapshot replaces all orders. In an update quantity `0` deletes one, an id
 * that is there gets its quantity, and another one goes behind the orders of its price.
 */
export interface OrdersMessage extends Of<'l3'>, Place {
    readonly bids: readonly BookOrder[];
    readonly asks: readonly BookOrder[];
    readonly checksum: number;
}
/** Trade is one print. */
export interface Trade {
    readonly trade_id: number;
    readonly price: string;
    readonly qty: string;
    /** The aggressor's. */
    readonly side: 'buy' | 'sell';
    readonly ts: string;
}
/** TradesMessage has trades, oldest first. */
export interface TradesMessage extends Of<'trades'>, Place {
    readonly trades: readonly Trade[];
}
/** TickerMessage says all of a ticker. */
export interface TickerMessage extends Of<'ticker'>, Omit<Place, 'prev_seq'>, Pick<TickerAnswer, 'last' | 'last_qty' | 'last_ts' | 'bid' | 'bid_qty' | 'ask' | 'ask_qty' | 'mid' | 'spread' | 'open_24h' | 'high_24h' | 'low_24h' | 'volume_24h' | 'quote_volume_24h' | 'trades_24h' | 'status' | 'auction'> {
}
/** TicketsMessage has whole tickets, and which are shown no more. */
export interface TicketsMessage extends Of<'tickets'>, Place {
    readonly tickets: readonly Ticket[];
    readonly gone?: readonly string[];
}
/** RfqTradesMessage has settled claims of the desk, oldest first. */
export interface RfqTradesMessage extends Of<'rfq_trades'>, Place {
    readonly rfq_trades: readonly RfqTrade[];
}
/** MarketMessage is one that belongs to a stream. */
export type MarketMessage = BookMessage | OrdersMessage | TradesMessage | TickerMessage | TicketsMessage | RfqTradesMessage;
/** Subscribed is what an ack says of one stream. */
export interface Subscribed {
    readonly channel: string;
    readonly symbol: string;
    readonly seq: number;
    readonly resumed: boolean;
}
/** Rejected is what an ack says of a stream that there is not. */
export interface Rejected {
    readonly channel: string;
    readonly symbol: string;
    readonly code: string;
    /** Where the symbol is served; with the code OTHER_GROUP alone. */
    readonly ws_url?: string;
}
/** ControlMessage is the answer to a request. */
export interface ControlMessage {
    readonly channel: 'control';
    readonly type: 'ack' | 'pong' | 'error';
    readonly id?: string | number;
    readonly action?: string;
    readonly success?: boolean;
    readonly subscribed?: readonly Subscribed[];
    readonly rejected?: readonly Rejected[];
    readonly code?: string;
    readonly message?: string;
    readonly retryable?: boolean;
}
/** StatusMessage is the first of a connection, or says that the service restarts. */
export interface StatusMessage {
    readonly channel: 'status';
    readonly type: 'welcome' | 'restart';
    readonly session?: string;
    readonly epoch?: string;
}
/** HeartbeatMessage has the newest number of each stream. */
export interface HeartbeatMessage {
    readonly channel: 'heartbeat';
    readonly ts: string;
    readonly seqs: Readonly<Record<string, number>>;
}
/** MarkMessage, of server-sent events alone, says that all up to a command was sent. */
export interface MarkMessage {
    readonly channel: 'mark';
    readonly epoch: string;
    readonly engine_seq: number;
}
/** Message is any of them. */
export type Message = MarketMessage | ControlMessage | StatusMessage | HeartbeatMessage | MarkMessage;
/**
 * decodeMessage reads one message. What it returns has the members that its type
 * says; a channel that is not known, which a later service may have, is null. It
 * throws ProtocolError.
 */
export declare function decodeMessage(text: string): Message | null;
export {};
