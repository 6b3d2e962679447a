import { type Address } from '@solana/kit';
export declare const systemProgram = "11111111111111111111111111111111";
export declare const tokenPrograms: readonly string[];
export declare const associatedTokenProgram = "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL";
/**
 * Instruction is one that the desk's transactions have. Amounts are in atoms, SOL's
 * in lamports; `extra` are accounts beyond those that it needs.
 */
export type Instruction = {
    readonly kind: 'compute_limit';
    readonly units: bigint;
    readonly extra: readonly string[];
} | {
    readonly kind: 'compute_price';
    readonly microLamports: bigint;
    readonly extra: readonly string[];
} | {
    readonly kind: 'transfer_sol';
    readonly from: string;
    readonly to: string;
    readonly atoms: bigint;
    readonly extra: readonly string[];
} | {
    readonly kind: 'transfer_token';
    readonly program: string;
    readonly from: string;
    readonly mint: string;
    readonly to: string;
    readonly owner: string;
    readonly atoms: bigint;
    readonly decimals: number;
    readonly extra: readonly string[];
} | {
    readonly kind: 'create_account';
    readonly payer: string;
    readonly account: string;
    readonly owner: string;
    readonly mint: string;
    readonly system: string;
    readonly program: string;
    readonly extra: readonly string[];
} | {
    readonly kind: 'memo';
    readonly text: string;
    readonly extra: readonly string[];
};
/** Transaction is one that was taken apart. */
export interface Transaction {
    /** Its bytes, as they were given. */
    readonly wire: Uint8Array;
    /** What signatures are over. */
    readonly message: Uint8Array;
    /** By signer, in the order of their slots; null is an empty one. The first signer pays the fee. */
    readonly signatures: ReadonlyMap<string, Uint8Array | null>;
    readonly writable: readonly string[];
    /** Every account, signers and programs included, each once. */
    readonly accounts: readonly string[];
    readonly blockhash: string;
    readonly instructions: readonly Instruction[];
}
/**
 * decodeTransaction takes a v0 transaction apart. It throws VerificationError for
 * any other, for bytes that are not its one encoding, for address tables, and for
 * an instruction that no transaction of the desk has: there is no list of what is
 * bad, only one of what is known.
 */
export declare function decodeTransaction(wire: Uint8Array): Transaction;
/** equal reports whether two runs of bytes are the same. */
export declare function equal(a: ArrayLike<number>, b: ArrayLike<number>): boolean;
/** hex writes bytes in hexadecimal. */
export declare function hex(bytes: Uint8Array): string;
/** fromBase64 reads base64 in its one form, with padding. It throws VerificationError. */
export declare function fromBase64(text: string): Uint8Array;
/** toBase64 writes base64 with padding. */
export declare function toBase64(bytes: Uint8Array): string;
/** toBase58 writes addresses and signatures. */
export declare function toBase58(bytes: Uint8Array): string;
/** asAddress types a text that is known to be an address. */
export declare const asAddress: (text: string) => Address;
