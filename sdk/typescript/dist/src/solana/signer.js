import { createKeyPairFromBytes, getAddressFromPublicKey, getPublicKeyFromAddress, getTransactionDecoder, getTransactionEncoder, partiallySignTransaction, signBytes, verifySignature, } from '@solana/kit';
import { BlockdeskError, VerificationError } from '../errors.js';
import { asAddress, decodeTransaction, equal, toBase58 } from './transaction.js';
/** keypairSigner signs with a key in Solana's form: 64 bytes, secret and public. WebCrypto holds it. */
export async function keypairSigner(secret) {
    const keys = await createKeyPairFromBytes(secret);
    return {
        address: await getAddressFromPublicKey(keys.publicKey),
        holdsKey: true,
        signMessage: (message) => signBytes(keys.privateKey, message),
        signTransaction: async (wire) => {
            const signed = await partiallySignTransaction([keys], getTransactionDecoder().decode(wire));
            return new Uint8Array(getTransactionEncoder().encode(signed));
        },
    };
}
/** parseKeypair reads the text of a keypair file: a JSON list of 64 numbers. */
export function parseKeypair(text) {
    const list = JSON.parse(text);
    const isByte = (n) => Number.isInteger(n) && n >= 0 && n <= 255;
    if (!Array.isArray(list) || list.length !== 64 || !list.every(isByte))
        throw new BlockdeskError('no keypair: 64 numbers were expected');
    return new Uint8Array(list);
}
/** walletSigner signs with an account of a browser's wallet. */
export function walletSigner(wallet, account, chain) {
    const only = (list, what) => {
        if (list?.length !== 1)
            throw new BlockdeskError(`the wallet cannot ${what}, or does not answer`);
        return list[0];
    };
    return {
        address: account.address,
        signMessage: async (message) => only(await wallet.features['solana:signMessage']?.signMessage({ account, message }), 'sign messages').signature,
        signTransaction: async (transaction) => only(await wallet.features['solana:signTransaction']?.signTransaction({
            account, transaction, ...(chain && { chain }),
        }), 'sign transactions').signedTransaction,
    };
}
/**
 * sign has a transaction signed, and holds the result to what was given: wallets
 * like to add instructions of their own, and the desk signs only what it built.
 * It throws VerificationError.
 */
export async function sign(t, signer) {
    const signed = decodeTransaction(await signer.signTransaction(new Uint8Array(t.wire)));
    if (!equal(signed.message, t.message))
        throw new VerificationError('the wallet has changed the transaction');
    const signature = signed.signatures.get(signer.address) ?? null;
    if (signature === null)
        throw new VerificationError(`${signer.address} has not signed`);
    for (const [other, slot] of t.signatures) {
        const now = signed.signatures.get(other) ?? null;
        if (other !== signer.address && !equal(now ?? [], slot ?? []))
            throw new VerificationError(`the slot of ${other} has changed`);
    }
    const key = await getPublicKeyFromAddress(asAddress(signer.address));
    const valid = await verifySignature(key, signature, t.message);
    if (!valid)
        throw new VerificationError('the signature is not of this transaction');
    return { wire: signed.wire, signature: toBase58(signature) };
}
