/**
 * All read models, and how far they have applied the log. A reader depends only on the part that it needs.
 *
 * Invariants: an answer describes one moment (one snapshot of the database). A reader that has seen a position of
 * the log waits until the models reach it, so no answer is older than what its reader already knows.
 */
import { CodedError } from '../kernel/coded-error.ts';
import type { LogPosition } from '../kernel/envelope.ts';
import type { AccessTokenLists, KnownTokens } from './access-token-lists.ts';
import type { AccountLogReader } from './account-log.ts';
import type { ActivityReader } from './activity.ts';
import type { BucketErrorLists } from './bucket-error-lists.ts';
import type { HistoryReader } from './history.ts';
import type { BucketsInUse, HalfDeletedRepositories, RepositoryLists, RepositoryOwners } from './repository-lists.ts';
import type { SignInsReader } from './sign-ins.ts';
import type {
  BucketStorageReader,
  ChangesProgress,
  ChangesReader,
  DailyTrafficReader,
  DeletedStorageReader,
  UsageReader,
  WaitingStorageReader,
} from './usage.ts';
import type { UsageLedgerReader } from './usage-ledger.ts';
import type { WebhookDeliveryLists } from './webhook-delivery-lists.ts';

export interface ReadModelProgress {
  /** Resolves when every model has applied the log up to the position; rejects after `READ_WAIT_MS`. */
  caughtUp(position: LogPosition): Promise<void>;
}

export type ReadModels = ReadModelProgress &
  RepositoryLists &
  HalfDeletedRepositories &
  BucketsInUse &
  RepositoryOwners &
  HistoryReader &
  AccessTokenLists &
  KnownTokens &
  ActivityReader &
  AccountLogReader &
  WebhookDeliveryLists &
  BucketErrorLists &
  UsageReader &
  ChangesReader &
  ChangesProgress &
  UsageLedgerReader &
  SignInsReader &
  BucketStorageReader &
  DeletedStorageReader &
  WaitingStorageReader &
  DailyTrafficReader;

export type ReadModelErrorCode =
  /** The model did not reach the position in time: retry. */
  | 'read-model-behind'
  /** The model could not apply an event of this stream; an operator must act. */
  | 'read-model-parked'
  | 'read-model-unavailable';

export class ReadModelError extends CodedError<ReadModelErrorCode> {
  override readonly name = 'ReadModelError';
}
