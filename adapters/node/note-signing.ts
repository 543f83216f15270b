/** Ed25519 (RFC 8032) by node:crypto. */
import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import type { NoteSigning } from '../../core/ports/log-keys.ts';

/** The last bytes of a public key in DER (RFC 8410) are the key itself. */
const KEY_BYTES = 32;

export const noteSigning: NoteSigning = {
  newKey() {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519', {
      publicKeyEncoding: { format: 'der', type: 'spki' },
      privateKeyEncoding: { format: 'der', type: 'pkcs8' },
    });
    return { publicKey: publicKey.subarray(-KEY_BYTES).toString('hex'), privateKey: privateKey.toString('hex') };
  },
  sign({ privateKey }, text) {
    const key = createPrivateKey({ key: Buffer.from(privateKey, 'hex'), format: 'der', type: 'pkcs8' });
    return sign(null, Buffer.from(text, 'utf8'), key).toString('hex');
  },
};
