/**
 * The past of an account: which part of its log a moment selects, and a repository as it stood there.
 *
 * Invariants: a moment selects a prefix of the account's log (core/runtime/log-time.ts), and everything shown as of
 * that moment is folded from that prefix alone.
 */
import type { OwnedRepository } from '../../account/repositories/state.ts';
import { refuse } from '../../kernel/decider.ts';
import type { LogPosition } from '../../kernel/envelope.ts';
import { type AccountId, later, type RepositoryId, type Timestamp } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { AccountLogReader, LogPrefix } from '../../ports/account-log.ts';
import type { Clock } from '../../ports/clock.ts';
import { FALLBACK_DEFAULT_BRANCH, type OpenRepository } from '../../repository/state.ts';
import type { Entity } from '../../runtime/entity.ts';
import type { PastEntities } from '../../runtime/past-entities.ts';

export interface LogAsOfContext {
  readonly readModels: Pick<AccountLogReader, 'accountLogCaughtUp' | 'logPrefix'>;
  readonly clock: Pick<Clock, 'now'>;
}

/**
 * Returns the account's log as of the moment, or the whole log for null: at least all that it had at `seen`. Refused
 * with `moment-in-future` for a moment after both now and the log time of the last entry.
 */
export async function logAsOf(
  { readModels, clock }: LogAsOfContext,
  account: AccountId,
  at: Timestamp | null,
  seen: LogPosition,
): Promise<LogPrefix | { readonly refused: Refusal }> {
  await readModels.accountLogCaughtUp(seen);
  const now = clock.now();
  if (at !== null && at > now) {
    const { logTime } = await readModels.logPrefix(account, null);
    if (at > later(now, logTime)) return refuse({ code: 'moment-in-future' });
  }
  return readModels.logPrefix(account, at);
}

/** A repository at an earlier position of the log. */
export interface RepositoryAsOf {
  /** Its entry in the account's list at that position: the name and the description that it had. */
  readonly owned: OwnedRepository;
  /** Refs, layers and revision at that moment. The revision is `none` before the first push. */
  readonly entity: Entity<OpenRepository>;
  /** The short name of the branch that HEAD named. */
  readonly defaultBranch: string;
}

/**
 * Returns the account's repository at the position, which must not be beyond the log's head. Null if the account did
 * not have it then: it was not made yet, or it was deleted.
 */
export async function repositoryAt(
  { past }: { readonly past: PastEntities },
  { id, accountId }: { readonly id: RepositoryId; readonly accountId: AccountId },
  position: LogPosition,
): Promise<RepositoryAsOf | null> {
  const account = await past.accountAt(accountId, position);
  const owned = 'repositories' in account ? account.repositories.get(id) : undefined;
  if (owned === undefined) return null;
  const entity = await past.repositoryAsOf(id, position);
  const { state } = entity;
  if (state.status === 'closed') return null;
  const defaultBranch = state.defaultBranch ?? owned.initialDefaultBranch ?? FALLBACK_DEFAULT_BRANCH;
  return { owned, entity: { ...entity, state }, defaultBranch };
}
