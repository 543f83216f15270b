/**
 * The bytes of deliveries, kept for retention: what was sent, and what receivers answered.
 *
 * Must stay true: a payload is stored once for an event and never changes, so that every attempt sends the same bytes; events
 * hold digests of what stands here, never the bytes. A rebuild neither drops nor compares it (architecture, invariant 1).
 */
import type { AccountId, EventId, Timestamp, WebhookDeliveryId } from '../kernel/ids.ts';

export interface StoredPayload {
  /** The notification's own id. */
  readonly eventId: EventId;
  readonly account: AccountId;
  /** JSON. */
  readonly body: string;
  /** SHA-256 of the body's UTF-8, hex. */
  readonly sha256: string;
  readonly storedAt: Timestamp;
}

export interface AttemptId {
  readonly delivery: WebhookDeliveryId;
  readonly series: number;
  readonly attempt: number;
}

export interface StoredAnswer extends AttemptId {
  readonly account: AccountId;
  /** What was kept of it. */
  readonly body: Uint8Array;
  readonly storedAt: Timestamp;
}

export interface DeliveryStore {
  /** Stores them unless their events have one; the digests of what stands, in the order given. */
  putPayloads(payloads: readonly StoredPayload[]): Promise<readonly string[]>;
  /** The bodies that are there still. */
  payloads(events: readonly EventId[]): Promise<ReadonlyMap<EventId, string>>;
  /** An attempt that a crash had made again has the later answer. */
  putAnswer(answer: StoredAnswer): Promise<void>;
  /** What is there still of these attempts' answers, by delivery; one attempt of each delivery is asked for. */
  answers(attempts: readonly AttemptId[]): Promise<ReadonlyMap<WebhookDeliveryId, Uint8Array>>;
  /** Whether it holds nothing of anybody. */
  isEmpty(): Promise<boolean>;
  /** Removes all of an erased account's. */
  forgetAccount(account: AccountId): Promise<void>;
  /** Removes what was stored before the time, at most `limit` payloads and as many answers; how many of both. */
  removeBefore(at: Timestamp, limit: number): Promise<number>;
}

/** The store cannot be reached; what was asked may be asked again. */
export class DeliveryStoreError extends Error {
  override readonly name = 'DeliveryStoreError';
  readonly code = 'delivery-store-unavailable';
}
