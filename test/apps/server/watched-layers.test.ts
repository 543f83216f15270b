/** What the calls of the platform's store, and a probe, say of its health. */
import assert from 'node:assert/strict';
import { describe, test, vi } from 'vitest';
import type { StoreState } from '../../../apps/server/layer-storage/store-kind.ts';
import { watchLayers } from '../../../apps/server/watched-layers.ts';
import { type LayerStore, LayerStoreError, type LayerStoreErrorCode } from '../../../core/ports/layer-store.ts';
import { layerKey } from '../../../core/repository/layer.ts';
import { createMemoryLayerStore } from '../../support/memory/layer-store.ts';

const KEY = layerKey(
  'repositories/0197b2a0-0000-7000-8000-000000000001/layers/0197b2a0-0000-7000-8000-000000000002.tar',
);
const RUNNING = new AbortController().signal;

async function* bytes(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('layer');
}

/** A store in memory whose calls fail with `fails`, if that is set. `found` is what checks of it find, one by one. */
function watchedStore(parts: Partial<LayerStore> = {}, found: StoreState[] = ['whole']) {
  const memory = createMemoryLayerStore();
  const state: { nowMs: number; fails: LayerStoreErrorCode | null } = { nowMs: 0, fails: null };
  const failing = async <Result>(call: () => Promise<Result>): Promise<Result> => {
    if (state.fails !== null) throw new LayerStoreError(state.fails, 'away');
    return call();
  };
  const store: LayerStore = {
    ...memory,
    put: (...put) => failing(() => memory.put(...put)),
    head: (key) => failing(() => memory.head(key)),
    now: () => failing(() => memory.now()),
    ...parts,
  };
  const first = found.shift() ?? 'whole';
  const checked = { store, state: first, check: async () => found.shift() ?? assert.fail('checked again') };
  return { state, ...watchLayers(checked, () => state.nowMs) };
}

describe('The store of layers', () => {
  test('is degraded from a call that it fails until one that works', async () => {
    const { state, store, health } = watchedStore();
    state.fails = 'layer-store-unavailable';
    await assert.rejects(store.head(KEY));
    assert.equal(health.isDegraded(), true);
    state.fails = null;
    assert.equal(await store.head(KEY), null);
    assert.equal(health.isDegraded(), false);
  });

  test('is not degraded because a layer is missing, or because the body of a put broke', async () => {
    const { store, health } = watchedStore();
    await assert.rejects(store.get(KEY), { code: 'layer-not-found' });
    await assert.rejects(store.put(KEY, broken(), 5), /the client left/);
    assert.equal(health.isDegraded(), false);
  });

  test('that is full is degraded until a put works, though it answers all other calls', async () => {
    const { state, store, health, probe } = watchedStore();
    state.fails = 'layer-store-full';
    await assert.rejects(store.put(KEY, bytes(), 5));
    state.fails = null;
    await probe(RUNNING);
    assert.equal(health.isDegraded(), true);
    state.nowMs += 4 * 60_000;
    assert.equal(health.isDegraded(), true);
    assert.equal(await store.put(KEY, bytes(), 5), 'stored');
    assert.equal(health.isDegraded(), false);
  });

  test('is degraded while a probe gets no answer in time, and probes do not add up', async (context) => {
    context.onTestFinished(() => void vi.useRealTimers());
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    let calls = 0;
    const { health, probe } = watchedStore({
      now: () => {
        calls += 1;
        return new Promise(() => undefined);
      },
    });
    for (let round = 0; round < 3; round += 1) {
      const probed = assert.rejects(probe(RUNNING), /no answer in time/);
      vi.advanceTimersByTime(5_000);
      await probed;
    }
    assert.equal(calls, 1);
    assert.equal(health.isDegraded(), true);
  });

  test('that lacks what pushes need is degraded until a check finds it whole, and is not checked after that', async () => {
    const { store, health, checkAgain } = watchedStore({}, ['lacking', 'lacking', 'unknown', 'whole']);
    for (let round = 0; round < 3; round += 1) {
      assert.equal(health.isDegraded(), true);
      assert.equal(await store.put(KEY, bytes(), 5), round === 0 ? 'stored' : 'exists');
      assert.equal(health.isDegraded(), true, 'a small put needs nothing of what it lacks');
      assert.equal(await checkAgain(RUNNING), round === 2);
    }
    assert.equal(health.isDegraded(), false);
    assert.equal(await checkAgain(RUNNING), false);
  });

  test('that gave no answer to its first check is checked again, and is degraded if that finds it lacking', async () => {
    const { health, checkAgain } = watchedStore({}, ['unknown', 'lacking', 'whole']);
    assert.equal(health.isDegraded(), false);
    assert.equal(await checkAgain(RUNNING), false);
    assert.equal(health.isDegraded(), true);
    assert.equal(await checkAgain(RUNNING), true);
    assert.equal(health.isDegraded(), false);
  });

  test('holds up no stop while it does not answer', async () => {
    const { probe } = watchedStore({ now: () => new Promise(() => undefined) });
    const stopping = new AbortController();
    const probed = probe(stopping.signal);
    stopping.abort();
    await probed;
  });

  test('holds up no stop while it is checked', async () => {
    const store = createMemoryLayerStore();
    const endless = { store, state: 'lacking', check: () => new Promise<never>(() => undefined) } as const;
    const { health, checkAgain } = watchLayers(endless, () => 0);
    const stopping = new AbortController();
    const checked = checkAgain(stopping.signal);
    stopping.abort();
    assert.equal(await checked, false);
    assert.equal(health.isDegraded(), true);
  });
});

async function* broken(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('la');
  throw new Error('the client left');
}
