/**
 * The bodies of webhook deliveries, kept until their retention ends: the payloads sent, and the receivers' answers.
 *
 * Invariants: a payload is stored once for its event and never changes, so that every attempt sends the same bytes.
 * Of a delivery at most one answer is stored, that of its last attempt.
 * Events hold digests of these bodies, never the bodies. A rebuild of the read models neither drops nor compares this
 * store (docs/architecture.md, invariant 1).
 */
import { CodedError } from '../kernel/coded-error.ts';
import type { AccountId, EventId, Timestamp, WebhookDeliveryId } from '../kernel/ids.ts';

export interface StoredPayload {
  /** The id of the webhook notification, the same for every attempt and redelivery. */
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
  /** The notification that the attempt sent. */
  readonly eventId: EventId;
  /** The part of the answer's body that was kept. */
  readonly body: Uint8Array;
  readonly storedAt: Timestamp;
}

/** What the bodies of an account take, in bytes, with 256 more for each. */
export interface BodySums {
  readonly account: AccountId;
  readonly payloadBytes: number;
  readonly answerBytes: number;
}

/** A stored payload, or the stored answer to a delivery. */
export interface KeptBody {
  /** Null for an answer from before this was stored. */
  readonly eventId: EventId | null;
  /** Null for a payload, which may be that of several deliveries. */
  readonly delivery: WebhookDeliveryId | null;
  /** The same as in `BodySums`. */
  readonly bytes: number;
  readonly storedAt: Timestamp;
}

export type BodyKind = 'payload' | 'answer';

export interface DeliveryStore {
  /** Stores each payload whose event has none yet. Returns the digests of the stored payloads, in the order passed. */
  putPayloads(payloads: readonly StoredPayload[]): Promise<readonly string[]>;
  /** Returns the payload bodies that have not been removed. */
  payloads(events: readonly EventId[]): Promise<ReadonlyMap<EventId, string>>;
  /**
   * Stores an answer in the place of the delivery's earlier one; an empty one leaves none. Does nothing if that of a
   * later attempt is stored.
   */
  putAnswer(answer: StoredAnswer): Promise<void>;
  /** Returns the attempts' answers that have not been removed, by delivery. Pass one attempt of each delivery. */
  answers(attempts: readonly AttemptId[]): Promise<ReadonlyMap<WebhookDeliveryId, Uint8Array>>;
  /** Returns true if the store holds no payload and no answer. */
  isEmpty(): Promise<boolean>;
  /** Removes every payload and answer of an erased account. */
  forgetAccount(account: AccountId): Promise<void>;
  /** Removes at most `limit` payloads and `limit` answers stored before `at`. Returns how many it removed in all. */
  removeBefore(at: Timestamp, limit: number): Promise<number>;
  /** Returns the accounts whose payloads or whose answers take more than this many bytes. */
  accountsBeyond(bounds: Omit<BodySums, 'account'>): Promise<readonly BodySums[]>;
  /** Returns the account's oldest bodies of the kind, the first `skip` left out. */
  oldest(account: AccountId, kind: BodyKind, skip: number, limit: number): Promise<readonly KeptBody[]>;
  /** Removes payloads by their events, and answers by their deliveries. Returns how many it removed in all. */
  remove(events: readonly EventId[], deliveries: readonly WebhookDeliveryId[]): Promise<number>;
}

/** The store cannot be reached. Every call may be repeated. */
export class DeliveryStoreError extends CodedError<'delivery-store-unavailable'> {
  override readonly name = 'DeliveryStoreError';
}
