/** The transfer budget of this process. REST and Git share it, so that bytes sent by one count for the other. */
import { LRUCache } from 'lru-cache';
import type { AccountId } from '../../core/kernel/ids.ts';
import {
  createTransferBudget,
  type ProjectedSum,
  type TransferBudget,
  type TransferBudgetContext,
} from '../../core/usage/budget.ts';

/** How many accounts' projected sums are cached; those of other accounts are read again. */
const ACCOUNTS_MAX = 10_000;

export function createSharedTransferBudget(context: TransferBudgetContext): TransferBudget {
  const sums = new LRUCache<AccountId, ProjectedSum>({ max: ACCOUNTS_MAX });
  return createTransferBudget(context, {
    get: (account) => sums.get(account),
    set: (account, sum) => {
      sums.set(account, sum);
    },
  });
}
