/** Decides the commands of an account's list of repositories. */
import { accept, type Decision, refuse } from '../../kernel/decider.ts';
import type { RepositoryId } from '../../kernel/ids.ts';
import { REPOSITORY_DESCRIPTION_LENGTH_MAX } from '../../kernel/limits.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { codePointCount } from '../../kernel/text.ts';
import { bindRepository, lostPlace } from '../buckets/binding.ts';
import { repositoryNameKey, repositoryNameRefusal } from '../names.ts';
import type { PlanQuotas } from '../plans.ts';
import type { Account, OpenAccount } from '../state.ts';
import type { OwnedRepositoryCommand } from './commands.ts';
import type { OwnedRepositoryEvent } from './events.ts';

type Decided = Decision<OwnedRepositoryEvent>;

export function decideOwnedRepository(account: Account, command: OwnedRepositoryCommand): Decided {
  switch (command.type) {
    case 'CreateRepository':
      return account.status === 'open' ? decideCreate(account, command) : refuse({ code: 'account-not-found' });
    case 'DescribeRepository':
      return account.status === 'open' ? decideDescribe(account, command) : refuse({ code: 'account-not-found' });
    case 'RenameRepository':
      return account.status === 'open' ? decideRename(account, command) : refuse({ code: 'account-not-found' });
    case 'RestoreRepository':
      return account.status === 'open' ? decideRestore(account, command) : refuse({ code: 'account-not-found' });
    case 'DeleteRepository': {
      // A closed account still finishes an interrupted deletion. An erased account deletes all its repositories.
      if (account.status === 'absent' || account.status === 'abandoned') return refuse({ code: 'account-not-found' });
      const repository = account.repositories.get(command.id);
      if (repository === undefined) return refuse({ code: 'repository-not-found' });
      const data = { repository_id: command.id, name: repository.name };
      return accept<OwnedRepositoryEvent>({ type: 'RepositoryDeleted', data });
    }
  }
}

function decideCreate(
  account: OpenAccount,
  command: Extract<OwnedRepositoryCommand, { type: 'CreateRepository' }>,
): Decided {
  const badName = repositoryNameRefusal(command.name);
  if (badName !== null) return refuse(badName);
  const badDescription = descriptionRefusal(command.description);
  if (badDescription !== null) return refuse(badDescription);
  const noRoom = roomRefusal(account, command.name, command.quotas);
  if (noRoom !== null) return refuse(noRoom);
  const bound = bindRepository(account, command.storageBucketId);
  if ('refused' in bound) return bound;
  return accept<OwnedRepositoryEvent>({
    type: 'RepositoryCreated',
    data: {
      repository_id: command.id,
      name: command.name,
      description: command.description,
      default_branch: command.defaultBranch,
      storage_bucket_id: bound.storageBucketId,
    },
  });
}

/** Whether the list takes one more repository, of this name. */
function roomRefusal(account: OpenAccount, name: string, { repos: quota }: PlanQuotas): Refusal | null {
  if (account.repositoryNames.has(repositoryNameKey(name))) return { code: 'repository-name-taken', name };
  return quota !== null && account.repositories.size >= quota ? { code: 'repository-quota-reached', quota } : null;
}

/** Accepts nothing if the repository is in the list: another request restored it. */
function decideRestore(
  account: OpenAccount,
  { deleted, place, quotas }: Extract<OwnedRepositoryCommand, { type: 'RestoreRepository' }>,
): Decided {
  if (account.repositories.has(deleted.id)) return accept<OwnedRepositoryEvent>();
  // First, since no other name and no room helps. The bucket need not be verified: what is in it was there before.
  const lost = lostPlace(account, place);
  if (lost !== null) return refuse({ code: 'repository-place-lost', lost });
  const refused = repositoryNameRefusal(deleted.name) ?? roomRefusal(account, deleted.name, quotas);
  if (refused !== null) return refuse(refused);
  return accept<OwnedRepositoryEvent>({
    type: 'RepositoryRestored',
    data: {
      repository_id: deleted.id,
      name: deleted.name,
      description: deleted.description,
      default_branch: deleted.initialDefaultBranch,
      storage_bucket_id: deleted.storageBucketId,
      created_at: deleted.createdAt,
    },
  });
}

function decideDescribe(
  account: OpenAccount,
  { id, description }: Extract<OwnedRepositoryCommand, { type: 'DescribeRepository' }>,
): Decided {
  const repository = account.repositories.get(id);
  if (repository === undefined) return refuse({ code: 'repository-not-found' });
  const badDescription = descriptionRefusal(description);
  if (badDescription !== null) return refuse(badDescription);
  if (description === repository.description) return accept<OwnedRepositoryEvent>();
  return accept<OwnedRepositoryEvent>({ type: 'RepositoryDescribed', data: { repository_id: id, description } });
}

function decideRename(
  account: OpenAccount,
  { id, name, takesFormerNames }: Extract<OwnedRepositoryCommand, { type: 'RenameRepository' }>,
): Decided {
  const repository = account.repositories.get(id);
  if (repository === undefined) return refuse({ code: 'repository-not-found' });
  // Before the form of the name is judged: clients write back what they read, and its rules were others once.
  if (name === repository.name) return accept<OwnedRepositoryEvent>();
  const badName = repositoryNameRefusal(name);
  if (badName !== null) return refuse(badName);
  const key = repositoryNameKey(name);
  const holder = account.repositoryNames.get(key) ?? (takesFormerNames ? undefined : ledTo(account, key));
  if (holder !== undefined && holder !== id) return refuse({ code: 'repository-name-taken', name });
  const data = { repository_id: id, name, previous_name: repository.name };
  return accept<OwnedRepositoryEvent>({ type: 'RepositoryRenamed', data });
}

/** What led to a deleted repository leads nowhere. */
function ledTo(account: OpenAccount, key: string): RepositoryId | undefined {
  const id = account.formerNames.get(key);
  return id !== undefined && account.repositories.has(id) ? id : undefined;
}

export function descriptionRefusal(description: string | null): Refusal | null {
  const isLong = description !== null && codePointCount(description) > REPOSITORY_DESCRIPTION_LENGTH_MAX;
  return isLong ? { code: 'repository-description-length' } : null;
}
