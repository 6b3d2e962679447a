// Holds payments to Solana Pay's own validateTransfer, and URLs to its parseURL.
//
//   node check.mjs < cases.json
//
// A case has the URL of a transfer request and the payment's transaction in base64. The chain
// is a stand-in that has the transaction in a block and has moved the amount.
import { decompileTransactionMessage, getBase64Codec, getCompiledTransactionMessageCodec, getTransactionCodec } from '@solana/kit';
import { parseURL, validateTransfer } from '@solana/pay';
import { readFileSync } from 'node:fs';

for (const { name, url, transaction, atoms, decimals } of JSON.parse(readFileSync(0, 'utf8'))) {
  const fields = parseURL(url);
  const { staticAccounts } = getCompiledTransactionMessageCodec().decode(
    getTransactionCodec().decode(getBase64Codec().encode(transaction)).messageBytes);
  const token = (amount) => staticAccounts.map((_, accountIndex) => ({ accountIndex, uiTokenAmount: { amount, decimals } }));
  const meta = {
    err: null, preBalances: staticAccounts.map(() => 0n), postBalances: staticAccounts.map(() => BigInt(atoms)),
    preTokenBalances: token('0'), postTokenBalances: token(atoms),
  };
  const chain = { getTransaction: () => ({ send: async () => ({ meta, transaction: [transaction, 'base64'] }) }) };
  const accepted = await validateTransfer(chain, 'signature', fields).then(() => 'accepted', (error) => `refused: ${error.message}`);
  console.log(`${name}: ${accepted}`);
}
