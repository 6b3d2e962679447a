// What a transaction costs: 5,000 lamports a signature, and the priority fee.

import * as base58 from './base58.mjs';
import { COMPUTE_BUDGET, PRECOMPILES } from './programs.mjs';

const LAMPORTS_PER_SIGNATURE = 5000n;
const MAX_UNITS = 1400000;
const UNITS_PER_INSTRUCTION = 200000;
const UNITS_PER_BUILTIN = 3000;
const BUILTINS = new Set([
  '11111111111111111111111111111111',
  COMPUTE_BUDGET,
  'Vote111111111111111111111111111111111111111',
  'BPFLoader2111111111111111111111111111111111',
  'BPFLoader1111111111111111111111111111111111',
  'BPFLoaderUpgradeab1e11111111111111111111111',
  'LoaderV411111111111111111111111111111111111',
  ...PRECOMPILES,
]);

/**
 * The fee in lamports, charged whether the transaction succeeds or not.
 * @param {import('./wire.mjs').Transaction} tx
 * @returns {bigint}
 */
export function feeOf(tx) {
  let signatures = BigInt(tx.required);
  let price = 0n;
  let limit = null;
  let byDefault = 0;
  for (const instruction of tx.instructions) {
    const program = base58.encodeKey(tx.keys[instruction.program]);
    if (PRECOMPILES.has(program) && instruction.data.length > 0) signatures += BigInt(instruction.data[0]);
    byDefault += BUILTINS.has(program) ? UNITS_PER_BUILTIN : UNITS_PER_INSTRUCTION;
    if (program !== COMPUTE_BUDGET) continue;
    const { data } = instruction;
    if (data.length >= 5 && data[0] === 2) limit = data.readUInt32LE(1);
    if (data.length >= 9 && data[0] === 3) price = data.readBigUInt64LE(1);
  }
  const base = signatures * LAMPORTS_PER_SIGNATURE;
  if (tx.version === 1) return base + (tx.config.priorityFee ?? 0n);
  const units = BigInt(Math.min(limit ?? byDefault, MAX_UNITS));
  return base + (price * units + 999999n) / 1000000n;
}
