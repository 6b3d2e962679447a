// The chain as @solana/kit's RPC client sees it.
import { setTimeout as sleep } from 'node:timers/promises';
import { createSolanaRpc, getBase64EncodedWireTransaction } from '@solana/kit';
import { tokenAccount, tokenPrograms } from './inspect.mjs';

const pollEvery = 50; // ms
const finalWithin = 240_000;
const maxAccounts = 100; // in a call

export class Chain {
  constructor(url) {
    this.rpc = createSolanaRpc(url);
    this.mints = new Map();
  }

  async #account(address) {
    const { value } = await this.rpc.getAccountInfo(address, { encoding: 'base64', commitment: 'confirmed' }).send();
    return value && { ...value, bytes: Buffer.from(value.data[0], 'base64') };
  }

  /** mint returns a token's program and decimals, as the chain has them. */
  async mint(address) {
    if (!this.mints.has(address)) {
      const account = await this.#account(address);
      if (!account || !tokenPrograms.includes(account.owner) || account.bytes.length < 82 || account.bytes[45] !== 1) {
        throw new Error(`${address} is no mint`);
      }
      this.mints.set(address, { mint: address, program: account.owner, decimals: account.bytes[44] });
    }
    return this.mints.get(address);
  }

  /**
   * balances reads what wallets own of SOL and of tokens, all at one moment:
   * {wallet: {SOL: lamports, MINT: atoms}}; an account that is missing is null.
   */
  async balances(wallets, mints) {
    const asked = [];
    for (const wallet of wallets) {
      asked.push({ wallet, asset: 'SOL', at: wallet });
      for (const m of mints) asked.push({ wallet, asset: m.mint, at: await tokenAccount(wallet, m.mint, m.program) });
    }
    if (asked.length > maxAccounts) throw new Error(`${asked.length} accounts`);
    const { value } = await this.rpc.getMultipleAccounts(asked.map((a) => a.at), { encoding: 'base64', commitment: 'confirmed' }).send();
    const out = {};
    for (const [i, { wallet, asset }] of asked.entries()) {
      out[wallet] ??= {};
      const account = value[i];
      if (asset === 'SOL') out[wallet].SOL = account?.lamports ?? 0n;
      else out[wallet][asset] = account && Buffer.from(account.data[0], 'base64').readBigUInt64LE(64);
    }
    return out;
  }

  /** rent is what a wallet's account of a mint holds in lamports. */
  async rent(wallet, m) {
    const account = await this.#account(await tokenAccount(wallet, m.mint, m.program));
    const least = await this.rpc.getMinimumBalanceForRentExemption(BigInt(account.bytes.length)).send();
    if (account.lamports !== least) throw new Error(`the account holds ${account.lamports} lamports, its rent is ${least}`);
    return least;
  }

  async send(transaction) {
    return this.rpc.sendTransaction(getBase64EncodedWireTransaction(transaction), { encoding: 'base64', preflightCommitment: 'confirmed' }).send();
  }

  /** finalized waits until a transaction is, and returns it with its bytes. */
  async finalized(signature) {
    for (const until = Date.now() + finalWithin; ; ) {
      const { value } = await this.rpc.getSignatureStatuses([signature], { searchTransactionHistory: true }).send();
      if (value[0]?.confirmationStatus === 'finalized') break;
      if (Date.now() > until) throw new Error(`${signature} is not finalized in ${finalWithin} ms`);
      await sleep(pollEvery);
    }
    const found = await this.rpc
      .getTransaction(signature, { encoding: 'base64', commitment: 'finalized', maxSupportedTransactionVersion: 0 }).send();
    if (found.meta.err !== null) throw new Error(`${signature} failed: ${JSON.stringify(found.meta.err)}`);
    return { raw: Buffer.from(found.transaction[0], 'base64'), fee: found.meta.fee, slot: found.slot };
  }
}
