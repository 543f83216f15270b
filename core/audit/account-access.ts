/**
 * Who could read a repository, as the log of its account says.
 *
 * Invariants: nothing but the fold is read, so that an export says the same. A closed account lets nobody in. The trust
 * rule is named for what identity tokens are exchanged for: the tokens of a rule end with it.
 */
import { isSelected, type RepositorySelection } from '../access-token/repository-selection.ts';
import { isExpired } from '../access-token/state.ts';
import type { Grant, Scope } from '../kernel/grants.ts';
import type { EventId, RepositoryId, Timestamp } from '../kernel/ids.ts';
import type { AccountStateFold } from './account-fold.ts';
import { byText, madeAccount } from './account-state.ts';

export interface AccessSubject {
  readonly kind: 'user' | 'webhook' | 'token' | 'trust_rule';
  readonly id: string;
  /** Null for a webhook, whose event refers to its address. */
  readonly name: string | null;
  /** A webhook has the events that it gets here. */
  readonly grants: readonly string[];
  readonly scope: Scope;
  /** The event that made it, or last changed it. */
  readonly eventId: EventId;
}

/** The grants with which contents of a repository, or its commits, can be read. */
const READING: readonly Grant[] = ['ALL', 'GIT_HTTP_READ', 'GIT_HTTP_WRITE', 'API_COMMITS_READ'];

/**
 * Returns the subjects as of the end of the fold, of which `at` is the time: the person first, and each kind in the
 * order of ids. Null if the account did not have the repository then.
 */
export function subjectsOf(
  fold: AccountStateFold,
  repository: RepositoryId,
  at: Timestamp,
): readonly AccessSubject[] | null {
  const made = madeAccount(fold);
  if (made === null || made.account.status === 'erased') return null;
  const { id: accountId, account } = made;
  const isThere = account.repositories.get(repository) !== undefined;
  if (!isThere || fold.repositories.get(repository)?.isClosed === true) return null;
  if (account.status === 'closed') return [];
  const reads = (grants: readonly Grant[], selection: RepositorySelection): boolean =>
    READING.some((grant) => grants.includes(grant)) && isSelected(selection, repository);
  const subject = (
    kind: AccessSubject['kind'],
    id: string,
    about: Pick<AccessSubject, 'name' | 'grants' | 'scope'>,
  ): AccessSubject => ({ kind, id, ...about, eventId: eventOf(fold, id) });
  const webhooks = [...account.webhooks.values()]
    .filter(({ active, repositories }) => active && isSelected(repositories, repository))
    .map(({ id, events: grants, repositories: { scope } }) => subject('webhook', id, { name: null, grants, scope }));
  const tokens = [...fold.accessTokens]
    .filter(([, token]) => reads(token.grants, token) && !isExpired(token, at))
    .map(([id, { name, grants, scope }]) => subject('token', id, { name, grants, scope }));
  const rules = [...account.trustRules.values()]
    .filter(({ grants, repositories }) => reads(grants, repositories))
    .map(({ id, name, grants, repositories: { scope } }) => subject('trust_rule', id, { name, grants, scope }));
  const person = subject('user', accountId, { name: account.username, grants: ['ALL'], scope: 'ALL_REPO' });
  return [person, ...[webhooks, tokens, rules].flatMap((of) => of.toSorted((a, b) => byText(a.id, b.id)))];
}

function eventOf({ givenBy }: AccountStateFold, id: string): EventId {
  const event = givenBy.get(id);
  if (event === undefined) throw new TypeError(`The log does not say what made ${id}`);
  return event;
}
