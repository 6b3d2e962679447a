export { Chain, PaymentFailedError, PaymentPendingError } from './chain.js';
export { Desk, settled, } from './desk.js';
export { keypairSigner, parseKeypair, sign, walletSigner, } from './signer.js';
export { decodeTransaction, fromBase64, toBase64 } from './transaction.js';
export { tokenAccount, verify } from './verify.js';
