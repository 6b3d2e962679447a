// Buys from the desk as an integrator does, with @solana/kit, a Solana client
// that is not ours, and with nothing of ours but the addresses. It takes every
// transaction apart before it signs, reads the result from the chain and not from
// the desk, and holds all balances to the atom.
//
//   node trade.mjs handshake --base URL --wallet KEYFILE [--from IP]
//   node trade.mjs dvp     --base URL --api URL --rpc URL --wallet KEYFILE --order T1 --tranche T1-1 --fill 1000
//                          --rail USDC|SOL --fee-payer desk|taker [--token TOKEN] [--from IP]
//   node trade.mjs atomic  the same by atomic-claim-ticket; the desk pays the fee
//   node trade.mjs modular the same, paid first, without a token
//   node trade.mjs inspect < [{"transaction": base64, "terms": {…}}, …]
//
// The last line is JSON; the exit code is 0 only when all was as it should be.
// Nobody else may trade with the desk meanwhile, since its balances are held too.
import { parseArgs } from 'node:util';
import { Chain } from './chain.mjs';
import { inspect } from './inspect.mjs';
import { buyAtomic, buyModular } from './buy.mjs';
import { Service } from './service.mjs';
import { Wallet } from './wallet.mjs';

const option = { type: 'string' };
const { values: args, positionals: [mode] } = parseArgs({
  allowPositionals: true,
  options: {
    base: option, api: option, rpc: option, wallet: option, from: option, token: option,
    order: option, tranche: option, fill: option, rail: option, 'fee-payer': option,
  },
});

async function handshake() {
  const wallet = await Wallet.open(args.wallet);
  const granted = await new Service(args).handshake(wallet);
  return { wallet: wallet.address, token: granted.access_token, expires_at: granted.expires_at };
}

// inspectInput inspects a list, each for itself.
async function inspectInput() {
  let input = '';
  for await (const part of process.stdin) input += part;
  const results = [];
  for (const { transaction, terms } of JSON.parse(input)) {
    for (const leg of [terms.pay, terms.deliver]) {
      if (leg) leg.atoms = BigInt(leg.atoms);
    }
    try {
      const { shown, signers, rentPayer, fee } = await inspect(Buffer.from(transaction, 'base64'), terms);
      results.push({ shown, signers, rent_payer: rentPayer, fee });
    } catch (error) {
      results.push({ refused: error.message });
    }
  }
  return { results };
}

async function buy(by) {
  const order = { order_id: args.order, tranche_id: args.tranche, fill_usd: args.fill, rail: args.rail, feePayer: args['fee-payer'] };
  return by({ service: new Service(args), chain: new Chain(args.rpc), wallet: await Wallet.open(args.wallet), order, way: mode });
}

const modes = {
  handshake, inspect: inspectInput, dvp: () => buy(buyAtomic), atomic: () => buy(buyAtomic), modular: () => buy(buyModular),
};

const print = (result) => console.log(JSON.stringify(result, (_, v) => (typeof v === 'bigint' ? v.toString() : v)));
try {
  if (!modes[mode]) throw new Error(`the mode is one of ${Object.keys(modes).join(', ')}`);
  print({ ok: true, mode, ...(await modes[mode]()) });
} catch (error) {
  console.error(`FAILED: ${error.stack}`);
  print({ ok: false, mode, error: error.message, kind: error.constructor.name, status: error.answer?.status, answer: error.answer?.body });
  process.exitCode = 1;
}
