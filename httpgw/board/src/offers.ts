// The tickets as a list, and the chosen one with its qualification and ladder.
import { Decimal, grouped, short, size } from './decimal.ts';
import { make, mark, one, rows, say } from './dom.ts';
import type { Level, Offer, Pair, Ticket, Tranche } from './messages.ts';

const usdPriceScale = 9; // digits of a price in USD

/** available is what all tranches of a ticket have left, in USD. */
export function available(t: Ticket): Decimal {
  return t.tranches.reduce((sum, tranche) => sum.plus(Decimal.parse(tranche.available_usd)), Decimal.zero);
}

const capacity = (t: Ticket): Decimal => t.tranches.reduce((sum, tranche) => sum.plus(Decimal.parse(tranche.capacity_usd)), Decimal.zero);

/** tranchesFor are those that a fill can be taken from. */
export function tranchesFor(t: Ticket, fill: string): Tranche[] {
  const wanted = Decimal.parse(fill);
  return t.tranches.filter((tranche) => Decimal.parse(tranche.available_usd).compare(wanted) >= 0);
}

/**
 * priced is what a fill costs and brings, by the desk's own rounding: the price
 * up, the amount down. A quote alone is firm.
 */
export function priced(reference: string, level: Level, decimals: number): { price: string; base: string } {
  const price = Decimal.parse(reference).times(new Decimal(BigInt(10_000 - level.discount_bps), 4)).rounded(usdPriceScale, true);
  return { price: price.toString(), base: Decimal.parse(level.fill_usd).over(price, decimals).toString() };
}

/** percent writes basis points as percent. */
export const percent = (bps: number): string => `${new Decimal(BigInt(bps), 2).toString()} %`;

const unverified = (t: Ticket): boolean => !t.guarantee.montant_verifie_independamment;

function ticketRow(): HTMLTableRowElement {
  const chips = make('div', { class: 'chips' }, make('span', { class: 'chip' }, 'guaranteed'), make('span', { class: 'chip' }, 'declared'), make('span', { class: 'chip' }));
  return make(
    'tr', {}, make('td', {}, make('button', { type: 'button' }), make('span', { class: 'soft' })), make('td'), make('td', { class: 'n amount' }, make('span'), make('i')),
    make('td', { class: 'n' }, make('div', { class: 'best' }), make('div', { class: 'soft' })), make('td', { class: 'off' }), make('td', {}, chips), make('td', { class: 'off soft' }),
  );
}

/** mostRows bounds the list: a page of thousands of rows helps nobody. */
export const mostRows = 200;

/** listed are the tickets whose text has what is wanted, and what is said where not all are shown. */
export function listed(open: readonly Ticket[], wanted: string): { tickets: Ticket[]; note: string } {
  const word = wanted.trim().toLowerCase();
  const found = open.filter((t) => `${t.order_id} ${t.ticket_label} ${t.pair} ${t.rails.join(' ')}`.toLowerCase().includes(word));
  const note = found.length === 0 ? (open.length === 0 ? 'No offer is open.' : 'No offer has that in it.') : found.length > mostRows ? `The first ${mostRows} of ${grouped(String(found.length))}: filter to see others.` : '';
  return { tickets: found.slice(0, mostRows), note };
}

/** paintTickets paints the list; offers are the board's word on each. */
export function paintTickets({ tickets, note }: ReturnType<typeof listed>, offers: ReadonlyMap<string, Offer>, chosen: string): void {
  const list = rows(one('ticket-rows'), tickets.length, ticketRow);
  for (const [i, t] of tickets.entries()) {
    const row = list[i];
    if (row) paintTicket(row, t, offers.get(t.order_id), t.order_id === chosen);
  }
  say(one('tickets-note'), note);
}

function paintTicket(row: HTMLElement, t: Ticket, offer: Offer | undefined, chosen: boolean): void {
  mark(row, 'data-order', t.order_id);
  mark(row, 'data-chosen', chosen ? '' : null);
  const [name, pair, amount, price, rails, chips, expires] = row.children;
  const [button, id] = name?.children ?? [];
  const [best, reference] = price?.children ?? [];
  if (!button || !id || !pair || !amount || !reference || !best || !rails || !chips || !expires) return;
  say(button, t.ticket_label || t.order_id);
  mark(button, 'aria-pressed', String(chosen));
  say(id, `${t.order_id} · ${t.tranches.length} ${t.tranches.length === 1 ? 'tranche' : 'tranches'}`);
  say(pair, t.pair);
  const left = available(t);
  const [text, bar] = amount.children;
  if (text) say(text, short(left.toString()));
  (bar as HTMLElement).style.setProperty('--share', left.share(capacity(t)).toFixed(4));
  const base = offer?.operator_declared.reference_price_usd ?? t.reference_price_usd;
  say(reference, base ? `of ${short(base)}` : 'no price');
  say(best, offer?.best_price_usd ? short(offer.best_price_usd) : '–');
  say(rails, t.rails.join(', '));
  const flag = chips.querySelector('.chip:last-child');
  if (flag) {
    say(flag, unverified(t) ? 'not verified' : 'verified');
    flag.classList.toggle('warn', unverified(t));
  }
  say(expires, t.expires_at ? t.expires_at.slice(0, 10) : 'never');
}

/** paintLayers paints the three layers of the qualification. */
export function paintLayers(t: Ticket | undefined, offer: Offer | undefined): void {
  say(one('detail-title'), t ? t.ticket_label || t.order_id : 'No offer chosen');
  say(one('detail-note'), t ? `${t.order_id} · ${t.pair}` : '');
  say(one('layer-1'), t ? t.guarantee.libelle : '–');
  const declared = offer?.operator_declared;
  say(one('layer-2'), declared ? `${declared.operateur}: ${short(declared.capacity_usd)} USD; ${declared.nature}` : '–');
  say(one('ladder-base'), t ? t.base_symbol : '');
  const verified = t ? t.guarantee.montant_verifie_independamment : null;
  say(one('layer-3'), verified === null ? '–' : verified ? 'Yes' : 'No: nobody else has checked the amount');
  const flag = verified === null ? '' : `montant_verifie_independamment: ${verified}`;
  // It may be broken after an underscore.
  if (one('layer-flag').textContent !== flag) one('layer-flag').replaceChildren(...flag.split(/(?<=_)/).flatMap((part) => [part, make('wbr')]));
}

const ladderRow = () => make(
  'tr', {}, make('td', {}, make('button', { type: 'button' })), make('td', { class: 'n' }), make('td', { class: 'n best' }), make('td', { class: 'n' }), make('td', { class: 'soft off' }),
);

/** paintLadder paints what each fill of the chosen ticket costs. */
export function paintLadder(t: Ticket | undefined, reference: string | null, levels: readonly Level[], pair: Pair | undefined, fill: string): void {
  const list = rows(one('ladder-rows'), t ? levels.length : 0, ladderRow);
  for (const [i, level] of levels.entries()) {
    const row = list[i];
    if (!row || !t) continue;
    const from = tranchesFor(t, level.fill_usd);
    mark(row, 'data-fill', level.fill_usd);
    mark(row, 'data-off', from.length > 0 ? null : '');
    const chosen = level.fill_usd === fill && from.length > 0;
    mark(row, 'data-chosen', chosen ? '' : null);
    const [name, discount, price, base, tranche] = row.children;
    const button = name?.firstElementChild;
    if (!button || !discount || !price || !base || !tranche) continue;
    say(button, grouped(level.fill_usd));
    mark(button, 'disabled', from.length > 0 ? null : '');
    mark(button, 'aria-label', `Quote ${grouped(level.fill_usd)} USD`);
    mark(button, 'aria-pressed', String(chosen));
    say(discount, percent(level.discount_bps));
    const terms = reference ? priced(reference, level, pair?.base_decimals ?? 6) : null;
    say(price, terms ? short(terms.price) : '–');
    say(base, terms ? grouped(terms.base) : '–');
    say(tranche, from.length > 0 ? from.map((x) => x.tranche_id).join(' ') : `none of ${size(level.fill_usd)} left`);
  }
}
