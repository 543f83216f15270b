/**
 * Finds, creates, changes and deletes repositories.
 *
 * Invariants: a deletion first closes the repository's stream, so that racing pushes conflict, and then releases
 * the name. An interrupted deletion is finished by the next request that deletes the repository or creates one of
 * its name, or gives another its name, or by finish-deletions.ts.
 */
import type { WantedBucket } from '../../account/buckets/binding.ts';
import { accounts } from '../../account/evolve.ts';
import { repositoryNameKey, repositoryNameRefusal } from '../../account/names.ts';
import type { Plans } from '../../account/plans.ts';
import type { OwnedRepositoryCommand } from '../../account/repositories/commands.ts';
import { decideOwnedRepository, descriptionRefusal } from '../../account/repositories/decide.ts';
import type { OwnedRepositoryEvent } from '../../account/repositories/events.ts';
import type { OwnedRepository } from '../../account/repositories/state.ts';
import type { Account, OpenAccount } from '../../account/state.ts';
import type { Moment } from '../../audit/moment.ts';
import { type BranchName, parseDefaultBranch } from '../../git/ref-name.ts';
import { accept, type Decision, refuse } from '../../kernel/decider.ts';
import type { Cause } from '../../kernel/envelope.ts';
import type { AccountId, RepositoryId } from '../../kernel/ids.ts';
import { type MaybePromise, whenReady } from '../../kernel/maybe-promise.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { asciiLowerCase } from '../../kernel/text.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import type { LayerPlace } from '../../ports/layer-stores.ts';
import { decideRepository } from '../../repository/decide.ts';
import { repositories } from '../../repository/evolve.ts';
import { FALLBACK_DEFAULT_BRANCH, type OpenRepository } from '../../repository/state.ts';
import type { Entity } from '../../runtime/entity.ts';
import { type Context, execute, type Guarding } from '../../runtime/execute.ts';
import { findAccount } from '../accounts/accounts.ts';

type Refused = { readonly refused: Refusal };

export interface RepositoryCommandOrigin {
  readonly account: AccountId;
  readonly cause: Cause;
  readonly guarding?: Guarding;
}

/** A repository in its account's list. After an interrupted deletion it is still in the list. */
export interface ListedRepository {
  readonly id: RepositoryId;
  readonly accountId: AccountId;
  readonly account: OpenAccount;
  readonly owned: OwnedRepository;
}

/** A repository with the state of its own stream and of its account's. */
export interface FoundRepository extends ListedRepository {
  readonly entity: Entity<OpenRepository>;
  /** The short name of the branch that HEAD names. */
  readonly defaultBranch: string;
  /** Present if it is shown as of a moment: its refs are those of that moment, and its layers the current ones. */
  readonly asOf?: Moment;
}

/** Finds anybody's repository by its names, without regard to case, for who may see all. Null if there is none. */
export async function findRepository(
  context: Context,
  username: string,
  name: string,
): Promise<FoundRepository | null> {
  const listed = await findListedRepository(context, username, name);
  return listed === null ? null : openRepository(context, listed);
}

/** Finds one also by an old name that leads on to it: for names that a person types who may see all. */
export async function findRepositoryLedTo(
  context: Context,
  username: string,
  name: string,
): Promise<FoundRepository | null> {
  const accountId = await findAccount(context, asciiLowerCase(username));
  return accountId === null ? null : findOwnRepository(context, accountId, { username, name }, () => true);
}

/**
 * Finds a repository of this account by the names in a URL, the old ones that lead on to it included (`isFormerName`).
 * Null if it has none, or if `sees` is false for its id.
 * Nothing of another account, and no repository that is out of sight, is loaded: what that takes would tell whether it
 * exists.
 */
export function findOwnRepository(
  context: Context,
  accountId: AccountId,
  { username, name }: { readonly username: string; readonly name: string },
  sees: (id: RepositoryId) => boolean,
): MaybePromise<FoundRepository | null> {
  const idOf = (account: OpenAccount): RepositoryId | undefined => {
    if (account.username !== asciiLowerCase(username)) return undefined;
    const key = repositoryNameKey(name);
    const id = account.repositoryNames.get(key) ?? account.formerNames.get(key);
    return id !== undefined && sees(id) ? id : undefined;
  };
  return whenReady(listedRepository(context, accountId, idOf), (listed) =>
    listed === null ? null : openRepository(context, listed),
  );
}

/** Whether a name by which a repository was found is one that it had before. */
export function isFormerName({ owned }: Pick<ListedRepository, 'owned'>, name: string): boolean {
  return repositoryNameKey(owned.name) !== repositoryNameKey(name);
}

/** Whether a name in a URL is that of this account, which must be open, without regard to case. */
export async function isUsernameOf(context: Context, accountId: AccountId, username: string): Promise<boolean> {
  const { state } = await context.entities.get(accounts, accountId);
  return state.status === 'open' && state.username === asciiLowerCase(username);
}

/** Finds the repository with this id. Null if the account does not have it. */
export async function findRepositoryById(
  context: Context,
  accountId: AccountId,
  id: RepositoryId,
): Promise<FoundRepository | null> {
  const listed = await listedRepository(context, accountId, () => id);
  return listed === null ? null : openRepository(context, listed);
}

/** Like `findRepository`, but also finds a repository whose deletion was interrupted. */
async function findListedRepository(
  context: Context,
  username: string,
  name: string,
): Promise<ListedRepository | null> {
  const accountId = await findAccount(context, asciiLowerCase(username));
  if (accountId === null) return null;
  return listedRepository(context, accountId, (account) => account.repositoryNames.get(repositoryNameKey(name)));
}

function listedRepository(
  context: Context,
  accountId: AccountId,
  idOf: (account: OpenAccount) => RepositoryId | undefined,
): MaybePromise<ListedRepository | null> {
  return whenReady(context.entities.get(accounts, accountId), ({ state: account }) => {
    if (account.status !== 'open') return null;
    const id = idOf(account);
    const owned = id === undefined ? undefined : account.repositories.get(id);
    return owned === undefined ? null : { id: owned.id, accountId, account, owned };
  });
}

function openRepository(context: Context, listed: ListedRepository): MaybePromise<FoundRepository | null> {
  return whenReady(context.entities.get(repositories, listed.id), (entity) => {
    const { state } = entity;
    // The repository is closed but still listed: its deletion was interrupted. Only a repeated deletion may find it.
    if (state.status === 'closed') return null;
    const defaultBranch = state.defaultBranch ?? listed.owned.initialDefaultBranch ?? FALLBACK_DEFAULT_BRANCH;
    return { ...listed, entity: { ...entity, state }, defaultBranch };
  });
}

/** Returns where the repository's layers are stored. */
export function placeOf({ accountId, owned }: Pick<ListedRepository, 'accountId' | 'owned'>): LayerPlace {
  return { account: accountId, storageBucketId: owned.storageBucketId };
}

export interface NewRepository {
  readonly name: string;
  readonly description: string | null;
  /** A text that `parseDefaultBranch` takes; null: the first push chooses. */
  readonly defaultBranch: string | null;
  readonly storageBucketId: WantedBucket;
}

/** Returns the short name of the branch that the text chooses. */
function chosenBranch(text: string): BranchName | Refused {
  const branch = parseDefaultBranch(text);
  return typeof branch === 'string' ? branch : refuse({ code: 'branch-name-invalid', reason: branch.detail });
}

/** Returns every refusal that the texts alone cause; a name and a branch that are left out are not judged. */
export function refusalsOfTexts({
  name,
  description,
  defaultBranch = null,
}: {
  readonly name?: string;
  readonly description: string | null;
  readonly defaultBranch?: string | null;
}): readonly Refusal[] {
  const branch = defaultBranch === null ? null : chosenBranch(defaultBranch);
  return [
    name === undefined ? null : repositoryNameRefusal(name),
    descriptionRefusal(description),
    branch === null || typeof branch === 'string' ? null : branch.refused,
  ].filter((refusal) => refusal !== null);
}

export async function createRepository(
  context: Context & { readonly plans: Plans },
  origin: RepositoryCommandOrigin,
  wanted: NewRepository,
): Promise<FoundRepository | Refused> {
  const defaultBranch = wanted.defaultBranch === null ? null : chosenBranch(wanted.defaultBranch);
  if (defaultBranch !== null && typeof defaultBranch !== 'string') return defaultBranch;
  const named = { ...wanted, defaultBranch };
  const id = context.ids.next<RepositoryId>();
  const create = () =>
    execute(context, accounts, origin.account, origin, (state) =>
      state.status === 'open'
        ? decideOwnedRepository(state, { type: 'CreateRepository', id, ...named, quotas: context.plans[state.plan] })
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

/** Releases a name that only an interrupted deletion still holds. Resolves true if the name is now free. */
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
  /** The name that stands is taken too. */
  readonly rename?: Omit<Extract<OwnedRepositoryCommand, { type: 'RenameRepository' }>, 'type' | 'id'>;
  readonly description?: string | null;
  /** A text that `parseDefaultBranch` takes. The name that stands is taken too: clients read, change and write back. */
  readonly defaultBranch?: string;
}

export async function changeRepository(
  context: Context,
  origin: RepositoryCommandOrigin,
  id: RepositoryId,
  changes: RepositoryChanges,
): Promise<FoundRepository | Refused> {
  const { rename } = changes;
  const before = await findRepositoryById(context, origin.account, id);
  if (before === null) return refuse({ code: 'repository-not-found' });
  const chosen = changes.defaultBranch === undefined ? undefined : chosenBranch(changes.defaultBranch);
  const isRefused = chosen !== undefined && typeof chosen !== 'string';
  if (isRefused && changes.defaultBranch !== before.defaultBranch) return chosen;
  const defaultBranch = isRefused ? undefined : chosen;
  // Two streams need two commits. The account's is first, because only what is on it can still be refused.
  const change = () =>
    execute(context, accounts, origin.account, origin, (state) => decideListChanges(state, id, changes));
  let listed = await change();
  if ('refused' in listed && listed.refused.code === 'repository-name-taken' && rename !== undefined) {
    const freed = await finishDeletion(context, origin, rename.name);
    if (freed) listed = await change();
  }
  if ('refused' in listed) return listed;
  if (defaultBranch !== undefined) {
    const { initialDefaultBranch } = before.owned;
    const changed = await execute(context, repositories, id, origin, (state) =>
      decideRepository(state, { type: 'ChangeDefaultBranch', branch: defaultBranch, initialDefaultBranch }),
    );
    if ('refused' in changed) return changed;
  }
  return (await findRepositoryById(context, origin.account, id)) ?? refuse({ code: 'repository-not-found' });
}

/** Both changes are on the account's stream, and one append. */
function decideListChanges(
  account: Account,
  id: RepositoryId,
  { rename, description }: RepositoryChanges,
): Decision<OwnedRepositoryEvent> {
  const commands: readonly OwnedRepositoryCommand[] = [
    ...(rename === undefined ? [] : [{ type: 'RenameRepository', id, ...rename } as const]),
    ...(description === undefined ? [] : [{ type: 'DescribeRepository', id, description } as const]),
  ];
  const events: OwnedRepositoryEvent[] = [];
  for (const command of commands) {
    const decided = decideOwnedRepository(account, command);
    if ('refused' in decided) return decided;
    events.push(...decided.events);
  }
  return accept(...events);
}

/**
 * First closes the repository's stream, so that racing pushes conflict, and then releases the name. After the first
 * append nobody can use the repository. If the second is missing, it is done by the next request that deletes the
 * repository or creates one of that name, or by finish-deletions.ts.
 */
export async function deleteRepository(
  context: Context & { readonly failpoint: Failpoint },
  origin: RepositoryCommandOrigin,
  id: RepositoryId,
): Promise<{ readonly deleted: RepositoryId } | Refused> {
  // Any id could name a repository's stream. Only the account's list shows which repositories are its own.
  const listed = await listedRepository(context, origin.account, () => id);
  if (listed === null) return refuse({ code: 'repository-not-found' });
  return closeRepository(context, origin, id);
}

/** Does both steps of a deletion. The account must have the repository in its list. */
export async function closeRepository(
  context: Context & { readonly failpoint: Failpoint },
  origin: RepositoryCommandOrigin,
  id: RepositoryId,
): Promise<{ readonly deleted: RepositoryId } | Refused> {
  const closed = await execute(context, repositories, id, origin, (state) =>
    decideRepository(state, { type: 'CloseRepository' }),
  );
  if ('refused' in closed) return closed;
  await context.failpoint('repository-closed');
  // The repository is deleted from here on. A guard must not keep its name taken, so none is passed.
  return releaseName(context, { account: origin.account, cause: origin.cause }, id);
}

/** Does the second step of a deletion. Idempotent, also if another request has done it. */
export async function releaseName(
  context: Context,
  origin: { readonly account: AccountId; readonly cause: Cause },
  id: RepositoryId,
): Promise<{ readonly deleted: RepositoryId } | Refused> {
  const released = await execute(context, accounts, origin.account, origin, (state) =>
    decideOwnedRepository(state, { type: 'DeleteRepository', id }),
  );
  if ('refused' in released && released.refused.code !== 'repository-not-found') return released;
  return { deleted: id };
}
