// What should have moved, to the atom, held to what the chain says before and
// after.

/** A Ledger collects the moves that are expected of each wallet and asset. */
export class Ledger {
  constructor() {
    this.moves = new Map(); // "wallet asset" → atoms
  }

  add(wallet, asset, atoms) {
    const key = `${wallet} ${asset}`;
    this.moves.set(key, (this.moves.get(key) ?? 0n) + atoms);
  }

  /** move is add on both sides. */
  move(from, to, asset, atoms) {
    this.add(from, asset, -atoms);
    this.add(to, asset, atoms);
  }

  /**
   * hold compares. Every wallet and asset that was read takes part, so what moved
   * and was not expected is found too. It returns the moves, by wallet and asset.
   */
  hold(before, after) {
    const moved = {};
    const wrong = [];
    for (const wallet of Object.keys(after)) {
      moved[wallet] = {};
      for (const asset of Object.keys(after[wallet])) {
        const got = (after[wallet][asset] ?? 0n) - (before[wallet][asset] ?? 0n);
        const want = this.moves.get(`${wallet} ${asset}`) ?? 0n;
        if (got !== want) wrong.push(`${wallet} has ${got} of ${asset}, expected ${want}`);
        moved[wallet][asset] = got;
      }
    }
    for (const key of this.moves.keys()) {
      const [wallet, asset] = key.split(' ');
      if (after[wallet]?.[asset] === undefined) wrong.push(`${key} was not read`);
    }
    if (wrong.length > 0) throw new Error(`balances: ${wrong.join('; ')}`);
    return moved;
  }
}
