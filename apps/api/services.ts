/** The API's context with what the API keeps in memory beside it. */
import { LRUCache } from 'lru-cache';
import type { ObjectId } from '../../core/kernel/ids.ts';
import type { CommitTotals } from '../../core/use-cases/list-commits.ts';
import { type BodyCache, createBodyCache, type EncodedBody } from './body-cache.ts';
import type { ApiContext } from './context.ts';
import { createTransferBudget, type TransferBudget } from './transfer-budget.ts';

export interface ApiServices extends ApiContext {
  readonly bodies: BodyCache;
  readonly commitTotals: CommitTotals;
  readonly transferBudget: TransferBudget;
  /** The OpenAPI document; there once the routes are. */
  readonly openApi: () => EncodedBody;
}

const COMMIT_TOTALS_MAX = 10_000;

export function createApiServices(context: ApiContext, openApi: () => EncodedBody): ApiServices {
  const totals = new LRUCache<ObjectId, number>({ max: COMMIT_TOTALS_MAX });
  return {
    ...context,
    bodies: createBodyCache(),
    commitTotals: {
      get: (tip) => totals.get(tip),
      set: (tip, total) => {
        totals.set(tip, total);
      },
    },
    transferBudget: createTransferBudget(context),
    openApi,
  };
}
