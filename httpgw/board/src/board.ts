// The board: it joins the feed, REST and the panels.
import { Api, explain, loadConfig, Refused } from './api.ts';
import { Candles, intervals, shownCandles } from './chart.ts';
import { Decimal, grouped, short } from './decimal.ts';
import { paintBook, paintCurve, paintTape, placed } from './depth.ts';
import { make, mark, one, painter, rows, say } from './dom.ts';
import { Feed } from './feed.ts';
import type { Health, Source } from './health.ts';
import { paintAge, paintBanners } from './health.ts';
import { keys } from './keys.ts';
import { Book, Tape, Tickets } from './market.ts';
import type { Board, Config, DeskStatus, Kline, Level, MarketMessage, MarketStatus, Offer, Pair, Symbol, TickerMessage } from './messages.ts';
import { listed, paintLadder, paintLayers, paintTickets } from './offers.ts';
import { QuoteForm } from './quote.ts';
import { themes } from './theme.ts';

const depth = 50;
const ageEvery = 200; // ms
const candlesEvery = 6; // cycles: a trade that came while candles were read may be missing in them
const offersSoon = 1_000; // ms, after a ticket that the board has not told of

class BoardPage {
  readonly #paint = painter();
  readonly #tickers = new Map<string, TickerMessage>();
  readonly #tickets = new Tickets();
  readonly #offers = new Map<string, Offer>();
  readonly #candles = new Candles(one('candles'));
  readonly #form: QuoteForm;
  readonly #feeds: readonly [Feed, ...Feed[]]; // this group's is the first
  readonly #health: Health;
  #book = new Book();
  #tape = new Tape();
  #levels: readonly Level[] = [];
  #pairs = new Map<string, Pair>();
  #symbol: Symbol;
  #interval = '1m';
  #view: 'candles' | 'depth' = 'candles';
  #chosen = '';
  #asked = 0; // the newest request for candles
  #soon = 0;
  #cycles = 0;
  #deskless = false;
  #told = false; // whether the board has told of its offers

  constructor(
    readonly api: Api,
    readonly symbols: readonly Symbol[],
  ) {
    const [first] = symbols;
    if (!first) throw new Error('the service has no symbols');
    this.#symbol = first;
    this.#form = new QuoteForm(api, () => this.#paint('detail', () => this.#paintDetail()));
    const { ws_url, groups, refresh_s } = api.config;
    const names = symbols.map((s) => s.symbol);
    const elsewhere = groups.map((g) => ({ ...g, symbols: g.symbols.filter((s) => names.includes(s)) })).filter((g) => g.symbols.length > 0);
    const own = names.filter((s) => !elsewhere.some((g) => g.symbols.includes(s)));
    this.#feeds = [this.#feedAt(ws_url, own), ...elsewhere.map((g) => this.#feedAt(g.ws_url, g.symbols))];
    const [{ link }, ...others] = this.#feeds;
    this.#health = {
      sources: [{ link, symbols: own, board: null }, ...others.map((f, i): Source => ({ link: f.link, symbols: f.symbols, board: `${elsewhere[i]?.base_url}/board` }))],
      link, market: null, marketAt: 0, desk: null, mirrored: first.book_source === 'mirrored', restFails: '', cycle: refresh_s,
    };
  }

  #feedAt(url: string, symbols: readonly string[]): Feed {
    return new Feed(`${url}/ws/rfq`, symbols, depth, {
      message: (m) => this.#take(m), link: () => this.#paint('integrity', () => this.#paintIntegrity()),
    });
  }

  // feed is the one that the shown pair is of.
  get #feed(): Feed {
    return this.#feeds.find((f) => f.symbols.includes(this.#symbol.symbol)) ?? this.#feeds[0];
  }

  async run(): Promise<void> {
    this.#listen();
    this.#show(this.#symbol);
    window.setInterval(() => this.#tick(), ageEvery);
    await this.#loadDesk();
    void this.#cycle();
    window.setInterval(() => void this.#cycle(), this.api.config.refresh_s * 1000);
  }

  // loadDesk reads what a desk's prices are made of. A service may have no desk.
  async #loadDesk(): Promise<void> {
    try {
      const [{ levels }, { pairs }] = await Promise.all([
        this.api.get<{ levels: Level[] }>('/api/v1/rfq/levels'), this.api.get<{ pairs: Pair[] }>('/api/v1/rfq/pairs'),
      ]);
      this.#levels = levels;
      this.#pairs = new Map(pairs.map((p) => [p.pair, p]));
      this.#deskless = false;
    } catch (error) {
      this.#deskless = error instanceof Refused && error.status === 404;
      document.body.classList.toggle('deskless', this.#deskless);
    }
  }

  // cycle reads what the feed does not tell.
  async #cycle(): Promise<void> {
    if (document.hidden) return;
    if (++this.#cycles % candlesEvery === 0) void this.#loadCandles();
    if (this.#levels.length === 0 && !this.#deskless) await this.#loadDesk(); // it did not answer before
    const read = async <T>(path: string, take: (body: T) => void) => take(await this.api.get<T>(path));
    const desk = this.#deskless ? [] : [
      read<Board>('/api/v1/exchange/board', (b) => this.#takeOffers(b)),
      read<DeskStatus>('/api/v1/dvp/status', (d) => (this.#health.desk = d)),
    ];
    const done = await Promise.allSettled([
      ...desk,
      read<MarketStatus>('/api/v1/market/status', (m) => Object.assign(this.#health, { market: m, marketAt: performance.now() })),
    ]);
    const failed = done.find((d) => d.status === 'rejected');
    this.#health.restFails = failed ? explain(failed.reason) : '';
  }

  #takeOffers(b: Board): void {
    this.#told = true;
    this.#offers.clear();
    for (const offer of b.offers) this.#offers.set(offer.order_id, offer);
    say(one('offers-note'), `prices of ${b.ts.slice(11, 19)} UTC`);
    this.#paintOffersSoon();
  }

  // take applies a message to the copies; false asks for a snapshot.
  #take(m: MarketMessage): boolean {
    switch (m.channel) {
      case 'l2':
        if (!this.#book.apply(m)) return false;
        this.#paint('book', () => this.#paintBooks());
        return true;
      case 'trades': {
        const fresh = this.#tape.apply(m);
        if (m.type === 'snapshot') void this.#loadCandles();
        else for (const t of fresh) this.#candles.add(t);
        this.#paint('tape', () => paintTape(this.#tape.trades, this.#tape.place));
        return true;
      }
      case 'ticker':
        this.#tickers.set(m.symbol, m);
        this.#paint('ticker', () => this.#paintTicker());
        return true;
      case 'tickets':
        this.#tickets.apply(m);
        if (this.#told && m.tickets.some((t) => t.state === 'open' && !this.#offers.has(t.order_id))) this.#cycleSoon();
        this.#paintOffersSoon();
        return true;
    }
  }

  #cycleSoon(): void {
    window.clearTimeout(this.#soon);
    this.#soon = window.setTimeout(() => void this.#cycle(), offersSoon);
  }

  // show chooses the pair that the chart, the book and the trades are of.
  #show(symbol: Symbol): void {
    this.#symbol = symbol;
    this.#health.mirrored = symbol.book_source === 'mirrored';
    this.#book = new Book();
    this.#tape = new Tape();
    const shown = this.#feed;
    this.#health.link = shown.link;
    for (const feed of this.#feeds) feed.follow(feed === shown ? symbol.symbol : '');
    document.title = `${symbol.symbol} · ${this.api.config.service}`;
    this.#candles.show([], symbol, this.#interval);
    this.#paint('pairs', () => this.#paintPairs());
    this.#paint('book', () => this.#paintBooks());
    this.#paint('tape', () => paintTape([], null));
    this.#paint('ticker', () => this.#paintTicker());
  }

  async #loadCandles(): Promise<void> {
    const asked = ++this.#asked;
    const [symbol, interval] = [this.#symbol, this.#interval];
    const query = new URLSearchParams({ symbol: symbol.symbol, interval, limit: String(shownCandles) });
    try {
      const { klines } = await this.api.get<{ klines: Kline[] }>(`/api/v1/market/klines?${query}`);
      if (asked !== this.#asked) return;
      this.#candles.show(klines, symbol, interval);
      mark(one('candles'), 'aria-label', `Candles of ${symbol.symbol}, ${interval}: ${klines.length}`);
    } catch (error) {
      this.#health.restFails = explain(error);
    }
  }

  #listed(): ReturnType<typeof listed> {
    return listed(this.#tickets.open(), one<HTMLInputElement>('filter').value);
  }

  #choose(id: string): void {
    const ticket = this.#tickets.find(id);
    if (!ticket) return;
    this.#chosen = id;
    const symbol = this.symbols.find((s) => s.symbol === ticket.pair);
    if (symbol && symbol !== this.#symbol) this.#show(symbol);
    this.#paintOffersSoon();
  }

  // step chooses the next offer or the one before.
  #step(by: 1 | -1): void {
    const list = this.#listed().tickets;
    const at = list.findIndex((t) => t.order_id === this.#chosen);
    const next = list[Math.max(0, Math.min(list.length - 1, at < 0 ? 0 : at + by))];
    if (!next) return;
    this.#choose(next.order_id);
    document.querySelector(`[data-order="${CSS.escape(next.order_id)}"]`)?.scrollIntoView({ block: 'nearest' });
  }

  #paintOffersSoon(): void {
    this.#paint('offers', () => {
      const list = this.#listed();
      if (!this.#tickets.find(this.#chosen)) this.#chosen = list.tickets.find((t) => t.pair === this.#symbol.symbol)?.order_id ?? list.tickets[0]?.order_id ?? '';
      paintTickets(list, this.#offers, this.#chosen);
      this.#paintDetail();
    });
  }

  #paintDetail(): void {
    const ticket = this.#tickets.find(this.#chosen);
    const offer = this.#offers.get(this.#chosen);
    paintLayers(ticket, offer);
    this.#form.offer(ticket, this.#levels);
    const reference = offer?.operator_declared.reference_price_usd ?? ticket?.reference_price_usd ?? null;
    paintLadder(ticket, reference, this.#levels, ticket && this.#pairs.get(ticket.pair), this.#form.fill);
  }

  #paintBooks(): void {
    paintBook(this.#book, this.#symbol);
    if (this.#view === 'depth') paintCurve(this.#book);
    const place = this.#book.place;
    say(one('where'), place ? `${this.#symbol.symbol} · epoch ${place.epoch} · book ${place.seq}` : '');
    this.#paintIntegrity();
  }

  #paintIntegrity(): void {
    const { gaps, connections, resumed } = this.#feed.link;
    say(one('integrity'), `checksum ${this.#book.place ? 'holds' : 'awaited'} · ${gaps} ${gaps === 1 ? 'gap' : 'gaps'} · ${connections} ${connections === 1 ? 'connection' : 'connections'}, ${resumed} resumed`);
  }

  #paintPairs(): void {
    const list = rows(one('pairs'), this.symbols.length, () => make('button', { type: 'button' }, make('kbd'), make('b'), make('span')));
    for (const [i, s] of this.symbols.entries()) {
      const button = list[i];
      const [key, name, last] = button?.children ?? [];
      if (!button || !key || !name || !last) continue;
      mark(button, 'aria-pressed', String(s === this.#symbol));
      mark(button, 'data-symbol', s.symbol);
      mark(button, 'aria-keyshortcuts', String(i + 1));
      say(key, String(i + 1));
      say(name, s.symbol);
      say(last, this.#tickers.get(s.symbol)?.last ?? '');
    }
  }

  #paintTicker(): void {
    const t = this.#tickers.get(this.#symbol.symbol);
    const put = (id: string, value: string | null | undefined) => say(one(id), value ? grouped(value) : '–');
    put('last', t?.last);
    put('high', t?.high_24h);
    put('low', t?.low_24h);
    say(one('volume'), t ? short(Decimal.parse(t.volume_24h).rounded(2).toString()) : '–');
    say(one('volume-of'), this.#symbol.base);
    put('count', t && String(t.trades_24h));
    this.#paintChange(t);
    placed(one('ticker'), t ? { epoch: t.epoch, seq: t.seq, ts: t.ts } : null);
    this.#paintPairs();
  }

  #paintChange(t: TickerMessage | undefined): void {
    const change = one('change');
    if (!t?.last || !t.open_24h) {
      say(change, '–');
      return;
    }
    const [open, last] = [Decimal.parse(t.open_24h), Decimal.parse(t.last)];
    const moved = last.plus(new Decimal(-open.units, open.scale)).times(new Decimal(100n, 0)).over(open, 2);
    say(change, `${moved.positive ? '+' : ''}${moved} %`);
    change.className = moved.positive ? 'buy' : moved.units < 0n ? 'sell' : '';
  }

  #tick(): void {
    const now = performance.now();
    paintAge(this.#health, now);
    paintBanners(this.#health, now);
  }

  #listen(): void {
    themes(one('theme'), () => {
      this.#candles.dress();
      if (this.#asked > 0) void this.#loadCandles(); // its bars have colours of their own
    });
    const list = rows(one('intervals'), intervals.size, () => make('button', { type: 'button' }));
    for (const [i, name] of [...intervals.keys()].entries()) {
      const button = list[i];
      if (!button) continue;
      say(button, name);
      mark(button, 'aria-pressed', String(name === this.#interval));
      button.addEventListener('click', () => {
        this.#interval = name;
        for (const other of list) mark(other, 'aria-pressed', String(other === button));
        void this.#loadCandles();
      });
    }
    for (const tab of document.querySelectorAll<HTMLElement>('[data-view]')) tab.addEventListener('click', () => this.#turn(tab.dataset.view === 'depth' ? 'depth' : 'candles'));
    one('pairs').addEventListener('click', (event) => this.#pair(closest(event, 'button')?.dataset.symbol));
    one('ticket-rows').addEventListener('click', (event) => this.#choose(closest(event, 'tr')?.dataset.order ?? ''));
    one('ladder-rows').addEventListener('click', (event) => this.#form.choose(closest(event, 'tr:not([data-off])')?.dataset.fill ?? ''));
    one('filter').addEventListener('input', () => this.#paintOffersSoon());
    const resized = new ResizeObserver(() => this.#paint('book', () => this.#paintBooks()));
    for (const id of ['book', 'curve']) resized.observe(one(id).closest('section') ?? one(id));
    document.addEventListener('visibilitychange', () => void this.#cycle());
    keys({
      filter: one<HTMLInputElement>('filter'), help: one<HTMLDialogElement>('help'), open: one('help-open'),
      pair: (n) => this.#pair(this.symbols[n - 1]?.symbol), step: (by) => this.#step(by), enter: () => void this.#form.ask(),
    });
  }

  #pair(name: string | undefined): void {
    const symbol = this.symbols.find((s) => s.symbol === name);
    if (!symbol || symbol === this.#symbol) return;
    this.#show(symbol);
    this.#chosen = this.#listed().tickets.find((t) => t.pair === name)?.order_id ?? this.#chosen;
    this.#paintOffersSoon();
  }

  #turn(view: 'candles' | 'depth'): void {
    this.#view = view;
    for (const tab of document.querySelectorAll<HTMLElement>('[data-view]')) mark(tab, 'aria-pressed', String(tab.dataset.view === view));
    one('candles').hidden = view !== 'candles';
    mark(one('curve'), 'hidden', view === 'depth' ? null : '');
    one('intervals').hidden = view !== 'candles';
    this.#paint('book', () => this.#paintBooks());
  }
}

function closest(event: Event, selector: string): HTMLElement | null {
  return event.target instanceof Element ? event.target.closest<HTMLElement>(selector) : null;
}

async function start(): Promise<void> {
  const config: Config = await loadConfig();
  say(one('service'), config.service);
  const api = new Api(config);
  mark(one('wallet'), 'href', api.wallet());
  const { symbols } = await api.get<{ symbols: Symbol[] }>('/api/v1/market/symbols');
  await new BoardPage(api, symbols).run();
}

start().catch((error: unknown) => {
  one('banners').replaceChildren(make('p', { class: 'banner bad' }, make('b', {}, 'The board cannot start.'), make('span', {}, explain(error))));
});
