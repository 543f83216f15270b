/**
 * Device login as a workflow: records that a granted session expired, and closes sessions that have ended. A session
 * that nobody decided has no events, and ends as a row (device-request).
 *
 * Invariants: no answer to a user depends on it. Polls and grants read the log and compare the session's own times,
 * so an engine that is down delays these events and nothing else.
 */
import { deviceSessionEventKinds } from '../../core/device-session/events.ts';
import { deviceSessions } from '../../core/device-session/evolve.ts';
import { readEvent } from '../../core/kernel/decider.ts';
import { plusMs, timestamp } from '../../core/kernel/ids.ts';
import type { Workflow } from '../../core/ports/workflows.ts';

/**
 * The time that the poll which won a device login has to create the token; after it, any node may create it. Internal:
 * any node creates the token after it.
 */
export const DEVICE_TOKEN_SPAN_MS = 5_000;

export type DeviceLoginStep = 'expire' | 'close';

const NOTHING = {};

export const deviceLogin: Workflow<DeviceLoginStep> = {
  name: 'device-login',
  version: 1,
  category: deviceSessions.category,
  next(wait, recorded) {
    const event = readEvent(deviceSessionEventKinds, recorded);
    const { occurredAt } = recorded;
    switch (event.type) {
      case 'DeviceLoginRequested':
        return { step: 'expire', dueAt: timestamp(event.data.expires_at), memory: NOTHING };
      case 'DeviceLoginGranted': {
        const { request } = event.data;
        if (request === null) return wait;
        return { step: 'expire', dueAt: timestamp(request.session_expires_at), memory: NOTHING };
      }
      case 'DeviceLoginClaimed':
        return { step: 'close', dueAt: plusMs(occurredAt, DEVICE_TOKEN_SPAN_MS), memory: NOTHING };
      case 'DeviceLoginDenied':
      case 'DeviceLoginExpired':
        return { step: 'close', dueAt: occurredAt, memory: NOTHING };
      case 'DeviceLoginClosed':
        return null;
    }
  },
};
