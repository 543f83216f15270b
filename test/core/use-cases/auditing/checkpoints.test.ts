/** What is signed of an account's log, and what never is. */
import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { test } from 'vitest';
import { digest } from '../../../../adapters/node/digest.ts';
import { noteSigning } from '../../../../adapters/node/note-signing.ts';
import { hexOfBase64 } from '../../../../core/audit/base64.ts';
import { readCheckpoint, signerOf } from '../../../../core/audit/checkpoint.ts';
import { singleChunk } from '../../../../core/kernel/single-chunk.ts';
import { type LayerStore, LayerStoreError } from '../../../../core/ports/layer-store.ts';
import type { LogKeys } from '../../../../core/ports/log-keys.ts';
import { layerKey } from '../../../../core/repository/layer.ts';
import { proveConsistency, proveInclusion } from '../../../../core/use-cases/auditing/checkpoints.ts';
import { LOG_KEYS_READ_INTERVAL_MS, revokeLogKey, rotateLogKey } from '../../../../core/use-cases/auditing/log-keys.ts';
import { createMemoryAccountLog } from '../../../support/memory/account-log.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { createMemoryLayerStore } from '../../../support/memory/layer-store.ts';
import { createMemoryCheckpoints, createMemoryLogKeys } from '../../../support/memory/log-keys.ts';
import { Appender } from '../../../support/read-models.ts';
import { createTestClock } from '../../../support/test-clock.ts';

async function newLog(given: { readonly store?: LayerStore; readonly logKeys?: LogKeys } = {}) {
  const events = createMemoryEventStore();
  const append = new Appender(events);
  const readModels = createMemoryAccountLog({ events, digest });
  const clock = createTestClock();
  const { store = createMemoryLayerStore(), logKeys = createMemoryLogKeys() } = given;
  /** The line of the key that entries endorse. */
  const endorsed: { key: string | null } = { key: null };
  const endorsedKey = async () => endorsed.key;
  const node = () => createMemoryCheckpoints({ readModels, digest, clock, store, logKeys, endorsedKey });
  return { append, readModels, clock, store, logKeys, endorsed, node, account: await append.account('ada') };
}

async function storedKeys(store: LayerStore): Promise<readonly string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list('checkpoints/')) keys.push(key);
  return keys.toSorted();
}

/** Checks the note with a key of the list, as a verifier does. */
function isSignedBy(verifierKeys: string, note: string): boolean {
  const [text = '', line = ''] = note.split('\n\n');
  const [, name, encoded = ''] = line.trim().split(' ');
  const bytes = hexOfBase64(encoded);
  const vkey = verifierKeys.split('\n').find((one) => one.startsWith(`${name}+${bytes.slice(0, 8)}+`));
  const publicKey = hexOfBase64(vkey?.split('+').slice(2).join('+') ?? '').slice(2);
  const der = Buffer.from(`302a300506032b6570032100${publicKey}`, 'hex');
  const key = createPublicKey({ key: der, format: 'der', type: 'spki' });
  return verify(null, Buffer.from(`${text}\n`), key, Buffer.from(bytes.slice(8), 'hex'));
}

test('the head of the log is signed, and the last checkpoint alone stays in the store', async () => {
  const { append, account, node, store } = await newLog();
  const checkpoints = node();
  const first = await checkpoints.sign(account, append.last);
  assert.deepEqual(readCheckpoint(first.note), { origin: `strata.example/log/${account}`, size: 1, root: first.root });
  assert.ok(isSignedBy(await checkpoints.verifierKeys(), first.note));
  assert.equal((await checkpoints.sign(account, append.last)).note, first.note, 'the same head, the same note');
  await append.repository(account, 'project');
  const second = await checkpoints.sign(account, append.last);
  assert.equal(second.size, 2);
  assert.notEqual(second.root, first.root);
  assert.deepEqual(await storedKeys(store), [`checkpoints/${account}/0000000000000002`]);
});

test('the record of a log is its size and its last checkpoint, and says who signed it', async () => {
  const { append, account, node } = await newLog();
  const checkpoints = node();
  const unsigned = await checkpoints.recordOf(account, append.last);
  assert.deepEqual([unsigned.head.size, unsigned.last], [1, null]);
  const { note, root } = await checkpoints.sign(account, append.last);
  assert.equal(unsigned.head.root, root);
  await append.repository(account, 'project');
  const { head, last } = await checkpoints.recordOf(account, append.last);
  assert.deepEqual([head.size, last?.note, last?.size, last?.continued], [2, note, 1, true]);
  const { name, keyId } = signerOf(note);
  assert.ok((await checkpoints.verifierKeys()).startsWith(`${name}+${keyId}+`));
  assert.throws(() => signerOf(note.trim()), TypeError);
});

// The accident: a database without its last events is put in place of the one that was signed.
test('the record of a log says that it does not continue its last checkpoint', async () => {
  const before = await newLog();
  for (const name of ['one', 'two']) await before.append.repository(before.account, name);
  await before.node().sign(before.account, before.append.last);
  const after = await newLog({ store: before.store, logKeys: before.logKeys });
  const { account } = before;
  const short = await after.node().recordOf(account, after.append.last);
  assert.deepEqual([short.head.size, short.last?.size, short.last?.continued], [0, 3, false]);
  for (const name of ['other', 'another', 'more']) await after.append.repository(account, name);
  const changed = await after.node().recordOf(account, after.append.last);
  assert.deepEqual([changed.head.size, changed.last?.size, changed.last?.continued], [3, 3, false]);
});

// The attack: who can write to the bucket puts another text in the place of the checkpoint.
test('the record of a log whose last checkpoint cannot be read is an outage of the store', async () => {
  for (const text of ['x', '\xff\xfe', `strata.example/log/x\n1\n${'A'.repeat(43)}=\n\n— no signature\n`]) {
    const { append, account, node, store } = await newLog();
    const bytes = new TextEncoder().encode(text);
    await store.put(layerKey(`checkpoints/${account}/0000000000000001`), singleChunk(bytes), bytes.length);
    await assert.rejects(node().recordOf(account, append.last), LayerStoreError, text);
  }
});

test('twenty requests at the same time sign a head that is as new as each of them', async () => {
  const { append, account, node } = await newLog();
  const checkpoints = node();
  const signed = await Promise.all(
    Array.from({ length: 20 }, async (_, n) => {
      if (n === 10) await append.repository(account, 'project');
      return checkpoints.sign(account, append.last);
    }),
  );
  assert.equal(signed[10]?.size, 2);
});

// The attack, or the accident: a database without its last events is put in place of the one that was signed.
test('a log that lost its tail is not signed, nor after it has grown beyond the checkpoint in another way', async () => {
  const before = await newLog();
  for (const name of ['one', 'two']) await before.append.repository(before.account, name);
  await before.node().sign(before.account, before.append.last);
  const after = await newLog({ store: before.store, logKeys: before.logKeys });
  // The same account's events, without the last one, and then others.
  const { account } = after;
  await copyCheckpoint(before.store, before.account, account);
  const contradicted = { name: 'CheckpointError', code: 'log-contradicts-checkpoint' };
  await assert.rejects(after.node().sign(account, after.append.last), contradicted, 'it is shorter');
  for (const name of ['three', 'four']) await after.append.repository(account, name);
  await assert.rejects(
    after.node().sign(account, after.append.last),
    contradicted,
    'of the same size, with another root',
  );
  await after.append.repository(account, 'five');
  await assert.rejects(after.node().sign(account, after.append.last), contradicted, 'it is longer');
  assert.deepEqual(
    (await storedKeys(after.store)).filter((key) => key.includes(account)),
    [`checkpoints/${account}/0000000000000003`],
  );
});

// Some providers let two puts of one key both succeed.
test('a checkpoint that another node replaces by one of another root, as it is stored, is not handed out', async () => {
  const before = await newLog();
  const { account } = before;
  await before.append.repository(account, 'one');
  const { note } = await before.node().sign(account, before.append.last);
  const memory = createMemoryLayerStore();
  const bytes = new TextEncoder().encode(note);
  const store: LayerStore = {
    ...memory,
    put: async (key, body, sizeBytes) => {
      await memory.put(key, body, sizeBytes);
      await memory.delete(key);
      await memory.put(key, singleChunk(bytes), bytes.length);
      return 'stored';
    },
  };
  const after = await newLog({ store, logKeys: before.logKeys });
  for (const name of ['two', 'three']) await after.append.repository(account, name);
  await assert.rejects(after.node().sign(account, after.append.last), {
    name: 'CheckpointError',
    code: 'log-contradicts-checkpoint',
  });
});

test('a checkpoint of another root stays in a store that replaces it and lists it late, and the error names it', async () => {
  const before = await newLog();
  const { account } = before;
  await before.append.repository(account, 'one');
  const { note } = await before.node().sign(account, before.append.last);
  const store: LayerStore = {
    ...before.store,
    list: async function* () {
      yield* [];
    },
    put: async (key, body, sizeBytes) => {
      await before.store.delete(key);
      return before.store.put(key, body, sizeBytes);
    },
  };
  const after = await newLog({ store, logKeys: before.logKeys });
  for (const name of ['two', 'three']) await after.append.repository(account, name);
  const key = `checkpoints/${account}/0000000000000002`;
  await assert.rejects(after.node().sign(account, after.append.last), {
    name: 'CheckpointError',
    code: 'log-contradicts-checkpoint',
    message: `The checkpoint ${key} was signed, and the log has another root at that size`,
  });
  const kept = await Array.fromAsync(await before.store.get(layerKey(key)));
  assert.equal(Buffer.concat(kept).toString(), note);
});

async function copyCheckpoint(store: LayerStore, from: string, to: string): Promise<void> {
  const parts: Uint8Array[] = [];
  const name = '0000000000000003';
  for await (const part of await store.get(layerKey(`checkpoints/${from}/${name}`))) parts.push(part);
  const bytes = Buffer.concat(parts);
  await store.put(
    layerKey(`checkpoints/${to}/${name}`),
    (async function* () {
      yield bytes;
    })(),
    bytes.length,
  );
}

test('two nodes that sign at the same time agree, and a key of another node signs once the log endorses it', async () => {
  const { append, account, node, clock, logKeys, endorsed } = await newLog();
  const [one, two] = [node(), node()];
  const notes = await Promise.all([one.sign(account, append.last), two.sign(account, append.last)]);
  assert.equal(notes[0]?.note, notes[1]?.note);
  const added = await rotateLogKey({ logKeys, signing: noteSigning, host: () => 'moved.example' });
  assert.equal(added?.name, 'strata.example', 'the name of the first key stays');
  clock.advance(LOG_KEYS_READ_INTERVAL_MS);
  assert.equal((await two.sign(account, append.last)).note, notes[0]?.note, 'the first key is in force');
  endorsed.key = (await two.verifierKeys()).trim().split('\n').at(-1) ?? null;
  const later = await two.sign(account, append.last);
  assert.notEqual(later.note, notes[0]?.note);
  assert.equal(later.root, notes[0]?.root);
  const keys = await two.verifierKeys();
  assert.equal(keys.trim().split('\n').length, 2);
  for (const note of [notes[0]?.note ?? '', later.note]) assert.ok(isSignedBy(keys, note), 'old keys stay public');
});

test('a node that does not know the endorsed key yet reads it, and one that was revoked signs nothing', async () => {
  const { append, account, node, logKeys, endorsed } = await newLog();
  const [one, two] = [node(), node()];
  const first = await one.sign(account, append.last);
  const context = { logKeys, signing: noteSigning, digest, host: () => 'strata.example' };
  await rotateLogKey(context);
  endorsed.key = (await two.verifierKeys()).trim().split('\n').at(-1) ?? '';
  const second = await one.sign(account, append.last);
  assert.notEqual(second.note, first.note);
  assert.equal(await revokeLogKey(context, 'no key'), 'unknown-key');
  assert.equal(typeof (await revokeLogKey(context, endorsed.key)), 'object');
  assert.equal(await revokeLogKey(context, endorsed.key), 'already-revoked');
  const three = node();
  await assert.rejects(three.sign(account, append.last), { code: 'log-keys-unavailable' });
  assert.deepEqual(
    (await three.listKeys()).map(({ signature, isRevoked }) => [signature === null, isRevoked]),
    [
      [true, false],
      [false, true],
      [true, false],
    ],
  );
});

test('proofs exist for trees that the log has, and for no others', async () => {
  const { append, account, readModels } = await newLog();
  for (const name of ['one', 'two', 'three']) await append.repository(account, name);
  const context = { readModels, digest, position: append.last };
  assert.equal((await proveInclusion(context, account, { sequence: 2, size: 4 }))?.length, 2);
  assert.deepEqual(await proveInclusion(context, account, { sequence: 0, size: 1 }), []);
  assert.equal(await proveInclusion(context, account, { sequence: 4, size: 4 }), null);
  assert.equal(await proveInclusion(context, account, { sequence: 0, size: 5 }), null);
  assert.equal((await proveConsistency(context, account, { from: 3, to: 4 }))?.length, 3);
  assert.deepEqual(await proveConsistency(context, account, { from: 4, to: 4 }), []);
  assert.equal(await proveConsistency(context, account, { from: 4, to: 3 }), null);
  assert.equal(await proveConsistency(context, account, { from: 1, to: 5 }), null);
});
