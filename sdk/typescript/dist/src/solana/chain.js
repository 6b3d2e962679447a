import { createSolanaRpc, isSolanaError } from '@solana/kit';
import { BlockdeskError } from '../errors.js';
import { sleep } from '../wait.js';
import { toBase64 } from './transaction.js';
/** PaymentFailedError: the transaction has landed and failed. Nothing has changed hands but the fee. */
export class PaymentFailedError extends BlockdeskError {
    name = 'PaymentFailedError';
    signature;
    constructor(signature, why) {
        super(`${signature} failed on the chain: ${why}`);
        this.signature = signature;
    }
}
/**
 * PaymentPendingError: the transaction was sent and is not final yet. It may
 * still land: never pay the claim again before its block height has passed.
 */
export class PaymentPendingError extends BlockdeskError {
    name = 'PaymentPendingError';
    signature;
    constructor(signature, cause) {
        super(`${signature} was sent and is not final`, { cause });
        this.signature = signature;
    }
}
/** Chain sends transactions to a Solana node. */
export class Chain {
    #rpc;
    #options;
    constructor(options) {
        this.#options = { pollMs: 1_000, resendMs: 2_000, finalMs: 120_000, ...options };
        this.#rpc = createSolanaRpc(options.url);
    }
    /**
     * finalize sends a signed transaction, again and again, until no fork can take
     * it back, and returns its slot. To send the same bytes again is safe, also
     * after a restart: they can land once. It throws PaymentFailedError,
     * PaymentPendingError, or, where the node has not taken it, BlockdeskError.
     */
    async finalize(wire, signature, signal) {
        const { pollMs, resendMs, finalMs } = this.#options;
        let [sent, fault] = [performance.now(), await this.#send(wire, signature)];
        // A no may mean that it has landed before. Where that cannot be told, it goes on.
        if (isRefusal(fault) && (await this.#status(signature).catch(() => undefined)) === null) {
            throw new BlockdeskError(`${signature}: the node does not take it: ${reasonOf(fault)}`, { cause: fault });
        }
        for (const end = sent + finalMs; performance.now() < end;) {
            try {
                const status = await this.#status(signature);
                if (status?.confirmationStatus === 'finalized') {
                    if (status.err !== null)
                        throw new PaymentFailedError(signature, reasonOf(status.err));
                    return status.slot;
                }
            }
            catch (error) {
                if (error instanceof PaymentFailedError)
                    throw error;
                fault = error; // the node's: the transaction is on its way all the same
            }
            await sleep(pollMs, signal).catch((error) => { throw new PaymentPendingError(signature, error); });
            if (performance.now() - sent > resendMs)
                [sent, fault] = [performance.now(), await this.#send(wire, signature)];
        }
        throw new PaymentPendingError(signature, fault);
    }
    // send returns what went wrong, or null.
    async #send(wire, signature) {
        const text = toBase64(wire);
        try {
            const sent = await this.#rpc.sendTransaction(text, { encoding: 'base64', preflightCommitment: 'confirmed' }).send();
            return sent === signature ? null : new BlockdeskError(`the node calls the transaction ${sent}`);
        }
        catch (error) {
            return error;
        }
    }
    async #status(signature) {
        const { value } = await this.#rpc.getSignatureStatuses([signature], { searchTransactionHistory: true }).send();
        return value[0] ?? null;
    }
}
// isRefusal reports whether the node itself has answered no, by an error of JSON-RPC.
function isRefusal(error) {
    return isSolanaError(error) && error.context.__code < 0;
}
function reasonOf(error) {
    if (error instanceof Error)
        return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
    return JSON.stringify(error, (_, v) => (typeof v === 'bigint' ? v.toString() : v));
}
