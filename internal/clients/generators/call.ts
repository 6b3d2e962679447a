// One call of a client that openapi-typescript and openapi-fetch make.
import createClient from 'openapi-fetch';
import type { paths } from './api.js';

const client = createClient<paths>({ baseUrl: process.argv[2] });
const { data, error } = await client.GET('/api/v1/market/depth', { params: { query: { symbol: 'SLUSD/USDC', limit: 3 } } });
if (error || !data) throw new Error(JSON.stringify(error));
console.log(data.symbol, data.bids[0]?.[0]);
