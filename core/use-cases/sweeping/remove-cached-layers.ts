/**
 * Drops what a node has cached of a repository whose layers went by a purge, an erasure or the end of a deleted
 * repository: nobody may find the objects on its disk afterwards. Of an erased account that is every repository, those
 * in buckets too, whose layers stay their owner's.
 *
 * Invariants: every node runs it. While it follows the log, each such event is met immediately. Where it may have
 * missed events, at the start and after an outage, it looks at the end of the stream of every cached repository
 * instead. A request that read the repository before the event may cache it once more after it, so what was dropped is
 * dropped again.
 */
import { accounts } from '../../account/evolve.ts';
import { readEvent } from '../../kernel/decider.ts';
import { categoryOf, entityIdOf, type RecordedEvent, streamName } from '../../kernel/envelope.ts';
import { type AccountId, type RepositoryId, uuid } from '../../kernel/ids.ts';
import type { CachedRepositories } from '../../ports/cached-repositories.ts';
import type { EventStore } from '../../ports/event-store.ts';
import type { ObjectDatabase } from '../../ports/object-database.ts';
import { type RepositoryEvent, repositoryEventKinds } from '../../repository/events.ts';
import { repositories } from '../../repository/evolve.ts';
import type { Context } from '../../runtime/execute.ts';
import { LogFollower } from '../../runtime/log-follower.ts';
import { repositoriesEver } from '../repositories/all-repositories-created.ts';

export interface CacheDropsContext {
  readonly events: Pick<EventStore, 'head' | 'subscribe' | 'readStream'>;
  readonly entities: Pick<Context['entities'], 'get'>;
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
/** How many times `catchUp` drops a repository again: requests begin to read the objects moments after the refs. */
const DROPPED_AGAIN = 2;

export function createCacheDrops({ events, entities, objects, onFault }: CacheDropsContext): CacheDrops {
  let missed = true;
  /** How many times each is still to be dropped. */
  const again = new Map<RepositoryId, number>();
  const follower = new LogFollower({
    events,
    apply: async (applied) => {
      for (const event of applied) {
        if (letsGo(event)) await drop(uuid<RepositoryId>(entityIdOf(event.stream)));
        if (isErasure(event)) await dropAccount(uuid<AccountId>(entityIdOf(event.stream)));
      }
    },
    forget: () => {
      missed = true;
    },
    onFault: (_what, cause) => onFault(cause),
    gather: async () => undefined,
  });

  async function drop(id: RepositoryId): Promise<void> {
    again.set(id, DROPPED_AGAIN);
    await objects.drop(id);
  }

  async function dropAccount(account: AccountId): Promise<void> {
    const cached = new Set(objects.cached());
    for await (const { id } of repositoriesEver(events, account)) {
      if (cached.has(id)) await drop(id);
      else again.set(id, DROPPED_AGAIN);
    }
  }

  async function dropAgain(): Promise<void> {
    const cached = new Set(objects.cached());
    for (const [id, times] of again) {
      if (times === 1) again.delete(id);
      else again.set(id, times - 1);
      if (cached.has(id)) await objects.drop(id);
    }
  }

  async function dropGone(id: RepositoryId): Promise<void> {
    const stream = streamName(repositories.category, id);
    const last = await events.readStream(stream, { direction: 'backwards', limit: LAST_EVENTS });
    if (last.some(letsGo) || (await isErased(last[0]?.accountId ?? null))) await drop(id);
  }

  async function isErased(account: AccountId | null): Promise<boolean> {
    return account !== null && (await entities.get(accounts, account)).state.status === 'erased';
  }

  return {
    async catchUp(signal) {
      await dropAgain();
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

function isErasure({ type, stream }: RecordedEvent): boolean {
  return type === 'AccountErased' && categoryOf(stream) === accounts.category;
}

/** Whether objects went that no compaction had replaced, or that nobody may read any more. */
function letsGo(recorded: RecordedEvent): boolean {
  if (recorded.type !== 'LayersExpired' || categoryOf(recorded.stream) !== repositories.category) return false;
  const event = readEvent<RepositoryEvent>(repositoryEventKinds, recorded);
  if (event.type !== 'LayersExpired') return false;
  return event.data.reason !== 'retention' || event.data.layers.some(({ current }) => current);
}
