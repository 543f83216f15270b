/**
 * The fold of an account's log as a snapshot, to fold on from.
 *
 * Invariants: a fold that is read from a snapshot and folded on shows the same state as one that began with the
 * first entry. A snapshot of another version of this file, or of the account's own snapshots, is never read.
 */
import type { ActiveAccessToken } from '../access-token/state.ts';
import { accounts } from '../account/evolve.ts';
import { refName } from '../git/ref-name.ts';
import type { Grant, Scope } from '../kernel/grants.ts';
import {
  type AccessTokenId,
  type AccountId,
  type EventId,
  objectId,
  type RepositoryId,
  timestamp,
  uuid,
} from '../kernel/ids.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../kernel/json.ts';
import type { AccountStateFold, MonthTraffic } from './account-fold.ts';
import type { FoldedRepository } from './folded-repository.ts';

/** Raise it whenever the meaning of the form below changes. */
const OWN_VERSION = 1;

/** Larger than every version of an account's snapshots, so that each pair of versions has a number of its own. */
const VERSIONS = 10_000;

export const ACCOUNT_FOLD_SNAPSHOT_VERSION = OWN_VERSION * VERSIONS + (accounts.snapshots?.version ?? 0);

/** The stored form, which only this file writes and reads. */
type FoldSnapshot = {
  readonly sequence: number;
  readonly logTime: string;
  readonly lastEventId: string;
  readonly accountId: string;
  readonly account: JsonObject;
  readonly repositories: readonly (readonly [string, StoredRepository])[];
  readonly accessTokens: readonly (readonly [string, StoredToken])[];
  readonly traffic: { readonly month: string; readonly ingressBytes: number; readonly transferBytes: number };
};

type StoredRepository = {
  readonly revision: number;
  readonly defaultBranch: string | null;
  readonly pushedAt: string | null;
  readonly sizeBytes: number;
  readonly isOnPlatform: boolean;
  readonly isClosed: boolean;
  readonly refs: readonly (readonly [string, string, string | null])[] | null;
};

type StoredToken = {
  readonly account: string;
  readonly name: string;
  readonly scope: Scope;
  readonly repositoryIds: readonly string[];
  readonly grants: readonly Grant[];
  readonly expiresAt: string | null;
  readonly secretHash: string;
  readonly tokenPrefix: string;
  readonly createdAt: string;
};

/** Returns null for a fold that is not worth one: the account was not made, is closed or erased. */
export function writeAccountFold(fold: AccountStateFold): JsonObject | null {
  const account = accounts.snapshots?.write(fold.account) ?? null;
  const { sequence, logTime, lastEventId, accountId } = fold;
  if (account === null || logTime === null || lastEventId === null || accountId === null) return null;
  return {
    sequence,
    logTime,
    lastEventId,
    accountId,
    account,
    repositories: [...fold.repositories].map(([id, repository]) => [id, storedRepository(repository)] as const),
    accessTokens: [...fold.accessTokens].map(([id, { status: _status, ...token }]) => [id, token] as const),
    traffic: { ...fold.traffic },
  } satisfies FoldSnapshot;
}

function storedRepository({ refs, ...repository }: FoldedRepository): StoredRepository {
  if (refs === null) return { ...repository, refs };
  return { ...repository, refs: [...refs].map(([name, { target, peeled }]) => [name, target, peeled] as const) };
}

/** The cast is sound because only `writeAccountFold` makes snapshots of this version. */
function parseSnapshot(state: JsonObject): FoldSnapshot {
  return state as FoldSnapshot;
}

/** Throws TypeError for a snapshot that is broken. */
export function readAccountFold(state: JsonValue): AccountStateFold {
  if (!isJsonObject(state) || accounts.snapshots === null) throw new TypeError('Not a snapshot');
  const stored = parseSnapshot(state);
  const traffic: MonthTraffic = stored.traffic;
  return {
    sequence: stored.sequence,
    logTime: timestamp(stored.logTime),
    lastEventId: uuid<EventId>(stored.lastEventId),
    accountId: uuid<AccountId>(stored.accountId),
    account: accounts.snapshots.read(stored.account),
    repositories: new Map(stored.repositories.map(([id, one]) => [uuid<RepositoryId>(id), repositoryOf(one)])),
    accessTokens: new Map(stored.accessTokens.map(([id, token]) => [uuid<AccessTokenId>(id), tokenOf(token)])),
    traffic: { ...traffic },
  };
}

function repositoryOf({ refs, pushedAt, ...stored }: StoredRepository): FoldedRepository {
  const folded = refs?.map(
    ([name, target, peeled]) =>
      [refName(name), { target: objectId(target), peeled: peeled === null ? null : objectId(peeled) }] as const,
  );
  return {
    ...stored,
    pushedAt: pushedAt === null ? null : timestamp(pushedAt),
    refs: folded === undefined ? null : new Map(folded),
  };
}

function tokenOf({ account, repositoryIds, expiresAt, createdAt, ...stored }: StoredToken): ActiveAccessToken {
  return {
    ...stored,
    status: 'active',
    account: uuid<AccountId>(account),
    repositoryIds: repositoryIds.map((id) => uuid<RepositoryId>(id)),
    expiresAt: expiresAt === null ? null : timestamp(expiresAt),
    createdAt: timestamp(createdAt),
  };
}
