/**
 * Erases accounts again that a restored database knows as they were before their erasure. A server does this before it
 * answers its first request.
 *
 * Invariants: an account is erased again only if an object of its erasure lies in the platform's store. A vault that
 * was restored without the log is erased again too. Memory is bounded, whatever the number of objects.
 */
import { accounts } from '../../account/evolve.ts';
import type { ErasedAccount } from '../../account/state.ts';
import { createConcurrencyLimit } from '../../kernel/concurrency-limit.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { Log } from '../../ports/log.ts';
import { VaultError } from '../../ports/vault.ts';
import { systemCause } from '../../runtime/system-cause.ts';
import { type ErasureContext, eraseAccount, finishErasure } from './erase-account.ts';
import { recordedErasures } from './erasure-records.ts';

export type RepeatingContext = ErasureContext & { readonly log: Log };

const POLICY = 'repeat-erasures';
const LOOKED_AT_AT_ONCE = 8;
/** Accounts that are looked at together. Internal: the rest is in further batches. */
const BATCH_ACCOUNTS_MAX = 1_000;

/** Rejects if the log, the vault or the platform's store cannot be reached. */
export async function repeatErasures(context: RepeatingContext): Promise<void> {
  const limited = createConcurrencyLimit(LOOKED_AT_AT_ONCE);
  let batch: AccountId[] = [];
  const repeatBatch = async (): Promise<void> => {
    await Promise.all(batch.map((account) => limited(() => repeat(context, account))));
    batch = [];
  };
  for await (const account of recordedErasures(context.platformStore)) {
    batch.push(account);
    if (batch.length === BATCH_ACCOUNTS_MAX) await repeatBatch();
  }
  await repeatBatch();
}

async function repeat(context: RepeatingContext, account: AccountId): Promise<void> {
  const { state } = await context.entities.get(accounts, account);
  // The database is from before the account was made, or of another service.
  if (state.status === 'absent' || state.status === 'abandoned') return;
  if (state.status === 'erased' && !(await isReadable(context, account, state))) return;
  const cause = systemCause(context.ids, POLICY);
  if (state.status === 'erased') await finishErasure(context, cause, account);
  else await eraseAccount(context, cause, account);
  context.log.warn({ account }, 'Erased an account again, which this database had from before its erasure');
}

/** Whether the vault still opens records of the account. */
async function isReadable(
  { vault }: RepeatingContext,
  account: AccountId,
  { emailRef }: ErasedAccount,
): Promise<boolean> {
  try {
    return (await vault.get(account, 'email', emailRef)) !== null;
  } catch (error) {
    if (error instanceof VaultError && error.code === 'record-tampered') return true;
    throw error;
  }
}
