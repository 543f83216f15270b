/**
 * Implements the queries of core/ports/read-models.ts and core/ports/due-deliveries.ts on the read models.
 *
 * Invariants: an answer is read from one snapshot of the live generation. An answer kept in memory is returned only
 * after the database has confirmed, in the same call, that the repository is still at the answer's revision.
 */
import { LRUCache } from 'lru-cache';
import { commitLength } from '../core/git/history/commit-length.ts';
import type { Digest } from '../core/kernel/digest.ts';
import { READ_WAIT_MS } from '../core/kernel/limits.ts';
import { countedCache } from '../core/kernel/shown-caches.ts';
import type { ActivityReader } from '../core/ports/activity.ts';
import type { Clock } from '../core/ports/clock.ts';
import type { DueDeliveries, EndedDeliveries, PendingDeliveries } from '../core/ports/due-deliveries.ts';
import type { ReadModels } from '../core/ports/read-models.ts';
import type {
  BucketStorageReader,
  DailyTrafficReader,
  DeletedStorageReader,
  UsageReader,
  WaitingStorageReader,
} from '../core/ports/usage.ts';
import { readAccessTokens, readTokensAmong, sumAccessTokens } from './access-tokens/queries.ts';
import {
  readAccountLogs,
  readEntryPlaceOf,
  readEntryPlaces,
  readLogPrefix,
  readTreeHashes,
} from './account-log/queries.ts';
import {
  readActivity,
  readKeyedPush,
  readPushActivity,
  readPushes,
  readPushTips,
  readRefChanges,
} from './activity/queries.ts';
import { readBucketErrors } from './bucket-errors/queries.ts';
import { readChanges } from './changes/queries.ts';
import { type Branches, type HistoryVersion, readBranches, readCommits, readVersion } from './history/queries.ts';
import { createLiveReader, type LiveReader } from './live-reader.ts';
import {
  findRepositories,
  readBucketsInUse,
  readHalfDeleted,
  readOwner,
  readRepositories,
} from './repositories/queries.ts';
import type { Projection, Queryable } from './runner/projection.ts';
import type { ProjectionRunner } from './runner/runner.ts';
import { readUnsummedSignIns } from './sign-ins/queries.ts';
import {
  readBucketStorage,
  readDailyTraffic,
  readDeletedStorageBytes,
  readPurgedInBucket,
  readPurgesOf,
  readUsage,
  readWaitingStorageBytes,
} from './usage/queries.ts';
import { readRepositoryUses, readTokenUses, readUsageLedger } from './usage-ledger/queries.ts';
import {
  readDeliveryBacklog,
  readDueDeliveries,
  readDueWebhooks,
  readPendingAmong,
  readPendingOfAccount,
  readWebhookDeliveries,
  readWebhookDelivery,
} from './webhook-deliveries/queries.ts';

export interface ReadModelsOptions {
  readonly database: Queryable;
  /** The projections that the runner keeps (models.ts). */
  readonly models: {
    readonly repositories: Projection;
    readonly history: Projection;
    readonly accessTokens: Projection;
    readonly activity: Projection;
    readonly usage: Projection;
    readonly changes: Projection;
    readonly usageLedger: Projection;
    readonly webhookDeliveries: Projection;
    readonly bucketErrors: Projection;
    readonly accountLog: Projection;
  };
  /** This process's runner. */
  readonly runner: Pick<ProjectionRunner, 'waitFor' | 'knownPosition' | 'positionWentBack'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly digest: Digest;
}

/**
 * The memory for parsed branches of all repositories together: room for some 50,000 of usual size. Internal: what is
 * not kept is read again.
 */
const CACHED_BRANCHES_BYTES_MAX = 64 * 1024 * 1024;

const BRANCH_BYTES = 500;

function createBranchesCache() {
  return countedCache(
    'branches',
    'memory',
    new LRUCache<string, HistoryVersion & { readonly answer: Branches }>({
      maxSize: CACHED_BRANCHES_BYTES_MAX,
      sizeCalculation: ({ answer }) =>
        answer.branches.reduce((sum, { name, commit }) => sum + name.length + commitLength(commit), 0) +
        BRANCH_BYTES * (1 + answer.branches.length),
    }),
  );
}

export type AllReadModels = ReadModels & DueDeliveries & PendingDeliveries & EndedDeliveries;

export function createReadModels(options: ReadModelsOptions): AllReadModels {
  const { database, models, runner, clock, digest } = options;
  // Callers of `caughtUp` do not wait for models that only background work reads.
  const lists = [models.repositories, models.accessTokens, models.activity, models.webhookDeliveries];
  const requestModels = [...lists, models.bucketErrors, models.history, models.usage].map(({ name }) => name);
  const readerOf = (projection: Projection): LiveReader => createLiveReader(database, projection, runner);
  const repositories = readerOf(models.repositories);
  const history = readerOf(models.history);
  const accessTokens = readerOf(models.accessTokens);
  const activity = readerOf(models.activity);
  const usage = readerOf(models.usage);
  const changes = readerOf(models.changes);
  const usageLedger = readerOf(models.usageLedger);
  const deliveries = readerOf(models.webhookDeliveries);
  const errorsOfBuckets = readerOf(models.bucketErrors);
  const accountLog = readerOf(models.accountLog);
  const cache = createBranchesCache();
  return {
    caughtUp: (position) => runner.waitFor(position, READ_WAIT_MS, requestModels),
    repositories: (account, only, page) => readRepositories(repositories, account, only, page),
    repositoriesWith: (account, text, page) => findRepositories(repositories, account, text, page),
    halfDeleted: () => readHalfDeleted(repositories),
    bucketsInUse: () => readBucketsInUse(repositories),
    ownerOf: (repository) => readOwner(repositories, repository),
    async branches(repository) {
      const cached = cache.get(repository);
      if (cached !== undefined) {
        const now = await readVersion(history, repository);
        if (now?.revision === cached.revision && now.generation === cached.generation) return cached.answer;
      }
      const read = await readBranches(history, repository);
      if (read === null) cache.delete(repository);
      else cache.set(repository, read);
      return read?.answer ?? null;
    },
    defaultBranchCommits: (repository, page) => readCommits(history, repository, page),
    accessTokens: (account, now) => readAccessTokens(accessTokens, account, now),
    accessTokenSums: (account, now, besides) => sumAccessTokens(accessTokens, account, now, besides),
    async tokensAmong(ids, position) {
      await runner.waitFor(position, READ_WAIT_MS, [models.accessTokens.name]);
      return readTokensAmong(accessTokens, ids);
    },
    ...activityReaders(activity, options),
    webhookDeliveries: (account, webhook, limit) => readWebhookDeliveries(deliveries, account, webhook, limit),
    webhookDelivery: (account, webhook, delivery) => readWebhookDelivery(deliveries, account, webhook, delivery),
    accountLogCaughtUp: (position) => runner.waitFor(position, READ_WAIT_MS, [models.accountLog.name]),
    logPrefix: (account, at) => readLogPrefix(accountLog, account, at),
    entryPlaces: (account, filter, range) => readEntryPlaces(accountLog, account, filter, range),
    entryPlaceOf: (account, event) => readEntryPlaceOf(accountLog, account, event),
    accountLogs: (after, limit) => readAccountLogs(accountLog, after, limit),
    treeHashes: (account, subtrees) => readTreeHashes(accountLog, digest, account, subtrees),
    bucketErrors: (wanted, page) => readBucketErrors(errorsOfBuckets, wanted, page),
    deliveriesCaughtUp: (position) => runner.waitFor(position, READ_WAIT_MS, [models.webhookDeliveries.name]),
    dueWebhooks: () => readDueWebhooks(deliveries),
    dueDeliveries: (webhook, limit) => readDueDeliveries(deliveries, webhook, limit),
    pendingOfAccount: (account, limit) => readPendingOfAccount(deliveries, account, limit),
    pendingAmong: (account, ...among) => readPendingAmong(deliveries, account, ...among),
    backlog: () => readDeliveryBacklog(deliveries),
    ...usageReaders(usage, options),
    changesCaughtUp: (position) => runner.waitFor(position, READ_WAIT_MS, [models.changes.name]),
    changesOf: (account) => readChanges(changes, account, clock.now()),
    usageLedgerCaughtUp: (position) => runner.waitFor(position, READ_WAIT_MS, [models.usageLedger.name]),
    usageLedger: (account, month, page) => readUsageLedger(usageLedger, account, month, page),
    repositoryUses: (wanted, page) => readRepositoryUses(usageLedger, wanted, page),
    unsummedSignIns: (account) => readUnsummedSignIns(usageLedger, account),
    tokenUses: (account, token, page) => readTokenUses(usageLedger, account, token, page),
  };
}

function activityReaders(activity: LiveReader, { models, runner }: ReadModelsOptions): ActivityReader {
  return {
    activity: (repository, page) => readActivity(activity, repository, page),
    pushActivity: (repository, wanted) => readPushActivity(activity, repository, wanted),
    changes: (repository, first, count) => readRefChanges(activity, repository, first, count),
    pushes: (repository, revisions) => readPushes(activity, repository, revisions),
    pushTips: (repository, from, limit) => readPushTips(activity, repository, from, limit),
    async keyedPush(repository, push, position) {
      await runner.waitFor(position, READ_WAIT_MS, [models.activity.name]);
      return readKeyedPush(activity, repository, push);
    },
  };
}

type UsageReaders = UsageReader &
  DeletedStorageReader &
  WaitingStorageReader &
  BucketStorageReader &
  DailyTrafficReader;

function usageReaders(usage: LiveReader, { models, runner, clock }: ReadModelsOptions): UsageReaders {
  return {
    usageOf: (account) => readUsage(usage, account, clock.now()),
    deletedStorageBytes: (account) => readDeletedStorageBytes(usage, account),
    waitingStorageBytes: (account, removed) => readWaitingStorageBytes(usage, account, removed),
    async purgesOf(wanted) {
      await runner.waitFor(wanted.seen, READ_WAIT_MS, [models.usage.name]);
      return readPurgesOf(usage, wanted);
    },
    async purgedInBucket(wanted) {
      await runner.waitFor(wanted.seen, READ_WAIT_MS, [models.usage.name]);
      return readPurgedInBucket(usage, wanted);
    },
    bucketStorage: (account) => readBucketStorage(usage, account),
    dailyTraffic: (account) => readDailyTraffic(usage, account, clock.now()),
  };
}
