/** Transfer of this process: its budget, which REST and Git share, so that bytes sent by one count for the other. */
import { LRUCache } from 'lru-cache';
import type { AccountId } from '../../core/kernel/ids.ts';
import { countedCache } from '../../core/kernel/shown-caches.ts';
import {
  createTransferBudget,
  type ProjectedSum,
  type TransferBudget,
  type TransferBudgetContext,
} from '../../core/usage/budget.ts';
import type { TransferMeter } from '../../core/usage/meter.ts';
import { actorOf, type Principal } from '../../core/use-cases/callers/principal.ts';
import type { FoundRepository } from '../../core/use-cases/repositories/repositories.ts';

/**
 * How many accounts' projected sums are cached; those of other accounts are read again. Internal: what is not kept is
 * read again.
 */
const ACCOUNTS_MAX = 10_000;

export function createSharedTransferBudget(context: TransferBudgetContext): TransferBudget {
  const sums = countedCache('transfer_sums', 'entries', new LRUCache<AccountId, ProjectedSum>({ max: ACCOUNTS_MAX }));
  return createTransferBudget(context, {
    get: (account) => sums.get(account),
    set: (account, sum) => {
      sums.set(account, sum);
    },
  });
}

export interface Sent {
  readonly principal: Principal;
  /** The address when the request began: a connection that has ended has no address. */
  readonly address: string;
  readonly sentBytes: number;
}

/** Counts a push that was refused after its pack had arrived whole, as ingress of the repository's owner. */
export function countRefused(
  { transfer }: { readonly transfer: Pick<TransferMeter, 'addRefused'> },
  repository: Pick<FoundRepository, 'accountId' | 'id'>,
  { principal, address, receivedBytes }: Omit<Sent, 'sentBytes'> & { readonly receivedBytes: number },
): void {
  const reader = actorOf(principal);
  transfer.addRefused({ account: repository.accountId, reader, repository: repository.id, receivedBytes, address });
}

/** Counts what an answer sent of a repository, against its owner's transfer. */
export function countSent(
  { transfer }: { readonly transfer: Pick<TransferMeter, 'add'> },
  repository: Pick<FoundRepository, 'accountId' | 'id'>,
  { principal, address, sentBytes }: Sent,
): void {
  const reader = actorOf(principal);
  transfer.add({ account: repository.accountId, reader, repository: repository.id, sentBytes, address });
}
