/**
 * Says why a repository that an account had at a moment cannot be shown as of it, because the account has none of that
 * name now: it is deleted, has left storage, or came back under another name.
 *
 * Invariants: the caller owns the account, and may read all of its history. A deleted repository is shown by nothing
 * but this: undeleting it brings its past back as well.
 */
import { lostPlace } from '../../account/buckets/binding.ts';
import { accounts } from '../../account/evolve.ts';
import { repositoryNameKey } from '../../account/names.ts';
import type { Moment } from '../../audit/moment.ts';
import { categoryOf, entityIdOf, type LogPosition, streamName } from '../../kernel/envelope.ts';
import { type AccountId, type EventId, type RepositoryId, uuid } from '../../kernel/ids.ts';
import type { LostPlace } from '../../kernel/refusal.ts';
import type { AccountLogReader } from '../../ports/account-log.ts';
import { repositories } from '../../repository/evolve.ts';
import { type DeletionsContext, findDeletion } from '../repositories/deletions.ts';
import { lastExpiry, listDeletedRepositories } from '../repositories/list-deleted-repositories.ts';
import { type LogAsOfContext, logAsOf } from './as-of.ts';

export type AbsenceDenial =
  | { readonly code: 'moment-in-future' }
  | { readonly code: 'repository-deleted-then' }
  /** Its layers have left storage, by this event. */
  | { readonly code: 'objects-expired'; readonly event: EventId | null }
  /** `lost` is why it cannot be undeleted; null if it can. */
  | { readonly code: 'repository-deleted-now'; readonly id: RepositoryId; readonly lost: LostPlace | null }
  | { readonly code: 'repository-renamed'; readonly name: string };

export type DeletedAsOfContext = LogAsOfContext &
  DeletionsContext & { readonly readModels: Pick<AccountLogReader, 'entryPlaceOf'> };

/** Returns null if the account had no repository of that name then, and none that was deleted since. */
export async function absenceAt(
  context: DeletedAsOfContext,
  { account, name }: { readonly account: AccountId; readonly name: string },
  moment: Moment,
  seen: LogPosition,
): Promise<AbsenceDenial | null> {
  if ('event' in moment) {
    await context.readModels.accountLogCaughtUp(seen);
    const place = await context.readModels.entryPlaceOf(account, moment.event);
    if (place === null || categoryOf(place.stream) !== repositories.category) return null;
    const id = uuid<RepositoryId>(entityIdOf(place.stream));
    const deleted = await findDeletion(context, account, id);
    if (deleted === null || repositoryNameKey(deleted.owned.name) !== repositoryNameKey(name)) return null;
    return denialOf(context, { account, name }, id);
  }
  const prefix = await logAsOf(context, account, moment.at, seen);
  if ('refused' in prefix) return { code: 'moment-in-future' };
  const then = await context.past.accountAt(account, prefix.position);
  const id = 'repositoryNames' in then ? then.repositoryNames.get(repositoryNameKey(name)) : undefined;
  if (id !== undefined) return denialOf(context, { account, name }, id);
  const listed = await listDeletedRepositories(context, account);
  const named = listed.find((one) => repositoryNameKey(one.name) === repositoryNameKey(name));
  if (named === undefined) return null;
  // It may have had another name then.
  if (moment.at < named.deletedAt) return { code: 'repository-deleted-now', id: named.id, lost: named.lost };
  return { code: 'repository-deleted-then' };
}

async function denialOf(
  context: DeletedAsOfContext,
  { account, name }: { readonly account: AccountId; readonly name: string },
  id: RepositoryId,
): Promise<AbsenceDenial | null> {
  const { state: owner } = await context.entities.get(accounts, account);
  const listed = owner.status === 'open' ? owner.repositories.get(id) : undefined;
  if (listed !== undefined) {
    // Under the same name only while a deletion or an undeletion is under way.
    const isSame = repositoryNameKey(listed.name) === repositoryNameKey(name);
    return isSame ? null : { code: 'repository-renamed', name: listed.name };
  }
  const { state } = await context.entities.get(repositories, id);
  if (state.status !== 'closed') return null;
  if (!state.expired) {
    const deletion = await findDeletion(context, account, id);
    const lost = deletion === null ? null : lostPlace(owner, deletion.place);
    return { code: 'repository-deleted-now', id, lost };
  }
  const event = await lastExpiry(context, streamName(repositories.category, id));
  return { code: 'objects-expired', event };
}
