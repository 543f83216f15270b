/**
 * The store that each repository is bound to: the platform's, or a bucket of its account (core/ports/layer-stores.ts).
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'vitest';
import { ALL_REPOSITORIES } from '../../../../core/access-token/repository-selection.ts';
import { type AccountId, type RepositoryId, type StorageBucketId, uuid } from '../../../../core/kernel/ids.ts';
import type { BucketConnection } from '../../../../core/ports/buckets.ts';
import { type LayerStore, LayerStoreError } from '../../../../core/ports/layer-store.ts';
import { layerKey } from '../../../../core/repository/layer.ts';
import {
  BUCKET_CALLS_MAX,
  BUCKET_TRIALS_MAX,
  BUCKET_UNREAD_MS,
} from '../../../../core/use-cases/buckets/bucket-gate.ts';
import { changeBucket, createBucket, deleteBucket } from '../../../../core/use-cases/buckets/buckets.ts';
import { createLayerStores } from '../../../../core/use-cases/buckets/layer-stores.ts';
import type { BucketError } from '../../../../core/use-cases/buckets/record-bucket-error.ts';
import { accepted, newAccount } from '../../../support/accounts.ts';
import { seesDeletions } from '../../../support/deletions.ts';
import { createMemoryBuckets } from '../../../support/memory/buckets.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { createMemoryLayerStore } from '../../../support/memory/layer-store.ts';
import { CAUSE, startNode } from '../../../support/node.ts';

const KEYS = {
  provider: 'MINIO',
  authMode: 'STATIC_KEYS',
  keyPrefix: 'git/',
  roleArn: null,
  region: 'us-east-1',
  endpointUrl: 'https://s3.example.org',
  accessKeyId: 'AKIAFIRST',
  secretAccessKey: 'first-secret',
} as const;

async function newStores() {
  const node = { ...(await startNode(createMemoryEventStore())), outgoing: { checkEndpoint: async () => null } };
  const buckets = createMemoryBuckets();
  const platform = createMemoryLayerStore();
  const opened: BucketConnection[] = [];
  const told: BucketError[] = [];
  /** What a test does to the calls of a store, by the bucket's name. */
  const wraps = new Map<string, (store: LayerStore) => LayerStore>();
  const stores = createLayerStores({
    ...node,
    platform,
    open: async (connection, findings) => {
      opened.push(connection);
      const store = buckets.store(connection, findings);
      return wraps.get(connection.bucketName)?.(store) ?? store;
    },
    onError: (_account, error) => told.push(error),
  });
  const account = await newAccount(node, 'ada', 'PRO');
  const origin = { account, cause: CAUSE, selection: ALL_REPOSITORIES };
  const bucket = async (bucketName: string): Promise<StorageBucketId> => {
    const wanted = { name: bucketName, isDefault: false, settings: { ...KEYS, bucketName } };
    return accepted(await createBucket(node, origin, wanted)).bucket.id;
  };
  const at = (storageBucketId: StorageBucketId | null, of: AccountId = account) =>
    stores.of({ account: of, storageBucketId }, 'push');
  return { node, platform, opened, told, wraps, stores, account, origin, bucket, at };
}

const REPOSITORY = uuid<RepositoryId>('0199a0b0-0000-7000-8000-000000000001');

function newKey() {
  return layerKey(`repositories/${REPOSITORY}/layers/${randomUUID()}.tar`);
}

async function* bytes(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

async function textOf(store: LayerStore, key: ReturnType<typeof newKey>): Promise<string> {
  return Buffer.concat(await Array.fromAsync(await store.get(key))).toString();
}

const keysIn = (store: LayerStore) => Array.fromAsync(store.list(''), ({ key }) => key);

function failing(code: LayerStoreError['code'], hold: Promise<void> = Promise.resolve()) {
  const fail = async (): Promise<never> => {
    await hold;
    throw new LayerStoreError(code, 'as the test says');
  };
  return (store: LayerStore): LayerStore => ({ ...store, put: fail, get: fail, head: fail, delete: fail, now: fail });
}

describe('The store of a repository', () => {
  test('is the one that it is bound to, and layers of one are in no other', async () => {
    const { platform, bucket, at } = await newStores();
    const [first, second] = [await bucket('first'), await bucket('second')];
    const key = newKey();
    for (const place of [null, first, second]) {
      assert.equal(await at(place).put(key, bytes(`of ${place}`), Buffer.byteLength(`of ${place}`)), 'stored');
    }
    for (const place of [null, first, second]) assert.equal(await textOf(at(place), key), `of ${place}`);
    assert.equal(at(null), platform);
    await at(first).delete(key);
    assert.equal(await at(first).head(key), null);
    assert.equal((await at(second).head(key))?.key, key);
    assert.deepEqual(await keysIn(at(second)), [key]);
    assert.deepEqual(await keysIn(platform), [key]);
  });

  test('uses the keys that the bucket has at the moment of the call, whether they were verified or not', async () => {
    const { node, origin, bucket, at, opened } = await newStores();
    const id = await bucket('first');
    const store = at(id);
    await store.head(newKey());
    accepted(await changeBucket(seesDeletions(node), origin, id, { settings: { secretAccessKey: 'second-secret' } }));
    await store.head(newKey());
    const secrets = opened.map(({ access }) => (access.mode === 'STATIC_KEYS' ? access.secretAccessKey : null));
    assert.deepEqual(secrets, ['first-secret', 'second-secret']);
  });

  test('cannot be used once the bucket is deleted', async () => {
    const { node, origin, bucket, at, told } = await newStores();
    const id = await bucket('first');
    accepted(await deleteBucket(seesDeletions(node), origin, id));
    await assert.rejects(at(id).head(newKey()), { code: 'bucket-missing' });
    assert.deepEqual(told, [{ bucket: id, repository: REPOSITORY, operation: 'push', code: 'bucket-missing' }]);
  });

  test('is never a bucket of another account', async () => {
    const { node, bucket, at, opened } = await newStores();
    const id = await bucket('first');
    const mallory = await newAccount(node, 'mallory', 'PRO');
    await assert.rejects(at(id, mallory).get(newKey()), { code: 'bucket-missing' });
    assert.deepEqual(opened, []);
  });
});

describe('The failure of a bucket', () => {
  test('is told with the repository, the operation and what is wrong', async () => {
    const { account, stores, bucket, wraps, told } = await newStores();
    const id = await bucket('first');
    const place = { account, storageBucketId: id };
    await assert.rejects(stores.of(place, 'read').get(newKey()), { code: 'layer-not-found' });
    stores.altered(place, newKey());
    wraps.set('first', failing('put-denied'));
    await assert.rejects(stores.of(place, 'push').put(newKey(), bytes('x'), 1), { code: 'put-denied' });
    wraps.set('first', failing('list-denied'));
    await assert.rejects(stores.of(place, 'maintenance').now(), { code: 'list-denied' });
    const about = { bucket: id, repository: REPOSITORY };
    assert.deepEqual(told, [
      { ...about, operation: 'read', code: 'object-missing' },
      { ...about, operation: 'read', code: 'object-altered' },
      { ...about, operation: 'push', code: 'put-denied' },
      { ...about, repository: null, operation: 'maintenance', code: 'list-denied' },
    ]);
  });

  test('in the middle of a layer or of a listing is told as well', async () => {
    const { bucket, at, wraps, told } = await newStores();
    const id = await bucket('first');
    const cut = () => failingItems(new LayerStoreError('unreachable', 'the connection broke'));
    wraps.set('first', (store) => ({ ...store, get: async () => cut(), list: cut }));
    await assert.rejects(textOf(at(id), newKey()), { code: 'unreachable' });
    await assert.rejects(keysIn(at(id)), { code: 'unreachable' });
    assert.deepEqual(
      told.map(({ code }) => code),
      ['unreachable', 'unreachable'],
    );
  });

  test('is not what a caller did: a body that fails, or a range beyond the layer', async () => {
    const { bucket, at, told } = await newStores();
    const store = at(await bucket('first'));
    await assert.rejects(store.put(newKey(), failingItems(new Error('the disk broke')), 5), /the disk broke/);
    const key = newKey();
    await store.put(key, bytes('12345'), 5);
    await assert.rejects(store.get(key, { start: 9, end: 10 }), { code: 'range-not-satisfiable' });
    assert.deepEqual(told, []);
  });
});

describe('A bucket that holds its callers', () => {
  test('has a bounded number of calls; further ones fail immediately, and other places answer', async () => {
    const { platform, bucket, at, wraps } = await newStores();
    const [slow, other] = [await bucket('slow'), await bucket('other')];
    const { promise: hold, resolve: release } = Promise.withResolvers<void>();
    wraps.set('slow', (store) => ({ ...store, head: async () => hold.then(() => null) }));
    const held = Array.from({ length: BUCKET_CALLS_MAX }, () => at(slow).head(newKey()));
    await assert.rejects(at(slow).head(newKey()), { code: 'throttled' });
    assert.equal(await at(other).head(newKey()), null);
    assert.equal(await platform.head(newKey()), null);
    release();
    await Promise.all(held);
    assert.equal(await at(slow).head(newKey()), null);
  });

  test('forgets bodies that nobody reads, so that they do not keep their places', async () => {
    const { bucket, at, node } = await newStores();
    const { clock } = node;
    const id = await bucket('forgotten');
    const key = newKey();
    await at(id).put(key, bytes('layer'), 5);
    const read = await at(id).get(key);
    const first = read[Symbol.asyncIterator]();
    await first.next();
    const given = await Promise.all(Array.from({ length: BUCKET_CALLS_MAX - 1 }, () => at(id).get(key)));
    await assert.rejects(at(id).head(key), { code: 'throttled' });
    clock.advance(BUCKET_UNREAD_MS - 1);
    await assert.rejects(at(id).head(key), { code: 'throttled' });
    clock.advance(1);
    assert.notEqual(await at(id).head(key), null);
    await Promise.all(Array.from({ length: BUCKET_CALLS_MAX - 1 }, () => at(id).get(key)));
    await assert.rejects(at(id).head(key), { code: 'throttled' }, 'the one that is read still counts');
    for (const late of given) assert.equal(Buffer.concat(await Array.fromAsync(late)).toString(), 'layer');
    await assert.rejects(at(id).head(key), { code: 'throttled' }, 'a place ends once');
  });

  test('is tried by a few calls while it does not answer; the others fail with them, and all go on after an answer', async () => {
    const { bucket, at, wraps } = await newStores();
    const id = await bucket('dead');
    let calls = 0;
    const outcomes: ((error: LayerStoreError | null) => void)[] = [];
    const head = (): Promise<null> => {
      calls += 1;
      return new Promise((resolve, reject) =>
        outcomes.push((error) => (error === null ? resolve(null) : reject(error))),
      );
    };
    wraps.set('dead', (store) => ({ ...store, head }));
    const dead = new LayerStoreError('unreachable', 'nothing is there');
    const begun = async (count: number): Promise<void> => {
      for (let turn = 0; turn < 1_000 && calls < count; turn += 1)
        await new Promise((resolve) => setTimeout(resolve, 1));
      assert.equal(calls, count);
    };
    const asked = (count: number) => Array.from({ length: count }, () => at(id).head(newKey()).catch(codeOf));
    // It is not known to be dead: as many calls are made as there are callers.
    const first = asked(10);
    await begun(10);
    for (const outcome of outcomes.splice(0, 9)) outcome(dead);
    assert.deepEqual(
      await Promise.all(first.slice(0, 9)),
      Array.from({ length: 9 }, () => 'unreachable'),
    );
    // One call is under way still, so three more are made.
    const second = asked(20);
    await begun(10 + BUCKET_TRIALS_MAX - 1);
    outcomes.shift()?.(dead);
    assert.deepEqual(
      await Promise.all(second.slice(3)),
      Array.from({ length: 17 }, () => 'unreachable'),
    );
    const third = asked(20);
    await begun(10 + BUCKET_TRIALS_MAX);
    outcomes.shift()?.(null);
    await begun(10 + BUCKET_TRIALS_MAX + 19);
    for (const outcome of outcomes) outcome(null);
    assert.deepEqual(
      await Promise.all([...second.slice(0, 3), ...third]),
      Array.from({ length: 23 }, () => null),
    );
  });
});

function failingItems(error: Error): AsyncIterable<never> {
  return { [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(error) }) };
}

function codeOf(error: unknown): string {
  return error instanceof LayerStoreError ? error.code : assert.fail();
}
