// Follows symbols of two groups of a running service, both ways, from one address.
//
//   node live-groups.mjs BASE SYMBOL OTHER
//
// BASE is SYMBOL's group's. It prints "followed" when it has a book of each.
import { Client } from '../dist/src/index.js';

const [base, own, other] = process.argv.slice(2);
const client = new Client({ baseUrl: base });
const signal = AbortSignal.timeout(240_000);

/** first resolves to the first book of a symbol. */
async function first(feed, symbol) {
  for await (const book of feed.books(symbol)) return book;
  throw new Error(`no book of ${symbol}`);
}

const feed = client.feed({ symbols: [own, other], channels: ['l2', 'tickets'], signal });
await Promise.all([first(feed, own), first(feed, other)]);
await feed.close();

const events = client.events({ symbols: [other], channels: ['l2'], signal });
await first(events, other);
await events.close();

const mixed = client.events({ symbols: [own, other], signal });
const error = await first(mixed, own).catch((e) => e);
if (error.code !== 'OTHER_GROUP') throw error;
console.log('followed');
