// What follows the confirmation of a quote: a wallet signs, the desk countersigns, and the
// claim is followed to its end.
import type { Api } from './api.ts';
import { ServiceError } from './api.ts';
import type { Claims } from './claims.ts';
import { create, setText } from './dom.ts';
import { Decimal } from './decimal.ts';
import type { Quote } from './messages.ts';
import { walletChain } from './network.ts';
import { build, forgetToken, handshake, storedToken, submit } from './purchase.ts';
import { Chain, sandboxName, sandboxWallet } from './sandbox.ts';
import type { Account, Wallet } from './standard.ts';
import { connectFeature, feature, offer, wallets } from './standard.ts';

/** What the demo's chain gives a sandbox wallet: lamports, and atoms of USDC. */
export const demoLamports = 10_000_000_000_000;
export const demoUSDC = '10000000000000';

export class Checkout {
  readonly #chain: Chain | null;
  readonly #found: Wallet[] = [];
  #ready: Promise<void>;

  constructor(
    readonly api: Api,
    readonly claims: Claims,
  ) {
    this.#chain = api.config.demo_chain_url ? new Chain(api.config.demo_chain_url) : null;
    wallets((wallet) => this.#found.push(wallet));
    // A browser without ed25519 has no sandbox wallet; choose says what else there is.
    this.#ready = this.#chain ? sandboxWallet().then(offer, () => undefined) : Promise.resolve();
  }

  /** buy takes a quote with a wallet. It returns when the claim is submitted. */
  async buy(quote: Quote, baseMint: string, box: HTMLElement): Promise<void> {
    await this.#ready;
    const wallet = await this.#choose(box);
    const state = create('p', { role: 'status' });
    box.replaceChildren(state);
    const now = (text: string) => setText(state, text);
    now(`Connecting ${wallet.name} …`);
    const { accounts } = await feature(wallet, connectFeature).connect();
    const [account] = accounts;
    if (!account) throw new Error(`${wallet.name} has no account`);
    if (wallet.name === sandboxName) await this.#fund(account, quote, now);
    now('Proving that the wallet is yours …');
    const { access_token: token } = storedToken(account.address) ?? (await handshake(this.api, wallet, account));
    try {
      now('Building and checking the transaction …');
      const order = { order_id: quote.order_id, tranche_id: quote.tranche_id, fill_usd: quote.fill_usd, rail: quote.rail };
      const deal = await build(this.api, order, baseMint, account.address, token, quote);
      now('The transaction does what the quote says and nothing else. Sign it in the wallet …');
      await submit(this.api, wallet, account, deal, walletChain(this.api.config.network), token);
      this.claims.add({ id: deal.built.claim_id, text: `${quote.base_amount} ${quote.pair.split('/')[0] ?? ''}`, at: new Date().toISOString() });
      now(`Bought. Claim ${deal.built.claim_id} is on its way to the chain.`);
    } catch (error) {
      if (error instanceof ServiceError && error.status === 403) forgetToken(account.address);
      throw error;
    }
  }

  // choose returns the only wallet, or the one that the user picks.
  async #choose(box: HTMLElement): Promise<Wallet> {
    const [only, ...others] = this.#found;
    if (!only) throw new Error('This browser has no Solana wallet. Install one, such as Phantom, Solflare or Backpack, and load the page again.');
    if (others.length === 0) return only;
    return new Promise((resolve) => {
      const buttons = this.#found.map((wallet) => {
        const button = create('button', { type: 'button', class: 'button', 'data-wallet': wallet.name }, wallet.name);
        button.addEventListener('click', () => resolve(wallet));
        return button;
      });
      box.replaceChildren(create('p', {}, 'Pay with'), create('div', { class: 'choices' }, ...buttons));
    });
  }

  // fund gives the sandbox wallet money if it has too little for the quote.
  async #fund(account: Account, quote: Quote, now: (text: string) => void): Promise<void> {
    if (!this.#chain) return;
    const has = (await this.#chain.balances(account.address)).get(quote.payment.mint ?? '');
    if (has && Decimal.parse(has).compare(Decimal.parse(quote.payment.amount).plus(new Decimal(1n, 0))) >= 0) return;
    now('The demo gives the sandbox wallet play money …');
    await this.#chain.fund(account.address, demoLamports, demoUSDC);
  }
}
