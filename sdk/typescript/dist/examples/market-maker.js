// A market maker that rebuilds the order book of the stream, shows where it would
// quote, and at the end holds its book to that of REST.
//
//   node market-maker.js [--base http://127.0.0.1:8080] [--symbol SLUSD/USDC] [--seconds 10] [--events]
import { parseArgs } from 'node:util';
import { Client, addDecimals, divideDecimals } from 'blockdesk';
const { values: args } = parseArgs({
    options: {
        base: { type: 'string', default: 'http://127.0.0.1:8080' },
        symbol: { type: 'string', default: 'SLUSD/USDC' },
        seconds: { type: 'string', default: '10' },
        events: { type: 'boolean', default: false }, // server-sent events in place of the WebSocket
    },
});
const client = new Client({ baseUrl: args.base });
const follow = { symbols: [args.symbol], channels: ['l2', 'trades'], depth: 100 };
const feed = args.events ? client.events(follow) : client.feed(follow);
const seen = { books: 0, trades: 0, gaps: 0 };
feed.on('trades', ({ trades, snapshot }) => {
    if (!snapshot)
        seen.trades += trades.length;
});
feed.on('gap', ({ error }) => {
    seen.gaps++; // mended by the feed itself
    console.log(error.message);
});
feed.on('close', ({ error, retryMs }) => {
    if (retryMs !== null)
        console.log(`${error}: again in ${Math.round(retryMs)} ms`);
});
/** What the last messages made of the book, by number: REST is at one of them. */
const books = new Map();
const text = (b) => JSON.stringify([b.bids, b.asks]);
feed.on('book', (book) => {
    seen.books++;
    books.set(book.seq, text(book));
    if (books.size > 1_000)
        books.delete(books.keys().next().value);
});
const until = Date.now() + Number(args.seconds) * 1_000;
let shown = 0;
for await (const book of feed.books(args.symbol)) {
    const [bid, ask] = [book.bids[0], book.asks[0]];
    if (bid && ask && Date.now() - shown > 1_000) {
        shown = Date.now();
        const mid = divideDecimals(addDecimals(bid[0], ask[0]), '2', 7, 'exact');
        console.log(`${book.symbol} ${book.seq}: ${bid.join(' × ')} | ${ask.join(' × ')}, middle ${mid}`);
    }
    if (Date.now() > until)
        break;
}
const rest = await client.getDepth({ symbol: args.symbol, limit: 100 });
for await (const book of feed.books(args.symbol)) {
    if (book.epoch !== rest.epoch || book.seq >= rest.seq)
        break;
}
const same = books.get(rest.seq) === text(rest);
console.log(`${JSON.stringify(seen)}; at ${rest.seq} the book is ${same ? 'that' : 'NOT that'} of REST`);
await feed.close();
process.exitCode = same ? 0 : 1;
