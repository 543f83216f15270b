/** The account's usage, and the quotas of its plan. */
import type { z } from 'zod';
import { accountUsage } from '../../../core/use-cases/reading/account-usage.ts';
import { ok } from '../http/answer.ts';
import type { AccountCall, Outcome } from '../route.ts';
import type { USAGE } from '../schemas/usage.ts';

export async function getUsage({ context, principal, position }: AccountCall): Promise<Outcome> {
  const usage = await accountUsage(context, principal.account, position);
  if ('refused' in usage) return usage;
  const json: z.output<typeof USAGE> = {
    repos: usage.repositories,
    storage_bytes: usage.storageBytes,
    transfer_bytes: usage.transferBytes,
    ingress_bytes: usage.ingressBytes,
  };
  return ok(json);
}
