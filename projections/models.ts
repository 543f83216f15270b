/** The read models of the service, for the runner and for those who read them. */
import { accessTokensProjection } from './access-tokens/apply.ts';
import { createHistoryProjection, type HistoryOptions } from './history/apply.ts';
import type { ReadModelsOptions } from './read-models.ts';
import { repositoriesProjection } from './repositories/apply.ts';
import { usageProjection } from './usage/apply.ts';
import { webhookDeliveriesProjection } from './webhook-deliveries/apply.ts';

export function createModels(options: HistoryOptions): ReadModelsOptions['models'] {
  return {
    repositories: repositoriesProjection,
    history: createHistoryProjection(options),
    accessTokens: accessTokensProjection,
    usage: usageProjection,
    webhookDeliveries: webhookDeliveriesProjection,
  };
}
