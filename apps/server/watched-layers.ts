/**
 * Watches the platform's store of layers: by a probe in the background, by how the last calls of requests ended, and by
 * checks of what pushes need of it.
 *
 * Invariants: a watched call does what the store does, and ends as the store ends it. A probe that gets no answer does
 * not add up with the next one.
 */
import { untilAborted } from '../../core/kernel/aborted.ts';
import { type LayerStore, LayerStoreError, type LayerStoreErrorCode } from '../../core/ports/layer-store.ts';
import type { CheckedLayers } from './layer-storage/stores.ts';
import { createPartHealth, type PartHealth } from './readiness.ts';

/**
 * How long a refused put counts while none succeeds after it: a store that is full or read only answers every other
 * call, and a quiet service puts rarely. Internal: it is how long the operator sees it.
 */
const PUT_LATELY_MS = 5 * 60_000;
/** The time that a probe has. Internal: it is the pace of background work. */
const PROBE_SPAN_MS = 5_000;

export interface WatchedLayers {
  readonly store: LayerStore;
  readonly health: Pick<PartHealth, 'isDegraded'>;
  /**
   * Asks the store for its time, which each store answers cheaply. Rejects if it does not answer within PROBE_SPAN_MS;
   * resolves when the signal is aborted.
   */
  probe(signal: AbortSignal): Promise<void>;
  /**
   * Checks again what the store was not found to have, and resolves to whether it was lacking and is whole now. Does
   * nothing once it is whole. Resolves when the signal is aborted.
   */
  checkAgain(signal: AbortSignal): Promise<boolean>;
}

/** What the store answers about a single layer says nothing about the store. */
const OF_ONE_LAYER: ReadonlySet<LayerStoreErrorCode> = new Set(['layer-not-found', 'range-not-satisfiable'] as const);

/**
 * `monotonicMs` is a clock that only goes forward. A store that was found to refuse some pushes is degraded until a
 * check finds it whole.
 */
export function watchLayers({ store, ...checked }: CheckedLayers, monotonicMs: () => number): WatchedLayers {
  let { state } = checked;
  const puts = createPartHealth(monotonicMs, PUT_LATELY_MS);
  const calls = createPartHealth(monotonicMs);
  const watch = async <Result>(health: PartHealth, call: Promise<Result>): Promise<Result> => {
    try {
      const result = await call;
      health.works();
      return result;
    } catch (error) {
      if (error instanceof LayerStoreError && !OF_ONE_LAYER.has(error.code)) health.fails();
      throw error;
    }
  };
  let probing: Promise<unknown> | null = null;
  return {
    store: {
      ...store,
      put: (...put) => watch(puts, store.put(...put)),
      get: (...get) => watch(calls, store.get(...get)),
      head: (key) => watch(calls, store.head(key)),
      delete: (key) => watch(calls, store.delete(key)),
      now: () => watch(calls, store.now()),
    },
    health: { isDegraded: () => state === 'lacking' || puts.isDegraded() || calls.isDegraded() },
    async probe(signal) {
      probing ??= watch(calls, store.now()).finally(() => {
        probing = null;
      });
      try {
        await answered(probing, signal);
      } catch (error) {
        calls.fails();
        throw error;
      }
    },
    async checkAgain(signal) {
      if (state === 'whole') return false;
      const before = state;
      const found = await untilAborted(signal, checked.check());
      // A store that does not answer may still lack what it lacked.
      if (found !== null && found !== 'unknown') state = found;
      return before === 'lacking' && state === 'whole';
    },
  };
}

/** Rejects if the answer takes longer than a probe may. */
async function answered(answer: Promise<unknown>, signal: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('The store of layers gave no answer in time')), PROBE_SPAN_MS);
  });
  try {
    await untilAborted(signal, Promise.race([answer, late]));
  } finally {
    clearTimeout(timer);
  }
}
