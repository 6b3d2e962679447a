// A fund that polls the tickets and asks for quotes: which fill size is the best
// below the market? It moves no money.
//
//   node quant-fund.js [--base http://127.0.0.1:8080] [--rounds 3] [--every-ms 2000]
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import {
  Client, RateLimitedError, RefusedError, compareDecimals, divideDecimals, subtractDecimals, type Quote, type Ticket,
} from 'blockdesk';

const { values: args } = parseArgs({
  options: {
    base: { type: 'string', default: 'http://127.0.0.1:8080' },
    rounds: { type: 'string', default: '3' },
    'every-ms': { type: 'string', default: '2000' },
  },
});
const client = new Client({ baseUrl: args.base });

/** The largest of the ladder's steps that each open tranche still has, quoted. */
async function quotes(ticket: Ticket): Promise<Quote[]> {
  const { levels } = await client.getLevels();
  const found: Quote[] = [];
  for (const { tranche_id, available_usd } of ticket.tranches) {
    const step = levels.findLast((l) => compareDecimals(l.fill_usd, available_usd) <= 0);
    if (!step) continue;
    try {
      found.push(await client.postQuote({ order_id: ticket.order_id, tranche_id, fill_usd: step.fill_usd, rail: 'USDC' }));
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error; // somebody was faster, or the desk is locked
      console.log(`${tranche_id}: ${error.reason ?? error.code}`);
    }
  }
  return found;
}

async function round(): Promise<void> {
  const { ticket } = await client.getCurrentSellableTicket();
  if (ticket === null) return console.log('nothing is for sale');
  const { bid, ask } = await client.getTicker({ symbol: ticket.pair });
  console.log(`${ticket.pair}: ${bid} bid, ${ask} asked; the desk sells ${ticket.ticket_label}`);
  for (const q of await quotes(ticket)) {
    const better = ask !== null && compareDecimals(q.price_usd, ask) < 0;
    const verdict = better ? `below the book by ${divideDecimals(subtractDecimals(ask, q.price_usd), ask, 6, 'down')} of its price` : 'not below the book';
    console.log(`  ${q.tranche_id} ${q.fill_usd} USD: ${q.base_amount} at ${q.price_usd}, ${verdict}`);
  }
}

for (let i = 0; i < Number(args.rounds); i++) {
  if (i > 0) await sleep(Number(args['every-ms']));
  try {
    await round();
  } catch (error) {
    if (!(error instanceof RateLimitedError)) throw error;
    await sleep(error.retryAfterMs ?? 1_000); // more than 60 reads a minute
  }
}
