/** Decides the commands of an account's list of repositories. */
import { accept, type Decision, refuse } from '../../kernel/decider.ts';
import { REPOSITORY_DESCRIPTION_LENGTH_MAX } from '../../kernel/limits.ts';
import { codePointCount } from '../../kernel/text.ts';
import { bindRepository } from '../buckets/binding.ts';
import { repositoryNameKey, repositoryNameRefusal } from '../names.ts';
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
  if (tooLong(command.description)) return refuse({ code: 'repository-description-length' });
  if (account.repositoryNames.has(repositoryNameKey(command.name))) {
    return refuse({ code: 'repository-name-taken', name: command.name });
  }
  const quota = command.quotas.repos;
  if (quota !== null && account.repositories.size >= quota) return refuse({ code: 'repository-quota-reached', quota });
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

function decideDescribe(
  account: OpenAccount,
  { id, description }: Extract<OwnedRepositoryCommand, { type: 'DescribeRepository' }>,
): Decided {
  const repository = account.repositories.get(id);
  if (repository === undefined) return refuse({ code: 'repository-not-found' });
  if (tooLong(description)) return refuse({ code: 'repository-description-length' });
  if (description === repository.description) return accept<OwnedRepositoryEvent>();
  return accept<OwnedRepositoryEvent>({ type: 'RepositoryDescribed', data: { repository_id: id, description } });
}

function tooLong(description: string | null): boolean {
  return description !== null && codePointCount(description) > REPOSITORY_DESCRIPTION_LENGTH_MAX;
}
