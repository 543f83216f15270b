/**
 * What the handlers of the API and the pages of the website call use cases with: a context for each subject, beside the
 * front door's. apps/server/request-contexts.ts creates each of them.
 *
 * Invariants: a member stands in one of these contexts only, so that its origin is found in one step. A member that
 * several subjects use stands with the subject that it is about.
 */
import type { FairSlots } from '../../core/kernel/fair-slots.ts';
import type { AccessTokenId } from '../../core/kernel/ids.ts';
import type { BucketFindingRows } from '../../core/ports/bucket-findings.ts';
import type { Pause, SettledWithin } from '../../core/ports/clock.ts';
import type { DeliveryStore } from '../../core/ports/delivery-store.ts';
import type { DeviceLoginRequests } from '../../core/ports/device-login-requests.ts';
import type { Failpoint } from '../../core/ports/failpoints.ts';
import type { IdentityIssuer } from '../../core/ports/identity-issuer.ts';
import type { IdentityTokens } from '../../core/ports/identity-tokens.ts';
import type { LayerCounts, LayerDrops } from '../../core/ports/layer-drops.ts';
import type { LayerStores } from '../../core/ports/layer-stores.ts';
import type { ObjectDatabase } from '../../core/ports/object-database.ts';
import type { OutgoingRequests } from '../../core/ports/outgoing-requests.ts';
import type { PolicyMarks } from '../../core/ports/policy-marks.ts';
import type { ReadModels } from '../../core/ports/read-models.ts';
import type { RefusedExchanges } from '../../core/ports/refused-exchanges.ts';
import type { UsageReader } from '../../core/ports/usage.ts';
import type { Vault } from '../../core/ports/vault.ts';
import type { WaitingDeliveries } from '../../core/ports/waiting-deliveries.ts';
import type { WebhookBudgets } from '../../core/ports/webhook-budgets.ts';
import type { PastEntities } from '../../core/runtime/past-entities.ts';
import type { AccountStates } from '../../core/use-cases/auditing/account-states.ts';
import type { Checkpoints } from '../../core/use-cases/auditing/checkpoints.ts';
import type { ExportContext } from '../../core/use-cases/auditing/export-account-log.ts';
import type { RepositoryRefs } from '../../core/use-cases/auditing/repository-refs.ts';
import type { BucketChecks } from '../../core/use-cases/buckets/bucket-checks.ts';
import type { ArchiveLane } from '../../core/use-cases/reading/read-archive.ts';
import type { PurgeContext } from '../../core/use-cases/undo/purge-repository.ts';
import type { FrontDoor } from './front-door.ts';
import type { KnownAnswers } from './known-answers.ts';
import type { Addresses } from './own-authorities.ts';

export interface HandlerContext
  extends FrontDoor,
    AccountsContext,
    TokensContext,
    BucketsContext,
    ReadingContext,
    WebhooksContext,
    AuditingContext,
    UndoContext,
    ServiceContext {}

/** Accounts, and the repositories that they create and delete. */
export interface AccountsContext {
  readonly vault: Vault;
  readonly failpoint: Failpoint;
}

/** Access tokens, device logins, and trust rules, by which identity tokens are exchanged. */
export interface TokensContext {
  readonly deviceRequests: DeviceLoginRequests;
  readonly identityTokens: IdentityTokens;
  readonly refusedExchanges: RefusedExchanges;
  /** Returns a new secret of an access token, in the form of docs/interface.md. */
  readonly newTokenSecret: () => string;
  /** Returns a new secret of the token with this id, for which an identity token is exchanged. */
  readonly newExchangedSecret: (id: AccessTokenId) => string;
  /** A device login has a code that its user compares, and a secret that its polls send. */
  readonly newUserCode: () => string;
  readonly newDeviceSecret: () => string;
}

/** Storage buckets of users, and the identity tokens by which their clouds know the service. */
export interface BucketsContext {
  readonly identity: IdentityIssuer;
  readonly bucketChecks: BucketChecks;
  readonly bucketFindings: BucketFindingRows;
}

/** Reading repositories, and lists of the read models. */
export interface ReadingContext extends KnownAnswers {
  readonly objects: ObjectDatabase;
  readonly readModels: ReadModels;
  readonly usage: UsageReader;
  readonly archives: ArchiveLane;
  /** For listings of thousands of items, searches in long lists of paths, and commits of large trees, by account. */
  readonly largeListings: FairSlots;
}

export interface WebhooksContext {
  readonly outgoing: OutgoingRequests;
  readonly deliveries: DeliveryStore;
  readonly budgets: WebhookBudgets;
  readonly waiting: WaitingDeliveries;
  readonly newWebhookSecret: () => string;
}

/** An account's log, and accounts and repositories as of a moment. */
export interface AuditingContext {
  readonly checkpoints: Checkpoints;
  readonly accountStates: AccountStates;
  readonly repositoryRefs: RepositoryRefs;
  readonly past: PastEntities;
  readonly exportSlots: ExportContext['exportSlots'];
}

/** Restoring refs, undeleting and purging repositories. */
export interface UndoContext {
  readonly layers: LayerStores;
  readonly drops: LayerDrops & LayerCounts;
  readonly pause: Pause;
  readonly settledWithin: SettledWithin;
  /** How far policies have read the log. */
  readonly marks: Pick<PolicyMarks, 'read'>;
  /** How far webhooks were notified of pushes. */
  readonly notifiedTo: PurgeContext['notifiedTo'];
  readonly manifestNow: PurgeContext['manifestNow'];
  /** Bounds the purges of living repositories, each of which reads and writes the whole repository. */
  readonly purgeSlots: FairSlots;
  /** How long what a ref reached, and a deleted repository, is kept. */
  readonly retentionMs: number;
}

/** What the service says of itself. */
export interface ServiceContext {
  /**
   * Without a trailing slash. A function, since the port is known only after the server listens when it is set to 0.
   */
  readonly addresses: () => Addresses;
}
