// An OTC desk that buys by delivery versus payment: handshake, build, sign,
// submit. Both legs are in one transaction: they happen together or not at all.
//
//   node otc-desk.js [--base http://127.0.0.1:8080] [--wallet data/chain/wallet-1.json] [--token-file blockdesk.token]
//                    [--fill 1000] [--rail USDC] [--fee-payer desk]
import { readFile, writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { Client, NotAdmittedError, compareDecimals, type FillUSD, type Rail } from 'blockdesk';
import { Desk, keypairSigner, parseKeypair, settled } from 'blockdesk/solana';

const { values: args } = parseArgs({
  options: {
    base: { type: 'string', default: 'http://127.0.0.1:8080' },
    wallet: { type: 'string', default: 'data/chain/wallet-1.json' },
    'token-file': { type: 'string', default: 'blockdesk.token' },
    fill: { type: 'string', default: '1000' },
    rail: { type: 'string', default: 'USDC' },
    'fee-payer': { type: 'string', default: 'desk' },
  },
});
const client = new Client({ baseUrl: args.base });
const signer = await keypairSigner(parseKeypair(await readFile(args.wallet, 'utf8')));
// What you know of the desk by another way, say it here: then the desk's own word
// is not enough for whom you pay and what you get.
const desk = new Desk({ client, signer, trust: {} });

// A token serves for 7 days, and a client address gets one an hour: it is kept.
client.token = await readFile(args['token-file'], 'utf8').catch(() => null);
async function login(): Promise<void> {
  const { access_token, expires_at } = await desk.handshake();
  await writeFile(args['token-file'], access_token, { mode: 0o600 });
  console.log(`a token until ${expires_at}`);
}
if (client.token === null) await login();

const { ticket } = await client.getCurrentSellableTicket();
const tranche = ticket?.tranches.find((t) => t.state === 'open' && compareDecimals(t.available_usd, args.fill) >= 0);
if (!ticket || !tranche) throw new Error(`nothing is for sale for ${args.fill} dollars`);

const offer = await desk.quote({ ticket, tranche_id: tranche.tranche_id, fill_usd: args.fill as FillUSD, rail: args.rail as Rail });
const reserve = () => desk.build(offer, { feePayer: args['fee-payer'] === 'taker' ? 'taker' : 'desk' });
const build = await reserve().catch(async (error: unknown) => {
  if (!(error instanceof NotAdmittedError)) throw error;
  await login(); // the token was another key's, has ended, or was revoked
  return reserve();
});
console.log(`${build.build_id} of ${build.claim_id}, held to the quote:`);
for (const { kind, extra: _, ...parts } of build.transaction.instructions) {
  console.log(`  ${kind} ${Object.entries(parts).map(([name, value]) => `${name} ${value}`).join(', ')}`);
}

const submitted = await desk.submit(build);
console.log(`signed by both: ${submitted.signature} is ${submitted.state}`);
const claim = settled(await desk.follow(build.claim_id));
console.log(`settled: ${claim.delivery.amount} ${ticket.base_symbol} for ${claim.payment.amount} ${args.rail}`);
