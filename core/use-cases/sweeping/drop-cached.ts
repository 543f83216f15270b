/**
 * Drops what a node has cached of a repository whose layers went by a purge, an erasure or the end of a deleted
 * repository: nobody may find the objects on its disk afterwards.
 *
 * Must stay true: every node runs it. While it follows the log, each such event is met at once. Where it may have missed
 * events, at the start and after an outage, it looks at the end of the stream of every cached repository instead.
 */
import { readEvent } from '../../kernel/decider.ts';
import { categoryOf, entityIdOf, type RecordedEvent, streamName } from '../../kernel/envelope.ts';
import { type RepositoryId, uuid } from '../../kernel/ids.ts';
import type { CachedRepositories } from '../../ports/cached-repositories.ts';
import type { EventStore } from '../../ports/event-store.ts';
import type { ObjectDatabase } from '../../ports/object-database.ts';
import { type RepositoryEvent, repositoryEventKinds } from '../../repository/events.ts';
import { repositories } from '../../repository/evolve.ts';
import { LogFollower } from '../../runtime/log-follower.ts';

export interface CacheDropsContext {
  readonly events: Pick<EventStore, 'head' | 'subscribe' | 'readStream'>;
  readonly objects: Pick<ObjectDatabase, 'drop'> & CachedRepositories;
  readonly onFault: (cause: unknown) => void;
}

export interface CacheDrops {
  /** Follows the log, and makes up for what was missed. Call it at the start and at intervals. */
  catchUp(signal: { readonly aborted: boolean }): Promise<void>;
  close(): Promise<void>;
}

/** The expiries of replaced layers may stand behind the event that is looked for. */
const LAST_EVENTS = 100;

export function createCacheDrops({ events, objects, onFault }: CacheDropsContext): CacheDrops {
  let missed = true;
  const follower = new LogFollower({
    events,
    apply: async (applied) => {
      for (const event of applied) if (letsGo(event)) await objects.drop(uuid<RepositoryId>(entityIdOf(event.stream)));
    },
    forget: () => {
      missed = true;
    },
    onFault: (_what, cause) => onFault(cause),
    gather: async () => undefined,
  });

  async function dropGone(id: RepositoryId): Promise<void> {
    const stream = streamName(repositories.category, id);
    const last = await events.readStream(stream, { direction: 'backwards', limit: LAST_EVENTS });
    if (last.some(letsGo)) await objects.drop(id);
  }

  return {
    async catchUp(signal) {
      await follower.barrier();
      if (!missed) return;
      missed = false;
      try {
        for (const id of objects.cached()) {
          if (signal.aborted) return;
          await dropGone(id);
        }
      } catch (error) {
        missed = true;
        throw error;
      }
    },
    close: () => follower.close(),
  };
}

/** Whether objects went that no compaction had replaced, or that nobody may read any more. */
function letsGo(recorded: RecordedEvent): boolean {
  if (recorded.type !== 'LayersExpired' || categoryOf(recorded.stream) !== repositories.category) return false;
  const event = readEvent<RepositoryEvent>(repositoryEventKinds, recorded);
  if (event.type !== 'LayersExpired') return false;
  return event.data.reason !== 'retention' || event.data.layers.some(({ current }) => current);
}
