/** The commands of an account's list of repositories. */
import type { RepositoryId, Uuid } from '../../kernel/ids.ts';
import type { PlanQuotas } from '../plans.ts';

export type OwnedRepositoryCommand =
  | {
      readonly type: 'CreateRepository';
      readonly id: RepositoryId;
      readonly name: string;
      readonly description: string | null;
      readonly defaultBranch: string | null;
      readonly storageBucketId: Uuid | null;
      readonly quotas: PlanQuotas;
    }
  | { readonly type: 'DescribeRepository'; readonly id: RepositoryId; readonly description: string | null }
  | { readonly type: 'DeleteRepository'; readonly id: RepositoryId };
