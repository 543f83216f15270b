/**
 * The read models as the rest of the service asks them (core/ports/read-models.ts, core/ports/usage.ts).
 *
 * Must stay true: an answer is of one snapshot of the live generation. What is kept in memory is used only after
 * the database has said, in this very call, that the repository still stands at its revision.
 */
import { LRUCache } from 'lru-cache';
import { READ_WAIT_MS } from '../core/kernel/limits.ts';
import type { Clock } from '../core/ports/clock.ts';
import type { DueDeliveries, ReadModels } from '../core/ports/read-models.ts';
import type { UsageReader } from '../core/ports/usage.ts';
import { readAccessTokens } from './access-tokens/queries.ts';
import { type Branches, readBranches, readCommits, readStanding, type Standing } from './history/queries.ts';
import { createLiveReader, type LiveReader } from './live-reader.ts';
import { readHalfDeleted, readRepositories } from './repositories/queries.ts';
import type { Projection, Queryable } from './runner/projection.ts';
import type { ProjectionRunner } from './runner/runner.ts';
import { readUsage } from './usage/queries.ts';
import {
  readDeliveryBacklog,
  readDueDeliveries,
  readDueWebhooks,
  readWebhookDeliveries,
} from './webhook-deliveries/queries.ts';

export interface ReadModelsOptions {
  readonly database: Queryable;
  /** The models of the runner (models.ts). */
  readonly models: {
    readonly repositories: Projection;
    readonly history: Projection;
    readonly accessTokens: Projection;
    readonly usage: Projection;
    readonly webhookDeliveries: Projection;
  };
  /** This process's. */
  readonly runner: Pick<ProjectionRunner, 'waitFor' | 'known' | 'wentBack'>;
  readonly clock: Pick<Clock, 'now'>;
  /** Branches of repositories kept parsed; the default is 50,000 of all together. */
  readonly keptBranchesMax?: number;
}

const KEPT_BRANCHES_MAX = 50_000;

export function createReadModels(options: ReadModelsOptions): ReadModels & UsageReader & DueDeliveries {
  const { database, models, runner, clock } = options;
  // Nobody who asks waits for models that only others look at.
  const lists = [models.repositories, models.accessTokens, models.webhookDeliveries];
  const asked = [...lists, models.history, models.usage].map(({ name }) => name);
  const readerOf = (projection: Projection): LiveReader => createLiveReader(database, projection, runner);
  const repositories = readerOf(models.repositories);
  const history = readerOf(models.history);
  const accessTokens = readerOf(models.accessTokens);
  const usage = readerOf(models.usage);
  const deliveries = readerOf(models.webhookDeliveries);
  const kept = new LRUCache<string, Standing & { readonly answer: Branches }>({
    maxSize: options.keptBranchesMax ?? KEPT_BRANCHES_MAX,
    sizeCalculation: ({ answer }) => 1 + answer.branches.length,
  });
  return {
    caughtUp: (position) => runner.waitFor(position, READ_WAIT_MS, asked),
    repositories: (account, only, page) => readRepositories(repositories, account, only, page),
    halfDeleted: () => readHalfDeleted(repositories),
    async branches(repository) {
      const held = kept.get(repository);
      if (held !== undefined) {
        const now = await readStanding(history, repository);
        if (now?.revision === held.revision && now.generation === held.generation) return held.answer;
      }
      const read = await readBranches(history, repository);
      if (read === null) kept.delete(repository);
      else kept.set(repository, read);
      return read?.answer ?? null;
    },
    defaultBranchCommits: (repository, page) => readCommits(history, repository, page),
    accessTokens: (account, now) => readAccessTokens(accessTokens, account, now),
    webhookDeliveries: (account, webhook, limit) => readWebhookDeliveries(deliveries, account, webhook, limit),
    seen: (position) => runner.waitFor(position, READ_WAIT_MS, [models.webhookDeliveries.name]),
    dueWebhooks: () => readDueWebhooks(deliveries),
    dueDeliveries: (webhook, limit) => readDueDeliveries(deliveries, webhook, limit),
    backlog: () => readDeliveryBacklog(deliveries),
    usage: (account, now) => readUsage(usage, account, now),
    usageOf: (account) => readUsage(usage, account, clock.now()),
  };
}
