/** Which layers a push or a compaction removes again: those that no append names, nor may still name. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'vitest';
import { settledWithin } from '../../../../adapters/node/pause.ts';
import { type StreamName, streamName } from '../../../../core/kernel/envelope.ts';
import { PUSH_COMMIT_SPAN_MS } from '../../../../core/kernel/limits.ts';
import { type EventStore, EventStoreError } from '../../../../core/ports/event-store.ts';
import { type LayerStore, LayerStoreError } from '../../../../core/ports/layer-store.ts';
import { layerKey } from '../../../../core/repository/layer.ts';
import {
  NEW_LAYERS_REMOVAL_MS_MAX,
  type NewLayers,
  withNewLayers,
} from '../../../../core/use-cases/pushing/new-layers.ts';
import { newEvent } from '../../../support/events.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { createMemoryLayerStore } from '../../../support/memory/layer-store.ts';
import { createTestClock } from '../../../support/test-clock.ts';

const STREAM = streamName('repository', randomUUID());
const OTHER = streamName('refUpdates', randomUUID());

async function* oneByte(): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(1);
}

type Work = (
  layers: NewLayers,
  put: () => Promise<unknown>,
  append: (stream: StreamName) => Promise<unknown>,
) => Promise<unknown>;

function setup({
  store = createMemoryLayerStore(),
  append = createMemoryEventStore().append,
}: {
  readonly store?: LayerStore;
  readonly append?: EventStore['append'];
} = {}) {
  const clock = createTestClock();
  return {
    store,
    clock,
    run: (work: Work) =>
      withNewLayers({ clock, events: { append }, settledWithin }, STREAM, (layers) =>
        work(
          layers,
          () => layers.put(store, layerKey(`a/${randomUUID()}.tar`), oneByte(), 1),
          (stream) => layers.append({ stream, expected: 'none', events: [newEvent()] }),
        ),
      ),
    stored: async () => (await Array.fromAsync(store.list(''))).length,
  };
}

describe('Work that stores layers', () => {
  test('keeps them after its append, whatever it does then', async () => {
    const s = setup();
    await assert.rejects(
      s.run(async (_layers, put, append) => {
        await put();
        await append(STREAM);
        throw new Error('after it');
      }),
      /after it/,
    );
    assert.equal(await s.stored(), 1);
  });

  test('removes all of them if it ends or throws before an append, or after a conflict that was answered', async () => {
    const s = setup();
    await s.run(async (_layers, put) => [await put(), await put()]);
    assert.equal(await s.stored(), 0);
    await assert.rejects(
      s.run(async (_layers, put) => {
        await put();
        throw new Error('aborted');
      }),
      /aborted/,
    );
    assert.equal(await s.stored(), 0);
    await s.run(async (_layers, _put, append) => append(STREAM));
    const conflict = await s.run(async (_layers, put, append) => [await put(), await append(STREAM)]);
    assert.partialDeepStrictEqual(conflict, ['stored', { outcome: 'conflict' }]);
    assert.equal(await s.stored(), 0);
  });

  test('removes them if only another stream was appended to, which names no layer', async () => {
    const s = setup();
    await s.run(async (_layers, put, append) => [await append(OTHER), await put()]);
    assert.equal(await s.stored(), 0);
  });

  for (const code of ['append-outcome-unknown', 'log-unavailable'] as const) {
    test(`keeps them after an append that threw ${code}, though a later one conflicts`, async () => {
      const events = createMemoryEventStore();
      let appends = 0;
      const s = setup({
        append: async (request) => {
          appends += 1;
          if (appends === 2) throw new EventStoreError(code, 'no answer');
          return events.append(request);
        },
      });
      await s.run(async (_layers, put, append) => {
        await put();
        await append(OTHER);
        await assert.rejects(append(STREAM), { code });
        await append(OTHER);
      });
      assert.equal(await s.stored(), 1);
    });
  }

  test('removes them after an append that came too late for the first of them', async () => {
    const s = setup();
    const work = s.run(async (_layers, put, append) => {
      await put();
      s.clock.advance(PUSH_COMMIT_SPAN_MS);
      await put();
      s.clock.advance(1);
      await append(STREAM);
    });
    await assert.rejects(work, { code: 'append-too-late' });
    assert.equal(await s.stored(), 0);
  });

  test('has the hour of the last one if it abandoned those before', async () => {
    const s = setup();
    const first = layerKey('a/first.tar');
    await s.run(async (layers, put, append) => {
      await layers.put(s.store, first, oneByte(), 1);
      s.clock.advance(PUSH_COMMIT_SPAN_MS);
      layers.abandon(first);
      await put();
      s.clock.advance(PUSH_COMMIT_SPAN_MS);
      await append(STREAM);
    });
    assert.equal(await s.stored(), 1);
  });

  test('removes one that another one has replaced, whose append it does', async () => {
    const s = setup();
    const [first, second] = [layerKey('a/first.tar'), layerKey('a/second.tar')];
    await s.run(async (layers, _put, append) => {
      await layers.put(s.store, first, oneByte(), 1);
      layers.abandon(first);
      await layers.put(s.store, second, oneByte(), 1);
      await append(STREAM);
    });
    assert.deepEqual(
      (await Array.fromAsync(s.store.list(''))).map(({ key }) => key),
      [second],
    );
  });

  test('keeps a layer that others stored under its key', async () => {
    const s = setup();
    await s.store.put(layerKey('a/b.tar'), oneByte(), 1);
    await s.run((layers) => layers.put(s.store, layerKey('a/b.tar'), oneByte(), 1));
    assert.equal(await s.stored(), 1);
  });

  test('removes what a put may have stored though its answer was lost', async () => {
    const memory = createMemoryLayerStore();
    const put: LayerStore['put'] = async (...given) => {
      await memory.put(...given);
      throw new LayerStoreError('timed-out', 'no answer');
    };
    const s = setup({ store: { ...memory, put } });
    await assert.rejects(
      s.run((_layers, store) => store()),
      { code: 'timed-out' },
    );
    assert.equal(await s.stored(), 0);
  });

  test('answers as it would when the store refuses to remove a layer, or never answers, five seconds later', async () => {
    for (const [remove, atLeastMs] of [
      [() => Promise.reject(new LayerStoreError('unreachable', 'gone')), 0],
      [() => new Promise<never>(() => undefined), NEW_LAYERS_REMOVAL_MS_MAX - 50],
    ] as const) {
      const s = setup({ store: { ...createMemoryLayerStore(), delete: remove } });
      const began = performance.now();
      assert.deepEqual(await s.run(async (_layers, put) => [await put(), 'refused']), ['stored', 'refused']);
      const tookMs = performance.now() - began;
      assert.ok(tookMs >= atLeastMs && tookMs < NEW_LAYERS_REMOVAL_MS_MAX + 1_000, `${tookMs} ms`);
    }
  });
});
