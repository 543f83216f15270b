/** In-memory versions of core/ports/webhook-budgets.ts and core/ports/waiting-pushes.ts, for tests. */
import type { AccountId, EventId, Timestamp } from '../../../core/kernel/ids.ts';
import type { WaitingPush, WaitingPushes } from '../../../core/ports/waiting-pushes.ts';
import type { WebhookBudgets } from '../../../core/ports/webhook-budgets.ts';

export function createMemoryWebhookBudgets(): WebhookBudgets {
  const taken = new Map<AccountId, Map<Timestamp, number>>();
  return {
    async take(account, { hours, count, perHour }) {
      const before = taken.get(account) ?? new Map<Timestamp, number>();
      const after = new Map(hours.map((hour) => [hour, before.get(hour) ?? 0]));
      const parts: { hour: Timestamp; first: number; count: number }[] = [];
      let left = count;
      for (const hour of hours) {
        const first = after.get(hour) ?? 0;
        const given = Math.min(left, Math.max(perHour - first, 0));
        if (given === 0) continue;
        parts.push({ hour, first, count: given });
        after.set(hour, first + given);
        left -= given;
      }
      if (left > 0) return null;
      taken.set(account, after);
      return parts;
    },
    async removeBefore(hour) {
      for (const counts of taken.values()) for (const each of counts.keys()) if (each < hour) counts.delete(each);
    },
  };
}

export function createMemoryWaitingPushes(): WaitingPushes {
  const rows = new Map<EventId, WaitingPush>();
  return {
    async put(push) {
      rows.set(push.id, { ...push, refsDone: Math.max(push.refsDone, rows.get(push.id)?.refsDone ?? 0) });
    },
    earliest: async (account, limit) =>
      [...rows.values()]
        .filter((row) => row.account === account)
        .toSorted((a, b) => (a.position < b.position ? -1 : 1))
        .slice(0, limit),
    async remove(id) {
      rows.delete(id);
    },
    accounts: async () => [...new Set([...rows.values()].map(({ account }) => account))],
    async forgetAccount(account) {
      for (const { id, account: owner } of rows.values()) if (owner === account) rows.delete(id);
    },
  };
}
