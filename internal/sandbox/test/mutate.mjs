// Mutates transactions and accounts and gives what passes our checks to the
// runtime, which aborts its process on bytes that it cannot take. A process of
// its own: node mutate.mjs SEED ROUNDS.

import { createHash } from 'node:crypto';
import { Chain } from '../lib/chain.mjs';
import { controls } from '../lib/controls.mjs';
import { RpcError } from '../lib/errors.mjs';
import { COMPUTE_BUDGET, LOOKUP_TABLE, MEMO, SYSTEM, TOKEN, TOKEN_2022 } from '../lib/programs.mjs';
import { decodeTransaction, isSane } from '../lib/wire.mjs';
import { account, newKey, signedTransaction, transfer } from './helpers.mjs';

const [seed, rounds] = [process.argv[2] ?? '1', Number(process.argv[3] ?? 2000)];
let counter = 0;

/** A number below n, the same in every run of one seed. */
function random(n) {
  return createHash('sha256').update(`${seed} ${counter++}`).digest().readUInt32LE() % n;
}

const chain = new Chain({ confirmSlots: 1, finalizeSlots: 31, slotMs: 400, history: 100, seed });
const [payer, other] = [newKey(), newKey()];
chain.airdrop(payer.pub, 10n ** 15n);
const data = (...bytes) => Buffer.from(bytes);
const instructions = [
  transfer(payer.pub, other.pub, 1000000),
  { program: MEMO, accounts: [account(payer.pub, true, false)], data: Buffer.from('memo') },
  { program: COMPUTE_BUDGET, accounts: [], data: data(2, 0, 1, 2, 0) },
  { program: TOKEN, accounts: [account(other.pub, false, true), account(payer.pub, true, false)], data: data(3, 1, 0, 0, 0, 0, 0, 0, 0) },
  { program: TOKEN_2022, accounts: [account(other.pub, false, true)], data: data(36, 0) },
  { program: LOOKUP_TABLE, accounts: [account(other.pub, false, true), account(payer.pub, true, true)], data: data(0, 0, 0, 0, 1, 2, 3) },
];

function mutate(bytes) {
  const out = Buffer.from(bytes);
  for (let n = 1 + random(3); n > 0; n--) {
    const at = 65 + random(out.length - 65);
    out[at] = random(3) === 0 ? random(256) : out[at] ^ (1 << random(8));
  }
  return out;
}

const seen = { undecodable: 0, insane: 0, run: 0 };
for (let i = 0; i < rounds; i++) {
  const chosen = instructions.filter(() => random(2) === 0);
  const bytes = mutate(signedTransaction([payer], chosen, chain.slots.hashOf.get(chain.slots.slot)));
  let tx;
  try {
    tx = decodeTransaction(bytes);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    seen.undecodable++;
    continue;
  }
  if (!isSane(tx)) {
    seen.insane++;
    continue;
  }
  seen.run++;
  // Without signatures: else almost all would end there.
  chain.simulate(tx, { sigVerify: false });
  chain.land(tx);
}

const owners = [SYSTEM, TOKEN, LOOKUP_TABLE, 'Sysvar1111111111111111111111111111111111111', 'BPFLoader2111111111111111111111111111111111',
  'BPFLoaderUpgradeab1e11111111111111111111111', 'NativeLoader1111111111111111111111111111111'];
const keys = [other.address, TOKEN, MEMO, 'SysvarC1ock11111111111111111111111111111111', 'SysvarRent111111111111111111111111111111111',
  'SysvarS1otHashes111111111111111111111111111'];
const accounts = { set: 0, refused: 0 };
for (let i = 0; i < rounds / 10; i++) {
  const given = {
    pubkey: keys[random(keys.length)], lamports: random(2) * 1000000,owner: owners[random(owners.length)],
    data: Buffer.alloc(random(200), random(256)).toString('base64'),
  };
  try {
    controls.sandbox_setAccount({ chain }, given);
    accounts.set++;
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    accounts.refused++;
  }
  chain.advance();
  chain.simulate(decodeTransaction(signedTransaction([payer], instructions, chain.slots.hashOf.get(chain.slots.slot))), { sigVerify: true });
}
process.stdout.write(`${JSON.stringify({ seen, accounts })}\n`);
