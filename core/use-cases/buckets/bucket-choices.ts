/** Lists where a new repository of an account may be stored, for a choice: nothing that the vault holds. */
import type { StorageBucket } from '../../account/buckets/state.ts';
import { accounts } from '../../account/evolve.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { Context } from '../../runtime/execute.ts';

export type BucketChoice = Pick<StorageBucket, 'id' | 'name' | 'status'> & { readonly isDefault: boolean };

/** In the order of their creation. */
export async function bucketChoices(
  { entities }: Pick<Context, 'entities'>,
  account: AccountId,
): Promise<readonly BucketChoice[]> {
  const { state } = await entities.get(accounts, account);
  if (state.status !== 'open') return [];
  return [...state.storageBuckets.values()].map(({ id, name, status }) => ({
    id,
    name,
    status,
    isDefault: state.defaultBucketId === id,
  }));
}
