/**
 * The read models that REST answers from: what projections keep, and how far they are.
 *
 * Must stay true: an answer is of one moment (one snapshot of the database) and says which; a reader that saw
 * a position in the log waits for the model to reach it, so nobody reads what is older than what they know.
 */
import type { Grant, Scope } from '../kernel/grants.ts';
import type { LogPosition } from '../kernel/envelope.ts';
import type { WebhookEventKind } from '../kernel/webhook-events.ts';
import type {
  AccessTokenId,
  AccountId,
  EventId,
  ObjectId,
  RepositoryId,
  Timestamp,
  Uuid,
  WebhookDeliveryId,
  WebhookId,
} from '../kernel/ids.ts';
import type { AccountUsage } from './usage.ts';

export interface Page {
  /** Items left out before the first. */
  readonly offset: number;
  readonly limit: number;
}

export interface PageOf<Item> {
  readonly items: readonly Item[];
  /** All there are, whatever the page. */
  readonly total: number;
}

export interface RepositoryRow {
  readonly id: RepositoryId;
  readonly accountId: AccountId;
  readonly username: string;
  readonly name: string;
  readonly description: string | null;
  readonly defaultBranch: string;
  readonly storageBucketId: Uuid | null;
  readonly sizeBytes: number;
  readonly createdAt: Timestamp;
  readonly pushedAt: Timestamp | null;
}

export interface PersonRow {
  readonly name: string;
  readonly email: string;
}

export interface CommitRow {
  readonly id: ObjectId;
  readonly message: string;
  readonly author: PersonRow;
  readonly committer: PersonRow;
  /** Seconds since the epoch. */
  readonly authoredAt: number;
  readonly committedAt: number;
  readonly parents: readonly ObjectId[];
}

export interface BranchRow {
  /** Short name. */
  readonly name: string;
  readonly commit: CommitRow;
}

export interface AccessTokenRow {
  readonly id: AccessTokenId;
  readonly name: string;
  readonly scope: Scope;
  readonly grants: readonly Grant[];
  readonly repositoryIds: readonly RepositoryId[];
  readonly expiresAt: Timestamp | null;
  readonly createdAt: Timestamp;
  readonly tokenPrefix: string;
}

export interface AttemptRow {
  /** Counts from 1; a redelivery starts the next. */
  readonly series: number;
  readonly attempt: number;
  readonly at: Timestamp;
  readonly durationMs: number;
  readonly httpStatus: number | null;
  /** A stable code; null for a success. */
  readonly error: string | null;
  readonly detail: string | null;
}

export interface WebhookDeliveryRow {
  readonly id: WebhookDeliveryId;
  readonly eventId: EventId;
  readonly event: WebhookEventKind;
  readonly status: 'PENDING' | 'SUCCESS' | 'FAILED';
  readonly createdAt: Timestamp;
  /** Null once it has ended. */
  readonly nextAttemptAt: Timestamp | null;
  /** Of all series, oldest first. */
  readonly attemptLog: readonly AttemptRow[];
}

/** A webhook with attempts that may be claimed. */
export interface DueWebhook {
  readonly webhook: WebhookId;
  readonly account: AccountId;
}

export interface DueDeliveryRow {
  readonly id: WebhookDeliveryId;
  readonly account: AccountId;
  /** Null for a ping. */
  readonly repository: RepositoryId | null;
  /** Whether its first attempt is still to come: these are made in order, for each repository. */
  readonly isFirst: boolean;
  /** False for a first attempt that somebody has claimed: those behind it wait until it was made. */
  readonly isDue: boolean;
}

/** What the dispatcher of deliveries asks; whether an attempt is due is decided on the delivery's own stream. */
export interface DueDeliveries {
  /** Resolves when the position is visible. */
  seen(position: LogPosition): Promise<void>;
  dueWebhooks(): Promise<readonly DueWebhook[]>;
  /** Of a webhook: at most so many first attempts, in their order, and as many others, those due the longest. */
  dueDeliveries(webhook: WebhookId, limit: number): Promise<readonly DueDeliveryRow[]>;
  /** Those that have not ended, whatever they wait for. */
  backlog(): Promise<{ readonly pending: number; readonly oldestAt: Timestamp | null }>;
}

/** The refs and commits of a repository at a revision of its stream. */
export interface AtRevision {
  readonly revision: number;
}

export interface ReadModels {
  /** Resolves when every model has applied the log up to the position; rejects with `read-model-behind` in time. */
  caughtUp(position: LogPosition): Promise<void>;
  /** Repositories of an account that are not deleted, by name without case; only the given ids unless null. */
  repositories(account: AccountId, only: readonly RepositoryId[] | null, page: Page): Promise<PageOf<RepositoryRow>>;
  /** Repositories whose deletion is cut in half: closed, and their names not yet given back. */
  halfDeleted(): Promise<readonly { readonly account: AccountId; readonly repository: RepositoryId }[]>;
  /** Every branch in byte order of names; null for a repository the model does not know. */
  branches(repository: RepositoryId): Promise<(AtRevision & { readonly branches: readonly BranchRow[] }) | null>;
  /**
   * Commits of the default branch from its tip, in the order of `git log`, at a cost that does not grow with
   * the page's number. Null when the branch does not exist.
   */
  defaultBranchCommits(
    repository: RepositoryId,
    page: Page,
  ): Promise<(AtRevision & { readonly tip: ObjectId } & PageOf<CommitRow>) | null>;
  /** Active tokens of an account, newest first, expired ones left out. */
  accessTokens(account: AccountId, now: Timestamp): Promise<readonly AccessTokenRow[]>;
  /** Deliveries to a webhook of the account, newest first. */
  webhookDeliveries(account: AccountId, webhook: WebhookId, limit: number): Promise<readonly WebhookDeliveryRow[]>;
  usage(account: AccountId, now: Timestamp): Promise<AccountUsage & { readonly repositories: number }>;
}

export type ReadModelErrorCode =
  /** It did not reach the position in time: try again. */
  | 'read-model-behind'
  /** An event of this stream could not be applied; an operator must act. */
  | 'read-model-parked'
  | 'read-model-unavailable';

export class ReadModelError extends Error {
  override readonly name = 'ReadModelError';
  readonly code: ReadModelErrorCode;
  constructor(code: ReadModelErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}
