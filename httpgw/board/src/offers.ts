// The list of tickets, and the selected one with its qualification and ladder.
import { Decimal, grouped, short, size } from './decimal.ts';
import { brief, places } from './depth.ts';
import { create, setAttr, byId, rows, setText } from './dom.ts';
import type { Level, Offer, Pair, Ticket, Tranche } from './messages.ts';

const usdPriceScale = 9; // digits of a price in USD

/** available returns the capacity left in all tranches of a ticket, in USD. */
export function available(t: Ticket): Decimal {
  return t.tranches.reduce((sum, tranche) => sum.plus(Decimal.parse(tranche.available_usd)), Decimal.zero);
}

const capacity = (t: Ticket): Decimal => t.tranches.reduce((sum, tranche) => sum.plus(Decimal.parse(tranche.capacity_usd)), Decimal.zero);

/** tranchesFor returns the tranches with room for a fill. */
export function tranchesFor(t: Ticket, fill: string): Tranche[] {
  const wanted = Decimal.parse(fill);
  return t.tranches.filter((tranche) => Decimal.parse(tranche.available_usd).compare(wanted) >= 0);
}

/**
 * priced returns an indicative price and amount of a fill, rounded as the desk does: the
 * price up, the amount down. Only a quote is firm.
 */
export function priced(reference: string, level: Level, decimals: number): { price: string; base: string } {
  const price = Decimal.parse(reference).times(new Decimal(BigInt(10_000 - level.discount_bps), 4)).rounded(usdPriceScale, true);
  return { price: price.toString(), base: Decimal.parse(level.fill_usd).over(price, decimals).toString() };
}

/** percent formats basis points as percent. */
export const percent = (bps: number): string => `${new Decimal(BigInt(bps), 2).toString()} %`;

const unverified = (t: Ticket): boolean => !t.guarantee.montant_verifie_independamment;

function ticketRow(): HTMLTableRowElement {
  const chips = create('div', { class: 'chips' }, create('span', { class: 'chip' }));
  return create(
    'tr', {}, create('td', {}, create('button', { type: 'button' }), create('span', { class: 'soft' })), create('td'), create('td', { class: 'n amount' }, create('span'), create('i')),
    create('td', { class: 'n' }, create('div', { class: 'best' }), create('div', { class: 'soft' })), create('td', { class: 'off' }), create('td', {}, chips), create('td', { class: 'off soft' }),
  );
}

/** maxRows bounds the rows of the list. */
export const maxRows = 200;

/** listed returns the tickets that match a filter, and a note if the list is empty or cut. */
export function listed(open: readonly Ticket[], wanted: string): { tickets: Ticket[]; note: string } {
  const word = wanted.trim().toLowerCase();
  const found = open.filter((t) => `${t.order_id} ${t.ticket_label} ${t.pair} ${t.rails.join(' ')}`.toLowerCase().includes(word));
  const note = found.length === 0 ? (open.length === 0 ? 'No offer is open.' : 'No offer matches.') : found.length > maxRows ? `The first ${maxRows} of ${grouped(String(found.length))}: filter to see others.` : '';
  return { tickets: found.slice(0, maxRows), note };
}

/** paintTickets paints the list with the board's offers. */
export function paintTickets({ tickets, note }: ReturnType<typeof listed>, offers: ReadonlyMap<string, Offer>, chosen: string): void {
  const list = rows(byId('ticket-rows'), tickets.length, ticketRow);
  for (const [i, t] of tickets.entries()) {
    const row = list[i];
    if (row) paintTicket(row, t, offers.get(t.order_id), t.order_id === chosen);
  }
  setText(byId('tickets-note'), note);
}

function paintTicket(row: HTMLElement, t: Ticket, offer: Offer | undefined, chosen: boolean): void {
  setAttr(row, 'data-order', t.order_id);
  setAttr(row, 'data-chosen', chosen ? '' : null);
  const [name, pair, amount, price, rails, chips, expires] = row.children;
  const [button, id] = name?.children ?? [];
  const [best, reference] = price?.children ?? [];
  if (!button || !id || !pair || !amount || !reference || !best || !rails || !chips || !expires) return;
  setText(button, t.ticket_label || t.order_id);
  setAttr(button, 'aria-pressed', String(chosen));
  setText(id, `${t.order_id} · ${t.tranches.length} ${t.tranches.length === 1 ? 'tranche' : 'tranches'}`);
  setText(pair, t.pair);
  const left = available(t);
  const [text, bar] = amount.children;
  if (text) setText(text, short(left.toString()));
  (bar as HTMLElement).style.setProperty('--share', left.share(capacity(t)).toFixed(4));
  const base = offer?.operator_declared.reference_price_usd ?? t.reference_price_usd;
  setText(reference, base ? `of ${short(base)}` : 'no price');
  setText(best, offer?.best_price_usd ? short(offer.best_price_usd) : '–');
  setText(rails, t.rails.join(', '));
  const flag = chips.querySelector('.chip:last-child');
  if (flag) {
    setText(flag, unverified(t) ? 'not verified' : 'verified');
    flag.classList.toggle('warn', unverified(t));
  }
  setText(expires, t.expires_at ? t.expires_at.slice(0, 10) : 'never');
}

/** paintLayers paints the three layers of the qualification. */
export function paintLayers(t: Ticket | undefined, offer: Offer | undefined): void {
  setText(byId('detail-title'), t ? t.ticket_label || t.order_id : 'No offer chosen');
  setText(byId('detail-note'), t ? `${t.order_id} · ${t.pair}` : '');
  setText(byId('layer-1'), t ? t.guarantee.libelle : '–');
  const declared = offer?.operator_declared;
  setText(byId('layer-2'), declared ? `${declared.operateur}: ${short(declared.capacity_usd)} USD; ${declared.nature}` : '–');
  setText(byId('ladder-base'), t ? t.base_symbol : '');
  const verified = t ? t.guarantee.montant_verifie_independamment : null;
  setText(byId('layer-3'), verified === null ? '–' : verified ? 'Yes' : 'No: the amount is not independently verified');
  byId('layer-3').dataset.verified = String(verified ?? '');
}

const ladderRow = () => create(
  'tr', {}, create('td', {}, create('button', { type: 'button' })), create('td', { class: 'n' }), create('td', { class: 'n best' }), create('td', { class: 'n' }),
);

/** paintLadder paints the price of each fill of the selected ticket. */
export function paintLadder(t: Ticket | undefined, reference: string | null, levels: readonly Level[], pair: Pair | undefined, fill: string): void {
  const list = rows(byId('ladder-rows'), t ? levels.length : 0, ladderRow);
  for (const [i, level] of levels.entries()) {
    const row = list[i];
    if (!row || !t) continue;
    const from = tranchesFor(t, level.fill_usd);
    setAttr(row, 'data-fill', level.fill_usd);
    setAttr(row, 'data-off', from.length > 0 ? null : '');
    const chosen = level.fill_usd === fill && from.length > 0;
    setAttr(row, 'data-chosen', chosen ? '' : null);
    const [name, discount, price, base] = row.children;
    const button = name?.firstElementChild;
    if (!button || !discount || !price || !base) continue;
    setText(button, grouped(level.fill_usd));
    setAttr(button, 'disabled', from.length > 0 ? null : '');
    setAttr(button, 'aria-label', `Quote ${grouped(level.fill_usd)} USD`);
    setAttr(button, 'aria-pressed', String(chosen));
    setText(discount, percent(level.discount_bps));
    const terms = reference ? priced(reference, level, pair?.base_decimals ?? 6) : null;
    setText(price, terms ? short(terms.price) : '–');
    if (terms) brief(base as HTMLElement, terms.base, places([terms.base], pair?.base_decimals ?? 6));
    else setText(base, '–');
    setAttr(row, 'title', from.length > 0 ? `tranche ${from.map((x) => x.tranche_id).join(', ')}` : `none of ${size(level.fill_usd)} left`);
  }
}
