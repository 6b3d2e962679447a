import type { Book, OrdersBook } from './book.js';
import { BlockdeskError, OtherGroupError } from './errors.js';
import type { RfqTrade } from './generated/schemas.js';
import type { Channel, Message, Rejected, Subscribed, TickerMessage } from './messages.js';
import { Streams, type Prints, type StreamName, type TicketBoard } from './streams.js';
/** FollowOptions are what is followed, and how patiently. */
export interface FollowOptions {
    /** The full URL. */
    readonly url: string;
    readonly symbols: readonly string[];
    /** Default: l2, trades and ticker. */
    readonly channels?: readonly Channel[];
    /** Levels a side of l2. Default 50. */
    readonly depth?: 10 | 25 | 50 | 100;
    /** A connection that says nothing for so long, heartbeats included, is given up, in ms. Default 5,000. */
    readonly silenceMs?: number;
    /** How long a connection may take to say its first word, in ms. Default 10,000. */
    readonly connectMs?: number;
    /** The shortest and the longest wait before a new connection, in ms. Default 250 and 10,000. */
    readonly retryMs?: readonly [first: number, most: number];
    /** The same address of the other nodes, where a group of them serves: each is tried in its turn. */
    readonly nodes?: readonly string[];
    /**
     * Where symbols are split over groups, the same address of each other group's nodes.
     * What is followed of their symbols is followed there: at hosts that are named here, in
     * url or in nodes, and nowhere else.
     */
    readonly otherGroups?: readonly (readonly string[])[];
    /** Ends it, as close does. */
    readonly signal?: AbortSignal;
}
/** FollowEvents are the events of a follower, by name. */
export interface FollowEvents {
    /** A connection stands, and the service has acknowledged what is followed. */
    open: {
        readonly epoch: string;
        readonly subscribed: readonly Subscribed[];
    };
    /** A connection has ended, by this error; the next one is tried after so long. retryMs is null at the follower's own end. */
    close: {
        readonly error: unknown;
        readonly retryMs: number | null;
    };
    /** The order book after each message. A view: not to be kept over the next one. */
    book: Book;
    /** The orders after each message. A view: not to be kept over the next one. */
    orders: OrdersBook;
    /** Each trade once, in order. */
    trades: Prints;
    ticker: TickerMessage;
    tickets: TicketBoard;
    /** Each sale of the desk once, in order. */
    rfq_trades: Prints<RfqTrade>;
    /** Something was lost on the way, or does not fit; it is asked for anew. Nothing needs to be done. */
    gap: {
        readonly stream: StreamName;
        readonly error: BlockdeskError;
    };
    /** There is no such stream. */
    rejected: Rejected;
    /** The service does not do what it was asked for, by subscribe or in any other way. */
    refused: BlockdeskError;
}
type Listener<T> = (event: T) => void;
/**
 * Follower keeps a copy of the market up to date over connections that break: it
 * comes back by itself, resumes where it was, and asks anew for what was lost.
 * It begins with start and ends with close, or by a service that has nothing of
 * what it asks for.
 */
export declare abstract class Follower {
    #private;
    protected readonly options: Required<Omit<FollowOptions, 'signal'>>;
    protected readonly streams: Streams;
    /** Where the next connection goes. */
    protected address: URL;
    /** The node that the last connection has named as the leader. */
    protected leader: string | null;
    /** What the service wants the next connection to wait at least. */
    protected comeBackMs: number;
    constructor({ signal, ...options }: FollowOptions);
    /** connect reads one connection to its end, which comes at the latest when signal is aborted. */
    protected abstract connect(signal: AbortSignal): Promise<void>;
    /** recover asks for a stream anew. */
    protected abstract recover(stream: StreamName): void;
    /** start begins to follow. It returns at once. */
    start(): this;
    /** close ends it, and returns when nothing of it is left. */
    close(): Promise<void>;
    /** on listens for an event until what it returns is called. Errors that a listener throws are not caught. */
    on<E extends keyof FollowEvents>(event: E, listener: Listener<FollowEvents[E]>): () => void;
    /** Whether every copy is the desk's now. */
    get whole(): boolean;
    /** book returns the order book of a symbol, if it is followed. */
    book(symbol: string): Book | undefined;
    /** orders returns the orders of a symbol, if they are followed. */
    orders(symbol: string): OrdersBook | undefined;
    /** tickets returns the tickets of a pair, if they are followed. */
    tickets(symbol: string): TicketBoard | undefined;
    /**
     * books gives the order book of a symbol as it is, and then whenever it has
     * changed since the last look: a slow reader misses states, never the newest. It
     * starts the follower, and ends with it; it throws for a book that is not
     * followed, or that the service does not have.
     */
    books(symbol: string): AsyncGenerator<Book, void, void>;
    protected emit<E extends keyof FollowEvents>(event: E, value: FollowEvents[E]): void;
    /** take takes one message; null is one of a kind that is not known. */
    protected take(m: Message | null): void;
    /** elsewhere returns the URL of another group from a received address; null: it must not be followed. */
    protected elsewhere(url: string): URL | null;
    /** nodesAt are the nodes that were named of the group at an address. */
    protected nodesAt({ hostname }: URL): readonly string[];
    /** move makes another group's nodes those that it connects to. */
    protected move(to: URL): void;
    /**
     * spread takes what is followed where it was sent to. It returns what stays rejected,
     * and why it may not go where that is.
     */
    protected spread(rejected: readonly Rejected[]): {
        left: readonly Rejected[];
        fault: OtherGroupError | null;
    };
    /** closeOthers closes what follows at other groups. */
    protected closeOthers(): Promise<void>;
    /** idle reports whether nothing at all is followed. */
    protected get idle(): boolean;
    /** rest ends the connection until wake: there is nothing for it to carry. */
    protected rest(): void;
    /** wake connects again after rest. */
    protected wake(): void;
    /** end ends it for good: nothing would come of another connection. */
    protected end(fault: BlockdeskError): void;
    /** restart gives the connection up, and begins every stream anew with the next one. */
    protected restart(): void;
}
/** product is every channel of every symbol. */
export declare function product(channels: readonly Channel[], symbols: readonly string[]): StreamName[];
export {};
