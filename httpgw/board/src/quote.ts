// The quote form. A quote is firm for some seconds, which it counts down.
import type { Api } from './api.ts';
import { explain } from './api.ts';
import { grouped, short } from './decimal.ts';
import { create, byId, rows, setText } from './dom.ts';
import type { Level, Quote, Ticket } from './messages.ts';
import { percent, tranchesFor } from './offers.ts';

interface Choice {
  tranche: string;
  fill: string;
  rail: string;
}

export class QuoteForm {
  readonly #form = byId<HTMLFormElement>('quote');
  readonly #tranche = byId<HTMLSelectElement>('quote-tranche');
  readonly #fill = byId<HTMLSelectElement>('quote-fill');
  readonly #rail = byId<HTMLSelectElement>('quote-rail');
  readonly #button = byId<HTMLButtonElement>('quote-ask');
  readonly #answer = byId('quote-answer');
  #ticket: Ticket | undefined;
  #levels: readonly Level[] = [];
  #quote: { terms: Quote; endsAt: number } | null = null;

  constructor(
    readonly api: Api,
    readonly changed: () => void,
  ) {
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.ask();
    });
    for (const select of [this.#tranche, this.#fill, this.#rail]) {
      select.addEventListener('change', () => {
        if (select === this.#fill) this.#fit();
        this.#forget();
      });
    }
    window.setInterval(() => this.#count(), 250);
  }

  get fill(): string {
    return this.#fill.value;
  }

  /** offer sets the selected ticket. It keeps the chosen options of the same ticket. */
  offer(t: Ticket | undefined, levels: readonly Level[]): void {
    const another = t?.order_id !== this.#ticket?.order_id;
    const before: Choice = { tranche: this.#tranche.value, fill: this.#fill.value, rail: this.#rail.value };
    this.#ticket = t;
    this.#levels = levels;
    const fills = t ? levels.filter((l) => tranchesFor(t, l.fill_usd).length > 0) : [];
    options(this.#tranche, t?.tranches.map((x) => [x.tranche_id, `${x.tranche_id} · ${short(x.available_usd)}`]) ?? [], another ? '' : before.tranche);
    options(this.#fill, fills.map((l) => [l.fill_usd, grouped(l.fill_usd)]), another ? '' : before.fill);
    options(this.#rail, t?.rails.map((r) => [r, r]) ?? [], another ? '' : before.rail);
    this.#button.disabled = fills.length === 0;
    if (another) {
      this.#fit();
      this.#forget();
    }
  }

  /** choose selects the fill of a row of the ladder. */
  choose(fill: string): void {
    if (!this.#levels.some((l) => l.fill_usd === fill)) return;
    this.#fill.value = fill;
    this.#fit();
    this.#forget();
  }

  focus(): void {
    this.#button.focus();
  }

  // fit selects a tranche with room for the fill.
  #fit(): void {
    if (!this.#ticket || !this.#fill.value) return;
    const fits = tranchesFor(this.#ticket, this.#fill.value);
    if (!fits.some((x) => x.tranche_id === this.#tranche.value)) this.#tranche.value = fits[0]?.tranche_id ?? '';
  }

  #forget(): void {
    this.#quote = null;
    this.#answer.replaceChildren();
    this.changed();
  }

  /** ask requests a quote. */
  async ask(): Promise<void> {
    const t = this.#ticket;
    if (!t || !this.#fill.value) return;
    const body = { order_id: t.order_id, tranche_id: this.#tranche.value, fill_usd: this.#fill.value, rail: this.#rail.value };
    this.#button.disabled = true;
    try {
      const quote = await this.api.post<Quote>('/api/v1/rfq/quote', body);
      // Measured by the monotonic clock, because the user's clock may be wrong.
      const lasts = Date.parse(quote.valid_until) - Date.parse(quote.issued_at);
      this.#quote = { terms: quote, endsAt: performance.now() + lasts };
      this.#show(quote);
    } catch (error) {
      this.#quote = null;
      this.#answer.replaceChildren(create('p', { class: 'error' }, explain(error)));
    } finally {
      this.#button.disabled = false;
    }
  }

  #show(q: Quote): void {
    const facts: [string, string][] = [
      ['You pay', `${grouped(q.payment.amount)} ${q.payment.rail}`],
      ['You receive', `${grouped(q.base_amount)} ${q.pair.split('/')[0] ?? ''}`],
      ['Price', `${short(q.price_usd)} USD, ${percent(q.discount_bps)} off`],
    ];
    const terms = new URLSearchParams({ order: q.order_id, tranche: q.tranche_id, fill: q.fill_usd, rail: q.rail });
    const foot = create(
      'p', {}, create('a', { href: this.api.wallet(terms), id: 'quote-take' }, 'Take it with a wallet'), ' · ', create('span', { id: 'quote-left', class: 'soft' }),
      create('span', { class: 'soft' }, ` · fee ${percent(q.fee_bps)}, ${short(q.fee.amount)} ${q.payment.rail}, ${q.fee.included ? 'included' : 'added'}`),
    );
    const list = create('dl', { id: 'quote-terms', 'data-quote': q.quote_id ?? '' });
    for (const [i, pair] of rows(list, facts.length, () => create('div', {}, create('dt'), create('dd'))).entries()) {
      const [term, value] = pair.children;
      if (term && value && facts[i]) {
        setText(term, facts[i][0]);
        setText(value, facts[i][1]);
      }
    }
    this.#answer.replaceChildren(list, foot);
    this.#count();
  }

  #count(): void {
    const left = document.getElementById('quote-left');
    if (!this.#quote || !left) return;
    const seconds = Math.ceil((this.#quote.endsAt - performance.now()) / 1000);
    setText(left, seconds > 0 ? `firm for ${seconds} s` : 'no longer firm: ask again');
  }
}

// options sets the options of a select and selects one.
function options(select: HTMLSelectElement, choices: readonly (readonly [string, string])[], wanted: string): void {
  const list = rows(select, choices.length, () => create('option'));
  for (const [i, [value, text]] of choices.entries()) {
    const option = list[i];
    if (!option) continue;
    if (option.value !== value) option.value = value;
    setText(option, text);
  }
  const value = choices.some(([v]) => v === wanted) ? wanted : (choices[0]?.[0] ?? '');
  if (select.value !== value) select.value = value;
}
