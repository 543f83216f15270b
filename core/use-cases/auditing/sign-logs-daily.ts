/**
 * The policy that signs each account's log once a day, if it has grown: so there is a checkpoint of it that nobody had
 * to ask for.
 *
 * Invariants: it keeps nothing of its own, since the time of the last checkpoint is that of its object. Any number of
 * nodes may run it; one account that cannot be signed keeps no other from it.
 */
import { LOG_START, type LogPosition } from '../../kernel/envelope.ts';
import { type AccountId, plusMs } from '../../kernel/ids.ts';
import type { AccountLogReader } from '../../ports/account-log.ts';
import type { LayerStore } from '../../ports/layer-store.ts';
import type { Log } from '../../ports/log.ts';
import { newestCheckpoints } from './checkpoints.ts';

export interface DailySigningContext {
  readonly readModels: Pick<AccountLogReader, 'accountLogs'>;
  readonly checkpoints: { readonly sign: (account: AccountId, position: LogPosition) => Promise<unknown> };
  /** The platform's store. */
  readonly store: Pick<LayerStore, 'list' | 'now'>;
  readonly log: Log;
}

const DAY_MS = 24 * 60 * 60_000;
const PAGE_ACCOUNTS = 500;

/**
 * Rejects if the store or the read models cannot be reached, and after the last account if one could not be signed.
 * Resolves early when the signal is aborted.
 */
export async function signDaily(
  { readModels, checkpoints, store, log }: DailySigningContext,
  signal: { readonly aborted: boolean },
): Promise<void> {
  const signed = await newestCheckpoints(store);
  const dayBefore = plusMs(await store.now(), -DAY_MS);
  let unsigned = 0;
  for (let after: AccountId | null = null; !signal.aborted; ) {
    const page = await readModels.accountLogs(after, PAGE_ACCOUNTS);
    for (const { account, size } of page) {
      if (signal.aborted) return;
      const last = signed.get(account);
      if (last !== undefined && (last.size >= size || last.storedAt > dayBefore)) continue;
      try {
        await checkpoints.sign(account, LOG_START);
      } catch (err) {
        unsigned += 1;
        log.error({ err, account }, 'The log of an account was not signed');
      }
    }
    after = page.at(-1)?.account ?? null;
    if (page.length < PAGE_ACCOUNTS) break;
  }
  if (unsigned > 0) throw new Error(`The logs of ${unsigned} accounts were not signed`);
}
