// A service whose side a test plays, and what it says.
import { Book } from '../dist/src/index.js';

export const symbol = 'SLUSD/USDC';

/** Sockets are a service whose side the test plays. */
export class Sockets {
  constructor() {
    const all = (this.all = []);
    const waiting = (this.waiting = []);
    this.WebSocket = class {
      constructor(url) {
        Object.assign(this, { url, sent: [], closed: false });
        all.push(this);
        waiting.shift()?.(this);
      }
      send(text) { this.sent.push(JSON.parse(text)); }
      close() { this.closed = true; }
      /** The service says something. */
      say(...messages) { for (const m of messages) this.onmessage({ data: typeof m === 'string' ? m : JSON.stringify(m) }); }
    };
  }

  /** next resolves to the next connection, opened and welcomed. */
  async next(epoch = 'e1') {
    const socket = await new Promise((resolve) => this.waiting.push(resolve));
    await Promise.resolve(); // its handlers come right after it is made
    socket.onopen();
    socket.say({ channel: 'status', type: 'welcome', epoch });
    return socket;
  }
}

/** book makes the messages of a book whose best bid is seq. */
export function book(type, seq, epoch = 'e1', of = symbol) {
  const copy = new Book(of, 10);
  const bids = [[`${seq}.0`, '1']];
  if (type === 'update') bids.unshift([`${seq - 1}.0`, '0']);
  const m = { channel: 'l2', type, symbol: of, epoch, seq, prev_seq: type === 'snapshot' ? 0 : seq - 1, engine_seq: seq, ts: null, bids, asks: [], checksum: 0 };
  try {
    copy.apply({ ...m, type: 'snapshot', bids: [[`${seq}.0`, '1']] });
  } catch { /* the checksum is told below */ }
  return { ...m, checksum: copy.checksum() };
}
