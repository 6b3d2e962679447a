// How old the data is, and what a reader must know before he trusts it.
import { clock, make, one, say } from './dom.ts';
import type { Link } from './feed.ts';
import type { DeskStatus, MarketStatus } from './messages.ts';

interface Banner {
  kind: 'bad' | 'warn' | 'info';
  title: string;
  text: string;
  /** What changes all the time, and is not read out. */
  tick?: string;
  /** A page that has what this one has not. */
  instead?: string;
}

/** Source is a feed of the board's. */
export interface Source {
  readonly link: Link;
  readonly symbols: readonly string[];
  /** The URL of its group's own board; null: this one is. */
  readonly board: string | null;
}

export interface Health {
  /** The page's own group's feed is the first. */
  readonly sources: readonly [Source, ...Source[]];
  /** The one that the shown pair is of. */
  link: Link;
  market: MarketStatus | null;
  /** Monotonic milliseconds when market was read. */
  marketAt: number;
  desk: DeskStatus | null;
  /** Whether the shown book is read from a chain, and so is as old as that reading. */
  mirrored: boolean;
  restFails: string;
  cycle: number; // seconds
}

/** age is how old the data is in seconds, by our own clock's pace; null before there is any. */
export function age(h: Health, now: number): number | null {
  if (h.link.heardAt === 0) return null;
  const heard = (now - h.link.heardAt) / 1000;
  if (!h.mirrored || !h.market) return heard;
  return Math.max(heard, h.market.freshness.data_freshness_seconds + (now - h.marketAt) / 1000);
}

// gone: a connection has ended or could not be made, and the next one is not there yet.
const gone = (link: Link): boolean => !link.up && link.retryAt > 0;

/** paintAge paints the age against the cycle. A live feed is heard from every second. */
export function paintAge(h: Health, now: number): void {
  const seconds = age(h, now);
  const box = one('age');
  const state = !h.link.up ? (gone(h.link) ? 'down' : 'wait') : seconds !== null && seconds > h.cycle ? 'late' : 'live';
  box.dataset.state = state;
  say(one('age-word'), { wait: 'connecting', down: 'disconnected', late: 'late', live: 'live' }[state]);
  say(one('age-text'), seconds === null ? '' : `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`);
  one('age-bar').style.width = `${Math.min(100, ((seconds ?? 0) / h.cycle) * 100)}%`;
}

const words = (reason: string): string => reason.replaceAll('_', ' ');

// disconnected says of a feed that it has gone, and whose pairs are not live where
// others still are.
function disconnected({ link, symbols, board }: Source, alone: boolean, now: number): Banner {
  const wait = Math.max(0, Math.ceil((link.retryAt - now) / 1000));
  const since = link.lastWord ? `What you see is of ${clock(link.lastWord)} UTC. ` : 'The live feed has said nothing yet. ';
  return {
    kind: 'bad', title: alone ? 'Disconnected.' : `Not live: ${symbols.join(', ')}.`, text: `${since}It comes back by itself.`,
    tick: wait > 0 ? `Next try in ${wait} s.` : 'Trying now.', ...(board === null ? {} : { instead: board }),
  };
}

function banners(h: Health, now: number): Banner[] {
  const list = h.sources.filter((s) => gone(s.link)).map((s) => disconnected(s, h.sources.length === 1, now));
  // Without the feed there is no REST either, which need not be said too.
  if (h.restFails && h.sources[0].link.up) list.push({ kind: 'warn', title: 'Not all is shown.', text: h.restFails });
  const state = h.market?.degradation_state;
  if (state?.degraded) {
    const failover = state.rpc_failover_active ? ' The fallback node is in use.' : '';
    list.push({ kind: 'warn', title: 'Degraded.', text: `${state.reasons.map(words).join('; ')}. Price source: ${words(state.price_source)}.${failover}` });
  }
  for (const lock of h.desk?.locks ?? []) {
    if (lock.locked) list.push({ kind: 'warn', title: 'Locked.', text: `${lock.name}${lock.reason ? `: ${words(lock.reason)}` : ''}` });
  }
  if (h.desk && !h.desk.chain.available) {
    list.push({ kind: 'info', title: 'No claims now.', text: `The settlement chain is not available: ${words(h.desk.chain.reason ?? 'no reason told')}.` });
  }
  return list;
}

/** paintBanners paints what is wrong; nothing where nothing is. */
export function paintBanners(h: Health, now: number): void {
  const box = one('banners');
  const list = banners(h, now);
  const text = list.map((b) => b.title + b.text).join('\n');
  if (box.dataset.text !== text) {
    box.dataset.text = text;
    box.replaceChildren(...list.map((b) => make(
      'p', { class: `banner ${b.kind}` }, make('b', {}, b.title), make('span', {}, b.text), ...(b.instead ? [make('a', { href: b.instead }, 'Its own board')] : []),
      make('span', { class: 'soft', 'aria-hidden': 'true' }),
    )));
  }
  for (const [i, b] of list.entries()) {
    const tick = box.children[i]?.lastElementChild;
    if (tick) say(tick, b.tick ?? '');
  }
}
