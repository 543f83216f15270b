/**
 * The state of an account, folded from the entries of its log alone.
 *
 * Invariants: the same entries give the same state on every machine, whether they come from the log or from an
 * export: nothing else is read, neither a clock nor a read model. Of the entries it skips, none changes what the state
 * shows (account-state.ts).
 */
import { accessTokenEventKinds } from '../access-token/events.ts';
import { accessTokens } from '../access-token/evolve.ts';
import type { ActiveAccessToken } from '../access-token/state.ts';
import { type AccountEvent, accountEventKinds } from '../account/events.ts';
import { accounts } from '../account/evolve.ts';
import type { Account } from '../account/state.ts';
import { readEvent } from '../kernel/decider.ts';
import { categoryOf, entityIdOf, type StreamName } from '../kernel/envelope.ts';
import {
  type AccessTokenId,
  type AccountId,
  type EventId,
  later,
  type RepositoryId,
  type Timestamp,
  uuid,
} from '../kernel/ids.ts';
import { ACCOUNT_FOLD_REFS_MAX } from '../kernel/limits.ts';
import type { NextTurn } from '../kernel/turns.ts';
import { type RepositoryEvent, repositoryEventKinds } from '../repository/events.ts';
import { usageEventKinds } from '../usage/events.ts';
import type { EntryEvent } from './entry.ts';
import { type FoldedRepository, foldRepository, newRepository } from './folded-repository.ts';

/**
 * Entries whose streams the state shows nothing of. Parts of a wide push count with the `RefsUpdated` that names them.
 */
const SKIPPED_CATEGORIES: readonly string[] = ['refUpdates', 'username', 'email', 'deviceSession'];

/** Returns whether the state shows anything of entries in this stream. Of others only the place counts. */
export function isFolded(stream: StreamName): boolean {
  return !SKIPPED_CATEGORIES.includes(categoryOf(stream));
}

/** Bytes of the month in which the last entry lies. */
export interface MonthTraffic {
  /** `YYYY-MM`; empty before the first entry. */
  readonly month: string;
  readonly ingressBytes: number;
  /** Transfer, as the daily `UsageRecorded` sum it. */
  readonly transferBytes: number;
}

export interface AccountStateFold {
  /** The entries folded or passed: the sequence of the next one. */
  sequence: number;
  /** The log time of the last entry. */
  logTime: Timestamp | null;
  lastEventId: EventId | null;
  accountId: AccountId | null;
  account: Account;
  readonly repositories: Map<RepositoryId, FoldedRepository>;
  /** Those that the account made and that are not revoked. */
  readonly accessTokens: Map<AccessTokenId, ActiveAccessToken>;
  /**
   * The event that made, or last changed, each of what gives access: by the id of the account, of its webhooks, trust
   * rules and access tokens.
   */
  readonly givenBy: Map<string, EventId>;
  traffic: MonthTraffic;
}

export function newAccountFold(): AccountStateFold {
  return {
    sequence: 0,
    logTime: null,
    lastEventId: null,
    accountId: null,
    account: accounts.initial,
    repositories: new Map<RepositoryId, FoldedRepository>(),
    accessTokens: new Map<AccessTokenId, ActiveAccessToken>(),
    givenBy: new Map<string, EventId>(),
    traffic: { month: '', ingressBytes: 0, transferBytes: 0 },
  };
}

/** What passing an entry takes of it. */
export type PassedEntry = Pick<EntryEvent, 'id' | 'occurredAt'>;

/** Counts the log's next entry. `isFolded` does not name its stream. */
export function passEntry(fold: AccountStateFold, { id, occurredAt }: PassedEntry): void {
  fold.sequence += 1;
  fold.lastEventId = id;
  fold.logTime = later(occurredAt, fold.logTime);
  const month = fold.logTime.slice(0, 7);
  if (fold.traffic.month !== month) fold.traffic = { month, ingressBytes: 0, transferBytes: 0 };
}

export type FoldedEntry = Pick<EntryEvent, 'id' | 'stream' | 'revision' | 'type' | 'version' | 'occurredAt' | 'data'>;

/**
 * Folds the log's next entry. The updates of a wide push must be in place. Throws TypeError for an entry that does not
 * follow, and `UnknownEventError` for one that this program does not know.
 */
export async function foldEntry(fold: AccountStateFold, entry: FoldedEntry, nextTurn: NextTurn): Promise<void> {
  passEntry(fold, entry);
  switch (categoryOf(entry.stream)) {
    case 'account':
      foldAccount(fold, entry);
      break;
    case 'repository':
      await foldOfRepository(fold, entry, nextTurn);
      break;
    case 'accessToken':
      foldAccessToken(fold, entry);
      break;
    case 'usage':
      foldUsage(fold, entry);
      break;
    default:
      if (isFolded(entry.stream)) throw new TypeError(`The state of an account holds nothing of ${entry.stream}`);
  }
}

function foldAccount(fold: AccountStateFold, entry: FoldedEntry): void {
  const event = readEvent<AccountEvent>(accountEventKinds, entry);
  fold.account = accounts.evolve(fold.account, event, entry.occurredAt);
  fold.accountId = uuid<AccountId>(entityIdOf(entry.stream));
  noteGiving(fold, event, entry.id);
  if (event.type === 'RepositoryCreated') {
    const { repository_id, storage_bucket_id } = event.data;
    fold.repositories.set(uuid<RepositoryId>(repository_id), newRepository(storage_bucket_id === null));
  }
}

function noteGiving({ givenBy, accountId }: AccountStateFold, event: AccountEvent, id: EventId): void {
  const { data } = event;
  if (event.type === 'AccountCreated' || event.type === 'AccountReopened') givenBy.set(String(accountId), id);
  const named = 'webhook_id' in data ? data.webhook_id : 'rule_id' in data ? data.rule_id : null;
  if (named === null) return;
  if (event.type === 'WebhookDeleted' || event.type === 'TrustRuleDeleted') givenBy.delete(named);
  else givenBy.set(named, id);
}

async function foldOfRepository(fold: AccountStateFold, entry: FoldedEntry, nextTurn: NextTurn): Promise<void> {
  const event = readEvent<RepositoryEvent>(repositoryEventKinds, entry);
  const id = uuid<RepositoryId>(entityIdOf(entry.stream));
  const repository = fold.repositories.get(id);
  if (repository === undefined) {
    // All that was in storage of a deleted repository has left it, and later the layers that a compaction replaced.
    if (event.type === 'LayersExpired') return;
    throw new TypeError(`${event.type} of repository ${id}, which the account does not have`);
  }
  if (event.type === 'RefsUpdated' && entry.occurredAt.startsWith(fold.traffic.month)) {
    const { ingressBytes } = fold.traffic;
    fold.traffic = { ...fold.traffic, ingressBytes: ingressBytes + event.data.received_bytes };
  }
  await foldRepository(repository, event, entry, nextTurn);
  if (event.type === 'LayersExpired' && repository.isClosed && repository.sizeBytes === 0) fold.repositories.delete(id);
}

/** Tokens that an identity token was exchanged for are in no list, and live for minutes. */
function foldAccessToken(fold: AccountStateFold, entry: FoldedEntry): void {
  const event = readEvent(accessTokenEventKinds, entry);
  const id = uuid<AccessTokenId>(entityIdOf(entry.stream));
  if (event.type === 'AccessTokenExchanged') return;
  if (event.type === 'AccessTokenRevoked') {
    fold.accessTokens.delete(id);
    fold.givenBy.delete(id);
    return;
  }
  const token = accessTokens.evolve(fold.accessTokens.get(id) ?? accessTokens.initial, event, entry.occurredAt);
  if (token.status !== 'active') return;
  fold.accessTokens.set(id, token);
  fold.givenBy.set(id, entry.id);
}

function foldUsage(fold: AccountStateFold, entry: FoldedEntry): void {
  const { transfer } = readEvent(usageEventKinds, entry).data;
  const ofMonth = transfer.filter(({ day }) => day.startsWith(fold.traffic.month));
  const { month, ingressBytes, transferBytes } = fold.traffic;
  fold.traffic = {
    month,
    ingressBytes: ofMonth.reduce((sum, { received_bytes }) => sum + received_bytes, ingressBytes),
    transferBytes: ofMonth.reduce((sum, { sent_bytes }) => sum + sent_bytes, transferBytes),
  };
}

/**
 * Leaves out the refs of the repositories that have most, until at most `refsMax` are kept. Whoever shows
 * the state reads those from the repositories' own streams. For a fold that is kept or stored.
 */
export function leaveOutManyRefs({ repositories }: AccountStateFold, refsMax: number = ACCOUNT_FOLD_REFS_MAX): void {
  const kept = [...repositories.values()].filter(({ refs }) => refs !== null);
  let total = kept.reduce((sum, { refs }) => sum + (refs?.size ?? 0), 0);
  if (total <= refsMax) return;
  for (const repository of kept.toSorted((a, b) => (b.refs?.size ?? 0) - (a.refs?.size ?? 0))) {
    if (total <= refsMax) return;
    total -= repository.refs?.size ?? 0;
    repository.refs = null;
  }
}
