/**
 * Asks for compactions behind pushes.
 *
 * Invariants: no push waits for it, and a push of a repository that was asked for a moment ago costs nothing. A request
 * that failed, or is lost with the process, is made again by the next push. A row may be served before its time, while
 * pushes still ask for nothing: so the step looks again `COMPACTION_IDLE_MS` after each change that it made, which is
 * no less than this remembers a request.
 */
import { plusMs, type RepositoryId } from '../../kernel/ids.ts';
import type { Background } from '../../ports/background.ts';
import type { Clock } from '../../ports/clock.ts';
import type { LayerCompactions } from '../../ports/layer-compactions.ts';
import { compactionWantedInMs } from '../../repository/compaction.ts';
import type { PushedLayer } from '../pushing/push-refs.ts';

/** A node asks for a repository's compaction at most this often. Internal: compactions change no answer. */
export const COMPACTION_ASKED_AGAIN_MS = 2_000;

export interface CompactionRequestsContext {
  readonly compactions: Pick<LayerCompactions, 'want'>;
  readonly background: Background;
  readonly clock: Pick<Clock, 'now' | 'monotonicMs'>;
}

/**
 * Repositories remembered; the oldest request is forgotten first, which costs one more statement. Internal: the
 * compaction of a forgotten repository is requested again.
 */
const ASKED_MAX = 10_000;

export function createCompactionRequests(context: CompactionRequestsContext): (pushed: PushedLayer) => void {
  const { compactions, background, clock } = context;
  /** Until when a repository is not asked for again, and in how many milliseconds its compaction was wanted then. */
  const asked = new Map<RepositoryId, { readonly until: number; readonly inMs: number }>();
  return ({ account, repository, layers }) => {
    const inMs = compactionWantedInMs(layers);
    if (inMs === null) return;
    const now = clock.monotonicMs();
    const before = asked.get(repository);
    // Where it was wanted immediately and is not any more, it was made: the next time it is wanted so is another one.
    if (before?.inMs === inMs && now < before.until) return;
    asked.delete(repository);
    const [oldest] = asked.keys();
    if (asked.size >= ASKED_MAX && oldest !== undefined) asked.delete(oldest);
    asked.set(repository, { until: now + Math.max(inMs, COMPACTION_ASKED_AGAIN_MS), inMs });
    background.run('compaction-request', async () => {
      try {
        await compactions.want({ account, repository }, plusMs(clock.now(), inMs));
      } catch (error) {
        asked.delete(repository);
        throw error;
      }
    });
  };
}
