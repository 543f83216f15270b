/** The query of what an account uses: the sums that REST returns and that quotas are checked against. */
import type { AccountId, Timestamp } from '../../core/kernel/ids.ts';
import type { AccountUsage } from '../../core/ports/usage.ts';
import type { LiveReader, ReadQuery } from '../live-reader.ts';
import { monthOf } from './apply.ts';

const usageQuery: ReadQuery = {
  answer: (table) => `SELECT json_build_object(
    'storageBytes', (SELECT coalesce(sum(size_bytes), 0) FROM ${table('usage_storage')} WHERE account_id = $1),
    'ingressBytes', coalesce(max(ingress_bytes), 0),
    'transferBytes', coalesce(max(transfer_bytes), 0))
    FROM ${table('usage_traffic')} WHERE account_id = $1 AND month = $2`,
};

export async function readUsage(reader: LiveReader, account: AccountId, now: Timestamp): Promise<AccountUsage> {
  const { value } = await reader.read(usageQuery, [account, monthOf(now)], () => ({ account }));
  return value as AccountUsage;
}
