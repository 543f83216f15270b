/**
 * Bounds the archives that a node makes at the same time: for each, git works for as long as a client cares to read.
 *
 * Invariants: an account never has more than its share, whether it runs or waits; those that wait take turns by
 * account; a place is given back exactly once.
 */
import { createFairSlots } from '../../core/kernel/fair-slots.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import { ARCHIVES_AT_ONCE_MAX, ARCHIVES_AT_ONCE_OF_ACCOUNT_MAX } from '../../core/kernel/limits.ts';
import type { ArchiveLane } from '../../core/use-cases/reading/read-archive.ts';

/** How long an archive waits for its turn. */
export const ARCHIVE_WAIT_MS = 5_000;

const WAIT_SECONDS = ARCHIVE_WAIT_MS / 1_000;

export function createArchiveLane(): ArchiveLane {
  const slots = createFairSlots({ slots: ARCHIVES_AT_ONCE_MAX, slotsPerKey: ARCHIVES_AT_ONCE_OF_ACCOUNT_MAX });
  const shares = new Map<AccountId, number>();
  const addTo = (account: AccountId, change: 1 | -1): void => {
    const share = (shares.get(account) ?? 0) + change;
    if (share === 0) shares.delete(account);
    else shares.set(account, share);
  };

  /** Resolves with the release of a slot, or null if none came free in time. */
  async function turn(account: AccountId, signal: AbortSignal): Promise<(() => void) | null> {
    const tooLate = new AbortController();
    const timer = setTimeout(() => tooLate.abort(), ARCHIVE_WAIT_MS);
    try {
      return await slots.acquire(account, AbortSignal.any([signal, tooLate.signal]));
    } catch (error) {
      if (signal.aborted) throw error;
      return null;
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    async enter(account, signal) {
      if ((shares.get(account) ?? 0) >= ARCHIVES_AT_ONCE_OF_ACCOUNT_MAX) {
        return { refused: { code: 'too-many-archives', waitSeconds: WAIT_SECONDS } };
      }
      addTo(account, 1);
      let release: (() => void) | null = null;
      try {
        release = await turn(account, signal);
      } finally {
        if (release === null) addTo(account, -1);
      }
      if (release === null) return { refused: { code: 'archives-busy', waitSeconds: WAIT_SECONDS } };
      const free = release;
      let left = false;
      const leave = (): void => {
        if (left) return;
        left = true;
        addTo(account, -1);
        free();
      };
      return { leave };
    },
  };
}
