/** The read models of the service, for the runner and for the queries. */
import type { Digest } from '../core/kernel/digest.ts';
import type { Workflow } from '../core/ports/workflows.ts';
import { accessTokensProjection } from './access-tokens/apply.ts';
import { createAccountLogProjection } from './account-log/apply.ts';
import { activityProjection } from './activity/apply.ts';
import { bucketErrorsProjection } from './bucket-errors/apply.ts';
import { changesProjection } from './changes/apply.ts';
import { createHistoryProjection, type HistoryOptions } from './history/apply.ts';
import type { ReadModelsOptions } from './read-models.ts';
import { repositoriesProjection } from './repositories/apply.ts';
import type { Projection } from './runner/projection.ts';
import { usageProjection } from './usage/apply.ts';
import { usageLedgerProjection } from './usage-ledger/apply.ts';
import { webhookDeliveriesProjection } from './webhook-deliveries/apply.ts';
import { createTimersProjection } from './workflow-timers/apply.ts';

export type Models = ReadModelsOptions['models'] & {
  readonly timers: Projection;
};

export type ModelsOptions = HistoryOptions & { readonly workflows: readonly Workflow[]; readonly digest: Digest };

export function createModels(options: ModelsOptions): Models {
  return {
    repositories: repositoriesProjection,
    history: createHistoryProjection(options),
    accessTokens: accessTokensProjection,
    activity: activityProjection,
    usage: usageProjection,
    changes: changesProjection,
    usageLedger: usageLedgerProjection,
    webhookDeliveries: webhookDeliveriesProjection,
    bucketErrors: bucketErrorsProjection,
    accountLog: createAccountLogProjection(options.digest),
    timers: createTimersProjection(options.workflows),
  };
}
