#!/usr/bin/env node
// The sandbox's command: see --help and README.md.

import { parseArgs } from 'node:util';
import { DEFAULTS, Node } from './lib/node.mjs';
import { MAX_WALLETS } from './lib/setup.mjs';
import { MAX_BLOCKHASH_SLOTS } from './lib/slots.mjs';

const HELP = `A local Solana chain: LiteSVM behind Solana's JSON-RPC.

  node server.mjs [options]

  --host ADDR           listen on this address (${DEFAULTS.host})
  --port N              listen on this port; 0: any free one (${DEFAULTS.port})
  --slot-ms N           a slot every N ms; 0: by sandbox_advance only (${DEFAULTS.slotMs})
  --confirm-slots N     slots until a block is confirmed (${DEFAULTS.confirmSlots})
  --finalize-slots N    slots until a block is finalized (${DEFAULTS.finalizeSlots})
  --blockhash-slots N   slots that a blockhash lives (${DEFAULTS.blockhashSlots})
  --history N           transactions kept (${DEFAULTS.history})
  --seed TEXT           the same genesis, blockhashes, faucet and new keys each time
  --state FILE          keep the chain in this file over restarts
  --save-seconds N      save it this often; 0: only when stopping (${DEFAULTS.saveSeconds})
  --setup DIR           make mints, desk, treasury and wallets; keys and
                        sandbox.json go into this folder
  --wallets N           demo wallets of the setup, at most ${MAX_WALLETS} (${DEFAULTS.wallets})
  --exit-with-stdin     stop when standard input ends
  --help                print this

When it is ready it prints one line on standard output: sandbox ready URL.
`;

const TEXT = ['host', 'seed', 'state', 'setup'];
/** Options that are whole numbers, with their least and largest. */
const NUMBERS = {
  port: [0, 65535], 'slot-ms': [0, 60000], 'confirm-slots': [0, 100000], 'finalize-slots': [0, 100000],
  'blockhash-slots': [1, MAX_BLOCKHASH_SLOTS],
  history: [1, 10000000], 'save-seconds': [0, 86400], wallets: [0, MAX_WALLETS],
};
const STARTS = {
  'slot-ms': 'slotMs', 'confirm-slots': 'confirmSlots', 'finalize-slots': 'finalizeSlots', 'blockhash-slots': 'blockhashSlots',
  'save-seconds': 'saveSeconds',
};

function readOptions(args) {
  const spec = { help: { type: 'boolean' }, 'exit-with-stdin': { type: 'boolean' } };
  for (const name of [...TEXT, ...Object.keys(NUMBERS)]) spec[name] = { type: 'string' };
  const { values } = parseArgs({ args, options: spec });
  const options = { ...DEFAULTS, log: (line) => process.stderr.write(`${line}\n`) };
  for (const name of TEXT) if (values[name] !== undefined) options[name] = values[name];
  for (const [name, [least, most]] of Object.entries(NUMBERS)) {
    if (values[name] === undefined) continue;
    const value = Number(values[name]);
    if (!/^\d+$/.test(values[name]) || value < least || value > most) {
      throw new RangeError(`--${name} ${values[name]}: a whole number from ${least} to ${most}`);
    }
    options[STARTS[name] ?? name] = value;
  }
  if (options.finalizeSlots < options.confirmSlots) throw new RangeError('--finalize-slots is below --confirm-slots');
  return { options, help: values.help, withStdin: values['exit-with-stdin'] };
}

async function main() {
  const { options, help, withStdin } = readOptions(process.argv.slice(2));
  if (help) {
    process.stdout.write(HELP);
    return;
  }
  const node = new Node(options);
  let stopping = false;
  const stop = () => {
    if (stopping) return;
    stopping = true;
    node.stop().then(() => process.exit(0), (error) => fail(error));
  };
  // Ctrl-C in a terminal reaches this process too; who holds its standard input
  // decides when it ends.
  process.on('SIGINT', withStdin ? () => {} : stop);
  process.on('SIGTERM', stop);
  if (withStdin) process.stdin.on('end', stop).on('error', stop).resume();
  process.stdout.write(`sandbox ready ${await node.start()}\n`);
}

function fail(error) {
  process.stderr.write(`sandbox: ${error.message}\n`);
  process.exit(1);
}

main().catch(fail);
