/** In-memory versions of core/ports/webhook-budgets.ts, waiting-deliveries.ts and waiting-pushes.ts, for tests. */
import type { AccountId, EventId, Timestamp, WebhookDeliveryId } from '../../../core/kernel/ids.ts';
import type { PlacedRow, WaitingDeliveries, WaitingRow } from '../../../core/ports/waiting-deliveries.ts';
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
    taken: async (account, hour) => taken.get(account)?.get(hour) ?? 0,
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

export function createMemoryWaitingDeliveries(): WaitingDeliveries {
  interface Stored {
    row: WaitingRow;
    readonly deliveries: readonly WebhookDeliveryId[];
  }
  const stored = new Map<string, Stored>();
  const keyOf = (push: EventId, webhook: string): string => `${push} ${webhook}`;
  const rowsOf = (account: AccountId): readonly WaitingRow[] =>
    [...stored.values()]
      .map(({ row }) => row)
      .filter((row) => row.account === account)
      .toSorted((a, b) => (a.position < b.position ? -1 : a.position > b.position ? 1 : 0));
  const placed = (account: AccountId): readonly PlacedRow[] =>
    rowsOf(account).map((row, _, all) => ({
      ...row,
      ahead: all.filter(({ position }) => position < row.position).reduce((sum, { waiting }) => sum + waiting, 0),
      webhooks: all.filter(({ position }) => position === row.position).length,
    }));
  return {
    async add(row, deliveries) {
      const known = stored.get(keyOf(row.push, row.webhook));
      const passed = Math.max(row.passed, known?.row.passed ?? 0);
      const waiting = Math.min(row.waiting, known?.row.waiting ?? row.waiting);
      stored.set(keyOf(row.push, row.webhook), { row: { ...row, passed, waiting }, deliveries });
    },
    async moveOn(push, webhook, to) {
      const known = stored.get(keyOf(push, webhook));
      if (to.waiting === 0) stored.delete(keyOf(push, webhook));
      else if (known !== undefined && known.row.passed < to.passed) known.row = { ...known.row, ...to };
    },
    async earliest(account) {
      const rows = rowsOf(account);
      return rows.filter(({ position }) => position === rows[0]?.position);
    },
    newest: async (account, webhook, limit) =>
      placed(account)
        .filter((row) => row.webhook === webhook)
        .toReversed()
        .slice(0, limit),
    mayHold: async (account, webhook, delivery) =>
      placed(account).filter(
        (row) =>
          row.webhook === webhook && stored.get(keyOf(row.push, webhook))?.deliveries.includes(delivery) === true,
      ),
    load: async (account, least) => rowsOf(account).reduce((sum, { waiting }) => sum + Math.max(waiting, least), 0),
    async backlog() {
      const rows = [...stored.values()].map(({ row }) => row);
      const oldestAt = rows.map(({ createdAt }) => createdAt).toSorted()[0] ?? null;
      return { pending: rows.reduce((sum, { waiting }) => sum + waiting, 0), oldestAt };
    },
    accounts: async () => [...new Set([...stored.values()].map(({ row }) => row.account))],
    async forgetWebhook(account, webhook) {
      for (const [key, { row }] of stored) {
        if (row.account === account && row.webhook === webhook) stored.delete(key);
      }
    },
    async forgetAccount(account) {
      for (const [key, { row }] of stored) if (row.account === account) stored.delete(key);
    },
  };
}
