/** The repositories that an account ever made, from its stream: a state knows only those that were not deleted. */
import type { AccountEvent } from '../../account/events.ts';
import { accounts } from '../../account/evolve.ts';
import { readEvent } from '../../kernel/decider.ts';
import { streamName } from '../../kernel/envelope.ts';
import { type AccountId, type RepositoryId, uuid } from '../../kernel/ids.ts';
import type { EventStore } from '../../ports/event-store.ts';

export interface RepositoryEver {
  readonly id: RepositoryId;
  /** Null: on platform storage. */
  readonly storageBucketId: string | null;
}

/** Events that are read together. Internal: the rest is read in further pages. */
const PAGE_EVENTS_MAX = 100;

/** In the order of their creation. Memory is bounded, whatever their number. */
export async function* repositoriesEver(
  events: Pick<EventStore, 'readStream'>,
  account: AccountId,
): AsyncGenerator<RepositoryEver> {
  const stream = streamName(accounts.category, account);
  for (let from = 0; ; ) {
    const page = await events.readStream(stream, { direction: 'forwards', from, limit: PAGE_EVENTS_MAX });
    for (const recorded of page) {
      const event = readEvent<AccountEvent>(accounts.kinds, recorded);
      if (event.type !== 'RepositoryCreated') continue;
      const { repository_id: id, storage_bucket_id: storageBucketId } = event.data;
      yield { id: uuid<RepositoryId>(id), storageBucketId };
    }
    if (page.length < PAGE_EVENTS_MAX) return;
    from += page.length;
  }
}
