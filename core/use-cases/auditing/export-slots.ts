/**
 * Bounds how many exports of accounts' logs a node sends at once, in all and for one account.
 *
 * Must stay true: an export that finds no slot is refused instead of waiting: those before it may be read for hours. A
 * slot is freed once.
 */
import type { AccountId } from '../../kernel/ids.ts';
import { LOG_EXPORTS_AT_ONCE_MAX, LOG_EXPORTS_OF_ACCOUNT_MAX } from '../../kernel/limits.ts';

export interface ExportSlots {
  /** Returns the release of a slot, which may be called again; null if there is none. */
  take(account: AccountId): (() => void) | null;
}

export function createExportSlots(): ExportSlots {
  const running = new Map<AccountId, number>();
  let count = 0;
  return {
    take: (account) => {
      const own = running.get(account) ?? 0;
      if (count >= LOG_EXPORTS_AT_ONCE_MAX || own >= LOG_EXPORTS_OF_ACCOUNT_MAX) return null;
      running.set(account, own + 1);
      count += 1;
      let isTaken = true;
      return () => {
        if (!isTaken) return;
        isTaken = false;
        count -= 1;
        const others = (running.get(account) ?? 1) - 1;
        if (others === 0) running.delete(account);
        else running.set(account, others);
      };
    },
  };
}
