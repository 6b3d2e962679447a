import type { Input, KeyedOptions, Operation } from './call.js';
import { EventFeed, type EventFeedOptions } from './events.js';
import { Feed, type FeedOptions } from './feed.js';
import { Operations } from './generated/operations.js';
import { type TransportOptions } from './transport.js';
/** ClientOptions are where the desk is and how it is asked. */
export interface ClientOptions extends TransportOptions {
    /** The base address, such as `http://127.0.0.1:8080`. */
    readonly baseUrl: string;
    /** The api address, for the operations that are only there. */
    readonly apiUrl?: string;
    /** The WebSocket's address; the base address serves it too. */
    readonly wsUrl?: string;
    /**
     * The base addresses of the other nodes, where a group of them serves. One that does
     * not answer is left for the next. One that sends to the leader is followed, to hosts
     * that are named in these options alone, since a token may go with it.
     */
    readonly nodes?: readonly string[];
    /**
     * Where instruments are split over groups, the base addresses of each other group's
     * nodes. A feed of their symbols goes there, to hosts that are named here or in nodes,
     * or to its own, and nowhere else. Requests need none: any group answers them.
     */
    readonly otherGroups?: readonly (readonly string[])[];
    /** A token of a handshake before. */
    readonly token?: string;
}
/**
 * Client asks the desk: a method for each endpoint, by the operationId that the
 * OpenAPI document gives it. Answers are as they are on the wire, typed.
 *
 * What only reads is repeated after a failure; what changes something goes out
 * with an Idempotency-Key and is repeated under the same key. The handshake has
 * none, and is repeated only where it was surely not carried out.
 */
export declare class Client extends Operations {
    #private;
    readonly baseUrl: URL;
    readonly apiUrl: URL | null;
    readonly wsUrl: URL;
    /** Goes out with DvP's build and submit alone; null: there is none. */
    token: string | null;
    constructor({ baseUrl, apiUrl, wsUrl, nodes, otherGroups, token, ...transport }: ClientOptions);
    /** feed follows the market over the WebSocket; it begins with its start. */
    feed(options: Omit<FeedOptions, 'url'>): Feed;
    /** events follows the market by server-sent events; it begins with its start. All symbols have to be of one group. */
    events(options: Omit<EventFeedOptions, 'url'>): EventFeed;
    protected call<T>(operation: Operation, input: Input, options?: KeyedOptions): Promise<T>;
}
/** randomKey is an Idempotency-Key. crypto.randomUUID is not there on pages without TLS. */
export declare function randomKey(): string;
