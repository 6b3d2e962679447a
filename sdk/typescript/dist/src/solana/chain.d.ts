import { BlockdeskError } from '../errors.js';
/** PaymentFailedError: the transaction has landed and failed. Nothing has changed hands but the fee. */
export declare class PaymentFailedError extends BlockdeskError {
    readonly name = "PaymentFailedError";
    readonly signature: string;
    constructor(signature: string, why: string);
}
/**
 * PaymentPendingError: the transaction was sent and is not final yet. It may
 * still land: never pay the claim again before its block height has passed.
 */
export declare class PaymentPendingError extends BlockdeskError {
    readonly name = "PaymentPendingError";
    readonly signature: string;
    constructor(signature: string, cause: unknown);
}
/** ChainOptions are how a node is asked. */
export interface ChainOptions {
    /** Of a Solana node. */
    readonly url: string;
    /** Between two looks, in ms. Default 1,000. */
    readonly pollMs?: number;
    /** Between two sends of the same bytes, in ms. Default 2,000. */
    readonly resendMs?: number;
    /**
     * How long a transaction may take to be final, in ms. Default 120,000: its
     * blockhash ends after 150 blocks, some 60 s, and finality takes 32 more.
     */
    readonly finalMs?: number;
}
/** Chain sends transactions to a Solana node. */
export declare class Chain {
    #private;
    constructor(options: ChainOptions);
    /**
     * finalize sends a signed transaction, again and again, until no fork can take
     * it back, and returns its slot. To send the same bytes again is safe, also
     * after a restart: they can land once. It throws PaymentFailedError,
     * PaymentPendingError, or, where the node has not taken it, BlockdeskError.
     */
    finalize(wire: Uint8Array, signature: string, signal?: AbortSignal): Promise<bigint>;
}
