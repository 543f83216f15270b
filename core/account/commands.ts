/** The commands of the account itself. Each facet has commands of its own. */
import type { VaultRef } from '../ports/vault.ts';
import type { Plan } from './plans.ts';

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
  | { readonly type: 'EraseAccount' };
