import { Follower, type FollowOptions } from './follower.js';
/** EventFeedOptions are an EventFeed's. */
export interface EventFeedOptions extends FollowOptions {
    /** In place of the global fetch. */
    readonly fetch?: typeof fetch;
}
/** ServerEvent is one event of a stream. */
export interface ServerEvent {
    readonly type: string;
    readonly data: string;
}
/**
 * EventParser reads server-sent events as the WHATWG's HTML standard says
 * (section 9.2.6), but for an id without data, which it passes over.
 */
export declare class EventParser {
    #private;
    /** The last id, which a reader sends when it comes back. */
    lastEventId: string;
    /** How long the server wants a reader to wait before it comes back, in ms; null where it has not said. */
    retryMs: number | null;
    constructor(lastEventId: string, dispatch: (event: ServerEvent) => void);
    /** feed takes more of the stream. It throws ProtocolError for an event without end. */
    feed(text: string): void;
}
/** EventFeed follows the market by server-sent events: for networks where a WebSocket does not get through. */
export declare class EventFeed extends Follower {
    #private;
    constructor({ fetch: given, ...options }: EventFeedOptions);
    protected recover(): void;
    protected connect(signal: AbortSignal): Promise<void>;
}
