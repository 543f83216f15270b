/**
 * The part of a compaction's step that drops what no ref reaches.
 *
 * Invariants: after a drop that failed the repository is tried again after hours, whatever the engine starts.
 */
import { plusMs, type RepositoryId, type Timestamp } from '../../core/kernel/ids.ts';
import type { WantedCompaction } from '../../core/ports/layer-compactions.ts';
import type { Log } from '../../core/ports/log.ts';
import { type DroppingContext, dropUnreached } from '../../core/use-cases/compacting/drop-unreached.ts';
import { DROPPING_RETRY_MS } from './limits.ts';

/**
 * When a compaction that drops objects is tried again if webhooks were not notified yet of what it would drop.
 * Internal: it is the pace of background work.
 */
export const DROPPING_WAIT_MS = 60_000;

export interface DropsContext extends DroppingContext {
  readonly log: Log;
}

/**
 * Repositories remembered whose objects could not be dropped; the oldest is forgotten first, and tried earlier.
 * Internal: a forgotten repository is tried earlier.
 */
const POSTPONED_MAX = 1_000;

export interface DropResult {
  /** Whether the layers were replaced. */
  readonly dropped: boolean;
  /** When it is to be tried again; null if that is not needed. */
  readonly againAt: Timestamp | null;
}

/** Returns a function that drops what is due. */
export function createDrops(context: DropsContext) {
  const { clock, log } = context;
  const postponed = new Map<RepositoryId, Timestamp>();
  // Each try may read and write the whole repository.
  const postpone = (repository: RepositoryId, spanMs = DROPPING_RETRY_MS): Timestamp => {
    const againAt = plusMs(clock.now(), spanMs);
    const [oldest] = postponed.keys();
    if (postponed.size >= POSTPONED_MAX && oldest !== undefined) postponed.delete(oldest);
    postponed.set(repository, againAt);
    return againAt;
  };
  return async (wanted: WantedCompaction, signal: AbortSignal): Promise<DropResult> => {
    const { repository } = wanted;
    const until = postponed.get(repository);
    if (until !== undefined && clock.now() < until) return { dropped: false, againAt: until };
    postponed.delete(repository);
    try {
      const outcome = await dropUnreached(context, wanted, signal);
      if (outcome === 'waits') return { dropped: false, againAt: postpone(repository, DROPPING_WAIT_MS) };
      if (outcome !== 'lost') return { dropped: outcome === 'dropped', againAt: null };
      log.warn({ repository }, 'What no ref reaches was not dropped: pushes or another compaction were faster');
      return { dropped: false, againAt: postpone(repository) };
    } catch (error) {
      const againAt = postpone(repository);
      // The engine stops, or its time for a step is over.
      if (signal.aborted) throw error;
      log.warn({ err: error, repository }, 'What no ref reaches could not be dropped');
      return { dropped: false, againAt };
    }
  };
}
