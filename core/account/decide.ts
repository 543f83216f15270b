/** Decides what becomes of an account and of its list of repositories. */
import { accept, type Decision, refuse } from '../kernel/decider.ts';
import { REPOSITORY_DESCRIPTION_LENGTH_MAX } from '../kernel/limits.ts';
import { codePointCount } from '../kernel/text.ts';
import type { AccountCommand } from './commands.ts';
import type { AccountEvent } from './events.ts';
import { repositoryNameKey, repositoryNameRefusal } from './names.ts';
import type { Account, OpenAccount } from './state.ts';

export function decideAccount(state: Account, command: AccountCommand): Decision<AccountEvent> {
  switch (command.type) {
    case 'CreateAccount':
      // An abandoned stream: the claim took longer than its time and someone else may hold the name now.
      if (state.status !== 'absent') return refuse({ code: 'username-taken', username: command.username });
      return accept<AccountEvent>({
        type: 'AccountCreated',
        data: {
          username: command.username,
          email_ref: command.emailRef,
          password_hash_ref: command.passwordHashRef,
          plan: command.plan,
        },
      });
    case 'AbandonAccount':
      return state.status === 'absent' ? accept<AccountEvent>({ type: 'Abandoned', data: {} }) : accept<AccountEvent>();
    case 'ChangePlan':
    case 'ChangePassword':
    case 'CreateRepository':
    case 'DescribeRepository':
    case 'DeleteRepository':
      return state.status === 'open' ? decideOpen(state, command) : refuse({ code: 'account-not-found' });
  }
}

type OpenAccountCommand = Exclude<AccountCommand, { type: 'CreateAccount' | 'AbandonAccount' }>;

function decideOpen(state: OpenAccount, command: OpenAccountCommand): Decision<AccountEvent> {
  switch (command.type) {
    case 'ChangePlan':
      return command.plan === state.plan
        ? accept<AccountEvent>()
        : accept<AccountEvent>({ type: 'PlanChanged', data: { plan: command.plan } });
    case 'ChangePassword':
      return accept<AccountEvent>({ type: 'PasswordChanged', data: { password_hash_ref: command.passwordHashRef } });
    case 'CreateRepository':
      return decideCreateRepository(state, command);
    case 'DescribeRepository': {
      const repository = state.repositories.get(command.id);
      if (repository === undefined) return refuse({ code: 'repository-not-found' });
      if (tooLong(command.description)) return refuse({ code: 'repository-description-length' });
      if (command.description === repository.description) return accept<AccountEvent>();
      const data = { repository_id: command.id, description: command.description };
      return accept<AccountEvent>({ type: 'RepositoryDescribed', data });
    }
    case 'DeleteRepository': {
      const repository = state.repositories.get(command.id);
      if (repository === undefined) return refuse({ code: 'repository-not-found' });
      const data = { repository_id: command.id, name: repository.name };
      return accept<AccountEvent>({ type: 'RepositoryDeleted', data });
    }
  }
}

function decideCreateRepository(
  state: OpenAccount,
  command: Extract<AccountCommand, { type: 'CreateRepository' }>,
): Decision<AccountEvent> {
  const badName = repositoryNameRefusal(command.name);
  if (badName !== null) return refuse(badName);
  if (tooLong(command.description)) return refuse({ code: 'repository-description-length' });
  if (state.repositoryNames.has(repositoryNameKey(command.name))) {
    return refuse({ code: 'repository-name-taken', name: command.name });
  }
  const quota = command.quotas.repos;
  if (quota !== null && state.repositories.size >= quota) return refuse({ code: 'repository-quota-reached', quota });
  return accept<AccountEvent>({
    type: 'RepositoryCreated',
    data: {
      repository_id: command.id,
      name: command.name,
      description: command.description,
      default_branch: command.defaultBranch,
      storage_bucket_id: command.storageBucketId,
    },
  });
}

function tooLong(description: string | null): boolean {
  return description !== null && codePointCount(description) > REPOSITORY_DESCRIPTION_LENGTH_MAX;
}
