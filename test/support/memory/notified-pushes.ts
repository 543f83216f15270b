/** Which pushes webhooks were notified of (core/ports/notified-pushes.ts), in memory. */
import type { LogPosition } from '../../../core/kernel/envelope.ts';
import type { NotifiedPushes, NotifiedPushesStore } from '../../../core/ports/notified-pushes.ts';

export function createMemoryNotifiedPushes(): NotifiedPushesStore {
  let saved: NotifiedPushes | null = null;
  return {
    save: async (notified) => {
      saved = notified;
    },
    reachedFor: async (account) => {
      if (saved === null) return null;
      const first = saved.undone.get(account);
      return first === undefined || first > saved.reached ? saved.reached : ((first - 1n) as LogPosition);
    },
  };
}
