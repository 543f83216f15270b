/** The repositories that an account ever made, from its stream: a state knows only those that were not deleted. */
import type { AccountEvent } from '../../account/events.ts';
import { accounts } from '../../account/evolve.ts';
import { readEvent } from '../../kernel/decider.ts';
import { streamName } from '../../kernel/envelope.ts';
import { type AccountId, type RepositoryId, uuid } from '../../kernel/ids.ts';
import type { EventStore } from '../../ports/event-store.ts';
import { readForward } from '../../runtime/read-forward.ts';

export interface RepositoryEver {
  readonly id: RepositoryId;
  /** Null: on platform storage. */
  readonly storageBucketId: string | null;
}

/** In the order of their creation. Memory is bounded, whatever their number. */
export async function* repositoriesEver(
  events: Pick<EventStore, 'readStream'>,
  account: AccountId,
): AsyncGenerator<RepositoryEver> {
  const stream = streamName(accounts.category, account);
  for await (const recorded of readForward(events, stream, 0)) {
    const event = readEvent<AccountEvent>(accounts.kinds, recorded);
    if (event.type !== 'RepositoryCreated') continue;
    const { repository_id: id, storage_bucket_id: storageBucketId } = event.data;
    yield { id: uuid<RepositoryId>(id), storageBucketId };
  }
}
