/**
 * The fold of an account's log as a snapshot, to fold on from.
 *
 * Invariants: a fold that is read from a snapshot and folded on shows the same state as one that began with the
 * first entry. A snapshot of another version of this file, or of the account's own snapshots, is never read.
 */
import { type RepositorySelection, storedSelection } from '../access-token/repository-selection.ts';
import type { ActiveAccessToken } from '../access-token/state.ts';
import { accounts, openAccount } from '../account/evolve.ts';
import type { OpenAccount } from '../account/state.ts';
import { type RefName, refName } from '../git/ref-name.ts';
import {
  type Codec,
  flag,
  list,
  map,
  merged,
  nullable,
  number,
  object,
  parsed,
  text,
  time,
  unstored,
  word,
} from '../kernel/codec.ts';
import type { Grant } from '../kernel/grants.ts';
import {
  type AccessTokenId,
  type AccountId,
  type EventId,
  objectId,
  type RepositoryId,
  type Timestamp,
  uuid,
} from '../kernel/ids.ts';
import type { JsonObject, JsonValue } from '../kernel/json.ts';
import type { AccountStateFold, MonthTraffic } from './account-fold.ts';
import type { FoldedRef, FoldedRepository } from './folded-repository.ts';

/** Raise it whenever the meaning of the form below changes. */
const OWN_VERSION = 2;

/** Larger than every version of an account's snapshots, so that each pair of versions has a number of its own. */
const VERSIONS = 10_000;

export const ACCOUNT_FOLD_SNAPSHOT_VERSION = OWN_VERSION * VERSIONS + (accounts.snapshots?.version ?? 0);

type StoredRefs = readonly (readonly [name: string, target: string, peeled: string | null])[];

/** The cast is sound because only `refs` makes this list in a snapshot of this version. */
function readRefs(stored: JsonValue): Map<RefName, FoldedRef> {
  const all = (stored as StoredRefs).map(
    ([name, target, peeled]) =>
      [refName(name), { target: objectId(target), peeled: peeled === null ? null : objectId(peeled) }] as const,
  );
  return new Map(all);
}

/** By hand, because a codec of each value takes a fifth more time, and a fold may hold very many refs. */
const refs: Codec<Map<RefName, FoldedRef>> = {
  write: (byName) => Array.from(byName, ([name, { target, peeled }]) => [name, target, peeled] as const),
  read: readRefs,
};

const repository = object<FoldedRepository>({
  revision: number,
  defaultBranch: nullable(text),
  pushedAt: nullable(time),
  sizeBytes: number,
  isOnPlatform: flag,
  isClosed: flag,
  refs: nullable(refs),
});

const accessToken: Codec<ActiveAccessToken> = merged(
  unstored({ status: 'active' as const }),
  object<Omit<ActiveAccessToken, 'status' | keyof RepositorySelection>>({
    account: parsed(uuid<AccountId>),
    name: text,
    grants: list(word<Grant>()),
    expiresAt: nullable(time),
    secretHash: text,
    tokenPrefix: text,
    createdAt: time,
  }),
  storedSelection,
);

/** A fold that is worth a snapshot. */
interface OpenFold extends AccountStateFold {
  readonly logTime: Timestamp;
  readonly lastEventId: EventId;
  readonly accountId: AccountId;
  readonly account: OpenAccount;
}

const openFold = object<OpenFold>({
  sequence: number,
  logTime: time,
  lastEventId: parsed(uuid<EventId>),
  accountId: parsed(uuid<AccountId>),
  account: openAccount,
  repositories: map(parsed(uuid<RepositoryId>), repository),
  accessTokens: map(parsed(uuid<AccessTokenId>), accessToken),
  givenBy: map(text, parsed(uuid<EventId>)),
  traffic: object<MonthTraffic>({ month: text, ingressBytes: number, transferBytes: number }),
});

/** Returns null for a fold that is not worth one: the account was not made, is closed or erased. */
export function writeAccountFold(fold: AccountStateFold): JsonObject | null {
  const { logTime, lastEventId, accountId, account } = fold;
  if (account.status !== 'open' || logTime === null || lastEventId === null || accountId === null) return null;
  return openFold.write({ ...fold, logTime, lastEventId, accountId, account });
}

/** Throws TypeError for a snapshot that is broken. */
export function readAccountFold(state: JsonValue): AccountStateFold {
  return openFold.read(state);
}
