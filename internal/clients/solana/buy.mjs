// The three ways to buy: delivery versus payment built by the desk, the same
// from an atomic claim, and a payment that the desk delivers for.
import { setTimeout as sleep } from 'node:timers/promises';
import { getBase64EncodedWireTransaction } from '@solana/kit';
import { inspect, same } from './inspect.mjs';
import { Ledger } from './ledger.mjs';
import { base58 } from './wallet.mjs';

const pollEvery = 50; // ms
const settledWithin = 240_000;

const atoms = (text) => {
  if (!/^[1-9][0-9]{0,19}$/.test(text)) throw new Error(`amount ${text}`);
  return BigInt(text);
};

// offer reads the ticket and asks for a quote: these are the terms that all that
// follows is held to.
async function offer({ service, chain, order }) {
  const { tickets } = await service.ask(200, 'GET', '/api/v1/rfq/market-tickets');
  const ticket = tickets.find((t) => t.order_id === order.order_id);
  if (!ticket) throw new Error(`no ticket ${order.order_id}`);
  const { order_id, tranche_id, fill_usd, rail } = order;
  const quote = await service.ask(200, 'POST', '/api/v1/rfq/quote', { order_id, tranche_id, fill_usd, rail });
  for (const [key, value] of Object.entries({ order_id, tranche_id, fill_usd, rail, pair: ticket.pair, firm: true })) same(key, quote[key], value);
  same('payment rail', [quote.payment.rail, quote.payment.mint === null], [rail, rail === 'SOL']);
  const paid = quote.payment.mint === null ? { mint: null } : await chain.mint(quote.payment.mint);
  return {
    quote, base: await chain.mint(ticket.base_mint),
    pay: { ...paid, atoms: atoms(quote.payment.amount_atoms), to: quote.payment.pay_to },
    baseAtoms: atoms(quote.base_amount_atoms),
  };
}

// held: what a claim or build repeats of the quote must be the quote's.
function held(answer, quote, where) {
  for (const key of ['quote_id', 'order_id', 'tranche_id', 'fill_usd', 'rail', 'price_usd', 'reference_price_usd', 'discount_bps', 'base_amount_atoms']) {
    same(`${where}: ${key}`, answer[key], quote[key]);
  }
}

function heldPayment(payment, quote) {
  for (const key of ['rail', 'mint', 'amount_atoms', 'amount', 'pay_to']) same(`payment ${key}`, payment[key], quote.payment[key]);
}

const until = async (what, within, look) => {
  for (const end = Date.now() + within; ; await sleep(pollEvery)) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not within ${within} ms: ${what}`);
  }
};

const claimState = (service, id) => service.ask(200, 'GET', `/api/v1/rfq/claims/${id}`);

async function settled(service, id) {
  return until(`claim ${id} settled`, settledWithin, async () => {
    const claim = await claimState(service, id);
    if (['expired', 'released', 'refund_due'].includes(claim.state)) throw new Error(`claim ${id} is ${claim.state}`);
    return claim.state === 'settled' ? claim : null;
  });
}

// build asks for both legs in one transaction, by the way's own door. DvP's tells
// more of it than the atomic claim does.
async function build({ service, order, wallet, way, desk }, quote) {
  const { order_id, tranche_id, fill_usd, rail } = order;
  if (way === 'dvp') {
    const built = await service.ask(200, 'POST', '/api/v1/dvp/build', {
      order_id, tranche_id, fill_usd, rail, taker: wallet.address, quote_id: quote.quote_id, fee_payer: order.feePayer,
    }, { bearer: true });
    held(built.quote, quote, 'build');
    const signers = [desk, wallet.address];
    same('required signers', built.required_signers, order.feePayer === 'taker' ? signers.reverse() : signers);
    return { ...built, submit: { url: new URL('/api/v1/dvp/submit', service.base).href } };
  }
  const claim = await service.ask(200, 'POST', '/rfq-native/atomic-claim-ticket', {
    bot_wallet: wallet.address, order_id, tranche_id, fill_usd, payment_rail: rail, quote_id: quote.quote_id,
  });
  same('state', claim.state, 'reserved');
  held(claim.claim, quote, 'claim');
  return { ...claim, build_id: claim.submit.build_id };
}

// atomicTerms are what the transaction must be, by the quote; of the build's own
// words only what no quote can tell.
function atomicTerms({ wallet, order, desk }, { pay, base, baseAtoms }, built, signed) {
  return {
    wallet: wallet.address, desk, feePayer: order.feePayer === 'taker' ? wallet.address : desk, pay,
    deliver: { ...base, atoms: baseAtoms, to: wallet.address }, rentPayers: [desk, wallet.address],
    memo: built.payment.memo, reference: built.payment.reference, blockhash: built.recent_blockhash ?? null, signed,
  };
}

// deskAddress is who delivers, as the desk says: all that it signs must be his.
async function deskAddress(service) {
  const { chain } = await service.ask(200, 'GET', '/api/v1/dvp/status');
  return chain.desk_address;
}

const mintsOf = ({ pay, base }) => (pay.mint === null ? [base] : [base, pay]);

// flows enters what a settled purchase moves, but for fees and rent.
function flows(ledger, wallet, desk, { pay, base, baseAtoms }) {
  ledger.move(wallet, pay.to, pay.mint ?? 'SOL', pay.atoms);
  ledger.move(desk, wallet, base.mint, baseAtoms);
}

/** buyAtomic buys by delivery versus payment. */
export async function buyAtomic(options) {
  const ctx = { ...options, desk: await deskAddress(options.service) };
  const { service, chain, wallet, order, desk } = ctx;
  if (!service.token) await service.handshake(wallet);
  const deal = await offer(ctx);
  const built = await build(ctx, deal.quote);
  heldPayment(built.payment, deal.quote);
  same('memo', built.payment.memo, built.claim_id);
  const raw = Buffer.from(built.transaction, 'base64');
  const seen = await inspect(raw, atomicTerms(ctx, deal, built, false));
  const digest = Buffer.from(await crypto.subtle.digest('SHA-256', seen.transaction.messageBytes)).toString('hex');
  const wallets = [wallet.address, desk, deal.pay.to];
  const before = await chain.balances(wallets, mintsOf(deal));

  const signed = await wallet.sign(seen.transaction);
  const body = { build_id: built.build_id, transaction: getBase64EncodedWireTransaction(signed) };
  const submitted = await service.ask(200, 'POST', built.submit.url, body, { bearer: true });
  same('claim', submitted.claim_id, built.claim_id);
  const final = Buffer.from(submitted.transaction, 'base64');
  const done = await inspect(final, atomicTerms(ctx, deal, built, true));
  same('message that the desk signed', Buffer.from(done.transaction.messageBytes).equals(Buffer.from(seen.transaction.messageBytes)), true);
  same('our signature', base58(done.transaction.signatures[wallet.address]), base58(signed.signatures[wallet.address]));
  same('signature', submitted.signature, base58(done.transaction.signatures[seen.signers[0]]));

  const landed = await chain.finalized(submitted.signature);
  same('the transaction on the chain', landed.raw.equals(final), true);
  same('its fee', landed.fee, seen.fee);
  const claim = await settled(service, built.claim_id);
  const after = await chain.balances(wallets, mintsOf(deal));
  const ledger = new Ledger();
  flows(ledger, wallet.address, desk, deal);
  ledger.add(seen.signers[0], 'SOL', -landed.fee);
  const created = before[wallet.address][deal.base.mint] === null;
  const rent = created ? await chain.rent(wallet.address, deal.base) : 0n;
  ledger.add(seen.rentPayer, 'SOL', -rent);
  const moved = ledger.hold(before, after);

  const again = await service.ask(200, 'POST', built.submit.url, body, { bearer: true });
  same('the same submit again', [again.claim_id, again.signature, again.transaction, again.state], [submitted.claim_id, submitted.signature, submitted.transaction, 'finalized']);
  const state = await service.ask(200, 'GET', `/api/v1/dvp/builds/${built.build_id}`);
  same('message_sha256', [state.message_sha256, built.message_sha256 ?? digest], [digest, digest]);
  same('signature that the build shows', state.signature, submitted.signature);
  return {
    claim_id: built.claim_id, build_id: built.build_id, state: claim.state, build_state: state.state, signature: submitted.signature,
    slot: landed.slot, order, shown: seen.shown, fee: landed.fee, fee_payer: seen.signers[0], rent, rent_payer: seen.rentPayer,
    token: service.token, moved,
  };
}

// verifyEverywhere asks every surface, and they must say the same.
async function verifyEverywhere(service, want, body) {
  const answers = [];
  for (const [path, on] of [
    ['/rfq-native/settlement/verify-payment', service.base],
    ['/api/v1/rfq/native/settlement/verify-payment', service.base],
    ['/api/v1/rfq/settlement/verify-payment', service.api],
  ]) {
    answers.push(await service.ask(want, 'POST', path, body, { on }));
  }
  return answers;
}

/** buyModular pays first; the desk delivers. */
export async function buyModular(options) {
  const ctx = { ...options, desk: await deskAddress(options.service) };
  const { service, chain, wallet, order, desk } = ctx;
  const deal = await offer(ctx);
  const { order_id, tranche_id, fill_usd, rail } = order;
  const claim = await service.ask(200, 'POST', '/rfq-native/modular-claim-take', {
    bot_wallet: wallet.address, order_id, tranche_id, fill_usd, payment_rail: rail, quote_id: deal.quote.quote_id,
  });
  same('state', claim.state, 'reserved');
  held(claim.claim, deal.quote, 'claim');
  heldPayment(claim.payment, deal.quote);
  same('memo', claim.payment.memo, claim.claim_id);
  const terms = {
    wallet: wallet.address, desk: null, feePayer: wallet.address, pay: deal.pay, deliver: null, rentPayers: [],
    memo: claim.payment.memo, reference: claim.payment.reference, blockhash: null, signed: false,
  };
  const seen = await inspect(Buffer.from(claim.transaction, 'base64'), terms);
  const signed = await wallet.sign(seen.transaction);
  const signature = base58(signed.signatures[wallet.address]);
  const proof = { order_id, tranche_id, l1_signature: signature };
  for (const early of await verifyEverywhere(service, 202, proof)) same('before it is sent', early.state, 'pending');

  const wallets = [wallet.address, desk, deal.pay.to];
  const before = await chain.balances(wallets, mintsOf(deal));
  same('the signature that was sent', await chain.send(signed), signature);
  const paid = await chain.finalized(signature);
  same('its fee', paid.fee, seen.fee);
  for (const answer of await verifyEverywhere(service, 200, proof)) verifiedAnswer(answer, claim, signature);

  const done = await settled(service, claim.claim_id);
  const answers = await verifyEverywhere(service, 200, proof);
  for (const answer of answers) same('what the surfaces say of it', answer, answers[0]);
  same('state', answers[0].state, 'settled');
  const delivery = await chain.finalized(answers[0].delivery.l1_signature);
  const delivered = await inspect(delivery.raw, deliveryTerms(wallet, desk, deal, claim));
  same('fee of the delivery', delivery.fee, delivered.fee);

  const after = await chain.balances(wallets, mintsOf(deal));
  const ledger = new Ledger();
  flows(ledger, wallet.address, desk, deal);
  ledger.add(wallet.address, 'SOL', -paid.fee);
  ledger.add(desk, 'SOL', -delivery.fee);
  const rent = before[wallet.address][deal.base.mint] === null ? await chain.rent(wallet.address, deal.base) : 0n;
  ledger.add(delivered.rentPayer, 'SOL', -rent);
  const moved = ledger.hold(before, after);
  return {
    claim_id: claim.claim_id, state: done.state, signature, delivery: answers[0].delivery.l1_signature, slot: delivery.slot, order,
    shown: seen.shown, fee: paid.fee, delivery_fee: delivery.fee, rent, rent_payer: delivered.rentPayer, moved,
  };
}

function verifiedAnswer(answer, claim, signature) {
  same('verified', [answer.verified, answer.claim_id, answer.payment.l1_signature, answer.payment.state], [true, claim.claim_id, signature, 'applied']);
  same('what was paid', answer.payment.amount_atoms, claim.payment.amount_atoms);
}

// deliveryTerms: the desk alone signs and pays for its delivery.
function deliveryTerms(wallet, desk, deal, claim) {
  return {
    wallet: wallet.address, desk, feePayer: desk, pay: null,
    deliver: { ...deal.base, atoms: deal.baseAtoms, to: wallet.address, reference: claim.payment.reference },
    rentPayers: [desk], memo: claim.payment.memo, reference: null, blockhash: null, signed: true,
  };
}
