/**
 * The state of an account as of a moment, for its owner and for auditors.
 *
 * Invariants: the state is folded from the entries of the account's log and from nothing else, so that an export
 * replayed offline has the same digest (core/audit/account-state.ts). A snapshot only saves time, and is used only if
 * the log holds the entry that it ends with. A node folds one state of an account at a time, and few of all accounts;
 * entries, refs and text are handled in parts, so that neither memory nor a turn of the event loop grows with them.
 */

import { type AccessSubject, subjectsOf } from '../../audit/account-access.ts';
import {
  type AccountStateFold,
  foldEntry,
  isFolded,
  leaveOutManyRefs,
  newAccountFold,
  passEntry,
} from '../../audit/account-fold.ts';
import { ACCOUNT_FOLD_SNAPSHOT_VERSION, readAccountFold, writeAccountFold } from '../../audit/account-fold-snapshot.ts';
import { accountStateText, madeAccount, type NamedRefs } from '../../audit/account-state.ts';
import type { FoldedRef } from '../../audit/folded-repository.ts';
import type { RefName } from '../../git/ref-name.ts';
import { MIB } from '../../kernel/byte-units.ts';
import { createConcurrencyLimit } from '../../kernel/concurrency-limit.ts';
import { refuse } from '../../kernel/decider.ts';
import type { Digest } from '../../kernel/digest.ts';
import { type LogPosition, type RecordedEvent, type StreamName, streamName } from '../../kernel/envelope.ts';
import { createFairSlots } from '../../kernel/fair-slots.ts';
import type { AccountId, RepositoryId, Timestamp } from '../../kernel/ids.ts';
import { canonicalJson, isJsonObject } from '../../kernel/json.ts';
import { ACCOUNT_FOLD_REFS_MAX } from '../../kernel/limits.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { AccountLogReader, EntryPlace } from '../../ports/account-log.ts';
import type { Clock } from '../../ports/clock.ts';
import { type EventStore, EventStoreError, readPlaces } from '../../ports/event-store.ts';
import type { Snapshots } from '../../ports/snapshots.ts';
import type { Refs } from '../../repository/ref-runs.ts';
import type { PastEntities } from '../../runtime/past-entities.ts';
import type { Complete } from '../../runtime/read-entity.ts';
import { logAsOf } from '../as-of/as-of.ts';
import { entryBatches } from './entry-batches.ts';
import { ENTRIES_READ_LENGTH_MAX } from './limits.ts';

/** Entries between two snapshots of the state of an account. Internal: snapshots change no answer. */
const ACCOUNT_SNAPSHOT_INTERVAL_ENTRIES = 4_000;
/** A state with a longer snapshot has none: it is folded from an earlier one. Internal: snapshots change no answer. */
const ACCOUNT_SNAPSHOT_LENGTH_MAX = 16 * MIB;
/**
 * Accounts whose state a node folds and sends at the same time, each for one request. Internal: further requests wait.
 */
export const ACCOUNT_STATES_AT_ONCE_MAX = 4;

export interface AccountStatesContext {
  readonly events: Pick<EventStore, 'readStream' | 'readPositions'>;
  readonly readModels: Pick<AccountLogReader, 'accountLogCaughtUp' | 'accountLogs' | 'logPrefix' | 'entryPlaces'>;
  readonly past: Pick<PastEntities, 'repositoryAt'>;
  readonly snapshots: Snapshots;
  readonly complete: Complete;
  readonly digest: Digest;
  readonly clock: Pick<Clock, 'now' | 'nextTurn'>;
  /** Called when a snapshot could not be read or saved. */
  readonly onFault: (what: 'snapshot', cause: unknown) => void;
  /** Default: those of `createAccountStates`. */
  readonly foldBounds?: FoldBounds;
}

export interface FoldBounds {
  /** Entries between two snapshots. */
  readonly snapshotEntries: number;
  /** Refs that a fold keeps. */
  readonly refsMax: number;
}

const FOLD_BOUNDS: FoldBounds = {
  snapshotEntries: ACCOUNT_SNAPSHOT_INTERVAL_ENTRIES,
  refsMax: ACCOUNT_FOLD_REFS_MAX,
};

/** JSON text in parts. The caller must call `close`, which lets the next request in. */
export interface TextAnswer {
  readonly chunks: AsyncIterable<string>;
  close(): void;
}

/** Who could read a repository. */
export interface RepositoryAccess {
  readonly at: Timestamp;
  /** How many entries of the log it is made of. */
  readonly sequence: number;
  readonly subjects: readonly AccessSubject[];
}

export interface AccountStates {
  /**
   * Returns the state as of the moment, or of the whole log for null, which holds at least all that was in it at
   * `seen`. Refused with `account-not-found` before the account was made, and with `moment-in-future`. Rejects with
   * the signal's reason if it aborts while others have their turn.
   */
  stateAt(
    account: AccountId,
    at: Timestamp | null,
    request: { readonly seen: LogPosition; readonly signal: AbortSignal },
  ): Promise<TextAnswer | { readonly refused: Refusal }>;
  /**
   * Returns who could read the account's repository as of the moment, or now for null. Refused with
   * `repository-not-there-then` if the account did not have it then, and with `moment-in-future`. Rejects as `stateAt`.
   */
  accessAt(
    wanted: { readonly account: AccountId; readonly repository: RepositoryId; readonly at: Timestamp | null },
    request: { readonly seen: LogPosition; readonly signal: AbortSignal },
  ): Promise<RepositoryAccess | { readonly refused: Refusal }>;
  /**
   * Saves the snapshots that long logs lack, so that nobody's request folds a long log from its first entry. Called now
   * and then, on any number of nodes. Rejects if the read models cannot be reached; resolves early on the signal.
   */
  keepSnapshots(signal: AbortSignal): Promise<void>;
}

/**
 * The places that are read in one step. Their events are read in batches of a bounded length. Internal: the rest is
 * read in further pages.
 */
const PAGE_ENTRIES_MAX = 200;

const READ_AT_ONCE = { countMax: PAGE_ENTRIES_MAX, lengthMax: ENTRIES_READ_LENGTH_MAX };

/** Folds of a node that hold all updates of a wide push take turns: one has tens of MiB. */
const WIDE_PUSHES_AT_ONCE = 1;

interface FoldContext extends AccountStatesContext {
  readonly wideInTurn: <Result>(work: () => Promise<Result>) => Promise<Result>;
}

export function createAccountStates(options: AccountStatesContext): AccountStates {
  const context: FoldContext = { ...options, wideInTurn: createConcurrencyLimit(WIDE_PUSHES_AT_ONCE) };
  const slots = createFairSlots({ slots: ACCOUNT_STATES_AT_ONCE_MAX, slotsPerKey: 1 });
  // Only of accounts with a long log.
  const kept = new Map<AccountId, number>();
  return {
    keepSnapshots: (signal) => keepSnapshots(context, kept, signal),
    async accessAt({ account, repository, at }, { seen, signal }) {
      const prefix = await logAsOf(context, account, at, seen);
      if ('refused' in prefix) return prefix;
      const close = await slots.acquire(account, signal);
      try {
        const fold = await foldUpTo(context, account, prefix.size, signal);
        const moment = at ?? context.clock.now();
        const subjects = subjectsOf(fold, repository, moment);
        if (subjects === null) return refuse({ code: 'repository-not-there-then' });
        return { at: moment, sequence: fold.sequence, subjects };
      } finally {
        close();
      }
    },
    async stateAt(account, at, { seen, signal }) {
      const prefix = await logAsOf(context, account, at, seen);
      if ('refused' in prefix) return prefix;
      const close = await slots.acquire(account, signal);
      try {
        const fold = await foldUpTo(context, account, prefix.size, signal);
        if (madeAccount(fold) === null) {
          close();
          return refuse({ code: 'account-not-found' });
        }
        const { digest, clock } = context;
        const sources = { digest, nextTurn: clock.nextTurn, refsOf: refsOf(context) };
        return { chunks: accountStateText(fold, sources), close };
      } catch (error) {
        close();
        throw error;
      }
    },
  };
}

const PAGE_ACCOUNTS = 500;

/** `kept`: how many entries of each account are known to have snapshots. */
async function keepSnapshots(context: FoldContext, kept: Map<AccountId, number>, signal: AbortSignal): Promise<void> {
  const { snapshotEntries } = context.foldBounds ?? FOLD_BOUNDS;
  for (let after: AccountId | null = null; !signal.aborted; ) {
    const page = await context.readModels.accountLogs(after, PAGE_ACCOUNTS);
    for (const { account, size } of page) {
      const whole = size - (size % snapshotEntries);
      if (whole === 0 || kept.get(account) === whole) continue;
      try {
        await foldUpTo(context, account, whole, signal);
      } catch (cause) {
        if (signal.aborted) return;
        // One account that cannot be folded keeps no other from it.
        context.onFault('snapshot', cause);
      }
      kept.set(account, whole);
    }
    after = page.at(-1)?.account ?? null;
    if (page.length < PAGE_ACCOUNTS) return;
  }
}

/** The name under which the snapshots of an account's fold are kept: the log has no such stream. */
function snapshotsOf(account: AccountId): StreamName {
  return streamName('accountState', account);
}

async function foldUpTo(
  context: FoldContext,
  account: AccountId,
  size: number,
  signal: AbortSignal,
): Promise<AccountStateFold> {
  const fold = await latestFold(context, account, size);
  while (fold.sequence < size) {
    signal.throwIfAborted();
    const range = { from: fold.sequence, to: size, limit: PAGE_ENTRIES_MAX };
    const places = await context.readModels.entryPlaces(account, null, range);
    if (places.length === 0) {
      throw new EventStoreError('log-diverged', `The log of ${account} ends before entry ${fold.sequence}`);
    }
    for (const batch of entryBatches(places, READ_AT_ONCE)) {
      signal.throwIfAborted();
      await foldBatch(context, fold, batch);
    }
  }
  return fold;
}

async function foldBatch(context: FoldContext, fold: AccountStateFold, places: readonly EntryPlace[]): Promise<void> {
  const { snapshotEntries, refsMax } = context.foldBounds ?? FOLD_BOUNDS;
  const folded = places.filter(({ stream }) => isFolded(stream));
  const events = new Map<number, RecordedEvent>();
  for (const [index, event] of (await readPlaces(context.events, folded)).entries()) {
    events.set(folded[index]?.sequence ?? -1, event);
  }
  for (const place of places) {
    const event = events.get(place.sequence);
    // Only its time is needed of an entry that the state shows nothing of, and log time is the same from that.
    if (event === undefined) passEntry(fold, { id: place.eventId, occurredAt: place.logTime });
    else await foldWhole(context, fold, event);
    if (fold.sequence % snapshotEntries === 0) {
      leaveOutManyRefs(fold, refsMax);
      await saveFold(context, fold);
    }
  }
  leaveOutManyRefs(fold, refsMax);
  await context.clock.nextTurn();
}

async function foldWhole(context: FoldContext, fold: AccountStateFold, event: RecordedEvent): Promise<void> {
  const { complete, clock, foldBounds, wideInTurn } = context;
  const isWide = event.type === 'RefsUpdated' && isJsonObject(event.data['parts'] ?? null);
  if (!isWide) return foldEntry(fold, event, clock.nextTurn);
  await wideInTurn(async () => foldEntry(fold, await complete(event), clock.nextTurn));
  leaveOutManyRefs(fold, foldBounds?.refsMax);
}

/** Returns the fold of the newest snapshot of at most `size` entries, or an empty one. */
async function latestFold(
  { snapshots, readModels, onFault, foldBounds = FOLD_BOUNDS }: AccountStatesContext,
  account: AccountId,
  size: number,
): Promise<AccountStateFold> {
  if (size < foldBounds.snapshotEntries) return newAccountFold();
  const fold = await readSnapshot().catch((cause: unknown) => {
    onFault('snapshot', cause);
    return null;
  });
  if (fold === null) return newAccountFold();
  const [last] = await readModels.entryPlaces(account, null, { from: fold.sequence - 1, to: fold.sequence, limit: 1 });
  return last?.eventId === fold.lastEventId ? fold : newAccountFold();

  async function readSnapshot(): Promise<AccountStateFold | null> {
    const snapshot = await snapshots.latest(snapshotsOf(account), ACCOUNT_FOLD_SNAPSHOT_VERSION, size - 1);
    return snapshot === null ? null : readAccountFold(snapshot.state);
  }
}

async function saveFold({ snapshots, onFault }: AccountStatesContext, fold: AccountStateFold): Promise<void> {
  const state = writeAccountFold(fold);
  if (state === null || fold.accountId === null) return;
  if (canonicalJson(state).length > ACCOUNT_SNAPSHOT_LENGTH_MAX) return;
  const stream = snapshotsOf(fold.accountId);
  try {
    await snapshots.save({
      stream,
      state,
      revision: fold.sequence - 1,
      codeVersion: ACCOUNT_FOLD_SNAPSHOT_VERSION,
    });
  } catch (cause) {
    onFault('snapshot', cause);
  }
}

/** Reads the refs that a fold left out from the repository's stream, at most one repository at a time. */
function refsOf({ past }: AccountStatesContext): (id: RepositoryId, revision: number) => Promise<NamedRefs> {
  return async (id, revision) => {
    const { state } = await past.repositoryAt(id, revision);
    if (state.status !== 'open') throw new TypeError(`Repository ${id} is closed at revision ${revision}`);
    return namedRefs(state.refs);
  };
}

/** Returns refs of a repository's state in the form of the fold. */
export function* namedRefs(refs: Refs): Generator<readonly [RefName, FoldedRef]> {
  for (const [name, { id, peeled }] of refs.entries()) yield [name, { target: id, peeled }];
}
