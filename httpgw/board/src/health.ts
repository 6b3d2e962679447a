// The age of the data, and banners about everything that makes it less reliable.
import { clock, create, byId, setText } from './dom.ts';
import type { Link } from './feed.ts';
import { short } from './decimal.ts';
import type { DeskPrice, DeskStatus, MarketStatus } from './messages.ts';
import { testNetwork } from './network.ts';

interface Banner {
  kind: 'bad' | 'warn' | 'info';
  title: string;
  text: string;
  /** Text that changes constantly and is hidden from screen readers. */
  tick?: string;
  /** URL of another page that has the data. */
  instead?: string;
}

/** Source is a feed of the board. */
export interface Source {
  readonly link: Link;
  readonly symbols: readonly string[];
  /** The URL of its shard's own board; null: this board. */
  readonly board: string | null;
}

export interface Health {
  /** The feed of the page's own shard is the first. */
  readonly sources: readonly [Source, ...Source[]];
  /** The feed of the shown pair. */
  link: Link;
  market: MarketStatus | null;
  /** Monotonic milliseconds when market was read. */
  marketAt: number;
  desk: DeskStatus | null;
  /** Whether the shown book is mirrored, so that its age is that of the last read. */
  mirrored: boolean;
  restFails: string;
  cycle: number; // seconds
}

/** age returns the age of the data in seconds, by the monotonic clock; null before there is any. */
export function age(h: Health, now: number): number | null {
  if (h.link.lastMessageAt === 0) return null;
  const heard = (now - h.link.lastMessageAt) / 1000;
  if (!h.mirrored || !h.market) return heard;
  return Math.max(heard, h.market.freshness.data_freshness_seconds + (now - h.marketAt) / 1000);
}

// isDown: the connection failed or ended, and the next one is not open yet.
const isDown = (link: Link): boolean => !link.up && link.retryAt > 0;

/** paintAge paints the age relative to the cycle. A live feed sends a heartbeat every second. */
export function paintAge(h: Health, now: number): void {
  const seconds = age(h, now);
  const box = byId('age');
  const state = !h.link.up ? (isDown(h.link) ? 'down' : 'wait') : seconds !== null && seconds > h.cycle ? 'late' : 'live';
  box.dataset.state = state;
  setText(byId('age-word'), { wait: 'connecting', down: 'disconnected', late: 'late', live: 'live' }[state]);
  setText(byId('age-text'), seconds === null ? '' : `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`);
  byId('age-bar').style.width = `${Math.min(100, ((seconds ?? 0) / h.cycle) * 100)}%`;
}

const words = (reason: string): string => reason.replaceAll('_', ' ');

// lockWords says what a lock stops.
function lockWords(name: string): string {
  if (name === 'global') return 'Nothing is quoted or sold.';
  if (name === 'deliveries') return 'Nothing is delivered or countersigned now. Claims are taken, and paid ones wait.';
  return `Nothing of ${name.slice(name.indexOf(':') + 1)} is quoted or sold.`;
}

/** priceText describes the prices of a pair and its rails: source, age and confidence. */
export function priceText(prices: readonly DeskPrice[], pair: string, rails: readonly string[]): string {
  return prices.filter((p) => p.of === pair || rails.includes(p.of)).map((p) => {
    if (p.price_usd === null) return `${p.of}: no price (${words(p.fault ?? 'no reason given')})`;
    const age = p.age_s === null ? '' : `, ${p.age_s} s old`;
    return `${p.of} ${short(p.price_usd)}${p.confidence_usd ? ` ± ${short(p.confidence_usd)}` : ''} by ${words(p.source ?? 'unknown')}${age}`;
  }).join('; ');
}

// disconnected returns the banner of a feed that is down, with its pairs if other feeds
// are still live.
function disconnected({ link, symbols, board }: Source, alone: boolean, now: number): Banner {
  const wait = Math.max(0, Math.ceil((link.retryAt - now) / 1000));
  const since = link.lastMarketTs ? `The data is of ${clock(link.lastMarketTs)} UTC. ` : 'The live feed has sent no data yet. ';
  return {
    kind: 'bad', title: alone ? 'Disconnected.' : `Not live: ${symbols.join(', ')}.`, text: `${since}The page reconnects automatically.`,
    tick: wait > 0 ? `Next try in ${wait} s.` : 'Trying now.', ...(board === null ? {} : { instead: board }),
  };
}

function banners(h: Health, now: number): Banner[] {
  const list = h.sources.filter((s) => isDown(s.link)).map((s) => disconnected(s, h.sources.length === 1, now));
  // Without the feed REST fails too, which needs no second banner.
  if (h.restFails && h.sources[0].link.up) list.push({ kind: 'warn', title: 'Some data is missing.', text: h.restFails });
  const state = h.market?.degradation_state;
  const network = h.market ? testNetwork(h.market.execution_network) : '';
  if (network) list.push({ kind: 'info', title: 'Not mainnet.', text: `Trades settle on ${network}. Its tokens have no value.` });
  const reasons = (state?.reasons ?? []).filter((reason) => reason !== 'not_mainnet');
  if (state && reasons.length > 0) {
    const failover = state.rpc_failover_active ? ' The fallback node is in use.' : '';
    list.push({ kind: 'warn', title: 'Degraded.', text: `${reasons.map(words).join('; ')}. Price source: ${words(state.price_source)}.${failover}` });
  }
  for (const lock of h.desk?.locks ?? []) {
    if (lock.locked) list.push({ kind: 'warn', title: 'Locked.', text: `${lockWords(lock.name)}${lock.reason ? ` Reason: ${words(lock.reason)}.` : ''}` });
  }
  for (const price of h.desk?.prices ?? []) {
    if (price.price_usd === null) list.push({ kind: 'warn', title: `No price of ${price.of}.`, text: `Nothing is sold at it: ${words(price.fault ?? 'no reason given')}.` });
  }
  if (h.desk && !h.desk.chain.available) {
    list.push({ kind: 'info', title: 'No claims now.', text: `The settlement chain is not available: ${words(h.desk.chain.reason ?? 'no reason given')}.` });
  }
  return list;
}

/** paintBanners paints the banners. */
export function paintBanners(h: Health, now: number): void {
  const box = byId('banners');
  const list = banners(h, now);
  const text = list.map((b) => b.title + b.text).join('\n');
  if (box.dataset.text !== text) {
    box.dataset.text = text;
    box.replaceChildren(...list.map((b) => create(
      'p', { class: `banner ${b.kind}` }, create('b', {}, b.title), create('span', {}, b.text), ...(b.instead ? [create('a', { href: b.instead }, 'Its own board')] : []),
      create('span', { class: 'soft', 'aria-hidden': 'true' }),
    )));
  }
  for (const [i, b] of list.entries()) {
    const tick = box.children[i]?.lastElementChild;
    if (tick) setText(tick, b.tick ?? '');
  }
}
