// A bot that claims, pays and verifies: the desk delivers when it has seen the
// payment final. The wallet is the demo's; the money is the local chain's.
//
//   node bot.js [--base http://127.0.0.1:8080] [--rpc http://127.0.0.1:8899] [--wallet data/chain/wallet-1.json]
//               [--fill 250] [--rail USDC] [--max-price 1.01] [--max-amount 250] [--keep payment.json]
import { readFile, writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { Client, compareDecimals, type FillUSD, type Rail } from 'blockdesk';
import { Chain, Desk, keypairSigner, parseKeypair, settled, toBase64 } from 'blockdesk/solana';

const { values: args } = parseArgs({
  options: {
    base: { type: 'string', default: 'http://127.0.0.1:8080' },
    rpc: { type: 'string', default: 'http://127.0.0.1:8899' },
    wallet: { type: 'string', default: 'data/chain/wallet-1.json' },
    fill: { type: 'string', default: '250' },
    rail: { type: 'string', default: 'USDC' },
    'max-price': { type: 'string', default: '1.01' },
    'max-amount': { type: 'string' }, // the most to pay, in USDC or SOL
    keep: { type: 'string' }, // a file for the signed payment
  },
});
const client = new Client({ baseUrl: args.base });
const desk = new Desk({ client, signer: await keypairSigner(parseKeypair(await readFile(args.wallet, 'utf8'))) });

const { ticket } = await client.getCurrentSellableTicket();
const tranche = ticket?.tranches.find((t) => t.state === 'open' && compareDecimals(t.available_usd, args.fill) >= 0);
if (!ticket || !tranche) throw new Error(`nothing is for sale for ${args.fill} dollars`);

const offer = await desk.quote({
  ticket, tranche_id: tranche.tranche_id, fill_usd: args.fill as FillUSD, rail: args.rail as Rail, maxPriceUsd: args['max-price'],
  ...(args['max-amount'] && { maxAmount: args['max-amount'] }),
});
const claim = await desk.claim(offer);
const { payment, base_amount } = offer.quote;
console.log(`${claim.claim_id}: ${payment.amount} ${args.rail} for ${base_amount} ${ticket.base_symbol}, fee ${claim.cost.feeLamports} lamports`);

const signature = await desk.pay(claim, new Chain({ url: args.rpc }), {
  // After a crash Chain.finalize sends these bytes again: never pay a claim twice.
  onSigned: async ({ signature, wire }) => {
    if (args.keep) await writeFile(args.keep, JSON.stringify({ claim_id: claim.claim_id, signature, wire: toBase64(wire) }));
  },
});
console.log(`paid by ${signature}`);

const verified = await desk.verifyPayment(claim, signature);
console.log(`the desk has seen it: ${verified.state}`);
const { delivery } = settled(await desk.follow(claim.claim_id));
console.log(`settled: ${delivery.amount} ${ticket.base_symbol} by ${delivery.l1_signature}`);
