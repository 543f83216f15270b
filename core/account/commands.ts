/** What can be asked of an account. */
import type { RepositoryId, Uuid } from '../kernel/ids.ts';
import type { VaultRef } from '../ports/vault.ts';
import type { Plan, PlanQuotas } from './plans.ts';

export type AccountCommand =
  | {
      readonly type: 'CreateAccount';
      readonly username: string;
      readonly emailRef: VaultRef;
      readonly passwordHashRef: VaultRef;
      readonly plan: Plan;
    }
  | { readonly type: 'AbandonAccount' }
  | { readonly type: 'ChangePlan'; readonly plan: Plan }
  | { readonly type: 'ChangePassword'; readonly passwordHashRef: VaultRef }
  | { readonly type: 'EraseAccount' }
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
