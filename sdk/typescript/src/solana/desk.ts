import type { CallOptions, KeyedOptions } from '../call.js';
import type { Client } from '../client.js';
import { compareDecimals, divideDecimals, toAtoms } from '../decimal.js';
import { BlockdeskError, ProtocolError, TimeoutError, VerificationError } from '../errors.js';
import type {
  AtomicClaimPackage, BoundPayment, Build, Claim, ClaimPackage, FillUSD, Quote, Rail, Submitted, Ticket, Token, Verification,
} from '../generated/schemas.js';
import { sleep } from '../wait.js';
import type { Chain } from './chain.js';
import { sign, type Signed, type Signer } from './signer.js';
import { decodeTransaction, equal, fromBase64, hex, toBase58, toBase64, type Transaction } from './transaction.js';
import { same, verify, type Cost, type Leg } from './verify.js';

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

const ended: ReadonlySet<Claim['state']> = new Set(['settled', 'expired', 'released', 'refund_due']);
const domain = 'svc_dvp_handshake_v1\0';
const maxDecimals = 18;
const solDecimals = 9;

/**
 * Desk buys from a desk for one signer. Nothing is signed before it was taken
 * apart and held to the offer that was accepted: what is paid, to whom, what
 * comes for it, who pays the fees, and that nothing else happens.
 */
export class Desk {
  readonly #client: Client;
  readonly #signer: Signer;
  readonly #trust: Trust;
  readonly #pollMs: number;
  readonly #patienceMs: number;
  readonly #proveClaims: boolean;

  constructor({ client, signer, trust = {}, pollMs = 2_000, patienceMs = 300_000, proveClaims = signer.holdsKey ?? false }: DeskOptions) {
    this.#client = client;
    this.#signer = signer;
    this.#trust = trust;
    this.#pollMs = pollMs;
    this.#patienceMs = patienceMs;
    this.#proveClaims = proveClaims;
  }

  /**
   * handshake proves the signer's key and gives the client its token, for 7 days.
   * A client address gets one an hour: keep it. It signs nothing but the nonce of this
   * protocol for this key.
   */
  async handshake(options?: CallOptions): Promise<Token> {
    const pubkey = this.#signer.address;
    const challenge = await this.#client.postHandshake({ pubkey }, options);
    if (!('nonce' in challenge)) throw new ProtocolError('the handshake: no nonce');
    await judged('the challenge', () => {
      const inside = fromBase64(challenge.nonce);
      const text = String.fromCharCode(...inside);
      if (!text.startsWith(domain) || toBase58(inside.subarray(domain.length, domain.length + 32)) !== pubkey) {
        throw new VerificationError('the nonce is not one of this protocol for this key');
      }
    });
    const signature = toBase58(await this.#signer.signMessage(new TextEncoder().encode(challenge.nonce)));
    const token = await this.#client.postHandshake({ pubkey, nonce: challenge.nonce, signature }, options);
    if (!('access_token' in token)) throw new ProtocolError('the handshake: no token');
    this.#client.token = token.access_token;
    return token;
  }

  /** quote asks for a firm price and holds the answer to the order. It throws VerificationError. */
  async quote(order: Order, options?: KeyedOptions): Promise<Offer> {
    const { ticket, tranche_id, fill_usd, rail } = order;
    const request = { order_id: ticket.order_id, tranche_id, fill_usd, rail };
    const quote = await this.#client.postQuote(request, options);
    return judged('the quote', () => {
      hold('the quote', quote, { ...request, pair: ticket.pair });
      if (order.maxPriceUsd !== undefined && compareDecimals(quote.price_usd, order.maxPriceUsd) > 0) {
        throw new VerificationError(`the price is ${quote.price_usd}, at most ${order.maxPriceUsd} was wanted`);
      }
      const pay = this.#payment(quote);
      if (order.maxAmount !== undefined && compareDecimals(quote.payment.amount, order.maxAmount) > 0) {
        throw new VerificationError(`${quote.payment.amount} ${rail} to pay, at most ${order.maxAmount} was wanted`);
      }
      return { quote, pay, receive: this.#delivery(quote, ticket) };
    });
  }

  /** build reserves the offer and returns both legs in one transaction. It takes the token of a handshake. */
  async build(offer: Offer, { feePayer = 'desk', ...options }: BuildOptions = {}): Promise<AtomicPackage> {
    const { order_id, tranche_id, fill_usd, rail, quote_id } = offer.quote;
    const taker = this.#signer.address;
    const request = { order_id, tranche_id, fill_usd, rail, taker, quote_id, fee_payer: feePayer };
    const build = await this.#client.postBuild(request, options);
    return judged('the build', async () => {
      holdTerms(build.quote, offer);
      const { base_amount: amount, base_amount_atoms: amount_atoms } = offer.quote;
      hold('the delivery', build.delivery, { to: taker, mint: offer.receive.mint, amount, amount_atoms });
      const made = await this.#atomic(build, offer, feePayer);
      same('recent_blockhash', build.recent_blockhash, made.transaction.blockhash);
      const digest = await crypto.subtle.digest('SHA-256', new Uint8Array(made.transaction.message));
      same('message_sha256', build.message_sha256, hex(new Uint8Array(digest)));
      same('required_signers', build.required_signers, [...made.transaction.signatures.keys()]);
      return { ...made, build_id: build.build_id };
    });
  }

  /** atomicClaim is build without a token, which submit then needs; the desk pays the network's fee. */
  async atomicClaim(offer: Offer, options?: KeyedOptions): Promise<AtomicPackage> {
    const claim = await this.#client.postNativeAtomicClaim(await this.#claimRequest(offer), options);
    return judged('the claim', async () => {
      holdTerms(claim.claim, offer);
      return { ...(await this.#atomic(claim, offer, 'desk')), build_id: claim.submit.build_id };
    });
  }

  /** submit signs a package and has the desk sign and broadcast it. The same package may be submitted again. */
  async submit(made: AtomicPackage, options?: KeyedOptions): Promise<Submitted> {
    const signed = await sign(made.transaction, this.#signer);
    const answer = await this.#client.postSubmit({ build_id: made.build_id, transaction: toBase64(signed.wire) }, options);
    return judged('what was submitted', () => {
      hold('what was submitted', answer, { claim_id: made.claim_id });
      const whole = decodeTransaction(fromBase64(answer.transaction));
      if (!equal(whole.message, made.transaction.message)) throw new VerificationError('the desk has signed another transaction');
      same('our signature', toBase58(whole.signatures.get(this.#signer.address) ?? new Uint8Array()), signed.signature);
      const [first] = whole.signatures.values();
      same('the signature', answer.signature, toBase58(first ?? new Uint8Array()));
      return answer;
    });
  }

  /** claim reserves the offer and returns the payment, which the desk delivers for once it is final. */
  async claim(offer: Offer, options?: KeyedOptions): Promise<Package> {
    const claim = await this.#client.postNativeModularClaim(await this.#claimRequest(offer), options);
    return judged('the claim', async () => {
      holdTerms(claim.claim, offer);
      const transaction = this.#bound(claim, claim.payment, offer);
      const taker = this.#signer.address;
      const cost = await verify(transaction, {
        taker, pay: offer.pay, receive: null, feePayer: taker, memo: claim.claim_id, reference: claim.payment.reference,
      });
      return { offer, claim_id: claim.claim_id, transaction, cost, expires_at: claim.expires_at };
    });
  }

  /**
   * pay signs the payment of a claim, sends it, and returns its signature when it
   * is final. onSigned is awaited before it is sent: keep what it is given, and
   * after a crash send the same bytes by Chain.finalize; never pay a claim twice.
   */
  async pay(made: Package, chain: Chain, { signal, onSigned }: {
    readonly signal?: AbortSignal; readonly onSigned?: (signed: Signed) => Promise<void> | void;
  } = {}): Promise<string> {
    const signed = await sign(made.transaction, this.#signer);
    await onSigned?.(signed);
    await chain.finalize(signed.wire, signed.signature, signal);
    return signed.signature;
  }

  /** verifyPayment shows the desk a payment until it has seen it final itself. */
  async verifyPayment(made: Package, signature: string, options?: CallOptions): Promise<Verification> {
    const { order_id, tranche_id } = made.offer.quote;
    const proof = { order_id, tranche_id, l1_signature: signature, claim_id: made.claim_id };
    return this.#until(`payment ${signature} verified`, options, async () => {
      const answer = await this.#client.postNativeVerifyPayment(proof, options);
      if ('verified' in answer) return { found: answer };
      return { waitMs: answer.retry_after_ms };
    });
  }

  /** follow returns a claim when it has ended: `settled`, `expired`, `released` or `refund_due`. */
  async follow(claim_id: string, options?: CallOptions): Promise<Claim> {
    return this.#until(`claim ${claim_id} ended`, options, async () => {
      const claim = await this.#client.getClaim({ claim_id }, options);
      return ended.has(claim.state) ? { found: claim } : { waitMs: this.#pollMs };
    });
  }

  // payment is what a quote wants to be paid, if it is consistent and trusted.
  #payment({ rail, fill_usd, payment }: Quote): Leg {
    same('the rail', payment.rail, rail);
    same('a mint is there', payment.mint !== null, rail === 'USDC');
    if (rail === 'USDC' && compareDecimals(payment.amount, fill_usd) !== 0) {
      throw new VerificationError(`${payment.amount} USDC for a fill of ${fill_usd}`);
    }
    this.#trusted('USDC', payment.mint);
    if (this.#trust.payTo?.includes(payment.pay_to) === false) throw new VerificationError(`the payment goes to ${payment.pay_to}`);
    const amount = exactly(payment.amount, payment.amount_atoms);
    // Of a token the chain holds the transfer to its decimals.
    if (payment.mint === null) same('decimals of SOL', amount.decimals, solDecimals);
    return { mint: payment.mint, ...amount, to: payment.pay_to };
  }

  // delivery is what a quote brings, if that is the fill at its price, rounded down.
  #delivery(quote: Quote, ticket: Ticket): Leg {
    this.#trusted(ticket.base_symbol, ticket.base_mint);
    const amount = exactly(quote.base_amount, quote.base_amount_atoms);
    const fair = divideDecimals(quote.fill_usd, quote.price_usd, amount.decimals, 'down');
    same('the base amount', amount.atoms, toAtoms(fair, amount.decimals));
    return { mint: ticket.base_mint, ...amount, to: this.#signer.address };
  }

  #trusted(symbol: string, mint: string | null): void {
    const known = this.#trust.mints?.[symbol];
    if (known !== undefined && mint !== null && mint !== known) throw new VerificationError(`${symbol} is ${mint}, ${known} was expected`);
  }

  // A claim that its wallet has signed is not limited by what others behind the same address reserve.
  async #claimRequest({ quote: { order_id, tranche_id, fill_usd, rail, quote_id } }: Offer) {
    const request = { bot_wallet: this.#signer.address, order_id, tranche_id, fill_usd, payment_rail: rail, quote_id };
    if (!this.#proveClaims) return request;
    const minute = Math.floor(Date.now() / 60_000);
    const text = `blockdesk-claim-v1|${order_id}|${tranche_id}|${fill_usd}|${rail}|${minute}`;
    return { ...request, wallet_signature: toBase58(await this.#signer.signMessage(new TextEncoder().encode(text))) };
  }

  // bound takes the transaction of an answer apart that binds it to its claim.
  #bound(answer: Build | ClaimPackage | AtomicClaimPackage, payment: BoundPayment, { quote }: Offer): Transaction {
    const { rail, mint, amount, amount_atoms, pay_to } = quote.payment;
    hold('the payment', payment, { rail, mint, amount, amount_atoms, pay_to, memo: answer.claim_id });
    return decodeTransaction(fromBase64(answer.transaction));
  }

  async #atomic(answer: Build | AtomicClaimPackage, offer: Offer, feePayer: 'desk' | 'taker'): Promise<Package> {
    const transaction = this.#bound(answer, answer.payment, offer);
    const taker = this.#signer.address;
    const desk = this.#trust.desk ?? [...transaction.signatures.keys()].find((s) => s !== taker);
    if (desk === undefined) throw new VerificationError('nobody but the taker is to sign');
    const cost = await verify(transaction, {
      taker, pay: offer.pay, receive: { ...offer.receive, from: desk }, feePayer: feePayer === 'taker' ? taker : desk,
      memo: answer.claim_id, reference: answer.payment.reference,
    });
    return { offer, claim_id: answer.claim_id, transaction, cost, expires_at: answer.expires_at };
  }

  // until looks again and again; the desk says how long to wait in between.
  async #until<T>(what: string, options: CallOptions | undefined, look: () => Promise<Look<T>>): Promise<T> {
    for (const end = performance.now() + this.#patienceMs; ;) {
      const seen = await look();
      if ('found' in seen) return seen.found;
      if (performance.now() > end) throw new TimeoutError(`not within ${this.#patienceMs} ms: ${what}`);
      const wait = Number.isFinite(seen.waitMs) ? seen.waitMs : this.#pollMs;
      await sleep(Math.min(Math.max(wait, minPollMs), this.#patienceMs), options?.signal);
    }
  }
}

const minPollMs = 50;

type Look<T> = { found: T } | { waitMs: number };

// judged does a step that holds an answer to what was asked for. An answer that
// lacks a member, or has another type there, fails it too.
async function judged<T>(what: string, step: () => T | Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    if (error instanceof BlockdeskError) throw error;
    throw new VerificationError(`${what} is not as the desk publishes it`, { cause: error });
  }
}

// hold compares the members that are named.
function hold(what: string, got: object, want: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(want)) same(`${what}: ${name}`, (got as Record<string, unknown>)[name], value);
}

// holdTerms: what a claim repeats of the quote must be the quote's.
function holdTerms(terms: object, { quote }: Offer): void {
  const { quote_id, order_id, tranche_id, pair, fill_usd, rail, price_usd, base_amount, base_amount_atoms } = quote;
  hold('the terms', terms, { quote_id, order_id, tranche_id, pair, fill_usd, rail, price_usd, base_amount, base_amount_atoms });
}

// exactly reads an amount, whose text has as many digits as its asset has
// decimals, and holds the text to the atoms: a person sees the one and signs the other.
function exactly(amount: string, atoms: string): { decimals: number; atoms: bigint } {
  const point = amount.indexOf('.');
  const decimals = point < 0 ? 0 : amount.length - point - 1;
  const value = toAtoms(atoms, 0);
  const right = decimals <= maxDecimals && value > 0n && toAtoms(amount, decimals) === value;
  if (!right) throw new VerificationError(`${amount} is not ${atoms} atoms`);
  return { decimals, atoms: value };
}

/** settled returns a claim that was, and throws for one that has ended otherwise. */
export function settled(claim: Claim): Claim {
  if (claim.state === 'settled') return claim;
  throw new BlockdeskError(`claim ${claim.claim_id} has ended as ${claim.state}`);
}
