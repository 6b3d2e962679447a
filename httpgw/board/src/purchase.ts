// One purchase by delivery versus payment, as a client makes it: quote, build,
// look at what is to be signed, sign, submit, follow.
import type { Api } from './api.ts';
import { Refused } from './api.ts';
import { encode, fromBase64, toBase64 } from './base58.ts';
import { Decimal } from './decimal.ts';
import type { DeskStatus, Payment, Quote } from './messages.ts';
import type { Account, Wallet } from './standard.ts';
import { feature, messageFeature, transactionFeature } from './standard.ts';
import { Doubt, inspect, parse } from './transaction.ts';

export interface Order {
  order_id: string;
  tranche_id: string;
  fill_usd: string;
  rail: string;
}

interface Built {
  build_id: string;
  claim_id: string;
  transaction: string;
  payment: Payment & { memo: string };
  delivery: { to: string; mint: string; amount: string; amount_atoms: string };
  expires_at: string;
  quote: Quote;
}

/** Deal is a build that has been held to its quote. */
export interface Deal {
  quote: Quote;
  built: Built;
  bytes: Uint8Array;
  feePayer: string;
  rentPayer: string | null;
  priority: bigint;
}

export interface Claim {
  claim_id: string;
  state: string;
  history: { state: string; at: string }[];
  delivery: { l1_signature?: string | null };
}

/** ended are the states that a claim does not leave. */
export const ended: ReadonlySet<string> = new Set(['settled', 'expired', 'released', 'refunded', 'refund_due']);

interface Token {
  access_token: string;
  expires_at: string;
}

const tokenKey = (address: string): string => `dvp-token ${address}`;

/** keptToken is the token that an address was given before, while it is good. */
export function keptToken(address: string): Token | null {
  try {
    const token = JSON.parse(localStorage.getItem(tokenKey(address)) ?? 'null') as Token | null;
    return token && Date.parse(token.expires_at) > Date.now() ? token : null;
  } catch {
    return null;
  }
}

/** forgetToken is for one that the service refuses. */
export function forgetToken(address: string): void {
  localStorage.removeItem(tokenKey(address));
}

/** handshake proves the wallet's key, and keeps the token that it gets. */
export async function handshake(api: Api, wallet: Wallet, account: Account): Promise<Token> {
  const path = '/api/v1/dvp/handshake';
  const pubkey = account.address;
  const { nonce } = await api.post<{ nonce: string }>(path, { pubkey });
  // A text of another kind could be something else that the key signs.
  if (!/^[A-Za-z0-9+/]{16,200}={0,2}$/.test(nonce)) throw new Doubt('the nonce is no base64 text');
  const message = new TextEncoder().encode(nonce);
  const [signed] = await feature(wallet, messageFeature).signMessage({ account, message });
  if (!signed || !same(signed.signedMessage, message)) throw new Doubt('the wallet has signed another text');
  const token = await api.post<Token>(path, { pubkey, nonce, signature: encode(signed.signature) });
  localStorage.setItem(tokenKey(pubkey), JSON.stringify(token));
  return token;
}

const same = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, i) => byte === b[i]);

// exactly reads an amount, whose text has as many digits as its asset has decimals,
// and holds the text to the atoms: a person reads the one and signs the other.
function exactly(text: string, atoms: string): { atoms: bigint; decimals: number } {
  const amount = Decimal.parse(text);
  if (String(amount.units) !== atoms) throw new Doubt(`${text} is not ${atoms} atoms`);
  return { atoms: amount.units, decimals: amount.scale };
}

// held holds a quote to its order, and returns what it pays.
function held(quote: Quote, order: Order): { atoms: bigint; decimals: number } {
  for (const key of ['order_id', 'tranche_id', 'fill_usd', 'rail'] as const) {
    if (quote[key] !== order[key]) throw new Doubt(`the quote has another ${key} than was asked for`);
  }
  const { rail, mint, amount, amount_atoms } = quote.payment;
  if (rail !== order.rail || (rail === 'SOL') !== (mint === null)) throw new Doubt('the quote is paid in something else');
  if (rail === 'USDC' && Decimal.parse(amount).compare(Decimal.parse(order.fill_usd)) !== 0) throw new Doubt(`the quote wants ${amount} USDC`);
  return exactly(amount, amount_atoms);
}

/** build asks for a quote and for the transaction of its terms, and holds one to the other. It throws Doubt. */
export async function build(api: Api, order: Order, baseMint: string, wallet: string, token: string): Promise<Deal> {
  const quote = await api.post<Quote>('/api/v1/rfq/quote', order);
  const pays = held(quote, order);
  const body = { ...order, taker: wallet, ...(quote.quote_id ? { quote_id: quote.quote_id } : {}) };
  const [built, status] = await Promise.all([api.post<Built>('/api/v1/dvp/build', body, token), api.get<DeskStatus>('/api/v1/dvp/status')]);
  const desk = status.chain.desk_address;
  if (!desk) throw new Doubt('the desk does not say who it is');
  for (const key of ['order_id', 'tranche_id', 'fill_usd', 'rail', 'price_usd', 'base_amount_atoms'] as const) {
    if (built.quote[key] !== quote[key]) throw new Doubt(`the build has another ${key} than the quote`);
  }
  const bytes = fromBase64(built.transaction);
  const t = parse(bytes);
  const seen = await inspect(t, {
    wallet, desk, memo: built.claim_id,
    pay: { mint: quote.payment.mint, ...pays, to: quote.payment.pay_to },
    deliver: { mint: baseMint, ...exactly(quote.base_amount, quote.base_amount_atoms), to: wallet },
  });
  if (t.signatures.some((s) => s.some((byte) => byte !== 0))) throw new Doubt('the transaction is signed already');
  return { quote, built, bytes, ...seen };
}

/** submit signs a deal and hands it in. The desk signs it too, and sends it. */
export async function submit(api: Api, wallet: Wallet, account: Account, deal: Deal, chain: string, token: string): Promise<{ signature: string }> {
  const where = account.chains.includes(chain) ? { chain } : {};
  const [signed] = await feature(wallet, transactionFeature).signTransaction({ account, transaction: deal.bytes, ...where });
  if (!signed) throw new Doubt('the wallet has signed nothing');
  if (!same(parse(signed.signedTransaction).message, parse(deal.bytes).message)) throw new Doubt('the wallet has changed the transaction');
  return api.post('/api/v1/dvp/submit', { build_id: deal.built.build_id, transaction: toBase64(signed.signedTransaction) }, token);
}

const followEvery = 2_000; // ms: the limit of reads is shared with other pages
const longestWait = 60_000; // ms, whatever the service asks for

/**
 * follow looks at a claim until it has ended. A service that does not answer for a
 * while is asked again: the money is on its way all the same. each is told of every
 * look, and of what has gone wrong with it.
 */
export async function follow(api: Pick<Api, 'get'>, id: string, each: (claim: Claim | null, trouble: unknown) => void): Promise<Claim> {
  for (;;) {
    let wait = followEvery;
    try {
      const claim = await api.get<Claim>(`/api/v1/rfq/claims/${id}`);
      each(claim, null);
      if (ended.has(claim.state)) return claim;
    } catch (error) {
      if (error instanceof Refused && error.status !== 429 && error.status < 500) throw error;
      if (error instanceof Refused) wait = Math.min(longestWait, Math.max(wait, error.retryAfter * 1000));
      each(null, error);
    }
    await new Promise((resolve) => window.setTimeout(resolve, wait));
  }
}
