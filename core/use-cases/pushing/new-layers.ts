/**
 * The layers that a push or a compaction stores before the append that names them. What it stored leaves the store
 * again, before its caller gets an answer, if no append can name it.
 *
 * Invariants (docs/architecture.md, invariants 2 and 4):
 * - a layer stays if an append to the repository's stream was made since it was put, and if the outcome of any append
 *   is unknown: after an append that threw, the log may still commit what was sent. Only one that was too late was not
 *   sent;
 * - no append is sent later than `PUSH_COMMIT_SPAN_MS` after the put of a layer that it may name began, however long it
 *   waited for its turn: the log asks right before each sending;
 * - a removal takes `NEW_LAYERS_REMOVAL_MS_MAX` at most, and its failure changes nothing for the caller.
 */
import type { StreamName } from '../../kernel/envelope.ts';
import { plusMs } from '../../kernel/ids.ts';
import { PUSH_COMMIT_SPAN_MS } from '../../kernel/limits.ts';
import type { Clock, SettledWithin } from '../../ports/clock.ts';
import { type EventStore, EventStoreError } from '../../ports/event-store.ts';
import { type LayerStore, LayerStoreError, type LayerStoreErrorCode } from '../../ports/layer-store.ts';
import type { LayerKey } from '../../repository/layer.ts';

/**
 * How long a push or a compaction that appended nothing takes at most to remove the layers that it stored. Internal:
 * the sweep removes later what is left.
 */
export const NEW_LAYERS_REMOVAL_MS_MAX = 5_000;

export interface NewLayersContext {
  readonly clock: Clock;
  readonly events: Pick<EventStore, 'append'>;
  readonly settledWithin: SettledWithin;
}

export interface NewLayers {
  /** Does what `LayerStore.put` does, for a key that no event names yet. */
  readonly put: (store: LayerStore, ...of: Parameters<LayerStore['put']>) => ReturnType<LayerStore['put']>;
  /** Says that no append from now on names a layer that was put: it leaves even if another one is named. */
  readonly abandon: (key: LayerKey) => void;
  /**
   * Does what `EventStore.append` does, with the deadline of the layers that were put. Every append of the work goes
   * through it.
   */
  readonly append: EventStore['append'];
}

/** After these the bytes may be in the store, though the put failed. */
const OUTCOME_OPEN: ReadonlySet<LayerStoreErrorCode> = new Set(['layer-store-unavailable', 'timed-out', 'unreachable']);

/**
 * Returns whether so much time has passed since this call that a layer whose put begins now may soon be removed. Both
 * clocks are checked: the monotonic clock stops while the machine sleeps, and the other may be set back.
 */
export function commitSpan(clock: Clock): () => boolean {
  const [at, monotonicMs] = [clock.now(), clock.monotonicMs()];
  return () => clock.monotonicMs() - monotonicMs > PUSH_COMMIT_SPAN_MS || clock.now() > plusMs(at, PUSH_COMMIT_SPAN_MS);
}

/** Whether an append was not sent, since it had waited for longer than its layers may. */
export function wasTooLate(error: unknown): boolean {
  return error instanceof EventStoreError && error.code === 'append-too-late';
}

interface Put {
  readonly store: LayerStore;
  readonly key: LayerKey;
  readonly hasPassed: () => boolean;
}

/** Does the work, and then removes what it put unless an append to the stream names it, or may still name it. */
export async function withNewLayers<Result>(
  context: NewLayersContext,
  stream: StreamName,
  work: (layers: NewLayers) => Promise<Result>,
): Promise<Result> {
  const put: Put[] = [];
  const abandoned = new Set<LayerKey>();
  let areNamed = false;
  /** The number of appends that were begun and not answered. */
  let unanswered = 0;
  try {
    return await work({
      put: async (store, key, body, sizeBytes) => {
        const hasPassed = commitSpan(context.clock);
        try {
          const outcome = await store.put(key, body, sizeBytes);
          if (outcome === 'stored') put.push({ store, key, hasPassed });
          return outcome;
        } catch (error) {
          if (error instanceof LayerStoreError && OUTCOME_OPEN.has(error.code)) put.push({ store, key, hasPassed });
          throw error;
        }
      },
      abandon: (key) => void abandoned.add(key),
      append: async (request) => {
        unanswered += 1;
        const isTooLate = () => put.some(({ key, hasPassed }) => !abandoned.has(key) && hasPassed());
        const result = await context.events.append({ ...request, isTooLate }).catch((error: unknown) => {
          if (wasTooLate(error)) unanswered -= 1;
          throw error;
        });
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
