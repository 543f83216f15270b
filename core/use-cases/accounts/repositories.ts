/**
 * Finding, creating, describing and deleting repositories.
 *
 * Must stay true: a deletion closes the repository's stream first, so that racing pushes conflict, and gives the
 * name back after; cut in half it is finished by whoever deletes the repository again, or wants its name.
 */
import { decideAccount } from '../../account/decide.ts';
import { accounts } from '../../account/evolve.ts';
import { repositoryNameKey } from '../../account/names.ts';
import type { Plans } from '../../account/plans.ts';
import type { OpenAccount, OwnedRepository } from '../../account/state.ts';
import { parseBranchName } from '../../git/ref-name.ts';
import { refuse } from '../../kernel/decider.ts';
import type { Cause } from '../../kernel/envelope.ts';
import type { AccountId, RepositoryId, Uuid } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { asciiLowerCase } from '../../kernel/text.ts';
import type { Reach } from '../../ports/failpoints.ts';
import { decideRepository } from '../../repository/decide.ts';
import { repositories } from '../../repository/evolve.ts';
import { FALLBACK_DEFAULT_BRANCH, type OpenRepository } from '../../repository/state.ts';
import { findAccount } from './accounts.ts';
import type { Entity } from '../../runtime/entity.ts';
import { type Context, execute, type Guarding } from '../../runtime/execute.ts';

type Refused = { readonly refused: Refusal };

export interface RepositoryCommandOrigin {
  readonly account: AccountId;
  readonly cause: Cause;
  readonly guarding?: Guarding;
}

/** A repository as its owner's account lists it: still there when its deletion was cut in half. */
export interface ListedRepository {
  readonly id: RepositoryId;
  readonly accountId: AccountId;
  readonly account: OpenAccount;
  readonly owned: OwnedRepository;
}

/** A repository with all that its two streams say. */
export interface FoundRepository extends ListedRepository {
  readonly entity: Entity<OpenRepository>;
  /** Short name of the branch HEAD leads to. */
  readonly defaultBranch: string;
}

/** Looks a repository up as a URL names it: both names without case. Null when there is none. */
export async function findRepository(
  context: Context,
  username: string,
  name: string,
): Promise<FoundRepository | null> {
  const listed = await findListedRepository(context, username, name);
  return listed === null ? null : openRepository(context, listed);
}

/** The repository of that id if the account has it. */
export async function findRepositoryById(
  context: Context,
  accountId: AccountId,
  id: RepositoryId,
): Promise<FoundRepository | null> {
  const listed = await listedRepository(context, accountId, () => id);
  return listed === null ? null : openRepository(context, listed);
}

/** As `findRepository`, also where only half of a deletion was done: for deleting it again. */
async function findListedRepository(
  context: Context,
  username: string,
  name: string,
): Promise<ListedRepository | null> {
  const accountId = await findAccount(context, asciiLowerCase(username));
  if (accountId === null) return null;
  return listedRepository(context, accountId, (account) => account.repositoryNames.get(repositoryNameKey(name)));
}

async function listedRepository(
  context: Context,
  accountId: AccountId,
  idOf: (account: OpenAccount) => RepositoryId | undefined,
): Promise<ListedRepository | null> {
  const { state: account } = await context.entities.get(accounts, accountId);
  if (account.status !== 'open') return null;
  const id = idOf(account);
  const owned = id === undefined ? undefined : account.repositories.get(id);
  return owned === undefined ? null : { id: owned.id, accountId, account, owned };
}

async function openRepository(context: Context, listed: ListedRepository): Promise<FoundRepository | null> {
  const entity = await context.entities.get(repositories, listed.id);
  // Closed, and its deletion cut in half: gone for everybody but who deletes it again.
  if (entity.state.status === 'closed') return null;
  const { state } = entity;
  const defaultBranch = state.defaultBranch ?? listed.owned.initialDefaultBranch ?? FALLBACK_DEFAULT_BRANCH;
  return { ...listed, entity: { ...entity, state }, defaultBranch };
}

export interface NewRepository {
  readonly name: string;
  readonly description: string | null;
  readonly defaultBranch: string | null;
  readonly storageBucketId: Uuid | null;
}

export async function createRepository(
  context: Context & { readonly plans: Plans },
  origin: RepositoryCommandOrigin,
  wanted: NewRepository,
): Promise<FoundRepository | Refused> {
  if (wanted.defaultBranch !== null) {
    const branch = parseBranchName(wanted.defaultBranch);
    if (typeof branch !== 'string') return refuse({ code: 'branch-name-invalid', reason: branch.detail });
  }
  // Buckets come with their own issue: until then no id names one.
  if (wanted.storageBucketId !== null) return refuse({ code: 'storage-bucket-not-found' });
  const id = context.ids.next<RepositoryId>();
  const create = () =>
    execute(context, accounts, origin.account, origin, (state) =>
      state.status === 'open'
        ? decideAccount(state, { type: 'CreateRepository', id, ...wanted, quotas: context.plans[state.plan] })
        : refuse({ code: 'account-not-found' }),
    );
  let created = await create();
  if ('refused' in created && created.refused.code === 'repository-name-taken') {
    const freed = await finishDeletion(context, origin, wanted.name);
    if (freed) created = await create();
  }
  if ('refused' in created) return created;
  const found = await findRepositoryById(context, origin.account, id);
  return found ?? refuse({ code: 'repository-not-found' });
}

/** Whether the name was only held by a repository whose deletion was cut in half; it is free then. */
async function finishDeletion(context: Context, origin: RepositoryCommandOrigin, name: string): Promise<boolean> {
  const holder = await listedRepository(context, origin.account, (account) =>
    account.repositoryNames.get(repositoryNameKey(name)),
  );
  if (holder === null) return true;
  const { state } = await context.entities.reload(repositories, holder.id);
  if (state.status !== 'closed') return false;
  await releaseName(context, origin, holder.id);
  return true;
}

export interface RepositoryChanges {
  readonly description?: string | null;
  readonly defaultBranch?: string;
}

export async function changeRepository(
  context: Context,
  origin: RepositoryCommandOrigin,
  id: RepositoryId,
  changes: RepositoryChanges,
): Promise<FoundRepository | Refused> {
  const { description, defaultBranch } = changes;
  if (defaultBranch !== undefined) {
    const branch = parseBranchName(defaultBranch);
    if (typeof branch !== 'string') return refuse({ code: 'branch-name-invalid', reason: branch.detail });
  }
  const before = await findRepositoryById(context, origin.account, id);
  if (before === null) return refuse({ code: 'repository-not-found' });
  // Two streams, two commits: the description is decided first since it alone can still be refused.
  if (description !== undefined) {
    const described = await execute(context, accounts, origin.account, origin, (state) =>
      decideAccount(state, { type: 'DescribeRepository', id, description }),
    );
    if ('refused' in described) return described;
  }
  if (defaultBranch !== undefined) {
    const { initialDefaultBranch } = before.owned;
    const changed = await execute(context, repositories, id, origin, (state) =>
      decideRepository(state, { type: 'ChangeDefaultBranch', branch: defaultBranch, initialDefaultBranch }),
    );
    if ('refused' in changed) return changed;
  }
  return (await findRepositoryById(context, origin.account, id)) ?? refuse({ code: 'repository-not-found' });
}

/**
 * Closes the repository's stream first, so that racing pushes conflict, then gives the name back. From the first
 * append on the repository is gone for everybody; if it is the only one, the second follows by whoever repeats the
 * request or wants the name, or by `finish-deletions.ts`.
 */
export async function deleteRepository(
  context: Context & { readonly reach: Reach },
  origin: RepositoryCommandOrigin,
  id: RepositoryId,
): Promise<{ readonly deleted: RepositoryId } | Refused> {
  // Any id makes the name of a stream: only the account says which are its own.
  const listed = await listedRepository(context, origin.account, () => id);
  if (listed === null) return refuse({ code: 'repository-not-found' });
  return closeRepository(context, origin, id);
}

/** Both halves of a deletion, of a repository that the account lists. */
export async function closeRepository(
  context: Context & { readonly reach: Reach },
  origin: RepositoryCommandOrigin,
  id: RepositoryId,
): Promise<{ readonly deleted: RepositoryId } | Refused> {
  const closed = await execute(context, repositories, id, origin, (state) =>
    decideRepository(state, { type: 'CloseRepository' }),
  );
  if ('refused' in closed) return closed;
  await context.reach('repository-closed');
  // From here the repository is gone; a guard must not leave its name taken.
  return releaseName(context, { account: origin.account, cause: origin.cause }, id);
}

/** The second half of a deletion. Done already, by somebody who deletes it too, is done. */
export async function releaseName(
  context: Context,
  origin: { readonly account: AccountId; readonly cause: Cause },
  id: RepositoryId,
): Promise<{ readonly deleted: RepositoryId } | Refused> {
  const released = await execute(context, accounts, origin.account, origin, (state) =>
    decideAccount(state, { type: 'DeleteRepository', id }),
  );
  if ('refused' in released && released.refused.code !== 'repository-not-found') return released;
  return { deleted: id };
}
