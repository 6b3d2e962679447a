/** sleep waits, and throws the signal's reason as soon as it is aborted. */
export declare function sleep(ms: number, signal?: AbortSignal): Promise<void>;
/**
 * backoff is how long to wait before try number attempt (from 0), in ms: between
 * half of first × 2^attempt and all of it, so that clients which were cut off
 * together do not come back together; never more than most.
 */
export declare function backoff(attempt: number, first: number, most: number): number;
