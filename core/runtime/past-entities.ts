/**
 * Entities as they stood at an earlier place of the log, for policies that follow behind it.
 *
 * Must stay true: what is answered is the fold of exactly the events up to that place, whatever came since; memory is
 * bounded, and a policy that goes forwards through one stream folds each of its events once.
 */
import type { Decider } from '../kernel/decider.ts';
import { type LogPosition, type RecordedEvent, streamName } from '../kernel/envelope.ts';
import type { Account } from '../account/state.ts';
import { accounts } from '../account/evolve.ts';
import type { AccountId, RepositoryId } from '../kernel/ids.ts';
import { repositories } from '../repository/evolve.ts';
import type { Repository } from '../repository/state.ts';
import type { Entities } from './entities.ts';
import { type AnyEvent, advance, type Entity, unborn } from './entity.ts';
import { latestSnapshot, type ReadingOptions } from './read-entity.ts';

export interface PastEntities {
  /** The account with its events up to the position. */
  accountAt(id: AccountId, position: LogPosition): Promise<Account>;
  /** The repository with its events up to the revision. */
  repositoryAt(id: RepositoryId, revision: number): Promise<Entity<Repository>>;
}

export type PastEntitiesOptions = ReadingOptions & { readonly entities: Entities };

const PAGE_EVENTS_MAX = 100;
/** Repositories kept where they were read to; the one in use stays even if it alone is too large. */
const KEPT_SIZE_BYTES_MAX = 16 * 1024 * 1024;

export function createPastEntities(options: PastEntitiesOptions): PastEntities {
  const kept = new Map<RepositoryId, Entity<Repository>>();

  function keep(id: RepositoryId, entity: Entity<Repository>): void {
    kept.delete(id);
    kept.set(id, entity);
    let sizeBytes = 0;
    for (const [other, { state }] of [...kept].toReversed()) {
      sizeBytes += repositories.sizeBytes(state);
      if (sizeBytes > KEPT_SIZE_BYTES_MAX && other !== id) kept.delete(other);
    }
  }

  return {
    async accountAt(id, position) {
      // From here on memory holds no less than the events up to the position, which the caller has seen.
      await options.entities.barrier();
      const current = await options.entities.get(accounts, id);
      if (current.position <= position) return current.state;
      const start = unborn(accounts, streamName(accounts.category, id));
      return (await foldWhile(options, accounts, start, (event) => event.position <= position)).state;
    },
    async repositoryAt(id, revision) {
      const current = await options.entities.get(repositories, id);
      if (current.revision === revision) return current;
      const stream = streamName(repositories.category, id);
      const known = kept.get(id);
      const start =
        known !== undefined && known.revision !== 'none' && known.revision <= revision
          ? known
          : ((await latestSnapshot(options, repositories, stream, revision)) ?? unborn(repositories, stream));
      const entity = await foldWhile(options, repositories, start, (event) => event.revision <= revision);
      keep(id, entity);
      return entity;
    },
  };
}

/** Folds on from the start as long as events are wanted. */
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
