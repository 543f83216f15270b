/**
 * The layers that a push or a compaction stores before the append that names them. What it stored leaves the store
 * again, before its caller gets an answer, if no append can name it.
 *
 * Must stay true (docs/architecture.md, invariants 2 and 4): a layer stays if an append to the repository's stream was
 * made since it was put, and if the outcome of any append is unknown: after an append that threw, the log may still commit
 * what was sent.
 * A removal takes `NEW_LAYERS_REMOVAL_MS_MAX` at most, and its failure changes nothing for the caller.
 */
import type { StreamName } from '../../kernel/envelope.ts';
import { NEW_LAYERS_REMOVAL_MS_MAX } from '../../kernel/limits.ts';
import type { SettledWithin } from '../../ports/clock.ts';
import type { EventStore } from '../../ports/event-store.ts';
import { type LayerKey, type LayerStore, LayerStoreError, type LayerStoreErrorCode } from '../../ports/layer-store.ts';

export interface NewLayersContext {
  readonly events: Pick<EventStore, 'append'>;
  readonly settledWithin: SettledWithin;
}

export interface NewLayers {
  /** As `LayerStore.put`, for a key that no event names yet. */
  readonly put: (store: LayerStore, ...of: Parameters<LayerStore['put']>) => ReturnType<LayerStore['put']>;
  /** Says that no append from now on names a layer that was put: it leaves even if another one is named. */
  readonly abandon: (key: LayerKey) => void;
  /** As `EventStore.append`. Every append of the work goes through it. */
  readonly append: EventStore['append'];
}

/** After these the bytes may be in the store, though the put failed. */
const OUTCOME_OPEN: ReadonlySet<LayerStoreErrorCode> = new Set(['layer-store-unavailable', 'timed-out', 'unreachable']);

/** Does the work, and then removes what it put unless an append to the stream names it, or may still name it. */
export async function withNewLayers<Result>(
  context: NewLayersContext,
  stream: StreamName,
  work: (layers: NewLayers) => Promise<Result>,
): Promise<Result> {
  const put: { readonly store: LayerStore; readonly key: LayerKey }[] = [];
  const abandoned = new Set<LayerKey>();
  let areNamed = false;
  /** The number of appends that were begun and not answered. */
  let unanswered = 0;
  try {
    return await work({
      put: async (store, key, body, sizeBytes) => {
        try {
          const outcome = await store.put(key, body, sizeBytes);
          if (outcome === 'stored') put.push({ store, key });
          return outcome;
        } catch (error) {
          if (error instanceof LayerStoreError && OUTCOME_OPEN.has(error.code)) put.push({ store, key });
          throw error;
        }
      },
      abandon: (key) => void abandoned.add(key),
      append: async (request) => {
        unanswered += 1;
        const result = await context.events.append(request);
        unanswered -= 1;
        areNamed ||= result.outcome === 'appended' && request.stream === stream;
        return result;
      },
    });
  } finally {
    const leaving = areNamed ? put.filter(({ key }) => abandoned.has(key)) : put;
    if (leaving.length > 0 && unanswered === 0) {
      const removals = leaving.map(async ({ store, key }) => store.delete(key));
      await context.settledWithin(NEW_LAYERS_REMOVAL_MS_MAX, Promise.allSettled(removals));
    }
  }
}
