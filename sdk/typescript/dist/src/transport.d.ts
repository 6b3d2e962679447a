import type { CallOptions } from './call.js';
import { type Group } from './group.js';
/** TransportOptions are how requests go out. */
export interface TransportOptions {
    /** How long one attempt may take, in ms. Default 10,000. */
    readonly timeoutMs?: number;
    /** How often a request is repeated after its first attempt, where that is safe. Default 3. */
    readonly retries?: number;
    /** A wait longer than this, in ms, is the caller's: the error is thrown at once. Default 5,000. */
    readonly maxRetryWaitMs?: number;
    /** The largest answer, in bytes. Default 16 MiB. */
    readonly maxAnswerBytes?: number;
    /** In place of the global fetch. */
    readonly fetch?: typeof fetch;
}
/** HttpRequest is one request, which may take several attempts. */
export interface HttpRequest {
    readonly method: 'GET' | 'POST';
    /** Path and query. */
    readonly target: string;
    /** The nodes that may be asked. */
    readonly nodes: Group;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: string;
    /** Whether it may be sent again where it is not known what became of it. */
    readonly repeatable: boolean;
}
/** Transport sends requests and reads JSON. */
export declare class Transport {
    #private;
    constructor(options: TransportOptions);
    /**
     * send returns the body of a success. It throws ApiError, TransportError,
     * ProtocolError, or the reason of the caller's signal.
     */
    send(request: HttpRequest, options?: CallOptions): Promise<unknown>;
}
