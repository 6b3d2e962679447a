// A purchase by delivery versus payment: quote, build, verify the transaction, sign,
// submit, follow the claim.
import type { Api } from './api.ts';
import { ServiceError } from './api.ts';
import { encode, fromBase64, toBase64 } from './base58.ts';
import { Decimal } from './decimal.ts';
import type { DeskStatus, Payment, Quote } from './messages.ts';
import type { Account, Wallet } from './standard.ts';
import { feature, messageFeature, transactionFeature } from './standard.ts';
import { VerificationError, inspect, parse } from './transaction.ts';

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

/** Deal is a build that was verified against its quote. */
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

/** ended has the final states of a claim. */
export const ended: ReadonlySet<string> = new Set(['settled', 'expired', 'released', 'refunded', 'refund_due']);

interface Token {
  access_token: string;
  expires_at: string;
}

const tokenKey = (address: string): string => `dvp-token ${address}`;

/** storedToken returns the stored token of an address while it is valid. */
export function storedToken(address: string): Token | null {
  try {
    const token = JSON.parse(localStorage.getItem(tokenKey(address)) ?? 'null') as Token | null;
    return token && Date.parse(token.expires_at) > Date.now() ? token : null;
  } catch {
    return null;
  }
}

/** forgetToken deletes a token that the service refuses. */
export function forgetToken(address: string): void {
  localStorage.removeItem(tokenKey(address));
}

/** handshake proves the wallet's key and stores the token. */
export async function handshake(api: Api, wallet: Wallet, account: Account): Promise<Token> {
  const path = '/api/v1/dvp/handshake';
  const pubkey = account.address;
  const { nonce } = await api.post<{ nonce: string }>(path, { pubkey });
  // Another text could be a message or transaction that the key must not sign.
  if (!/^[A-Za-z0-9+/]{16,200}={0,2}$/.test(nonce)) throw new VerificationError('the nonce is not base64');
  const message = new TextEncoder().encode(nonce);
  const [signed] = await feature(wallet, messageFeature).signMessage({ account, message });
  if (!signed || !same(signed.signedMessage, message)) throw new VerificationError('the wallet signed another text');
  const token = await api.post<Token>(path, { pubkey, nonce, signature: encode(signed.signature) });
  localStorage.setItem(tokenKey(pubkey), JSON.stringify(token));
  return token;
}

const same = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, i) => byte === b[i]);

// parseAmount parses an amount with all decimals of its asset, and checks that it equals
// the atoms: the user reads the amount and signs the atoms.
function parseAmount(text: string, atoms: string): { atoms: bigint; decimals: number } {
  const amount = Decimal.parse(text);
  if (String(amount.units) !== atoms) throw new VerificationError(`${text} is not ${atoms} atoms`);
  return { atoms: amount.units, decimals: amount.scale };
}

// checkQuote checks a quote against its order and returns the payment.
function checkQuote(quote: Quote, order: Order): { atoms: bigint; decimals: number } {
  for (const key of ['order_id', 'tranche_id', 'fill_usd', 'rail'] as const) {
    if (quote[key] !== order[key]) throw new VerificationError(`the quote has another ${key} than the order`);
  }
  const { rail, mint, amount, amount_atoms } = quote.payment;
  if (rail !== order.rail || (rail === 'SOL') !== (mint === null)) throw new VerificationError('the quote is paid in another asset');
  if (rail === 'USDC' && Decimal.parse(amount).compare(Decimal.parse(order.fill_usd)) !== 0) throw new VerificationError(`the quote wants ${amount} USDC`);
  return parseAmount(amount, amount_atoms);
}

/** build requests the transaction of a firm quote, or of a new one, and verifies the transaction. It throws VerificationError. */
export async function build(api: Api, order: Order, baseMint: string, wallet: string, token: string, firm?: Quote): Promise<Deal> {
  const quote = firm ?? (await api.post<Quote>('/api/v1/rfq/quote', order));
  const pays = checkQuote(quote, order);
  const body = { ...order, taker: wallet, ...(quote.quote_id ? { quote_id: quote.quote_id } : {}) };
  const [built, status] = await Promise.all([api.post<Built>('/api/v1/dvp/build', body, token), api.get<DeskStatus>('/api/v1/dvp/status')]);
  const desk = status.chain.desk_address;
  if (!desk) throw new VerificationError('the desk has no address');
  for (const key of ['order_id', 'tranche_id', 'fill_usd', 'rail', 'price_usd', 'base_amount_atoms'] as const) {
    if (built.quote[key] !== quote[key]) throw new VerificationError(`the build has another ${key} than the quote`);
  }
  const bytes = fromBase64(built.transaction);
  const t = parse(bytes);
  const seen = await inspect(t, {
    wallet, desk, memo: built.claim_id,
    pay: { mint: quote.payment.mint, ...pays, to: quote.payment.pay_to },
    deliver: { mint: baseMint, ...parseAmount(quote.base_amount, quote.base_amount_atoms), to: wallet },
  });
  if (t.signatures.some((s) => s.some((byte) => byte !== 0))) throw new VerificationError('the transaction is already signed');
  return { quote, built, bytes, ...seen };
}

/** submit signs a deal and submits it. The desk co-signs and broadcasts it. */
export async function submit(api: Api, wallet: Wallet, account: Account, deal: Deal, chain: string, token: string): Promise<{ signature: string }> {
  const where = account.chains.includes(chain) ? { chain } : {};
  const [signed] = await feature(wallet, transactionFeature).signTransaction({ account, transaction: deal.bytes, ...where });
  if (!signed) throw new VerificationError('the wallet signed nothing');
  if (!same(parse(signed.signedTransaction).message, parse(deal.bytes).message)) throw new VerificationError('the wallet changed the transaction');
  return api.post('/api/v1/dvp/submit', { build_id: deal.built.build_id, transaction: toBase64(signed.signedTransaction) }, token);
}

const followEvery = 2_000; // ms; a page with other reads asks for more
const longestWait = 60_000; // ms, whatever the service asks for

/**
 * follow polls a claim until it has ended. It retries while the service does not answer,
 * because the settlement continues meanwhile. It calls each with every claim or error.
 * every is the pause in milliseconds.
 */
export async function follow(api: Pick<Api, 'get'>, id: string, each: (claim: Claim | null, trouble: unknown) => void, every = followEvery): Promise<Claim> {
  for (;;) {
    let wait = every;
    try {
      const claim = await api.get<Claim>(`/api/v1/rfq/claims/${id}`);
      each(claim, null);
      if (ended.has(claim.state)) return claim;
    } catch (error) {
      if (error instanceof ServiceError && error.status !== 429 && error.status < 500) throw error;
      if (error instanceof ServiceError) wait = Math.min(longestWait, Math.max(wait, error.retryAfter * 1000));
      each(null, error);
    }
    await new Promise((resolve) => window.setTimeout(resolve, wait));
  }
}
