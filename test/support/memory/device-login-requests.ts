/** The in-memory version of core/ports/device-login-requests.ts, and of its rows as a workflow's, for tests. */
import type { DeviceSessionId, Timestamp } from '../../../core/kernel/ids.ts';
import type {
  DeviceLoginRequest,
  DeviceLoginRequests,
  DeviceRequestStep,
} from '../../../core/ports/device-login-requests.ts';
import type { Timer, WaitingRows } from '../../../core/ports/workflows.ts';

interface Row extends DeviceLoginRequest {
  readonly network: string;
  readonly isHeld: boolean;
  readonly timer: Timer<DeviceRequestStep>;
  readonly told: string | null;
}

export function createMemoryDeviceLoginRequests(): DeviceLoginRequests & WaitingRows<DeviceRequestStep> {
  const rows = new Map<string, Row>();
  const change = (id: string, changes: Partial<Row>): void => {
    const row = rows.get(id);
    if (row !== undefined) rows.set(id, { ...row, ...changes });
  };
  const timers = (chosen: (row: Row) => boolean, limit: number): readonly Timer<DeviceRequestStep>[] =>
    [...rows.values()]
      .filter(chosen)
      .map(({ timer }) => timer)
      .toSorted((a, b) => (a.dueAt < b.dueAt ? -1 : 1))
      .slice(0, limit);
  return {
    async add({ id, secretHash, requestedAt, expiresAt, device, network }, { pendingMax, keptSince }) {
      for (const row of rows.values()) if (row.expiresAt < keptSince) rows.delete(row.id);
      for (let gone = toGiveWay(rows, requestedAt, pendingMax); gone !== null; ) {
        rows.delete(gone);
        gone = toGiveWay(rows, requestedAt, pendingMax);
      }
      const timer = { id, step: 'forget-device', dueAt: expiresAt, revision: 0 } as const;
      rows.set(id, { id, secretHash, requestedAt, expiresAt, device, network, isHeld: false, timer, told: null });
    },
    async find(id) {
      const row = rows.get(id);
      if (row === undefined) return null;
      const { secretHash, requestedAt, expiresAt, device } = row;
      return { id, secretHash, requestedAt, expiresAt, device };
    },
    async hold(id) {
      change(id, { isHeld: true });
      return rows.has(id);
    },
    underCode: async (userCode, now) =>
      [...rows.values()]
        .filter(({ device, expiresAt }) => device?.userCode === userCode && expiresAt > now)
        .toSorted((a, b) => (a.expiresAt < b.expiresAt ? -1 : 1))
        .map(({ id }) => id),
    async forgetDevice(id, removeAt) {
      const { timer } = rows.get(id) ?? {};
      if (timer?.step !== 'forget-device') return;
      change(id, { device: null, timer: { ...timer, step: 'remove', dueAt: removeAt, revision: timer.revision + 1 } });
    },
    async remove(id) {
      rows.delete(id);
    },
    waitOf: async (id) => rows.get(id)?.timer ?? null,
    earliest: async (limit) => timers(() => true, limit),
    untold: async (engine, limit) => timers(({ told }) => told !== engine, limit),
    async markTold(engine, ids) {
      for (const id of ids) change(id, { told: engine });
    },
  };
}

/** Returns the row that gives way now; null if there is room. */
function toGiveWay(rows: ReadonlyMap<string, Row>, now: Timestamp, pendingMax: number): DeviceSessionId | null {
  const pending = [...rows.values()]
    .filter(({ timer, isHeld, expiresAt }) => timer.step === 'forget-device' && !isHeld && expiresAt > now)
    .toSorted((a, b) => (a.expiresAt < b.expiresAt ? -1 : a.expiresAt > b.expiresAt ? 1 : a.id < b.id ? -1 : 1));
  if (pending.length < pendingMax) return null;
  const networks = Map.groupBy(pending, ({ network }) => network);
  // Sorting is stable, and the networks are in the order of their oldest rows.
  const [most] = [...networks.values()].toSorted((a, b) => b.length - a.length);
  return most?.[0]?.id ?? null;
}
