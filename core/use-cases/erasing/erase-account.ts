/**
 * Erases an account. After one append nobody can use it, and then its personal data is made unreadable.
 *
 * Invariants: `AccountErased` is the commit point. All steps after it are idempotent. An interrupted erasure is
 * finished by the same command or by the sweep of the vault, which reads every event. The username remains claimed,
 * because the log names the account by it; the email address is released. The data key is destroyed after the event,
 * and after the address was read, so that the data of an account that still exists is never unreadable. The erasure is
 * recorded outside the database too, after the event: a database that is restored from a backup is erased again. What a
 * request under way stores after these steps is removed by erase-leftovers.ts, which does them once more.
 */
import type { AccountCommand } from '../../account/commands.ts';
import { decideAccount } from '../../account/decide.ts';
import { accounts } from '../../account/evolve.ts';
import type { ErasedAccount } from '../../account/state.ts';
import { emailClaims, usernameClaims } from '../../claim/evolve.ts';
import type { Cause } from '../../kernel/envelope.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { BucketFindingRows } from '../../ports/bucket-findings.ts';
import type { DeliveryStore } from '../../ports/delivery-store.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import type { LayerStore } from '../../ports/layer-store.ts';
import type { PasskeyChallenges } from '../../ports/passkey-challenges.ts';
import type { RefusedExchanges } from '../../ports/refused-exchanges.ts';
import type { SessionStore } from '../../ports/session-store.ts';
import { type Vault, VaultError } from '../../ports/vault.ts';
import { type Context, execute } from '../../runtime/execute.ts';
import { type AddressContext, claimsOfEmail, settleClaim } from '../accounts/claims.ts';
import { repositoriesEver } from '../repositories/all-repositories-created.ts';
import { letLayersGo } from '../repositories/expire-layers-early.ts';
import { closeRepository } from '../repositories/repositories.ts';
import { recordErasure } from './erasure-records.ts';

export interface ErasureContext extends Context, AddressContext {
  readonly vault: Vault;
  readonly refusedExchanges: Pick<RefusedExchanges, 'remove'>;
  readonly bucketFindings: Pick<BucketFindingRows, 'remove'>;
  readonly deliveries: Pick<DeliveryStore, 'forgetAccount'>;
  readonly sessions: Pick<SessionStore, 'forgetAccount'>;
  readonly challenges: Pick<PasskeyChallenges, 'forgetAccount'>;
  readonly platformStore: Pick<LayerStore, 'put' | 'list' | 'delete'>;
  readonly failpoint: Failpoint;
}

export interface Erasure {
  /** The number of repositories that this call closed. It is lower if another call closed some of them. */
  readonly repositories: number;
  /** False if the vault record of the address was tampered with: then it cannot be read, nor its claim be found. */
  readonly addressReleased: boolean;
}

/** Erases the account, or finishes its erasure. */
export async function eraseAccount(
  context: ErasureContext,
  cause: Cause,
  account: AccountId,
): Promise<Erasure | { readonly refused: Refusal }> {
  return erase(context, cause, account, { type: 'EraseAccount' });
}

/** Does what `eraseAccount` does, for an account that is closed and whose time is over; refuses any other. */
export async function eraseDueAccount(
  context: ErasureContext,
  cause: Cause,
  account: AccountId,
): Promise<Erasure | { readonly refused: Refusal }> {
  return erase(context, cause, account, { type: 'EraseDueAccount', now: context.clock.now() });
}

async function erase(
  context: ErasureContext,
  cause: Cause,
  account: AccountId,
  command: AccountCommand,
): Promise<Erasure | { readonly refused: Refusal }> {
  const erased = await execute(context, accounts, account, { account, cause }, (state) =>
    decideAccount(state, command),
  );
  if ('refused' in erased) return erased;
  await context.failpoint('account-erased');
  return finishErasure(context, cause, account);
}

/** Does all steps that follow the event. Idempotent. Rejects with a TypeError for an account that is not erased. */
export async function finishErasure(context: ErasureContext, cause: Cause, account: AccountId): Promise<Erasure> {
  const { state } = await context.entities.reload(accounts, account);
  if (state.status !== 'erased') throw new TypeError(`Account ${account} is ${state.status}, not erased`);
  await settleClaim(context, cause, usernameClaims, state.username, account, 'Confirm');
  const addressReleased = await releaseAddress(context, cause, account, state);
  // An interrupted change of the address left its claim.
  const former = state.formerEmail?.claim ?? null;
  if (former !== null) await settleClaim(context, cause, emailClaims, former, account, 'Release');
  await context.vault.eraseAccount(account);
  await context.failpoint('erasure-key-destroyed');
  await recordErasure(context.platformStore, account);
  await context.failpoint('erasure-recorded');
  await context.sessions.forgetAccount(account);
  await context.challenges.forgetAccount(account);
  await context.deliveries.forgetAccount(account);
  await context.refusedExchanges.remove(account, null);
  await context.bucketFindings.remove(account, null);
  await context.failpoint('erasure-rows-removed');
  let repositories = 0;
  for (const id of state.repositories.keys()) {
    const closed = await closeRepository(context, { account, cause }, id);
    if ('refused' in closed) throw new TypeError(`Closing was refused: ${closed.refused.code}`);
    repositories += 1;
  }
  await removeLayers(context, cause, account);
  return { repositories, addressReleased };
}

/**
 * Removes what platform storage holds of all repositories that the account ever had. What is in a bucket of the account
 * is its owner's, and the place of the bucket was just forgotten.
 */
async function removeLayers(context: ErasureContext, cause: Cause, account: AccountId): Promise<void> {
  for await (const { id, storageBucketId } of repositoriesEver(context.events, account)) {
    if (storageBucketId !== null) continue;
    const gone = await letLayersGo(context, { account, cause }, { id, all: true, reason: 'erasure' });
    if ('refused' in gone) throw new TypeError(`Letting layers go was refused: ${gone.refused.code}`);
    // Unlike the layers of a purge they leave without a delay; what was stored and not committed, and manifests, too.
    for await (const { key } of context.platformStore.list(`repositories/${id}/`)) {
      await context.platformStore.delete(key);
      await context.failpoint('erasure-layer-removed');
    }
  }
}

async function releaseAddress(
  context: ErasureContext,
  cause: Cause,
  account: AccountId,
  { emailRef }: ErasedAccount,
): Promise<boolean> {
  let email: string | null;
  try {
    email = await context.vault.get(account, 'email', emailRef);
  } catch (error) {
    // A damaged record must not prevent the erasure of everything else.
    if (error instanceof VaultError && error.code === 'record-tampered') return false;
    throw error;
  }
  // Null if an earlier erasure destroyed the key. It had released the address before that.
  if (email !== null) {
    for (const claim of await claimsOfEmail(context, email)) {
      await settleClaim(context, cause, emailClaims, claim, account, 'Release');
    }
  }
  return true;
}
