/**
 * The contract of core/ports/layer-store.ts, run on every adapter.
 *
 * Invariants: every test uses new, random keys and prefixes, so the suite also runs on a store that others use.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { plusMs } from '../../core/kernel/ids.ts';
import { type LayerStore, LayerStoreError } from '../../core/ports/layer-store.ts';
import { type LayerKey, layerKey } from '../../core/repository/layer.ts';

export interface OpenLayerStore {
  readonly store: LayerStore;
  close(): Promise<void>;
}

/** Declares the suite; `open` is called once. The store's clock may be behind by `clockStepMs`: HTTP's has seconds. */
export function layerStoreContract(adapter: string, open: () => Promise<OpenLayerStore>, clockStepMs = 0): void {
  describe(`the layer store on ${adapter}`, () => {
    let opened: OpenLayerStore;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened.close());
    const store = () => opened.store;
    writingContract(store);
    readingContract(store);
    listingContract(store, clockStepMs);
  });
}

function writingContract(store: () => LayerStore): void {
  test('returns the bytes that were put, whatever chunks they were put in', async () => {
    const key = newKey();
    const bytes = pattern(300_000);
    assert.equal(await store().put(key, chunks(bytes, 7_001), bytes.length), 'stored');
    assert.deepEqual(await content(store(), key), bytes);
    assert.equal((await store().head(key))?.sizeBytes, bytes.length);
  });

  test('stores an empty layer', async () => {
    const key = newKey();
    assert.equal(await store().put(key, chunks(Buffer.alloc(0)), 0), 'stored');
    assert.deepEqual(await content(store(), key), Buffer.alloc(0));
    assert.equal((await store().head(key))?.sizeBytes, 0);
  });

  test('does not change the layer of a key that exists', async () => {
    const key = newKey();
    await store().put(key, chunks(Buffer.from('first')), 5);
    assert.equal(await store().put(key, chunks(Buffer.from('other')), 5), 'exists');
    assert.deepEqual(await content(store(), key), Buffer.from('first'));
  });

  test('lets exactly one of 20 concurrent puts of a key succeed', async () => {
    const key = newKey();
    const bodies = Array.from({ length: 20 }, (_, index) => Buffer.alloc(100_000, index + 1));
    const outcomes = await Promise.all(bodies.map((body) => store().put(key, chunks(body, 999), body.length)));
    assert.equal(outcomes.filter((outcome) => outcome === 'stored').length, 1);
    assert.deepEqual(await content(store(), key), bodies[outcomes.indexOf('stored')]);
  });

  test('keeps nothing of a body that is shorter or longer than its stated size', async () => {
    const key = newKey();
    await assert.rejects(store().put(key, chunks(pattern(1_000)), 1_001));
    await assert.rejects(store().put(key, chunks(pattern(1_002)), 1_001));
    assert.equal(await store().head(key), null);
    assert.equal(await store().put(key, chunks(pattern(1_001)), 1_001), 'stored');
  });

  test('keeps nothing of a body that fails, and rejects with its error', async () => {
    const key = newKey();
    const failure = new Error('the disk it came from broke');
    async function* failing() {
      yield pattern(500);
      throw failure;
    }
    await assert.rejects(store().put(key, failing(), 1_000), failure);
    assert.equal(await store().head(key), null);
    await rejectsWith('layer-not-found', store().get(key));
  });

  test('deletes a layer, and accepts a delete of a layer that does not exist', async () => {
    const key = newKey();
    await store().put(key, chunks(pattern(10)), 10);
    await store().delete(key);
    assert.equal(await store().head(key), null);
    await rejectsWith('layer-not-found', store().get(key));
    await store().delete(key);
    await store().delete(newKey());
    assert.equal(await store().put(key, chunks(pattern(20)), 20), 'stored');
  });
}

function readingContract(store: () => LayerStore): void {
  test('rejects a read of a layer that does not exist before the first byte', async () => {
    await rejectsWith('layer-not-found', store().get(newKey()));
    await rejectsWith('layer-not-found', store().get(newKey(), { start: 0, end: 1 }));
    assert.equal(await store().head(newKey()), null);
  });

  test('reads a range up to but excluding its end, and ends at the end of the layer', async () => {
    const key = newKey();
    const bytes = pattern(3_000_000);
    await store().put(key, chunks(bytes), bytes.length);
    for (const [start, end] of [
      [0, 1],
      [1, 2_500_000],
      [2_999_999, 3_000_000],
      [0, 3_000_000],
    ] as const) {
      assert.deepEqual(await content(store(), key, { start, end }), bytes.subarray(start, end));
    }
    assert.deepEqual(await content(store(), key, { start: 2_999_000, end: 4_000_000 }), bytes.subarray(2_999_000));
  });

  test('refuses a range that holds no byte of the layer', async () => {
    const key = newKey();
    await store().put(key, chunks(pattern(100)), 100);
    for (const [start, end] of [
      [100, 101],
      [5, 5],
      [5, 4],
      [-1, 5],
      [0.5, 3],
      [Number.NaN, 3],
    ] as const) {
      await rejectsWith('range-not-satisfiable', store().get(key, { start, end }));
    }
  });

  test('serves a layer again after a reader stopped early', async () => {
    const key = newKey();
    const bytes = pattern(5_000_000);
    await store().put(key, chunks(bytes), bytes.length);
    for await (const chunk of await store().get(key)) {
      assert.deepEqual(Buffer.from(chunk), bytes.subarray(0, chunk.length));
      break;
    }
    assert.deepEqual(await content(store(), key), bytes);
  });
}

function listingContract(store: () => LayerStore, clockStepMs: number): void {
  test('lists every key under a prefix, whether or not the prefix ends with a slash', async () => {
    const root = randomUUID();
    const names = ['a.tar', 'ab.tar', 'a/1.tar', 'a/2/3.tar', 'b/1.tar'];
    for (const [index, name] of names.entries()) {
      await store().put(layerKey(`${root}/${name}`), chunks(pattern(index + 1)), index + 1);
    }
    assert.deepEqual(await listed(store(), `${root}/`, root), names.toSorted());
    assert.deepEqual(await listed(store(), `${root}/a/`, root), ['a/1.tar', 'a/2/3.tar']);
    assert.deepEqual(await listed(store(), `${root}/a`, root), ['a.tar', 'a/1.tar', 'a/2/3.tar', 'ab.tar']);
    assert.deepEqual(await listed(store(), root.slice(0, -1), root), names.toSorted());
    assert.deepEqual(await listed(store(), `${root}/c`, root), []);
    for await (const layer of store().list(`${root}/b/`)) assert.equal(layer.sizeBytes, 5);
  });

  test('reports when a layer was stored, on the clock that `now` reads', async () => {
    const key = newKey();
    const before = await store().now();
    await store().put(key, chunks(pattern(10)), 10);
    const after = plusMs(await store().now(), clockStepMs);
    const head = await store().head(key);
    assert.ok(
      head !== null && before <= head.storedAt && head.storedAt <= after,
      JSON.stringify([before, head, after]),
    );
    assert.deepEqual(await Array.fromAsync(store().list(key)), [head]);
    assert.deepEqual(head, { key, sizeBytes: 10, storedAt: head.storedAt });
  });

  test('lists nothing outside the store, whatever the prefix', async () => {
    assert.deepEqual(await listed(store(), '../', ''), []);
    assert.deepEqual(await listed(store(), 'a/../../', ''), []);
  });
}

function newKey(): LayerKey {
  return layerKey(`repositories/${randomUUID()}/layers/${randomUUID()}.tar`);
}

function pattern(length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let index = 0; index < length; index += 1) bytes[index] = (index * 31 + (index >> 8)) & 0xff;
  return bytes;
}

async function* chunks(bytes: Uint8Array, size = bytes.length): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size);
}

async function content(store: LayerStore, key: LayerKey, range?: { start: number; end: number }): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(await store.get(key, range)));
}

async function listed(store: LayerStore, prefix: string, root: string): Promise<readonly string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list(prefix)) keys.push(key.slice(root.length + 1));
  return keys.sort();
}

async function rejectsWith(code: LayerStoreError['code'], work: Promise<unknown>): Promise<void> {
  await assert.rejects(work, (error) => error instanceof LayerStoreError && error.code === code);
}
