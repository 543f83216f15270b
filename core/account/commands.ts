/** The commands of the account itself. Each facet has commands of its own. */
import type { RepositoryId, Timestamp } from '../kernel/ids.ts';
import type { VaultRef } from '../kernel/vault-ref.ts';
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
  | {
      readonly type: 'ChangeEmail';
      readonly emailRef: VaultRef;
      /** The name of the claim of the address before; null if the new address has the same. */
      readonly previousClaim: string | null;
    }
  | { readonly type: 'CloseAccount'; readonly eraseAt: Timestamp }
  | { readonly type: 'ReopenAccount'; readonly epoch: number; readonly now: Timestamp }
  | { readonly type: 'RecordMasterKeyRotation'; readonly keyId: string }
  /** Records the key that signs the log from then on. `signature` is in base64. */
  | {
      readonly type: 'EndorseLogKey';
      readonly key: string;
      readonly previous: string;
      readonly signature: string | null;
    }
  /** Records that the log does not continue a checkpoint of it. `root` is in base64. */
  | { readonly type: 'AcceptTailLoss'; readonly size: number; readonly root: string; readonly reason: string }
  /** Records that a repository was made of a manifest which names another account. */
  | { readonly type: 'RecordRebuild'; readonly repository: RepositoryId; readonly source: RepositoryId }
  | { readonly type: 'EraseAccount' }
  /** Erases an account only if it is closed and its time is over. */
  | { readonly type: 'EraseDueAccount'; readonly now: Timestamp };
