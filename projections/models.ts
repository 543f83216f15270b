/** The read models of the service, for the runner and for those who read them. */
import { accessTokensProjection } from './access-tokens/apply.ts';
import { deviceSessionsProjection } from './device-sessions/apply.ts';
import { createHistoryProjection, type HistoryOptions } from './history/apply.ts';
import type { ReadModelsOptions } from './read-models.ts';
import { repositoriesProjection } from './repositories/apply.ts';
import type { Projection } from './runner/projection.ts';
import { usageProjection } from './usage/apply.ts';

export function createModels(
  options: HistoryOptions,
): ReadModelsOptions['models'] & { readonly [model: string]: Projection } {
  return {
    repositories: repositoriesProjection,
    history: createHistoryProjection(options),
    accessTokens: accessTokensProjection,
    usage: usageProjection,
    deviceSessions: deviceSessionsProjection,
  };
}
