/** Checkpoints and proofs of a real server, checked as an auditor does: with nothing of the server's own code. */
import assert from 'node:assert/strict';
import { createHash, createPublicKey, verify } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'vitest';
import {
  admin,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  startStrata,
} from '../support/strata.ts';

interface Signed {
  readonly origin: string;
  readonly size: number;
  readonly root: Buffer;
}

/** Checks the signature by the published keys and returns what was signed. */
function readSigned(note: string, keys: string): Signed {
  const [text = '', line = ''] = note.split('\n\n');
  const [dash, name = '', encoded = ''] = line.trim().split(' ');
  assert.equal(dash, '—');
  const signature = Buffer.from(encoded, 'base64');
  const key = keys.split('\n').find((one) => one.startsWith(`${name}+${signature.subarray(0, 4).toString('hex')}+`));
  assert.ok(key !== undefined, `a published key signed: ${keys}`);
  const raw = Buffer.from(key.split('+').slice(2).join('+'), 'base64').subarray(1);
  const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), raw]);
  const publicKey = createPublicKey({ key: der, format: 'der', type: 'spki' });
  assert.ok(verify(null, Buffer.from(`${text}\n`), publicKey, signature.subarray(4)), 'the signature is valid');
  const [origin = '', size, root = ''] = text.split('\n');
  return { origin, size: Number(size), root: Buffer.from(root, 'base64') };
}

const node = (left: Buffer, right: Buffer): Buffer =>
  createHash('sha256')
    .update(Buffer.from([1]))
    .update(left)
    .update(right)
    .digest();

/** RFC 9162, section 2.1.4.2: whether the hashes lead from the older root to the newer one. */
function isConsistent(older: Signed, newer: Signed, hashes: readonly Buffer[]): boolean {
  if (older.size === newer.size) return hashes.length === 0 && older.root.equals(newer.root);
  const path = Number.isInteger(Math.log2(older.size)) ? [older.root, ...hashes] : [...hashes];
  let [fn, sn] = [older.size - 1, newer.size - 1];
  for (; fn % 2 === 1; fn = (fn - 1) / 2) sn = Math.floor(sn / 2);
  const first = path.shift();
  if (first === undefined) return false;
  let [fr, sr] = [first, first];
  for (const hash of path) {
    if (sn === 0) return false;
    if (fn % 2 === 1 || fn === sn) {
      [fr, sr] = [node(hash, fr), node(hash, sr)];
      for (; fn % 2 === 0 && fn !== 0; fn /= 2) sn = Math.floor(sn / 2);
    } else {
      sr = node(sr, hash);
    }
    [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
  }
  return sn === 0 && fr.equals(older.root) && sr.equals(newer.root);
}

test('an auditor checks that each later head of the log continues the one he kept, across a kill and a new key', async (context) => {
  let strata = await startStrata(context);
  const ada = await createAccount(strata, 'ada');
  const keys = async () => (await fetch(`${strata.url}/.well-known/strata-log-keys`)).text();
  const latest = async () => {
    const url = `${strata.url}/v1/account/checkpoints/latest`;
    const answer = await fetch(url, { headers: { authorization: `Bearer ${ada.token}` } });
    assert.equal(answer.headers.get('content-type'), 'text/plain; charset=utf-8');
    assert.equal(answer.status, 200);
    return readSigned(await answer.text(), await keys());
  };
  const first = await latest();
  const url = await createRepository(strata, ada, 'engine');
  const work = await newWorkTree(context);
  await commitFile(work, 'file', 'text\n');
  await git(work, ['push', '--quiet', url, 'main']);
  const second = await latest();
  assert.equal(second.origin, first.origin);
  assert.equal(first.origin, `${new URL(strata.url).host}/log/${ada.id}`);
  assert.ok(second.size > first.size);

  strata = await strata.restart();
  await admin(strata, ['log', 'rotate-key']);
  await commitFile(work, 'file', 'more\n');
  await git(work, ['push', '--quiet', `${strata.url}/r/ada/engine.git`.replace('://', `://ada:${ada.token}@`), 'main']);
  const third = await latest();
  for (const [older, newer] of [
    [first, second],
    [second, third],
    [first, third],
  ] as const) {
    const query = `?from=${older.size}&to=${newer.size}`;
    const proof = await api(strata, ada.token, 'GET', `/v1/account/proofs/consistency${query}`);
    const { hashes } = proof.body as { hashes: readonly string[] };
    const decoded = hashes.map((hash) => Buffer.from(hash, 'base64'));
    assert.ok(isConsistent(older, newer, decoded));
    assert.ok(!isConsistent({ ...older, root: newer.root }, newer, decoded), 'no proof fits another root');
  }
  const beyond = await api(
    strata,
    ada.token,
    'GET',
    `/v1/account/proofs/inclusion?sequence=0&tree_size=${third.size + 9}`,
  );
  assert.equal(beyond.status, 422);

  const folder = path.join(strata.dataDir, 'layers', 'checkpoints', ada.id);
  assert.deepEqual(await readdir(folder), [String(third.size).padStart(16, '0')]);
  const { fault_count } = (await admin(strata, ['storage', 'verify'])) as { fault_count: number };
  assert.equal(fault_count, 0, 'checkpoints are no unknown files');
  await rm(folder, { recursive: true });
  assert.deepEqual(await latest(), third, 'without the stored one the same head is signed again');
});
