// The board: connects the feed, REST and the panels.
import { BuyForm } from './buy.ts';
import { Api, explain, loadConfig, ServiceError } from './api.ts';
import { Candles, intervals, shownCandles } from './chart.ts';
import { Decimal, grouped, short } from './decimal.ts';
import { Checkout } from './checkout.ts';
import { Claims } from './claims.ts';
import { Curve } from './curve.ts';
import { paintBook, paintTape, showPosition } from './depth.ts';
import { create, setAttr, byId, painter, rows, setText } from './dom.ts';
import { Feed } from './feed.ts';
import type { Health, Source } from './health.ts';
import { paintAge, paintBanners, priceText } from './health.ts';
import { keys } from './keys.ts';
import { Book, Tape, Tickets } from './market.ts';
import type { Board, Config, DeskStatus, Kline, Level, MarketMessage, MarketStatus, Offer, Pair, Symbol, TickerMessage } from './messages.ts';
import { listed, paintLadder, paintLayers, paintTickets } from './offers.ts';
import { themes } from './theme.ts';

const depth = 50;
const ageEvery = 200; // ms
const candlesEvery = 6; // cycles: candles may lack a trade that arrived while they were loaded
const offersSoon = 1_000; // ms, after a ticket that the offers do not have

class BoardPage {
  readonly #paint = painter();
  readonly #tickers = new Map<string, TickerMessage>();
  readonly #tickets = new Tickets();
  readonly #offers = new Map<string, Offer>();
  readonly #candles = new Candles(byId('candles'));
  readonly #curve = new Curve();
  readonly #form: BuyForm;
  readonly #feeds: readonly [Feed, ...Feed[]]; // this shard's feed first
  readonly #health: Health;
  #book = new Book();
  #tape = new Tape();
  #levels: readonly Level[] = [];
  #pairs = new Map<string, Pair>();
  #symbol: Symbol;
  #interval = '1m';
  #view: 'candles' | 'depth' = 'candles';
  #selected = '';
  #candleRequest = 0; // number of the newest request for candles
  #candlesMissing = false; // the newest request failed: the next cycle repeats it
  #soonTimer = 0;
  #cycles = 0;
  #noDesk = false;
  #offersLoaded = false;
  constructor(
    readonly api: Api,
    readonly symbols: readonly Symbol[],
  ) {
    const [first] = symbols;
    if (!first) throw new Error('the service has no symbols');
    this.#symbol = first;
    this.#form = new BuyForm(api, new Checkout(api, new Claims(api)), () => this.#paint('detail', () => this.#paintDetail()));
    const { ws_url, groups, refresh_s } = api.config;
    const names = symbols.map((s) => s.symbol);
    const otherShards = groups.map((g) => ({ ...g, symbols: g.symbols.filter((s) => names.includes(s)) })).filter((g) => g.symbols.length > 0);
    const own = names.filter((s) => !otherShards.some((g) => g.symbols.includes(s)));
    this.#feeds = [this.#feedAt(ws_url, own), ...otherShards.map((g) => this.#feedAt(g.ws_url, g.symbols))];
    const [{ link }, ...others] = this.#feeds;
    this.#health = {
      sources: [{ link, symbols: own, board: null }, ...others.map((f, i): Source => ({ link: f.link, symbols: f.symbols, board: `${otherShards[i]?.base_url}/board` }))],
      link, market: null, marketAt: 0, desk: null, mirrored: first.book_source === 'mirrored', restFails: '', cycle: refresh_s,
    };
  }

  #feedAt(url: string, symbols: readonly string[]): Feed {
    return new Feed(`${url}/ws/rfq`, symbols, depth, {
      message: (m) => this.#apply(m), link: () => this.#paint('integrity', () => this.#paintIntegrity()),
    });
  }

  // The feed of the shown pair.
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

  // loadDesk loads the ladder and the pairs. A service may have no desk.
  async #loadDesk(): Promise<void> {
    try {
      const [{ levels }, { pairs }] = await Promise.all([
        this.api.get<{ levels: Level[] }>('/api/v1/rfq/levels'), this.api.get<{ pairs: Pair[] }>('/api/v1/rfq/pairs'),
      ]);
      this.#levels = levels;
      this.#pairs = new Map(pairs.map((p) => [p.pair, p]));
      this.#noDesk = false;
    } catch (error) {
      this.#noDesk = error instanceof ServiceError && error.status === 404;
      document.body.classList.toggle('deskless', this.#noDesk);
    }
  }

  // cycle loads what the feed does not have.
  async #cycle(): Promise<void> {
    if (document.hidden) return;
    if (++this.#cycles % candlesEvery === 0 || this.#candlesMissing) void this.#loadCandles();
    if (this.#levels.length === 0 && !this.#noDesk) await this.#loadDesk(); // the first request failed
    const read = async <T>(path: string, take: (body: T) => void) => take(await this.api.get<T>(path));
    const desk = this.#noDesk ? [] : [
      read<Board>('/api/v1/exchange/board', (b) => this.#takeOffers(b)),
      read<DeskStatus>('/api/v1/dvp/status', (d) => {
        this.#health.desk = d;
        this.#paint('detail', () => this.#paintDetail());
      }),
    ];
    const done = await Promise.allSettled([
      ...desk,
      read<MarketStatus>('/api/v1/market/status', (m) => Object.assign(this.#health, { market: m, marketAt: performance.now() })),
    ]);
    const failed = done.find((d) => d.status === 'rejected');
    this.#health.restFails = failed ? explain(failed.reason) : '';
  }

  #takeOffers(b: Board): void {
    this.#offersLoaded = true;
    this.#offers.clear();
    for (const offer of b.offers) this.#offers.set(offer.order_id, offer);
    setText(byId('offers-note'), `prices of ${b.ts.slice(11, 19)} UTC`);
    this.#paintOffersSoon();
  }

  // apply applies a message; false requests a snapshot.
  #apply(m: MarketMessage): boolean {
    switch (m.channel) {
      case 'l2':
        if (!this.#book.apply(m)) return false;
        this.#paint('book', () => this.#paintBooks());
        return true;
      case 'trades': {
        const fresh = this.#tape.apply(m);
        if (m.type === 'snapshot') void this.#loadCandles();
        else for (const t of fresh) this.#candles.add(t);
        this.#paint('tape', () => paintTape(this.#tape.trades, this.#tape.position, this.#symbol));
        return true;
      }
      case 'ticker':
        this.#tickers.set(m.symbol, m);
        this.#paint('ticker', () => this.#paintTicker());
        return true;
      case 'tickets':
        this.#tickets.apply(m);
        if (this.#offersLoaded && m.tickets.some((t) => t.state === 'open' && !this.#offers.has(t.order_id))) this.#cycleSoon();
        this.#paintOffersSoon();
        return true;
    }
  }

  #cycleSoon(): void {
    window.clearTimeout(this.#soonTimer);
    this.#soonTimer = window.setTimeout(() => void this.#cycle(), offersSoon);
  }

  // show shows the chart, the book and the trades of a pair.
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
    this.#paint('tape', () => paintTape([], null, symbol));
    this.#paint('ticker', () => this.#paintTicker());
  }

  async #loadCandles(): Promise<void> {
    const asked = ++this.#candleRequest;
    const [symbol, interval] = [this.#symbol, this.#interval];
    const query = new URLSearchParams({ symbol: symbol.symbol, interval, limit: String(shownCandles) });
    try {
      const { klines } = await this.api.get<{ klines: Kline[] }>(`/api/v1/market/klines?${query}`);
      if (asked !== this.#candleRequest) return;
      this.#candlesMissing = false;
      this.#candles.show(klines, symbol, interval);
      setAttr(byId('candles'), 'aria-label', `Candles of ${symbol.symbol}, ${interval}: ${klines.length}`);
    } catch (error) {
      if (asked === this.#candleRequest) this.#candlesMissing = true;
      this.#health.restFails = explain(error);
    }
  }

  #listed(): ReturnType<typeof listed> {
    return listed(this.#tickets.open(), byId<HTMLInputElement>('filter').value);
  }

  #select(id: string): void {
    const ticket = this.#tickets.find(id);
    if (!ticket) return;
    this.#selected = id;
    const symbol = this.symbols.find((s) => s.symbol === ticket.pair);
    if (symbol && symbol !== this.#symbol) this.#show(symbol);
    this.#paintOffersSoon();
  }

  // step selects the next or previous offer.
  #step(by: 1 | -1): void {
    const list = this.#listed().tickets;
    const at = list.findIndex((t) => t.order_id === this.#selected);
    const next = list[Math.max(0, Math.min(list.length - 1, at < 0 ? 0 : at + by))];
    if (!next) return;
    this.#select(next.order_id);
    document.querySelector(`[data-order="${CSS.escape(next.order_id)}"]`)?.scrollIntoView({ block: 'nearest' });
  }

  #paintOffersSoon(): void {
    this.#paint('offers', () => {
      const list = this.#listed();
      if (!this.#tickets.find(this.#selected)) this.#selected = list.tickets.find((t) => t.pair === this.#symbol.symbol)?.order_id ?? list.tickets[0]?.order_id ?? '';
      paintTickets(list, this.#offers, this.#selected);
      this.#paintDetail();
    });
  }

  #paintDetail(): void {
    const ticket = this.#tickets.find(this.#selected);
    const offer = this.#offers.get(this.#selected);
    paintLayers(ticket, offer);
    setText(byId('price-note'), ticket ? priceText(this.#health.desk?.prices ?? [], ticket.pair, ticket.rails) : '');
    const reference = offer?.operator_declared.reference_price_usd ?? ticket?.reference_price_usd ?? null;
    const pair = ticket && this.#pairs.get(ticket.pair);
    this.#form.offer(ticket, this.#levels, reference, pair);
    paintLadder(ticket, reference, this.#levels, pair, this.#form.fill);
  }

  #paintBooks(): void {
    paintBook(this.#book, this.#symbol);
    if (this.#view === 'depth') this.#curve.paint(this.#book, this.#symbol.price_decimals);
    const position = this.#book.position;
    setText(byId('where'), position ? `${this.#symbol.symbol} · epoch ${position.epoch} · book ${position.seq}` : '');
    this.#paintIntegrity();
  }

  #paintIntegrity(): void {
    const { gaps, connections, resumed } = this.#feed.link;
    setText(byId('integrity'), `checksum ${this.#book.position ? 'holds' : 'awaited'} · ${gaps} ${gaps === 1 ? 'gap' : 'gaps'} · ${connections} ${connections === 1 ? 'connection' : 'connections'}, ${resumed} resumed`);
  }

  #paintPairs(): void {
    const list = rows(byId('pairs'), this.symbols.length, () => create('button', { type: 'button' }, create('kbd'), create('b'), create('span')));
    for (const [i, s] of this.symbols.entries()) {
      const button = list[i];
      const [key, name, last] = button?.children ?? [];
      if (!button || !key || !name || !last) continue;
      setAttr(button, 'aria-pressed', String(s === this.#symbol));
      setAttr(button, 'data-symbol', s.symbol);
      setAttr(button, 'aria-keyshortcuts', String(i + 1));
      setText(key, String(i + 1));
      setText(name, s.symbol);
      setText(last, this.#tickers.get(s.symbol)?.last ?? '');
    }
  }

  #paintTicker(): void {
    const t = this.#tickers.get(this.#symbol.symbol);
    const put = (id: string, value: string | null | undefined) => setText(byId(id), value ? grouped(value) : '–');
    put('last', t?.last);
    put('high', t?.high_24h);
    put('low', t?.low_24h);
    setText(byId('volume'), t ? short(Decimal.parse(t.volume_24h).rounded(2).toString()) : '–');
    setText(byId('volume-of'), this.#symbol.base);
    put('count', t && String(t.trades_24h));
    this.#paintChange(t);
    showPosition(byId('ticker'), t ? { epoch: t.epoch, seq: t.seq, ts: t.ts } : null);
    this.#paintPairs();
  }

  #paintChange(t: TickerMessage | undefined): void {
    const change = byId('change');
    if (!t?.last || !t.open_24h) {
      setText(change, '–');
      return;
    }
    const [open, last] = [Decimal.parse(t.open_24h), Decimal.parse(t.last)];
    const moved = last.plus(new Decimal(-open.units, open.scale)).times(new Decimal(100n, 0)).over(open, 2);
    setText(change, `${moved.positive ? '+' : ''}${moved} %`);
    change.className = moved.positive ? 'buy' : moved.units < 0n ? 'sell' : '';
  }

  #tick(): void {
    const now = performance.now();
    paintAge(this.#health, now);
    paintBanners(this.#health, now);
  }

  #listen(): void {
    themes(byId('theme'), () => {
      this.#candles.applyTheme();
      if (this.#candleRequest > 0) void this.#loadCandles(); // every bar has its own colour
    });
    const list = rows(byId('intervals'), intervals.size, () => create('button', { type: 'button' }));
    for (const [i, name] of [...intervals.keys()].entries()) {
      const button = list[i];
      if (!button) continue;
      setText(button, name);
      setAttr(button, 'aria-pressed', String(name === this.#interval));
      button.addEventListener('click', () => {
        this.#interval = name;
        for (const other of list) setAttr(other, 'aria-pressed', String(other === button));
        void this.#loadCandles();
      });
    }
    for (const tab of document.querySelectorAll<HTMLElement>('[data-view]')) tab.addEventListener('click', () => this.#setView(tab.dataset.view === 'depth' ? 'depth' : 'candles'));
    byId('pairs').addEventListener('click', (event) => this.#pair(closest(event, 'button')?.dataset.symbol));
    byId('ticket-rows').addEventListener('click', (event) => this.#select(closest(event, 'tr')?.dataset.order ?? ''));
    byId('ladder-rows').addEventListener('click', (event) => this.#form.choose(closest(event, 'tr:not([data-off])')?.dataset.fill ?? ''));
    byId('book-group').addEventListener('change', () => this.#paint('book', () => this.#paintBooks()));
    panels();
    byId('filter').addEventListener('input', () => this.#paintOffersSoon());
    const resized = new ResizeObserver(() => this.#paint('book', () => this.#paintBooks()));
    for (const id of ['book', 'curve']) resized.observe(byId(id).closest('section') ?? byId(id));
    document.addEventListener('visibilitychange', () => void this.#cycle());
    keys({
      filter: byId<HTMLInputElement>('filter'), help: byId<HTMLDialogElement>('help'), open: byId('help-open'),
      pair: (n) => this.#pair(this.symbols[n - 1]?.symbol), step: (by) => this.#step(by), enter: () => void this.#form.ask(),
    });
  }

  #pair(name: string | undefined): void {
    const symbol = this.symbols.find((s) => s.symbol === name);
    if (!symbol || symbol === this.#symbol) return;
    this.#show(symbol);
    this.#selected = this.#listed().tickets.find((t) => t.pair === name)?.order_id ?? this.#selected;
    this.#paintOffersSoon();
  }

  #setView(view: 'candles' | 'depth'): void {
    this.#view = view;
    for (const tab of document.querySelectorAll<HTMLElement>('[data-view]')) setAttr(tab, 'aria-pressed', String(tab.dataset.view === view));
    byId('candles').hidden = view !== 'candles';
    setAttr(byId('curve'), 'hidden', view === 'depth' ? null : '');
    byId('intervals').hidden = view !== 'candles';
    this.#paint('book', () => this.#paintBooks());
  }
}

// panels lets the phone choose a panel, and the last panel show trades or claims.
function panels(): void {
  const choose = (buttons: NodeListOf<HTMLElement>, chosen: HTMLElement) => {
    for (const button of buttons) setAttr(button, 'aria-pressed', String(button === chosen));
  };
  const views = byId('views').querySelectorAll<HTMLElement>('[data-tab]');
  for (const view of views) {
    view.addEventListener('click', () => {
      document.body.dataset.tab = view.dataset.tab ?? '';
      choose(views, view);
    });
  }
  const lists = document.querySelectorAll<HTMLElement>('[data-list]');
  for (const list of lists) {
    list.addEventListener('click', () => {
      byId('tape').hidden = list.dataset.list !== 'trades';
      byId('claims').hidden = list.dataset.list !== 'claims';
      choose(lists, list);
    });
  }
}

function closest(event: Event, selector: string): HTMLElement | null {
  return event.target instanceof Element ? event.target.closest<HTMLElement>(selector) : null;
}

async function start(): Promise<void> {
  const config: Config = await loadConfig();
  setText(byId('service'), config.service);
  const api = new Api(config);
  setAttr(byId('wallet'), 'href', api.wallet());
  const { symbols } = await api.get<{ symbols: Symbol[] }>('/api/v1/market/symbols');
  await new BoardPage(api, symbols).run();
}

start().catch((error: unknown) => {
  byId('banners').replaceChildren(create('p', { class: 'banner bad' }, create('b', {}, 'The board cannot start.'), create('span', {}, explain(error))));
});
