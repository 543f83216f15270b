/**
 * The request of a device login as a workflow: it forgets what the device said when the login has ended, and an hour
 * later the login itself.
 *
 * Invariants: no answer to a user depends on it. Polls and decisions compare the request's own times, so an engine
 * that is down only keeps rows for longer.
 */
import { plusMs, type Timestamp } from '../../core/kernel/ids.ts';
import { DEVICE_SESSION_KEPT_MS } from '../../core/kernel/limits.ts';
import type { DeviceRequestStep } from '../../core/ports/device-login-requests.ts';
import type { RowWorkflow, WaitingRows } from '../../core/ports/workflows.ts';

const LOOK_MS = 60_000;

export function deviceRequest(rows: WaitingRows<DeviceRequestStep>): RowWorkflow<DeviceRequestStep> {
  return { name: 'device-request', version: 1, rows, lookMs: LOOK_MS };
}

/** Until when polls of a login that ended are still answered. */
export function removalOf({ expiresAt }: { readonly expiresAt: Timestamp }): Timestamp {
  return plusMs(expiresAt, DEVICE_SESSION_KEPT_MS);
}
