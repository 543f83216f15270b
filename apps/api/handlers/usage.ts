/** The account's usage, and the quotas of its plan. */
import type { z } from 'zod';
import { accountBucketStorage, accountUsage } from '../../../core/use-cases/reading/account-usage.ts';
import { ok } from '../http/answer.ts';
import type { AccountCall, Outcome } from '../route.ts';
import type { USAGE } from '../schemas/usage.ts';

export async function getUsage({ context, principal, position }: AccountCall): Promise<Outcome> {
  const usage = await accountUsage(context, principal.account, position);
  if ('refused' in usage) return usage;
  const buckets = await accountBucketStorage(context, principal.account, position);
  const json: z.output<typeof USAGE> = {
    repos: usage.repositories,
    storage_bytes: usage.storageBytes,
    transfer_bytes: usage.transferBytes,
    ingress_bytes: usage.ingressBytes,
    byo_storage_bytes: {
      used: buckets.reduce((sum, { storageBytes }) => sum + storageBytes, 0),
      quota: null,
      buckets: buckets.map(({ storageBucketId, storageBytes }) => ({
        storage_bucket_id: storageBucketId,
        used: storageBytes,
      })),
    },
  };
  return ok(json);
}
