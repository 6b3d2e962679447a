// Accounts of the runtime as plain values.

import native from './native.mjs';
import * as base58 from './base58.mjs';

/** @typedef {{lamports: bigint, owner: string, data: Buffer, executable: boolean, rentEpoch: bigint}} Account */

export class Accounts {
  /** @param {any} svm */
  constructor(svm) {
    this.svm = svm;
    /** @type {Map<string, number>} of mints asked for in this slot */
    this.decimals = new Map();
  }

  /**
   * @param {Uint8Array} key 32 bytes
   * @returns {Account | null} null: there is none, or it has no lamports
   */
  get(key) {
    const account = this.svm.getAccount(key);
    return account === null ? null : plain(account);
  }

  /** @param {Uint8Array} key */
  balance(key) {
    return this.svm.getBalance(key) ?? 0n;
  }

  /**
   * Writes an account, against all rules of the runtime.
   * @param {Uint8Array} key
   * @param {Account} account no lamports: the account is gone
   */
  set(key, account) {
    this.decimals.clear();
    this.svm.setAccount(key, new native.Account(
      account.lamports, account.data, base58.decode(account.owner), account.executable, account.rentEpoch));
  }

  /**
   * Every account of a program.
   * @param {Uint8Array} program
   * @returns {{key: Buffer, account: Account}[]} sorted by key, so that answers repeat
   */
  ofProgram(program) {
    return this.svm.getProgramAccounts(program)
      .map((found) => ({ key: Buffer.from(found.address), account: plain(found.account()) }))
      .sort((a, b) => Buffer.compare(a.key, b.key));
  }
}

/** @returns {Account} */
export function plain(account) {
  const data = account.data();
  return {
    lamports: account.lamports(),
    owner: base58.encodeKey(account.owner()),
    data: Buffer.from(data.buffer, data.byteOffset, data.length),
    executable: account.executable(),
    rentEpoch: account.rentEpoch(),
  };
}
