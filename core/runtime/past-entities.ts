/**
 * Entities as they were at an earlier place of the log: for policies that process the log behind its head, and for
 * reads of the past.
 *
 * Invariants: an answer is the fold of exactly the events up to that place, without any later event. A snapshot is
 * used only if the log holds the event that it ends with. Memory is bounded. A policy that moves forwards through one
 * repository's stream folds each of its events once.
 */
import { accounts } from '../account/evolve.ts';
import type { Account } from '../account/state.ts';
import type { Decider } from '../kernel/decider.ts';
import { type LogPosition, type RecordedEvent, type StreamName, streamName } from '../kernel/envelope.ts';
import type { AccountId, RepositoryId } from '../kernel/ids.ts';
import { type OwnSize, ownSize, showCache } from '../kernel/shown-caches.ts';
import { repositories } from '../repository/evolve.ts';
import type { Repository } from '../repository/state.ts';
import type { Entities } from './entities.ts';
import { type AnyEvent, advance, type Entity, emptyEntity, nextRevision } from './entity.ts';
import { latestSnapshot, type ReadingOptions } from './read-entity.ts';

export interface PastEntities {
  /**
   * Returns the account, folded from its own stream's events up to the position: it holds the account's repositories
   * and webhooks with their names. It holds neither refs nor tokens, which have other streams. The position must not be
   * beyond the log's head. Finds the revision by binary search, one event a step, then reads at most one snapshot and
   * the events after it: so the age of the position does not matter. `placeAsOf` (log-time.ts) turns a time into a
   * position.
   */
  accountAt(id: AccountId, position: LogPosition): Promise<Account>;
  /** Returns the repository, folded from its stream's events up to the revision. */
  repositoryAt(id: RepositoryId, revision: number): Promise<Entity<Repository>>;
  /**
   * Returns the repository, folded from its stream's events up to the position, found as in `accountAt`. Its revision
   * is `none` if it had no event then.
   */
  repositoryAsOf(id: RepositoryId, position: LogPosition): Promise<Entity<Repository>>;
}

export type PastEntitiesOptions = ReadingOptions & { readonly entities: Entities };

/** Events that are read together. Internal: the rest is read in further pages. */
const PAGE_EVENTS_MAX = 100;
/**
 * The memory for past repositories that are kept to fold on from; the newest stays even if it alone is larger.
 * Internal: what is not kept is folded again.
 */
const KEPT_SIZE_BYTES_MAX = 16 * 1024 * 1024;

export function createPastEntities(options: PastEntitiesOptions): PastEntities {
  const kept = new Map<RepositoryId, Entity<Repository>>();
  const size: OwnSize = { taken: 0, max: KEPT_SIZE_BYTES_MAX };
  const looks = showCache('past_folds', 'memory', size, ownSize);

  function keep(id: RepositoryId, entity: Entity<Repository>): void {
    kept.delete(id);
    kept.set(id, entity);
    let sizeBytes = 0;
    size.taken = 0;
    for (const [other, { state }] of [...kept].toReversed()) {
      const itsBytes = repositories.sizeBytes(state);
      sizeBytes += itsBytes;
      if (sizeBytes > KEPT_SIZE_BYTES_MAX && other !== id) kept.delete(other);
      else size.taken += itsBytes;
    }
  }

  async function entityAsOf<State, Event extends AnyEvent>(
    decider: Decider<State, Event>,
    id: string,
    position: LogPosition,
  ): Promise<Entity<State>> {
    // Now the entities in memory are at least as new as the position, since the position is not beyond the head.
    await options.entities.barrier();
    const current = await options.entities.get(decider, id);
    if (current.position <= position) return current;
    const stream = streamName(decider.category, id);
    const last = await revisionAt(options.events, stream, nextRevision(current.revision), position);
    const start = last === null ? null : await provenStart(options, decider, stream, last);
    return foldWhile(options, decider, start ?? emptyEntity(decider, stream), (event) => event.position <= position);
  }

  return {
    accountAt: async (id, position) => (await entityAsOf(accounts, id, position)).state,
    async repositoryAt(id, revision) {
      const current = await options.entities.get(repositories, id);
      if (current.revision === revision) return current;
      const stream = streamName(repositories.category, id);
      const known = kept.get(id);
      const isUsable = known !== undefined && known.revision !== 'none' && known.revision <= revision;
      if (isUsable) looks.hits += 1;
      else looks.misses += 1;
      const start = isUsable
        ? known
        : ((await provenStart(options, repositories, stream, revision)) ?? emptyEntity(repositories, stream));
      const entity = await foldWhile(options, repositories, start, (event) => event.revision <= revision);
      keep(id, entity);
      return entity;
    },
    // Not kept: a reader of the past must not drop what a policy folds on from.
    repositoryAsOf: (id, position) => entityAsOf(repositories, id, position),
  };
}

/**
 * Returns the stream's last revision at or before the position. Null if there is none, or if the stream is so short
 * that a snapshot would save nothing. `beyond` is a revision whose event is after the position.
 */
async function revisionAt(
  events: ReadingOptions['events'],
  stream: StreamName,
  beyond: number,
  position: LogPosition,
): Promise<number | null> {
  if (beyond <= PAGE_EVENTS_MAX) return null;
  let [low, high] = [-1, beyond];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    const [event] = await events.readStream(stream, { direction: 'forwards', from: middle, limit: 1 });
    if (event !== undefined && event.position <= position) low = middle;
    else high = middle;
  }
  return low < 0 ? null : low;
}

/** Returns the newest snapshot at or before the revision, or null unless the log holds the event that it ends with. */
async function provenStart<State, Event extends AnyEvent>(
  options: PastEntitiesOptions,
  decider: Decider<State, Event>,
  stream: StreamName,
  revision: number,
): Promise<Entity<State> | null> {
  const start = await latestSnapshot(options, decider, stream, revision);
  if (start === null || start.revision === 'none') return null;
  const [last] = await options.events.readStream(stream, { direction: 'forwards', from: start.revision, limit: 1 });
  if (last === undefined || last.id !== start.lastEventId) return null;
  return { ...start, position: last.position, lastAt: last.occurredAt };
}

/** Folds the events after `start` until the first that is not wanted. */
async function foldWhile<State, Event extends AnyEvent>(
  { events, complete }: Pick<ReadingOptions, 'events' | 'complete'>,
  decider: Decider<State, Event>,
  start: Entity<State>,
  isWanted: (event: RecordedEvent) => boolean,
): Promise<Entity<State>> {
  let entity = start;
  for (;;) {
    const from: number = entity.revision === 'none' ? 0 : entity.revision + 1;
    const page = await events.readStream(start.stream, { direction: 'forwards', from, limit: PAGE_EVENTS_MAX });
    for (const event of page) {
      if (!isWanted(event)) return entity;
      entity = advance(decider, entity, await complete(event));
    }
    if (page.length < PAGE_EVENTS_MAX) return entity;
  }
}
