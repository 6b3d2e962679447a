// Reads every endpoint of a running service once, by the method that the SDK has
// for it. What needs an id of something that is not there must be not found.
//
//   node every.mjs BASE API
import { Client, NotFoundError } from '../dist/src/index.js';

const [baseUrl, apiUrl] = process.argv.slice(2);
const client = new Client({ baseUrl, apiUrl });
const symbol = 'SLUSD/USDC';
const of = {
  getTicker: { symbol }, getDepth: { symbol, limit: 5 }, getTrades: { symbol, limit: 5 }, getKlines: { symbol, limit: 5 },
  getCoinGeckoOrderBook: { ticker_id: 'SLUSD_USDC' }, getCoinGeckoTrades: { ticker_id: 'SLUSD_USDC' },
  getCoinMarketCapOrderBook: { market_pair: 'SLUSD_USDC' }, getCoinMarketCapTrades: { market_pair: 'SLUSD_USDC' },
  getRfqTrades: { symbol }, getUdfSymbol: { symbol }, getUdfHistory: { symbol, resolution: '60', to: 2_000_000_000, countback: 5 },
  getScreenerEvents: { fromBlock: 1, toBlock: 2 }, getScreenerPair: { id: 'SLUSD_USDC' },
  getScreenerAsset: { id: (await client.getMarketPairs()).pairs[0].base_mint },
};
const absent = {
  getMarketPool: { pool_address: '11111111111111111111111111111111' }, getBuild: { build_id: 'B0000000000001' },
  getClaim: { claim_id: 'C0000000000001' }, getClaimPay: { claim_id: 'C0000000000001' }, getClaimTransaction: { claim_id: 'C0000000000001' },
};

let read = 0;
for (const name of Object.getOwnPropertyNames(Object.getPrototypeOf(Client.prototype))) {
  if (!name.startsWith('get')) continue;
  // A path, or a query that is needed; what has a default is not counted, and nor is what follows it.
  const needs = /^[^(]*\((path|query)[,)]/.test(client[name].toString());
  if (needs !== (name in of || name in absent)) throw new Error(`${name} has arguments that nobody knows`);
  const answer = await client[name](...(needs ? [of[name] ?? absent[name]] : [])).catch((error) => error);
  const right = name in absent ? answer instanceof NotFoundError : !(answer instanceof Error) && answer.ok !== false;
  if (!right) throw new Error(`${name}: ${answer instanceof Error ? answer : JSON.stringify(answer).slice(0, 200)}`);
  read++;
}
console.log(`${read} endpoints`);
