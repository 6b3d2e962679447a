export { Chain, PaymentFailedError, PaymentPendingError, type ChainOptions } from './chain.js';
export { Desk, settled, type AtomicPackage, type BuildOptions, type DeskOptions, type Offer, type Order, type Package, type Trust, } from './desk.js';
export { keypairSigner, parseKeypair, sign, walletSigner, type Signed, type Signer, type StandardAccount, type StandardWallet, } from './signer.js';
export { decodeTransaction, fromBase64, toBase64, type Instruction, type Transaction } from './transaction.js';
export { tokenAccount, verify, type Cost, type Leg, type Terms } from './verify.js';
