// A wallet: WebCrypto holds the key, and signs. Nothing of the key is shown.
import { readFile } from 'node:fs/promises';
import { createKeyPairFromBytes, getAddressFromPublicKey, getBase58Decoder, partiallySignTransaction } from '@solana/kit';

export class Wallet {
  #keys;

  constructor(keys, address) {
    this.#keys = keys;
    this.address = address;
  }

  /** open reads a keypair file in Solana's form, 64 numbers. */
  static async open(file) {
    const keys = await createKeyPairFromBytes(new Uint8Array(JSON.parse(await readFile(file, 'utf8'))));
    return new Wallet(keys, await getAddressFromPublicKey(keys.publicKey));
  }

  /** prove signs the UTF-8 bytes of a text. */
  async prove(text) {
    return new Uint8Array(await crypto.subtle.sign('Ed25519', this.#keys.privateKey, new TextEncoder().encode(text)));
  }

  /** sign adds our signature to a transaction. */
  async sign(transaction) {
    return partiallySignTransaction([this.#keys], transaction);
  }
}

/** base58 is how signatures and addresses are written. */
export const base58 = (bytes) => getBase58Decoder().decode(bytes);
