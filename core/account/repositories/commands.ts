/** The commands of an account's list of repositories. */
import type { RepositoryId } from '../../kernel/ids.ts';
import type { BoundPlace, WantedBucket } from '../buckets/binding.ts';
import type { PlanQuotas } from '../plans.ts';
import type { OwnedRepository } from './state.ts';

export type OwnedRepositoryCommand =
  | {
      readonly type: 'CreateRepository';
      readonly id: RepositoryId;
      readonly name: string;
      readonly description: string | null;
      readonly defaultBranch: string | null;
      readonly storageBucketId: WantedBucket;
      readonly quotas: PlanQuotas;
    }
  | { readonly type: 'DescribeRepository'; readonly id: RepositoryId; readonly description: string | null }
  | {
      readonly type: 'RenameRepository';
      readonly id: RepositoryId;
      readonly name: string;
      /** Whether it may take a name that leads to another repository, which is found by that name no more then. */
      readonly takesFormerNames: boolean;
    }
  | { readonly type: 'DeleteRepository'; readonly id: RepositoryId }
  | {
      readonly type: 'RestoreRepository';
      /** The entry that the deletion removed from the list, perhaps under another name. */
      readonly deleted: OwnedRepository;
      /** Where it was stored when it was deleted. */
      readonly place: BoundPlace;
      readonly quotas: PlanQuotas;
    };
