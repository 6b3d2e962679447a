import { Book, GapError, MismatchError, OrdersBook } from './book.js';
import type { RfqTrade, Ticket } from './generated/schemas.js';
import type { Channel, MarketMessage, TickerMessage, TicketsMessage, Trade } from './messages.js';
/** Prints is what a trades message has brought. */
export interface Prints<T = Trade> {
    readonly symbol: string;
    /** Oldest first, each once. */
    readonly trades: readonly T[];
    /** Whether they come of a snapshot: the first one has up to 100 trades from before. */
    readonly snapshot: boolean;
    /**
     * Where trades may be missing, because a snapshot begins later than the last
     * one ended: GET /api/v1/market/trades (of the desk's sales:
     * /api/v1/rfq/trades) with `before` has those with an id between the two.
     */
    readonly hole: {
        readonly after: number;
        readonly before: number;
    } | null;
}
/** TicketBoard is the desk's tickets of one pair. */
export declare class TicketBoard {
    #private;
    readonly symbol: string;
    constructor(symbol: string);
    get epoch(): string;
    get seq(): number;
    /** By order_id. */
    get tickets(): ReadonlyMap<string, Ticket>;
    /** apply takes one message. It throws GapError or MismatchError. */
    apply(m: TicketsMessage): void;
}
/** Change is what a message has changed. */
export type Change = {
    readonly kind: 'book';
    readonly book: Book;
} | {
    readonly kind: 'orders';
    readonly orders: OrdersBook;
} | {
    readonly kind: 'trades';
    readonly prints: Prints;
} | {
    readonly kind: 'ticker';
    readonly ticker: TickerMessage;
} | {
    readonly kind: 'tickets';
    readonly board: TicketBoard;
} | {
    readonly kind: 'rfq_trades';
    readonly prints: Prints<RfqTrade>;
} | {
    readonly kind: 'gap';
    readonly stream: StreamName;
    readonly error: GapError | MismatchError;
};
/** StreamName is a channel of a symbol. */
export interface StreamName {
    readonly channel: Channel;
    readonly symbol: string;
}
/**
 * Streams is the copy of all that is followed, whichever way the messages come.
 * It holds each stream to its chain of numbers, to its checksums and to the
 * heartbeats. It does no input or output: pure but for its state.
 */
export declare class Streams {
    #private;
    readonly depth: number;
    constructor(depth: number);
    /** follow adds streams; those that are there stay as they are. */
    follow(names: Iterable<StreamName>): void;
    /** forget leaves streams out from now on. */
    forget(names: Iterable<StreamName>): void;
    /** names are what is followed. */
    get names(): StreamName[];
    /** whole reports whether every copy is the desk's. */
    get whole(): boolean;
    /** book returns the order book of a symbol, if it is followed. */
    book(symbol: string): Book | undefined;
    /** orders returns the orders of a symbol, if they are followed. */
    orders(symbol: string): OrdersBook | undefined;
    /** board returns the tickets of a pair, if they are followed. */
    board(symbol: string): TicketBoard | undefined;
    /** resume is where each stream is, for a subscription that goes on from there; undefined where none can. */
    resume(): Record<string, string | number> | undefined;
    /**
     * take takes one message: null where it changes nothing, being of a stream that
     * waits for its snapshot, or repeated as server-sent events may.
     */
    take(m: MarketMessage): Change | null;
    /**
     * heartbeat finds the streams whose last messages were lost, which no later message
     * shows: those that have not reached the numbers of the heartbeat before, and
     * those whose snapshot does not come.
     */
    heartbeat(seqs: Readonly<Record<string, number>>): Change[];
    /** reconnected forgets what heartbeats of another connection have said. */
    reconnected(): void;
    /** restart lets every stream wait for a snapshot. */
    restart(): void;
}
