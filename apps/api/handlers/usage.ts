/** What an account has used, and what its plan allows. */
import type { z } from 'zod';
import { accounts } from '../../../core/account/evolve.ts';
import { ok } from '../http/answer.ts';
import type { AccountCall, Outcome } from '../route.ts';
import type { USAGE } from '../schemas/usage.ts';

export async function getUsage({ context, bearer, position }: AccountCall): Promise<Outcome> {
  const { account: id } = bearer.token;
  const { state: account } = await context.entities.get(accounts, id);
  if (account.status !== 'open') return { refused: { code: 'account-not-found' } };
  await context.readModels.caughtUp(position);
  const used = await context.readModels.usage(id, context.clock.now());
  const quotas = context.plans[account.plan];
  const usage: z.output<typeof USAGE> = {
    // Counted where it is decided, so it is exact.
    repos: { used: account.repositories.size, quota: quotas.repos },
    storage_bytes: { used: used.storageBytes, quota: quotas.storage_bytes },
    transfer_bytes: { used: used.transferBytes + context.transfer.unflushedBytes(id), quota: quotas.transfer_bytes },
    ingress_bytes: { used: used.ingressBytes, quota: quotas.ingress_bytes },
  };
  return ok(usage);
}
