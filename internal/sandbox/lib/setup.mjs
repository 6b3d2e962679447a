// The set of mints, accounts and wallets that the demo and the tests use. Every
// step looks first at what is there, so that it may run at each start.

import { createHash, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import * as base58 from './base58.mjs';
import { privateKey, publicKey } from './chain.mjs';
import { describe, invalidParams } from './errors.mjs';
import { ATA, SYSTEM, TOKEN, TOKEN_2022 } from './programs.mjs';
import { readMint } from './tokens.mjs';

const SOL = 10n ** 9n;
const MINT_SIZE = 82;

/** Mints by symbol. Whole tokens: what the desk and each wallet are given. */
const MINTS = {
  USDC: { program: TOKEN, decimals: 6, desk: 1000000n, wallet: 5000000n }, // the desk pays refunds
  SLUSD: { program: TOKEN, decimals: 6, desk: 100000000n, wallet: 0n },
  '92C': { program: TOKEN_2022, decimals: 6, desk: 100000000n, wallet: 0n },
};
const DESK_SOL = 1000n;
const TREASURY_SOL = 1n;
const WALLET_SOL = 50000n;
export const MAX_WALLETS = 100;

/**
 * Makes what is missing and writes DIR/sandbox.json.
 * @param {import('./chain.mjs').Chain} chain
 * @param {{dir: string, wallets: number, seed?: string, url: string}} options
 *   seed: keys that do not exist yet are derived from it, else they are random
 * @returns {{plan: any, fund: (wallet: Buffer, symbol: string, amount: bigint) => {signature: string}}}
 */
export function setup(chain, options) {
  fs.mkdirSync(options.dir, { recursive: true, mode: 0o700 });
  const keys = new Keys(options.dir, options.seed);
  const builder = new Builder(chain, keys.get('mint-authority'));
  builder.giveSol(builder.payerKey, DESK_SOL * SOL);
  const mints = {};
  for (const [symbol, spec] of Object.entries(MINTS)) {
    const key = keys.get(`mint-${symbol.toLowerCase()}`);
    builder.makeMint(key, spec);
    mints[symbol] = { address: base58.encode(publicKey(key)), decimals: spec.decimals, program: spec.program };
  }
  const party = (name, lamports, holdings) => {
    const key = publicKey(keys.get(name));
    builder.giveSol(key, lamports);
    const accounts = {};
    for (const [symbol, tokens] of Object.entries(holdings)) {
      const atoms = tokens * 10n ** BigInt(MINTS[symbol].decimals);
      accounts[symbol] = base58.encode(builder.makeAccount(key, mints[symbol], atoms));
    }
    return { address: base58.encode(key), keypair: `${name}.json`, accounts };
  };
  const desk = party('desk', DESK_SOL * SOL, { USDC: MINTS.USDC.desk, SLUSD: MINTS.SLUSD.desk, '92C': MINTS['92C'].desk });
  const treasury = party('treasury', TREASURY_SOL * SOL, { USDC: 0n });
  const wallets = [];
  for (let i = 1; i <= options.wallets; i++) wallets.push(party(`wallet-${i}`, WALLET_SOL * SOL, { USDC: MINTS.USDC.wallet }));
  const plan = {
    rpc_url: options.url, genesis_hash: base58.encode(chain.slots.genesis), mints, desk, treasury, wallets,
    mint_authority: { address: base58.encode(builder.payerKey), keypair: 'mint-authority.json' },
  };
  replaceFile(path.join(options.dir, 'sandbox.json'), `${JSON.stringify(plan, null, 2)}\n`, 0o644);
  return { plan, fund: (wallet, symbol, amount) => builder.fund(wallet, symbol, amount, mints) };
}

/** Keypairs in Solana's form: a JSON array of 64 numbers, readable by their owner alone. */
class Keys {
  constructor(dir, seed) {
    this.dir = dir;
    this.seed = seed;
  }

  get(name) {
    const file = path.join(this.dir, `${name}.json`);
    if (fs.existsSync(file)) return readKey(file);
    const secret = this.seed === undefined ? randomBytes(32) : createHash('sha256').update(`key ${name} ${this.seed}`).digest();
    const key = privateKey(secret);
    replaceFile(file, `${JSON.stringify([...secret, ...publicKey(key)])}\n`, 0o600);
    return key;
  }
}

/** @throws where the file is no keypair of its own public key */
function readKey(file) {
  const bytes = Buffer.from(JSON.parse(fs.readFileSync(file, 'utf8')));
  if (bytes.length !== 64) throw new Error(`${file}: a keypair has 64 bytes, not ${bytes.length}`);
  const key = privateKey(bytes.subarray(0, 32));
  if (!publicKey(key).equals(bytes.subarray(32))) throw new Error(`${file}: its public key is not that of its secret`);
  return key;
}

/** Writes a file whole or not at all. */
export function replaceFile(file, content, mode) {
  const next = `${file}.next`;
  fs.rmSync(next, { force: true });
  const handle = fs.openSync(next, 'wx', mode);
  try {
    fs.writeFileSync(handle, content);
    fs.fsyncSync(handle);
  } finally {
    fs.closeSync(handle);
  }
  fs.renameSync(next, file);
}

/** Transactions of the mint authority, who pays for everything. */
class Builder {
  constructor(chain, payer) {
    this.chain = chain;
    this.payer = payer;
    this.payerKey = publicKey(payer);
  }

  submit(signers, instructions) {
    const { outcome, signature } = this.chain.submit([this.payer, ...signers], instructions);
    if (outcome.err !== null) throw new Error(`setup: ${describe(outcome.err)}\n${outcome.logs.join('\n')}`);
    return signature;
  }

  /** A new account is given lamports; one that is there keeps what it has. */
  giveSol(key, lamports) {
    if (this.chain.accounts.get(key) === null) this.chain.airdrop(key, lamports);
  }

  makeMint(key, { program, decimals }) {
    const mint = publicKey(key);
    const account = this.chain.accounts.get(mint);
    if (account !== null) {
      const found = readMint(account.owner, account.data);
      if (account.owner === program && found?.decimals === decimals) return;
      throw new Error(`setup: ${base58.encode(mint)} is there and is another mint`);
    }
    const create = Buffer.alloc(52);
    create.writeBigUInt64LE(this.chain.svm.minimumBalanceForRentExemption(BigInt(MINT_SIZE)), 4);
    create.writeBigUInt64LE(BigInt(MINT_SIZE), 12);
    create.set(base58.decode(program), 20);
    const initialize = Buffer.concat([Buffer.from([20, decimals]), this.payerKey, Buffer.from([0])]);
    this.submit([key], [
      { program: SYSTEM, accounts: [meta(this.payerKey, true, true), meta(mint, true, true)], data: create },
      { program, accounts: [meta(mint, false, true)], data: initialize },
    ]);
  }

  /** An associated token account; a new one is given atoms. */
  makeAccount(owner, { address, program }, atoms) {
    const mint = base58.decode(address);
    const account = associatedAccount(owner, program, mint);
    if (this.chain.accounts.get(account) !== null) return account;
    const instructions = [createAccount(this.payerKey, account, owner, mint, program)];
    if (atoms > 0n) instructions.push(mintTo(mint, account, this.payerKey, program, atoms));
    this.submit([], instructions);
    return account;
  }

  /** Mints to a wallet, whose account is made where there is none. */
  fund(wallet, symbol, atoms, mints) {
    if (!Object.hasOwn(mints, symbol)) throw invalidParams(`Invalid params: expected one of ${Object.keys(mints).join(', ')}`);
    const { address, program } = mints[symbol];
    const mint = base58.decode(address);
    const account = associatedAccount(wallet, program, mint);
    const signature = this.submit([], [
      createAccount(this.payerKey, account, wallet, mint, program),
      mintTo(mint, account, this.payerKey, program, atoms),
    ]);
    return { signature, account: base58.encode(account) };
  }
}

const meta = (key, signer, writable) => ({ key, signer, writable });

function createAccount(payer, account, owner, mint, program) {
  return {
    program: ATA,
    accounts: [
      meta(payer, true, true), meta(account, false, true), meta(owner, false, false), meta(mint, false, false),
      meta(base58.decode(SYSTEM), false, false), meta(base58.decode(program), false, false),
    ],
    data: Buffer.from([1]), // idempotent
  };
}

function mintTo(mint, account, authority, program, atoms) {
  const data = Buffer.alloc(9);
  data[0] = 7;
  data.writeBigUInt64LE(atoms, 1);
  return { program, accounts: [meta(mint, false, true), meta(account, false, true), meta(authority, true, false)], data };
}

/**
 * The address of a wallet's token account.
 * @param {Uint8Array} owner
 * @param {string} program
 * @param {Uint8Array} mint
 * @returns {Buffer}
 */
export function associatedAccount(owner, program, mint) {
  for (let bump = 255; bump >= 0; bump--) {
    const hash = createHash('sha256').update(owner).update(base58.decode(program)).update(mint)
      .update(Buffer.from([bump])).update(base58.decode(ATA)).update('ProgramDerivedAddress').digest();
    if (!isOnCurve(hash)) return hash;
  }
  throw new Error('no bump gives an address off the curve');
}

const P = 2n ** 255n - 19n;
const D = mod(-121665n * power(121666n, P - 2n));

/** Whether 32 bytes are a point of ed25519: x² = (y² − 1) / (d·y² + 1) has a root. */
export function isOnCurve(bytes) {
  const y = BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`) & (2n ** 255n - 1n);
  const y2 = mod(y * y);
  const x2 = mod((y2 - 1n) * power(mod(D * y2 + 1n), P - 2n));
  return x2 === 0n || power(x2, (P - 1n) / 2n) === 1n;
}

function mod(value) {
  return ((value % P) + P) % P;
}

function power(base, exponent) {
  let result = 1n;
  let square = mod(base);
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = mod(result * square);
    square = mod(square * square);
  }
  return result;
}
