// The operators' page on the admin address: what they look at every day, and the locks.
import { Decimal, short } from './decimal.ts';
import { clock, create, setAttr, byId, rows, setText } from './dom.ts';
import { testNetwork } from './network.ts';
import { themes } from './theme.ts';

const every = 5_000; // ms
const patience = 10_000; // ms
const tokenKey = 'operator-token';
const maxRows = 200;

interface Lock { name: string; locked: boolean; since: string | null; by: string | null; reason: string | null }
interface Price {
  pair?: string; rail?: string; price_source?: string; price_usd: string | null; set_at: string | null; stale: boolean; not_sold?: string; min_price_usd?: string | null; max_price_usd?: string | null;
  source?: string; confidence_usd?: string | null; fault?: string; sources?: { name: string; fault?: string }[];
}
interface Balance { asset: string; balance: string; needed: string; problem: string | null }
interface Status { execution_network: string | null; accepting: boolean; accepting_reason: string | null; balances: Balance[] }
interface Money { counts: Record<string, number> }
interface Stock { pair: string; inventory: string; reserved: string; sold: string; free: string }
interface Sold { order_id: string; ticket_label: string; pair: string; state: string; tranches: { available_usd: string; filled_usd: string }[] }
interface Session { comp_id: string; state: string; logged_on_since: string | null; live_orders: number; refusal: string | null }
interface Ready { ok: boolean; checks: { name: string; ok: boolean; error?: string }[] }

class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const moneyWords: Readonly<Record<string, string>> = {
  stuck_deliveries: 'paid, and the delivery fails', doubtful: 'expired, outcome unknown', refunds_due: 'refunds due', strays: 'payments without a claim',
};

class DeskPage {
  #token = stored();
  #timer = 0;

  run(): void {
    themes(byId('theme'), () => undefined);
    byId<HTMLFormElement>('token-form').addEventListener('submit', (event) => {
      event.preventDefault();
      const input = byId<HTMLInputElement>('token');
      this.#token = input.value.trim();
      input.value = '';
      void this.#refresh();
    });
    byId('forget').addEventListener('click', () => {
      this.#token = '';
      store('');
      this.#connected(false);
    });
    byId<HTMLFormElement>('lock-form').addEventListener('submit', (event) => {
      event.preventDefault();
      const reason = byId<HTMLInputElement>('lock-reason');
      void this.#change({ ...target(byId<HTMLSelectElement>('lock-what').value), locked: true, reason: reason.value }).then(() => (reason.value = ''));
    });
    byId('locks').addEventListener('click', (event) => {
      const what = event.target instanceof Element ? event.target.closest<HTMLElement>('[data-unlock]')?.dataset.unlock : undefined;
      if (what !== undefined) void this.#change({ ...target(what), locked: false });
    });
    document.addEventListener('visibilitychange', () => void this.#refresh());
    if (this.#token) void this.#refresh();
  }

  #connected(on: boolean): void {
    byId('panels').hidden = !on;
    byId('login').hidden = on;
    byId('forget').hidden = !on;
    if (!on) setText(byId('state'), 'not connected');
  }

  async #ask<T>(path: string, body?: object): Promise<T> {
    const answer = await fetch(path, {
      method: body ? 'POST' : 'GET', signal: AbortSignal.timeout(patience), cache: 'no-store',
      headers: { Authorization: `Bearer ${this.#token}`, ...(body ? { 'Content-Type': 'application/json', 'Idempotency-Key': key() } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const read = (await answer.json()) as { error?: string };
    if (!answer.ok && path !== '/readyz') throw new Refused(answer.status, read.error ?? `status ${answer.status}`);
    return read as T;
  }

  // optional is ask for what not every service has, such as one that settles nothing.
  async #optional<T>(path: string, missing: T): Promise<T> {
    try {
      return await this.#ask<T>(path);
    } catch (error) {
      if (error instanceof Refused && error.status === 404) return missing;
      throw error;
    }
  }

  // change sets or removes a lock.
  async #change(body: object): Promise<void> {
    setText(byId('lock-error'), '');
    try {
      await this.#ask('/desk/locks', body);
    } catch (error) {
      setText(byId('lock-error'), explain(error));
    }
    await this.#refresh();
  }

  async #refresh(): Promise<void> {
    window.clearTimeout(this.#timer);
    if (!this.#token || document.hidden) return;
    try {
      const [ready, status, locks, money, prices, stock, tickets, fix] = await Promise.all([
        this.#ask<Ready>('/readyz'), this.#optional<Status | null>('/desk/status', null), this.#optional<{ locks: Lock[] }>('/desk/locks', { locks: [] }), this.#optional<Money>('/desk/money', { counts: {} }), this.#optional<{ prices: Price[] }>('/desk/prices', { prices: [] }),
        this.#optional<{ inventory: Stock[] }>('/desk/inventory', { inventory: [] }), this.#optional<{ tickets: Sold[] }>('/desk/tickets', { tickets: [] }), this.#optional<{ sessions: Session[] }>('/desk/fix/sessions', { sessions: [] }),
      ]);
      store(this.#token);
      this.#connected(true);
      paint({ ready, balances: status?.balances ?? [], locks: locks.locks, money, prices: prices.prices, stock: stock.inventory, tickets: tickets.tickets, sessions: fix.sessions });
      setText(byId('state'), `${ready.ok ? 'ready' : 'NOT READY'} · ${new Date().toISOString().slice(11, 19)} UTC`);
      byId('banners').replaceChildren(...notices(status));
    } catch (error) {
      byId('banners').replaceChildren(create('p', { class: 'banner bad' }, create('b', {}, 'No answer.'), create('span', {}, explain(error))));
      if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
        this.#token = '';
        store('');
        this.#connected(false);
        return;
      }
    }
    this.#timer = window.setTimeout(() => void this.#refresh(), every);
  }
}

const explain = (error: unknown): string => (error instanceof Refused ? error.message : 'The service does not answer.');

function stored(): string {
  try {
    return sessionStorage.getItem(tokenKey) ?? '';
  } catch {
    return '';
  }
}

function store(token: string): void {
  try {
    if (token) sessionStorage.setItem(tokenKey, token);
    else sessionStorage.removeItem(tokenKey);
  } catch {
    // The token lasts until the page is left.
  }
}

// notices says what stops the desk from selling, and that it is no real market.
function notices(status: Status | null): HTMLElement[] {
  if (!status) return [];
  const list: HTMLElement[] = [];
  const notice = (kind: string, title: string, text: string) => list.push(create('p', { class: `banner ${kind}` }, create('b', {}, title), create('span', {}, text)));
  if (!status.accepting) notice('warn', 'No claims are accepted.', (status.accepting_reason ?? 'no reason given').replaceAll('_', ' '));
  const network = testNetwork(status.execution_network ?? '');
  if (network) notice('info', 'Not mainnet.', `Trades settle on ${network}. Its tokens have no value.`);
  return list;
}

/** The lock of what goes out, by its name in the answers. */
const deliveries = 'deliveries';

// lockWords returns what a lock stops; '' is the lock of all new promises.
const lockWords = (name: string): string => (name === deliveries ? 'deliveries, countersignatures and refunds' : name || 'all quotes and claims');

// target returns the members that name what is locked: everything, what goes out, a pair or
// a rail.
function target(what: string): object {
  if (what === '') return {};
  if (what === deliveries) return { deliveries: true };
  return what.includes('/') ? { pair: what } : { rail: what };
}

// key returns a new Idempotency-Key. crypto.randomUUID is missing where the page is not on
// this machine and without TLS.
const key = (): string => [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('');

const ago = (at: string | null): string => {
  if (!at) return 'never';
  const s = Math.max(0, Math.round((Date.now() - Date.parse(at)) / 1000));
  return s < 120 ? `${s} s` : s < 7200 ? `${Math.round(s / 60)} min` : `${Math.round(s / 3600)} h`;
};

const total = (values: string[]): string => short(values.reduce((sum, v) => sum.plus(Decimal.parse(v)), Decimal.zero).toString());

interface State {
  ready: Ready;
  balances: Balance[];
  locks: Lock[];
  money: Money;
  prices: Price[];
  stock: Stock[];
  tickets: Sold[];
  sessions: Session[];
}

// origin returns where a price is from: of a pair that its book prices, the anchor's too.
const origin = (p: Price): string => (p.price_source === 'book' ? ['book', p.source].filter(Boolean).join(', anchor ') : (p.source ?? p.price_source ?? ''));

// fault returns why a price, or a source of it, is not used.
function fault(p: Price): string {
  const bad = (p.sources ?? []).filter((s) => s.fault).map((s) => `${s.name}: ${s.fault}`);
  const all = [...(p.stale ? ['too old: not sold'] : []), ...(p.price_usd ? [] : [p.fault ?? 'never set']), ...(p.not_sold ? [`${p.not_sold}: not sold`] : []), ...bad];
  return all.length > 0 ? all.join('; ').replaceAll('_', ' ') : 'ok';
}

// table paints rows of texts; a row with a warning is marked.
function table(id: string, list: { cells: string[]; warn?: boolean }[], numbers: readonly number[] = []): void {
  const shown = list.slice(0, maxRows);
  const cells = Math.max(0, ...shown.map((r) => r.cells.length));
  const build = () => create('tr', {}, ...Array.from({ length: cells }, (_, i) => create('td', numbers.includes(i) ? { class: 'n' } : {})));
  for (const [i, row] of rows(byId(id), shown.length, build).entries()) {
    const { cells: texts = [], warn } = shown[i] ?? {};
    row.classList.toggle('warn-text', warn === true);
    for (const [j, text] of texts.entries()) if (row.children[j]) setText(row.children[j], text);
  }
}

function paint(s: State): void {
  table('ready', s.ready.checks.map((c) => ({ cells: [c.name.replaceAll('_', ' '), c.ok ? 'ok' : (c.error ?? 'failing')], warn: !c.ok })));
  paintLocks(s.locks.filter((l) => l.locked));
  table('money', Object.entries(s.money.counts).map(([kind, n]) => ({ cells: [moneyWords[kind] ?? kind.replaceAll('_', ' '), String(n)], warn: n > 0 })), [1]);
  table('prices', s.prices.map((p) => ({
    cells: [
      p.pair ?? p.rail ?? '', origin(p), p.price_usd ? `${short(p.price_usd)}${p.confidence_usd ? ` ± ${short(p.confidence_usd)}` : ''}` : 'none', ago(p.set_at),
      p.min_price_usd && p.max_price_usd ? `${short(p.min_price_usd)} to ${short(p.max_price_usd)}` : '', fault(p),
    ],
    warn: p.stale || !p.price_usd || Boolean(p.fault ?? p.not_sold),
  })), [2, 3, 4]);
  table('balances', s.balances.map((b) => ({ cells: [b.asset, short(b.balance), short(b.needed), b.problem ? `low: ${b.problem.replaceAll('_', ' ')}` : 'ok'], warn: Boolean(b.problem) })), [1, 2]);
  table('inventory', s.stock.map((i) => ({ cells: [i.pair, short(i.inventory), short(i.reserved), short(i.sold), short(i.free)] })), [1, 2, 3, 4]);
  table('desk-tickets', s.tickets.map((t) => ({
    cells: [`${t.order_id} ${t.ticket_label}`, t.pair, t.state, total(t.tranches.map((x) => x.available_usd)), total(t.tranches.map((x) => x.filled_usd))],
  })), [3, 4]);
  table('sessions', s.sessions.map((x) => ({
    cells: [x.comp_id, x.state.replaceAll('_', ' '), x.logged_on_since ? clock(x.logged_on_since) : '', String(x.live_orders), x.refusal ?? ''], warn: Boolean(x.refusal),
  })), [3]);
  const names = ['', deliveries, ...s.stock.map((i) => i.pair), ...s.prices.flatMap((p) => p.rail ?? []), 'USDC'];
  const what = byId<HTMLSelectElement>('lock-what');
  const list = rows(what, new Set(names).size, () => create('option'));
  for (const [i, name] of [...new Set(names)].entries()) {
    if (!list[i]) continue;
    setAttr(list[i], 'value', name);
    setText(list[i], lockWords(name));
  }
}

function paintLocks(locks: Lock[]): void {
  const build = () => create('tr', { class: 'warn-text' }, create('td'), create('td'), create('td'), create('td'), create('td', {}, create('button', { type: 'button', class: 'button' }, 'Unlock')));
  for (const [i, row] of rows(byId('locks'), locks.length, build).entries()) {
    const lock = locks[i];
    const [what, since, by, reason, change] = row.children;
    const button = change?.firstElementChild;
    if (!lock || !what || !since || !by || !reason || !button) continue;
    // global, deliveries, pair:SLUSD/USDC, rail:SOL
    const name = lock.name.includes(':') ? lock.name.slice(lock.name.indexOf(':') + 1) : lock.name === deliveries ? deliveries : '';
    setText(what, lockWords(name));
    setText(since, ago(lock.since));
    setText(by, lock.by ?? '');
    setText(reason, lock.reason ?? '');
    setAttr(button, 'data-unlock', name);
    setAttr(button, 'aria-label', `Unlock ${lockWords(name)}`);
  }
}

new DeskPage().run();
