import { type Transaction } from './transaction.js';
/** Leg is what one side gives. */
export interface Leg {
    /** null: SOL. */
    readonly mint: string | null;
    /** Of the mint; 9 of SOL. */
    readonly decimals: number;
    /** Lamports of SOL. */
    readonly atoms: bigint;
    /** The wallet that gets it. */
    readonly to: string;
}
/** Terms are what a transaction must be, to be signed. */
export interface Terms {
    /** Who pays, receives and signs. */
    readonly taker: string;
    readonly pay: Leg;
    /** What comes for it in the same transaction, and from whom; null where the payment is alone. */
    readonly receive: (Leg & {
        readonly from: string;
    }) | null;
    /** Who pays the network. */
    readonly feePayer: string;
    /** The claim's id, as a text and as an account. */
    readonly memo: string;
    readonly reference: string;
}
/** Cost is what a transaction takes beyond its legs. */
export interface Cost {
    /** Of the network, at most; who pays it is Terms.feePayer. */
    readonly feeLamports: bigint;
    /** Whose SOL the taker's new token account takes, if that is not there yet; null where none is made. */
    readonly rentPayer: string | null;
}
/** tokenAccount derives the associated token account of a wallet. */
export declare function tokenAccount(wallet: string, mint: string, program: string): Promise<string>;
/**
 * verify holds a transaction to its terms: every instruction in its order, every
 * amount and account, who signs, and which accounts may change. It needs no node.
 * Whatever is more, less or otherwise throws VerificationError.
 */
export declare function verify(t: Transaction, terms: Terms): Promise<Cost>;
/** same throws VerificationError where a value is not the one that was expected. */
export declare function same(what: string, got: unknown, want: unknown): void;
