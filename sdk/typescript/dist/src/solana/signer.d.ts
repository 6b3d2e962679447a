import { type Transaction } from './transaction.js';
/** Signer is a key, or a wallet that has one. */
export interface Signer {
    /** base58. */
    readonly address: string;
    /** True: it signs without asking a person, so that claims may be proved with it. */
    readonly holdsKey?: boolean;
    /** signMessage returns the ed25519 signature of exactly these bytes, 64 bytes. */
    signMessage(message: Uint8Array): Promise<Uint8Array>;
    /** signTransaction returns the transaction with its signature in its slot. */
    signTransaction(wire: Uint8Array): Promise<Uint8Array>;
}
/** keypairSigner signs with a key in Solana's form: 64 bytes, secret and public. WebCrypto holds it. */
export declare function keypairSigner(secret: Uint8Array): Promise<Signer>;
/** parseKeypair reads the text of a keypair file: a JSON list of 64 numbers. */
export declare function parseKeypair(text: string): Uint8Array;
/** StandardAccount is an account of a wallet of the Wallet Standard. */
export interface StandardAccount {
    readonly address: string;
}
/** StandardWallet is what is needed of such a wallet. */
export interface StandardWallet<A extends StandardAccount> {
    readonly features: {
        readonly 'solana:signMessage'?: {
            signMessage(input: {
                account: A;
                message: Uint8Array;
            }): Promise<readonly {
                readonly signature: Uint8Array;
            }[]>;
        };
        readonly 'solana:signTransaction'?: {
            signTransaction(input: {
                account: A;
                transaction: Uint8Array;
                chain?: `solana:${string}`;
            }): Promise<readonly {
                readonly signedTransaction: Uint8Array;
            }[]>;
        };
    };
}
/** walletSigner signs with an account of a browser's wallet. */
export declare function walletSigner<A extends StandardAccount>(wallet: StandardWallet<A>, account: A, chain?: `solana:${string}`): Signer;
/** Signed is a transaction with the signer's signature in it. */
export interface Signed {
    readonly wire: Uint8Array;
    /** The signer's, base58. */
    readonly signature: string;
}
/**
 * sign has a transaction signed, and holds the result to what was given: wallets
 * like to add instructions of their own, and the desk signs only what it built.
 * It throws VerificationError.
 */
export declare function sign(t: Transaction, signer: Signer): Promise<Signed>;
