/**
 * What devices asked for: one row for each device login, from its request until an hour after its end.
 *
 * Invariants: rows are operational, and the log does not need them once a user has decided. A stranger's request
 * writes a row and nothing else, so the number of pending rows is bounded. A held row, which a signed-in user decides
 * about, gives way to no other: a login that was granted keeps the row that its polls need.
 */
import { CodedError } from '../kernel/coded-error.ts';
import type { DeviceSessionId, Timestamp } from '../kernel/ids.ts';

/** The steps of a row: the first is due when the login expires, the second at the time that the first has set. */
export type DeviceRequestStep = 'forget-device' | 'remove';

/** What a device said about itself, and what is known of it. */
export interface RequestingDevice {
  /** Such as `WXYZ-1234`. The user compares it with the device's screen. It gives access to nothing. */
  readonly userCode: string;
  /** Any text. */
  readonly hostname: string;
  /** Empty if it is not known. */
  readonly address: string;
}

export interface DeviceLoginRequest {
  readonly id: DeviceSessionId;
  /** SHA-256 of the secret that the device's polls carry, hex. */
  readonly secretHash: string;
  readonly requestedAt: Timestamp;
  /** Until when the login may be granted and claimed. */
  readonly expiresAt: Timestamp;
  /** Null once the row has forgotten it, after the login's end. */
  readonly device: RequestingDevice | null;
}

export interface NewDeviceLoginRequest extends DeviceLoginRequest {
  readonly device: RequestingDevice;
  /** Whose requests count together at the bound. */
  readonly network: string;
}

export interface DeviceLoginRequests {
  /**
   * Adds a row, which is its own timer. If `pendingMax` rows are pending, the oldest of the network that has most of
   * them is removed first; exact, however many nodes add rows at the same time. Rows that expired before `keptSince` go
   * as well, a few at each call, so that the table is bounded even while no workflow engine works.
   */
  add(
    request: NewDeviceLoginRequest,
    bounds: { readonly pendingMax: number; readonly keptSince: Timestamp },
  ): Promise<void>;
  /** Resolves null for a row that never was, that gave way, or that was removed. */
  find(id: DeviceSessionId): Promise<DeviceLoginRequest | null>;
  /** Makes the row one that gives way to no other. Resolves false if there is none. May be repeated. */
  hold(id: DeviceSessionId): Promise<boolean>;
  /** Returns the ids of the rows that expire after `now` and have this code, held or not, oldest first. */
  underCode(userCode: string, now: Timestamp): Promise<readonly DeviceSessionId[]>;
  /**
   * Forgets what the device said; the row then waits for its removal. Does nothing without a row, or the second time.
   */
  forgetDevice(id: DeviceSessionId, removeAt: Timestamp): Promise<void>;
  remove(id: DeviceSessionId): Promise<void>;
}

/** The rows cannot be reached. Every call but `add` may be repeated. */
export class DeviceLoginRequestsError extends CodedError<'device-logins-unavailable'> {
  override readonly name = 'DeviceLoginRequestsError';
}
