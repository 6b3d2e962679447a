// The wallet page: five steps, each of which enables the next.
import { Api, explain, loadConfig, ServiceError } from './api.ts';
import { clock, create, setAttr, byId, rows, setText } from './dom.ts';
import { Decimal, grouped, short } from './decimal.ts';
import type { Level, Quote, Ticket } from './messages.ts';
import { walletChain } from './network.ts';
import { tranchesFor } from './offers.ts';
import { build, follow, forgetToken, handshake, storedToken, submit } from './purchase.ts';
import type { Deal } from './purchase.ts';
import { Chain, sandboxName, sandboxWallet } from './sandbox.ts';
import { connectFeature, feature, offer, wallets } from './standard.ts';
import type { Account, Wallet } from './standard.ts';
import { themes } from './theme.ts';

const demoLamports = 10_000_000_000;
const demoUSDC = '1000000000000'; // atoms

const steps = ['wallet', 'access', 'build', 'sign', 'follow'] as const;
type Step = (typeof steps)[number];

const part = (step: Step): HTMLElement => byId(`step-${step}`);
const button = (id: string): HTMLButtonElement => byId<HTMLButtonElement>(id);

class WalletPage {
  readonly #chain: Chain | null;
  readonly #symbols = new Map<string, string>(); // by mint
  #wallet: Wallet | null = null;
  #account: Account | null = null;
  #token = '';
  #tickets: readonly (Ticket & { base_mint: string })[] = [];
  #levels: readonly Level[] = [];
  #deal: Deal | null = null;

  constructor(readonly api: Api) {
    this.#chain = api.config.demo_chain_url ? new Chain(api.config.demo_chain_url) : null;
  }

  async run(): Promise<void> {
    button('handshake').addEventListener('click', () => void this.#act('access', () => this.#prove()));
    button('fund').addEventListener('click', () => void this.#act('wallet', () => this.#fund()));
    button('sign').addEventListener('click', () => void this.#act('sign', () => this.#sign()));
    byId<HTMLFormElement>('terms').addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#act('build', () => this.#build());
    });
    byId('order').addEventListener('change', () => this.#fillTerms());
    byId('fill').addEventListener('change', () => this.#fillTranches());
    byId('no-wallet').hidden = false;
    wallets((wallet) => this.#found(wallet));
    if (this.#chain) {
      setText(byId('network'), "the demo's local chain: its tokens have no value");
      await this.#offerSandbox();
    }
    await untilLoaded(() => this.#loadTerms());
  }

  async #offerSandbox(): Promise<void> {
    try {
      offer(await sandboxWallet());
    } catch (error) {
      this.#warn('No sandbox wallet.', `This browser cannot create ed25519 keys: ${explain(error)}`);
    }
  }

  #warn(title: string, text: string): void {
    byId('banners').append(create('p', { class: 'banner warn' }, create('b', {}, title), create('span', {}, text)));
  }

  // act runs a step. An error is shown in the step and does not affect the others.
  async #act(step: Step, work: () => Promise<void>): Promise<void> {
    const box = part(step);
    const busy = [...box.querySelectorAll('button')].filter((b) => !b.disabled);
    for (const b of busy) b.disabled = true;
    box.querySelector('.error')?.remove();
    try {
      await work();
    } catch (error) {
      setAttr(box, 'data-state', 'bad');
      box.append(create('p', { class: 'result error', role: 'alert' }, explain(error)));
      if (error instanceof ServiceError && error.status === 403) this.#lostToken();
    } finally {
      for (const b of busy) b.disabled = false;
      button('sign').disabled = this.#deal === null; // a deal is signed only once
    }
  }

  // done completes a step and enables the next one.
  #done(step: Step): void {
    setAttr(part(step), 'data-state', 'done');
    const next = steps[steps.indexOf(step) + 1];
    if (next && !part(next).dataset.state) setAttr(part(next), 'data-state', 'now');
  }

  #found(wallet: Wallet): void {
    byId('no-wallet').hidden = true;
    const choice = create('button', { type: 'button', class: 'button', 'data-wallet': wallet.name }, wallet.name);
    choice.addEventListener('click', () => void this.#act('wallet', () => this.#connect(wallet)));
    byId('wallets').append(choice);
  }

  async #connect(wallet: Wallet): Promise<void> {
    const { accounts } = await feature(wallet, connectFeature).connect();
    const [account] = accounts;
    if (!account) throw new Error('the wallet has no account');
    this.#wallet = wallet;
    this.#account = account;
    for (const b of byId('wallets').querySelectorAll('button')) b.classList.toggle('primary', b.dataset.wallet === wallet.name);
    byId('account').hidden = false;
    setText(byId('address'), account.address);
    button('fund').hidden = !(this.#chain && wallet.name === sandboxName);
    button('handshake').disabled = false;
    this.#done('wallet');
    const token = storedToken(account.address);
    if (token) this.#granted(token.access_token, token.expires_at);
    await this.#showBalances();
  }

  async #fund(): Promise<void> {
    if (!this.#chain || !this.#account) return;
    await this.#chain.fund(this.#account.address, demoLamports, demoUSDC);
    await this.#showBalances();
  }

  async #showBalances(): Promise<void> {
    if (!this.#chain || !this.#account) return;
    const found = await this.#chain.balances(this.#account.address);
    const texts = [...found].map(([mint, amount]) => `${short(amount)} ${mint === '' ? 'SOL' : (this.#symbols.get(mint) ?? mint)}`);
    byId('balances-row').hidden = false;
    setText(byId('balances'), texts.join(' · '));
  }

  async #prove(): Promise<void> {
    if (!this.#wallet || !this.#account) return;
    const token = await handshake(this.api, this.#wallet, this.#account);
    this.#granted(token.access_token, token.expires_at);
  }

  #granted(token: string, until: string): void {
    this.#token = token;
    setText(byId('token'), `Token until ${until.slice(0, 16).replace('T', ' ')} UTC`);
    button('build').disabled = this.#tickets.length === 0;
    this.#done('access');
  }

  #lostToken(): void {
    if (this.#account) forgetToken(this.#account.address);
    this.#token = '';
    setText(byId('token'), 'The token is no longer valid.');
    setAttr(part('access'), 'data-state', 'now');
    button('build').disabled = true;
  }

  async #loadTerms(): Promise<void> {
    const [tickets, levels, tokens] = await Promise.all([
      this.api.get<{ tickets: (Ticket & { base_mint: string })[] }>('/api/v1/rfq/market-tickets'),
      this.api.get<{ levels: Level[] }>('/api/v1/rfq/levels'),
      this.api.get<{ tokens: { symbol: string; mint: string | null }[] }>('/api/v1/rfq/tokens'),
    ]);
    for (const t of tokens.tokens) if (t.mint) this.#symbols.set(t.mint, t.symbol);
    this.#levels = levels.levels;
    this.#tickets = tickets.tickets.filter((t) => t.state === 'open');
    const asked = new URLSearchParams(location.search);
    options('order', this.#tickets.map((t) => [t.order_id, `${t.order_id} · ${t.ticket_label} · ${t.pair}`]), asked.get('order'));
    this.#fillTerms(asked);
    button('build').disabled = this.#tickets.length === 0 || this.#token === '';
  }

  #ticket(): (Ticket & { base_mint: string }) | undefined {
    const id = byId<HTMLSelectElement>('order').value;
    return this.#tickets.find((t) => t.order_id === id);
  }

  #fillTerms(asked?: URLSearchParams): void {
    const t = this.#ticket();
    const fills = t ? this.#levels.filter((l) => tranchesFor(t, l.fill_usd).length > 0) : [];
    options('fill', fills.map((l) => [l.fill_usd, grouped(l.fill_usd)]), asked?.get('fill') ?? null);
    options('rail', t?.rails.map((r) => [r, r]) ?? [], asked?.get('rail') ?? null);
    setText(byId('unverified'), t ? t.guarantee.montant_verifie_independamment ? '' : "The guarantee is the operator's word: the amount is not independently verified." : '');
    this.#fillTranches(asked);
  }

  #fillTranches(asked?: URLSearchParams): void {
    const t = this.#ticket();
    const fits = t ? tranchesFor(t, byId<HTMLSelectElement>('fill').value || '0') : [];
    options('tranche', fits.map((x) => [x.tranche_id, `${x.tranche_id} · ${short(x.available_usd)}`]), asked?.get('tranche') ?? null);
  }

  async #build(): Promise<void> {
    const t = this.#ticket();
    if (!this.#account || !t) return;
    const value = (id: string) => byId<HTMLSelectElement>(id).value;
    const order = { order_id: t.order_id, tranche_id: value('tranche'), fill_usd: value('fill'), rail: value('rail') };
    this.#review(null);
    const deal = await build(this.api, order, t.base_mint, this.#account.address, this.#token);
    this.#review(deal);
    this.#done('build');
  }

  // review shows the verified content of the transaction before it is signed.
  #review(deal: Deal | null): void {
    this.#deal = deal;
    button('sign').disabled = deal === null;
    button('sign').classList.toggle('primary', deal !== null);
    if (!deal) {
      byId('review').replaceChildren();
      setText(byId('verdict'), '');
      return;
    }
    const { quote, built } = deal;
    const who = (address: string | null) => (address === this.#account?.address ? 'you' : 'the desk');
    facts('review', [
      ['You pay', `${grouped(quote.payment.amount)} ${quote.payment.rail} to ${quote.payment.pay_to}`],
      ['You receive', `${grouped(quote.base_amount)} ${quote.pair.split('/')[0] ?? ''} (${built.delivery.mint})`],
      ['Price', `${short(quote.price_usd)} USD, ${new Decimal(BigInt(quote.discount_bps), 2)} % off ${short(quote.reference_price_usd)}`],
      ['Fee', feeText(quote)],
      ['Network fee', `paid by ${who(deal.feePayer)}, priority at most ${deal.priority} lamports`],
      ['Account rent', deal.rentPayer ? `paid by ${who(deal.rentPayer)} if the account is new` : 'none'],
      ['Claim', `${built.claim_id}, to be signed until ${clock(built.expires_at)} UTC`],
    ]);
    const verdict = byId('verdict');
    verdict.className = 'result good';
    setText(verdict, 'This page has verified the transaction: it does this and nothing else.');
  }

  async #sign(): Promise<void> {
    const { config } = this.api;
    if (!this.#wallet || !this.#account || !this.#deal) return;
    const deal = this.#deal;
    const chain = walletChain(config.network);
    const { signature } = await submit(this.api, this.#wallet, this.#account, deal, chain, this.#token);
    this.#deal = null;
    button('sign').classList.remove('primary');
    this.#done('sign');
    facts('settled', [['Signature', signature]]);
    void this.#act('follow', () => this.#follow(deal.built.claim_id));
  }

  async #follow(id: string): Promise<void> {
    const box = part('follow');
    const trouble = create('p', { class: 'result', role: 'status' });
    box.append(trouble);
    const { state } = await follow(this.api, id, (claim, error) => {
      setText(trouble, error ? `${explain(error)} The page tries again.` : '');
      if (!claim) return;
      const list = rows(byId('history'), claim.history.length, () => create('li', {}, create('b'), create('time')));
      for (const [i, { state, at }] of claim.history.entries()) {
        const [name, time] = list[i]?.children ?? [];
        if (!list[i] || !name || !time) continue;
        setAttr(list[i], 'data-state', state);
        setText(name, state.replaceAll('_', ' '));
        setText(time, clock(at));
      }
    }).finally(() => trouble.remove());
    if (state === 'settled') this.#done('follow');
    else setAttr(box, 'data-state', 'bad');
    await this.#showBalances();
    await this.#loadTerms();
  }
}

const feeText = (q: Quote): string => `${short(q.fee.amount)} ${q.payment.rail}, ${q.fee.included ? 'included' : 'added'} (${q.fee_bps} bps)`;

function facts(id: string, list: readonly (readonly [string, string])[]): void {
  byId(id).replaceChildren(...list.map(([term, value]) => create('div', {}, create('dt', {}, term), create('dd', {}, value))));
}

function options(id: string, list: readonly (readonly [string, string])[], wanted: string | null): void {
  const select = byId<HTMLSelectElement>(id);
  const before = wanted ?? select.value;
  select.replaceChildren(...list.map(([value, text]) => create('option', { value }, text)));
  if (list.some(([value]) => value === before)) select.value = before;
}

// untilLoaded repeats a load that gets no answer, and shows why, until it succeeds: a
// slow network or a restart of the service does not end the page.
async function untilLoaded<T>(load: () => Promise<T>): Promise<T> {
  const trouble = create('p', { class: 'banner warn' });
  try {
    for (let wait = 1000; ; wait = Math.min(2 * wait, longestWait)) {
      try {
        return await load();
      } catch (error) {
        if (error instanceof ServiceError && error.status < 500 && error.status !== 429) throw error;
        trouble.replaceChildren(create('b', {}, 'The service does not answer.'), create('span', {}, `${explain(error)} The page tries again.`));
        byId('banners').append(trouble);
        await new Promise((resolve) => setTimeout(resolve, wait));
      }
    }
  } finally {
    trouble.remove();
  }
}

const longestWait = 15_000; // ms

async function start(): Promise<void> {
  themes(byId('theme'), () => undefined);
  await new WalletPage(new Api(await untilLoaded(loadConfig))).run();
}

start().catch((error: unknown) => {
  byId('banners').replaceChildren(create('p', { class: 'banner bad' }, create('b', {}, 'The page cannot start.'), create('span', {}, explain(error))));
});
