// The purchase form: an amount, a firm quote with its countdown, and the confirmation,
// which signs with a wallet and follows the claim.
import type { Api } from './api.ts';
import { explain } from './api.ts';
import { Decimal, grouped, short } from './decimal.ts';
import { create, byId, rows, setText } from './dom.ts';
import type { Level, Pair, Quote, Ticket } from './messages.ts';
import { percent, priced, tranchesFor } from './offers.ts';
import type { Checkout } from './checkout.ts';

interface Choice {
  tranche: string;
  fill: string;
  rail: string;
}

/** snap returns the largest step of a ladder that an amount reaches, or the smallest step. */
export function snap(text: string, fills: readonly string[]): string | null {
  const plain = text.replaceAll(/[\s,_]/g, '');
  const unit = /[km]$/i.exec(plain)?.[0].toLowerCase();
  let wanted: Decimal;
  try {
    wanted = Decimal.parse(plain.replace(/[km]$/i, '')).times(new Decimal(unit === 'm' ? 1_000_000n : unit === 'k' ? 1_000n : 1n, 0));
  } catch {
    return null;
  }
  const sorted = fills.map((fill) => ({ fill, value: Decimal.parse(fill) })).sort((a, b) => a.value.compare(b.value));
  return sorted.findLast((f) => f.value.compare(wanted) <= 0)?.fill ?? sorted[0]?.fill ?? null;
}

/** allIn returns what a unit of the base asset costs in the paid asset, fee included. */
export function allIn(paid: string, received: string): string {
  const got = Decimal.parse(received);
  return got.units === 0n ? '–' : short(Decimal.parse(paid).over(got, 6).toString());
}

export class BuyForm {
  readonly #form = byId<HTMLFormElement>('quote');
  readonly #tranche = byId<HTMLSelectElement>('quote-tranche');
  readonly #fill = byId<HTMLInputElement>('quote-fill');
  readonly #rail = byId<HTMLSelectElement>('quote-rail');
  readonly #button = byId<HTMLButtonElement>('quote-ask');
  readonly #answer = byId('quote-answer');
  #ticket: Ticket | undefined;
  #levels: readonly Level[] = [];
  #reference: string | null = null;
  #pair: Pair | undefined;
  #quote: { terms: Quote; endsAt: number } | null = null;
  #buying = false;

  constructor(
    readonly api: Api,
    readonly checkout: Checkout,
    readonly changed: () => void,
  ) {
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#snap();
      void this.ask();
    });
    this.#fill.addEventListener('change', () => {
      this.#snap();
      this.#forget();
    });
    for (const select of [this.#tranche, this.#rail]) select.addEventListener('change', () => this.#forget());
    window.setInterval(() => this.#count(), 250);
  }

  get fill(): string {
    return this.#fill.value;
  }

  /** offer sets the selected ticket. It keeps the chosen options of the same ticket. */
  offer(t: Ticket | undefined, levels: readonly Level[], reference: string | null, pair: Pair | undefined): void {
    const another = t?.order_id !== this.#ticket?.order_id;
    const before: Choice = { tranche: this.#tranche.value, fill: this.#fill.value, rail: this.#rail.value };
    [this.#ticket, this.#levels, this.#reference, this.#pair] = [t, levels, reference, pair];
    const fills = this.#fills();
    const list = rows(byId('quote-fills'), fills.length, () => create('option'));
    for (const [i, fill] of fills.entries()) if (list[i]) list[i].setAttribute('value', fill);
    options(this.#tranche, t?.tranches.map((x) => [x.tranche_id, `${x.tranche_id} · ${short(x.available_usd)}`]) ?? [], another ? '' : before.tranche);
    options(this.#rail, t?.rails.map((r) => [r, r]) ?? [], another ? '' : before.rail);
    if (document.activeElement !== this.#fill && !fills.includes(before.fill)) this.#fill.value = fills[0] ?? '';
    this.#button.disabled = fills.length === 0 || this.#buying;
    if (another) {
      this.#fill.value = fills[0] ?? '';
      this.#fit();
      this.#forget();
    } else this.#paintHeadline();
  }

  // fills returns the steps of the ladder that some tranche has left.
  #fills(): string[] {
    const t = this.#ticket;
    return t ? this.#levels.filter((l) => tranchesFor(t, l.fill_usd).length > 0).map((l) => l.fill_usd) : [];
  }

  // snap puts a free amount on the ladder and says so.
  #snap(): void {
    const typed = this.#fill.value;
    const fill = snap(typed, this.#fills());
    const moved = fill !== null && fill !== typed.replaceAll(/[\s,_]/g, '');
    setText(byId('quote-hint'), fill === null ? 'Type an amount in dollars, such as 25000 or 25k.' : moved ? `${grouped(fill)} is the step of the ladder for ${typed}.` : '');
    if (fill !== null) this.#fill.value = fill;
    this.#fit();
  }

  /** choose selects the fill of a row of the ladder. */
  choose(fill: string): void {
    if (!this.#fills().includes(fill)) return;
    this.#fill.value = fill;
    setText(byId('quote-hint'), '');
    this.#fit();
    this.#forget();
  }

  // fit selects a tranche with room for the fill.
  #fit(): void {
    if (!this.#ticket || !this.#fills().includes(this.#fill.value)) return;
    const fits = tranchesFor(this.#ticket, this.#fill.value);
    if (!fits.some((x) => x.tranche_id === this.#tranche.value)) this.#tranche.value = fits[0]?.tranche_id ?? '';
  }

  #forget(): void {
    if (this.#buying) return;
    this.#quote = null;
    this.#answer.replaceChildren();
    this.changed();
    this.#paintHeadline();
  }

  // paintHeadline shows what a purchase costs in all, before the discount.
  #paintHeadline(): void {
    const level = this.#levels.find((l) => l.fill_usd === this.#fill.value);
    const terms = level && this.#reference ? priced(this.#reference, level, this.#pair?.base_decimals ?? 6) : null;
    const base = this.#ticket?.base_symbol ?? '';
    const quoted = this.#quote?.terms;
    setText(byId('headline-get'), quoted ? `${grouped(quoted.payment.amount)} ${quoted.rail} buys ${grouped(quoted.base_amount)} ${base}`
      : terms ? `${grouped(level?.fill_usd ?? '')} USD buys ${grouped(terms.base)} ${base}` : 'No price now');
    setText(byId('headline-price'), quoted ? `${allIn(quoted.payment.amount, quoted.base_amount)} ${quoted.rail} each, all in` : terms ? `${allIn(level?.fill_usd ?? '0', terms.base)} USD each, all in` : '');
    const fee = quoted?.fee_bps ?? this.api.config.fee_bps;
    const cost = quoted ? ` (${short(quoted.fee.amount)} ${quoted.rail})` : '';
    setText(byId('headline-fee'), terms && level ? `fee ${percent(fee)}${cost} included · ${percent(level.discount_bps)} off the reference price` : '');
    this.#button.classList.toggle('primary', !quoted); // then the confirmation is
    setText(this.#button, quoted ? 'New quote' : level ? `Buy for ${grouped(level.fill_usd)} USD` : 'Buy');
  }

  /** ask requests a quote. */
  async ask(): Promise<void> {
    const t = this.#ticket;
    if (!t || this.#buying || !this.#fills().includes(this.#fill.value)) return;
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
      this.#paintHeadline();
    }
  }

  #show(q: Quote): void {
    const facts: [string, string][] = [
      ['You pay', `${grouped(q.payment.amount)} ${q.payment.rail}`],
      ['You receive', `${grouped(q.base_amount)} ${q.pair.split('/')[0] ?? ''}`],
    ];
    const terms = new URLSearchParams({ order: q.order_id, tranche: q.tranche_id, fill: q.fill_usd, rail: q.rail });
    const confirm = create('button', { type: 'button', class: 'button primary big', id: 'quote-confirm' }, 'Confirm');
    confirm.addEventListener('click', () => void this.#confirm(q));
    const foot = create(
      'p', { id: 'quote-foot' }, create('span', { id: 'quote-left', class: 'soft' }), ' · ',
      create('a', { href: this.api.wallet(terms), id: 'quote-take' }, 'step by step on the wallet page'),
    );
    const list = create('dl', { id: 'quote-terms', 'data-quote': q.quote_id ?? '' });
    for (const [i, pair] of rows(list, facts.length, () => create('div', {}, create('dt'), create('dd'))).entries()) {
      const [term, value] = pair.children;
      if (term && value && facts[i]) {
        setText(term, facts[i][0]);
        setText(value, facts[i][1]);
      }
    }
    this.#answer.replaceChildren(list, confirm, foot);
    this.#count();
  }

  // confirm buys on the terms of a quote.
  async #confirm(q: Quote): Promise<void> {
    const mint = this.#pair?.base_mint;
    if (this.#buying || !mint) return;
    this.#buying = true;
    this.#button.disabled = true;
    const progress = create('div', { id: 'quote-progress' });
    this.#answer.querySelector('#quote-confirm')?.replaceWith(progress);
    try {
      await this.checkout.buy(q, mint, progress);
    } catch (error) {
      progress.replaceChildren(create('p', { class: 'error', role: 'alert' }, explain(error)));
    } finally {
      this.#buying = false;
      this.#button.disabled = false;
      document.getElementById('quote-foot')?.remove();
      this.#quote = null;
      this.#paintHeadline();
    }
  }

  #count(): void {
    const left = document.getElementById('quote-left');
    if (!this.#quote || !left) return;
    const seconds = Math.ceil((this.#quote.endsAt - performance.now()) / 1000);
    const { firm } = this.#quote.terms;
    setText(left, !firm ? 'not firm: nothing can be settled now' : seconds > 0 ? `firm for ${seconds} s` : 'no longer firm: ask again');
    const confirm = document.getElementById('quote-confirm');
    if (confirm instanceof HTMLButtonElement) {
      confirm.disabled = !firm || seconds <= 0;
      setText(confirm, !firm ? 'Not firm' : seconds > 0 ? `Confirm (${seconds})` : 'Expired');
    }
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
