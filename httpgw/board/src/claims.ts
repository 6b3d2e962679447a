// The claims of this browser and how far they are. The list is in the browser's storage.
import type { Api } from './api.ts';
import { clock, create, setAttr, byId, rows, setText } from './dom.ts';
import { ended, follow } from './purchase.ts';
import type { Claim } from './purchase.ts';

interface Mine {
  id: string;
  /** What was bought. */
  text: string;
  /** RFC 3339. */
  at: string;
  state?: string;
  history?: { state: string; at: string }[];
}

const key = 'claims';
const flashKey = 'claims-flash';
const maxClaims = 30; // the oldest are forgotten
const flashFor = 8; // seconds
const followEvery = 5_000; // ms: the limit of reads is shared with the rest of the board

// The way of an atomic claim that goes well.
const way = ['reserved', 'cosigned', 'settled'];

const words: Readonly<Record<string, string>> = {
  reserved: 'waiting for the signature', paid: 'paid', cosigned: 'on its way to the chain', delivering: 'being delivered', settled: 'settled',
  expired: 'expired', released: 'released: the transaction did not land', refund_due: 'refund due', refunded: 'refunded',
};

export class Claims {
  #list: Mine[] = [];
  readonly #followed = new Set<string>();
  readonly #flash = byId<HTMLInputElement>('flash');

  constructor(readonly api: Api) {
    try {
      const stored: unknown = JSON.parse(localStorage.getItem(key) ?? '[]');
      if (Array.isArray(stored)) this.#list = stored.filter((c): c is Mine => typeof c?.id === 'string' && typeof c.text === 'string' && typeof c.at === 'string').slice(0, maxClaims);
      this.#flash.checked = localStorage.getItem(flashKey) === 'on';
    } catch {
      // Storage is disabled or holds something else: the list starts empty.
    }
    this.#flash.addEventListener('change', () => this.#write(flashKey, this.#flash.checked ? 'on' : 'off'));
    for (const claim of this.#list) if (!ended.has(claim.state ?? '')) void this.#follow(claim);
    this.paint();
  }

  #write(name: string, value: string): void {
    try {
      localStorage.setItem(name, value);
    } catch {
      // It lasts until the page is closed.
    }
  }

  /** add adds a claim of this browser and follows it. */
  add(claim: Mine): void {
    this.#list = [claim, ...this.#list.filter((c) => c.id !== claim.id)].slice(0, maxClaims);
    this.#write(key, JSON.stringify(this.#list));
    this.paint();
    void this.#follow(claim);
  }

  async #follow(mine: Mine): Promise<void> {
    if (this.#followed.has(mine.id)) return;
    this.#followed.add(mine.id);
    try {
      await follow(this.api, mine.id, (claim) => {
        if (claim) this.#take(mine, claim);
      }, followEvery);
    } catch (error) {
      console.warn(`claim ${mine.id}:`, error); // another service on this address does not know it
      mine.state ??= 'unknown here';
      this.paint();
    }
  }

  #take(mine: Mine, claim: Claim): void {
    const settled = claim.state === 'settled' && mine.state !== 'settled';
    [mine.state, mine.history] = [claim.state, claim.history];
    this.#write(key, JSON.stringify(this.#list));
    this.paint();
    if (settled && this.#flash.checked) flash(`Settled: ${mine.text}`);
  }

  /** paint paints the list, newest first. */
  paint(): void {
    const open = this.#list.filter((c) => !ended.has(c.state ?? '') && c.state !== 'unknown here').length;
    setText(byId('claims-open'), open > 0 ? `(${open})` : '');
    setText(byId('claims-note'), this.#list.length === 0 ? 'What you buy on this page is listed here with its progress.' : '');
    const list = rows(byId('claim-rows'), this.#list.length, () => create('li', {}, create('b'), create('span', { class: 'soft' }), create('progress', { max: String(way.length) }), create('p')));
    for (const [i, claim] of this.#list.entries()) {
      const [text, id, bar, state] = list[i]?.children ?? [];
      if (!list[i] || !text || !id || !bar || !state) continue;
      setAttr(list[i], 'data-state', claim.state ?? '');
      setText(text, claim.text);
      setText(id, `${claim.id} · ${clock(claim.at)} UTC`);
      setAttr(bar, 'value', String(way.indexOf(claim.state ?? '') + 1));
      setAttr(bar, 'aria-label', `Progress of claim ${claim.id}`);
      const last = claim.history?.at(-1);
      setText(state, `${words[claim.state ?? ''] ?? claim.state ?? 'asking …'}${last ? ` since ${clock(last.at)}` : ''}`);
    }
  }
}

// flash changes the title for some seconds, or until the page is looked at.
function flash(text: string): void {
  const before = document.title;
  let left = flashFor;
  const timer = window.setInterval(() => {
    document.title = left % 2 === 0 ? text : before;
    if (--left >= 0) return;
    window.clearInterval(timer);
    document.title = before;
  }, 1000);
}
