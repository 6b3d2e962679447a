import type { Book } from './book.js';
import { OtherGroupError } from './errors.js';
import { Follower, type FollowOptions } from './follower.js';
import { type Channel, type Rejected } from './messages.js';
import type { StreamName, TicketBoard } from './streams.js';
/** Socket is what is needed of a WebSocket: each platform has its own types of the events. */
export interface Socket {
    onopen: ((event: any) => void) | null;
    onmessage: ((event: any) => void) | null;
    onerror: ((event: any) => void) | null;
    onclose: ((event: any) => void) | null;
    send(text: string): void;
    close(): void;
}
/** SocketClass is a WebSocket's, as browsers have it. */
export type SocketClass = new (url: string) => Socket;
/** FeedOptions are a Feed's. */
export interface FeedOptions extends FollowOptions {
    /** In place of the global WebSocket, or, where there is none, of the package ws. */
    readonly WebSocket?: SocketClass;
}
/**
 * Feed follows the market over the WebSocket. Symbols that another group of nodes
 * serves it follows there, by a feed of their own, and passes on its events.
 */
export declare class Feed extends Follower {
    #private;
    constructor({ WebSocket: socketClass, ...options }: FeedOptions);
    /** subscribe follows more; it may be called at any time. */
    subscribe(symbols: readonly string[], channels?: readonly Channel[]): void;
    /** unsubscribe follows them no more. */
    unsubscribe(symbols: readonly string[], channels?: readonly Channel[]): void;
    get whole(): boolean;
    book(symbol: string): Book | undefined;
    tickets(symbol: string): TicketBoard | undefined;
    protected closeOthers(): Promise<void>;
    protected get idle(): boolean;
    protected spread(rejected: readonly Rejected[]): {
        left: readonly Rejected[];
        fault: OtherGroupError | null;
    };
    protected recover({ channel, symbol }: StreamName): void;
    protected connect(signal: AbortSignal): Promise<void>;
}
