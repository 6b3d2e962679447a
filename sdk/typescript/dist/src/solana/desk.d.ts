import type { CallOptions, KeyedOptions } from '../call.js';
import type { Client } from '../client.js';
import type { Claim, FillUSD, Quote, Rail, Submitted, Ticket, Token, Verification } from '../generated/schemas.js';
import type { Chain } from './chain.js';
import { type Signed, type Signer } from './signer.js';
import { type Transaction } from './transaction.js';
import { type Cost, type Leg } from './verify.js';
/** Trust is what the caller knows of the desk by another way than the desk itself. What is left out is taken from the desk. */
export interface Trust {
    /** The desk's own address. */
    readonly desk?: string;
    /** Where payments may go. */
    readonly payTo?: readonly string[];
    /** Mints by symbol, such as `{ USDC: '…', SLUSD: '…' }`. */
    readonly mints?: Readonly<Record<string, string>>;
}
/** DeskOptions are a Desk's. */
export interface DeskOptions {
    readonly client: Client;
    readonly signer: Signer;
    readonly trust?: Trust;
    /** Between two looks at a claim, in ms. Default 2,000: reads are few a minute. */
    readonly pollMs?: number;
    /** How long a payment may take to be verified, and a claim to end, in ms. Default 300,000. */
    readonly patienceMs?: number;
    /** Whether claims are signed by the wallet. Default: if the signer holds its key, because a wallet would ask a person each time. */
    readonly proveClaims?: boolean;
}
/** Order is what is to be bought. */
export interface Order {
    readonly ticket: Ticket;
    readonly tranche_id: string;
    /** USD, a step of the ladder. */
    readonly fill_usd: FillUSD;
    readonly rail: Rail;
    /** USD a unit; a dearer quote is refused. */
    readonly maxPriceUsd?: string;
    /**
     * The most that is paid, in units of the rail. USDC is always the fill; how much
     * SOL that is the desk alone says, so name it with that rail.
     */
    readonly maxAmount?: string;
}
/** Offer is a quote that was held to its order, and what it comes to. */
export interface Offer {
    readonly quote: Quote;
    readonly pay: Leg;
    readonly receive: Leg;
}
/** Package is a transaction that was held to its offer, and may be signed. */
export interface Package {
    readonly offer: Offer;
    readonly claim_id: string;
    readonly transaction: Transaction;
    readonly cost: Cost;
    /** End of the reservation. */
    readonly expires_at: string;
}
/** AtomicPackage has both legs: it goes back to the desk, by submit. */
export interface AtomicPackage extends Package {
    readonly build_id: string;
}
/** BuildOptions are a build's. */
export interface BuildOptions extends KeyedOptions {
    /** Who pays the network's fee. Default: the desk. */
    readonly feePayer?: 'desk' | 'taker';
}
/**
 * Desk buys from a desk for one signer. Nothing is signed before it was taken
 * apart and held to the offer that was accepted: what is paid, to whom, what
 * comes for it, who pays the fees, and that nothing else happens.
 */
export declare class Desk {
    #private;
    constructor({ client, signer, trust, pollMs, patienceMs, proveClaims }: DeskOptions);
    /**
     * handshake proves the signer's key and gives the client its token, for 7 days.
     * A client address gets one an hour: keep it. It signs nothing but the nonce of this
     * protocol for this key.
     */
    handshake(options?: CallOptions): Promise<Token>;
    /** quote asks for a firm price and holds the answer to the order. It throws VerificationError. */
    quote(order: Order, options?: KeyedOptions): Promise<Offer>;
    /** build reserves the offer and returns both legs in one transaction. It takes the token of a handshake. */
    build(offer: Offer, { feePayer, ...options }?: BuildOptions): Promise<AtomicPackage>;
    /** atomicClaim is build without a token, which submit then needs; the desk pays the network's fee. */
    atomicClaim(offer: Offer, options?: KeyedOptions): Promise<AtomicPackage>;
    /** submit signs a package and has the desk sign and broadcast it. The same package may be submitted again. */
    submit(made: AtomicPackage, options?: KeyedOptions): Promise<Submitted>;
    /** claim reserves the offer and returns the payment, which the desk delivers for once it is final. */
    claim(offer: Offer, options?: KeyedOptions): Promise<Package>;
    /**
     * pay signs the payment of a claim, sends it, and returns its signature when it
     * is final. onSigned is awaited before it is sent: keep what it is given, and
     * after a crash send the same bytes by Chain.finalize; never pay a claim twice.
     */
    pay(made: Package, chain: Chain, { signal, onSigned }?: {
        readonly signal?: AbortSignal;
        readonly onSigned?: (signed: Signed) => Promise<void> | void;
    }): Promise<string>;
    /** verifyPayment shows the desk a payment until it has seen it final itself. */
    verifyPayment(made: Package, signature: string, options?: CallOptions): Promise<Verification>;
    /** follow returns a claim when it has ended: `settled`, `expired`, `released` or `refund_due`. */
    follow(claim_id: string, options?: CallOptions): Promise<Claim>;
}
/** settled returns a claim that was, and throws for one that has ended otherwise. */
export declare function settled(claim: Claim): Claim;
