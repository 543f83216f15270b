/**
 * The forms of checkpoints. The key and the signed note are the example of golang.org/x/mod/sumdb/note (its package
 * documentation, "Verifying a Signed Message"), the most used implementation of the C2SP signed-note form.
 */
import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { test } from 'vitest';
import { digest } from '../../../adapters/node/digest.ts';
import { noteSigning } from '../../../adapters/node/note-signing.ts';
import { base64OfHex, hexOfBase64 } from '../../../core/audit/base64.ts';
import {
  checkpointText,
  keyIdOf,
  originOf,
  readCheckpoint,
  signedNote,
  verifierKeyText,
} from '../../../core/audit/checkpoint.ts';
import { uuid } from '../../../core/kernel/ids.ts';
import { parseHash } from '../../../core/ports/account-log.ts';

const VERIFIER_KEY = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';
const NOTE = `If you think cryptography is the answer to your problem,
then you don't know what your problem is.

— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=
`;

test('a key has the id and the text that Go gives it', () => {
  const [name = '', id, key = ''] = VERIFIER_KEY.split('+', 3);
  const publicKey = hexOfBase64(VERIFIER_KEY.slice(name.length + 1 + 8 + 1)).slice(2);
  assert.equal(key.length > 0, true);
  assert.equal(keyIdOf(digest, { name, publicKey }), id);
  assert.equal(verifierKeyText(digest, { name, publicKey }), VERIFIER_KEY);
});

test('a signature line holds the id of the key and the signature, as Go writes it', () => {
  const publicKey = hexOfBase64(VERIFIER_KEY.slice('PeterNeumann+c74f20a3+'.length)).slice(2);
  const [text = '', line = ''] = NOTE.split('\n\n');
  const [, name = '', encoded = ''] = line.trim().split(' ');
  const bytes = hexOfBase64(encoded);
  assert.equal(bytes.slice(0, 8), keyIdOf(digest, { name, publicKey }));
  const der = Buffer.from(`302a300506032b6570032100${publicKey}`, 'hex');
  const key = createPublicKey({ key: der, format: 'der', type: 'spki' });
  assert.ok(verify(null, Buffer.from(`${text}\n`), key, Buffer.from(bytes.slice(8), 'hex')));
});

const ACCOUNT = uuid<ReturnType<typeof uuid> & Parameters<typeof originOf>[1]>('0198c0de-0000-7000-8000-000000000001');
const ROOT = parseHash('5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328');

test('a checkpoint has origin, size and root on three lines, and is read back', () => {
  const pair = noteSigning.newKey();
  const checkpoint = { origin: originOf('strata.example:8443', ACCOUNT), size: 8, root: ROOT };
  const text = checkpointText(checkpoint);
  assert.equal(
    text,
    'strata.example:8443/log/0198c0de-0000-7000-8000-000000000001\n8\nXcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=\n',
  );
  const key = { name: 'strata.example:8443', publicKey: pair.publicKey };
  const note = signedNote(digest, checkpoint, key, noteSigning.sign(pair, text));
  assert.deepEqual(readCheckpoint(note), checkpoint);
  const [body = '', line = ''] = note.split('\n\n');
  assert.equal(`${body}\n`, text);
  assert.match(line, /^— strata\.example:8443 [A-Za-z0-9+/=]{92}\n$/);
  const signature = Buffer.from(hexOfBase64(line.trim().split(' ')[2] ?? '').slice(8), 'hex');
  const der = Buffer.from(`302a300506032b6570032100${pair.publicKey}`, 'hex');
  const publicKey = createPublicKey({ key: der, format: 'der', type: 'spki' });
  assert.ok(verify(null, Buffer.from(text), publicKey, signature));
});

test('what is no checkpoint is not read as one', () => {
  for (const text of ['', 'a\n1\n', `${NOTE}`, 'origin\n01\nXcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=\n\n— a b\n']) {
    assert.throws(() => readCheckpoint(text), TypeError);
  }
});

test('base64 is that of RFC 4648, and takes only its own form back', () => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, at) => (at * 7) % 256));
  for (let length = 0; length < 66; length += 1) {
    const part = bytes.subarray(0, length);
    assert.equal(base64OfHex(part.toString('hex')), part.toString('base64'));
    assert.equal(hexOfBase64(part.toString('base64')), part.toString('hex'));
  }
  for (const text of ['A', 'AA', 'AB==', 'AA=A', 'A A=', '-_==', 'AAAA=']) {
    assert.throws(() => hexOfBase64(text), TypeError, text);
  }
});
