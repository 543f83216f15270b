/** In-memory versions of core/ports/delivery-store.ts and core/ports/policy-marks.ts, for tests. */
import type { AccountId, EventId, WebhookDeliveryId } from '../../../core/kernel/ids.ts';
import type {
  AttemptId,
  BodyKind,
  DeliveryStore,
  KeptBody,
  StoredAnswer,
  StoredPayload,
} from '../../../core/ports/delivery-store.ts';
import type { PolicyMarks } from '../../../core/ports/policy-marks.ts';
import type { ReadMark } from '../../../core/ports/read-mark.ts';

/** Large bodies are counted once. */
const BYTES = new WeakMap<StoredPayload | StoredAnswer, number>();

function bytesOf(one: StoredPayload | StoredAnswer): number {
  const bytes = BYTES.get(one) ?? Buffer.byteLength(one.body) + 256;
  BYTES.set(one, bytes);
  return bytes;
}

export function createMemoryDeliveryStore(): DeliveryStore {
  const payloads = new Map<EventId, StoredPayload>();
  const answers = new Map<WebhookDeliveryId, StoredAnswer>();
  const isLater = (one: AttemptId, other: AttemptId): boolean =>
    one.series === other.series ? one.attempt > other.attempt : one.series > other.series;
  function bodies(account: AccountId, kind: BodyKind): readonly KeptBody[] {
    const all = kind === 'payload' ? [...payloads.values()] : [...answers.values()];
    const kept = all
      .filter((one) => one.account === account)
      .map((one) => ({
        eventId: one.eventId,
        delivery: 'delivery' in one ? one.delivery : null,
        bytes: bytesOf(one),
        storedAt: one.storedAt,
      }));
    return kept.toSorted((a, b) => (a.storedAt < b.storedAt ? -1 : a.storedAt > b.storedAt ? 1 : 0));
  }
  const sum = (kept: readonly KeptBody[]): number => kept.reduce((total, { bytes }) => total + bytes, 0);
  return {
    async putPayloads(written) {
      return written.map((payload) => {
        const stored = payloads.get(payload.eventId) ?? payload;
        payloads.set(payload.eventId, stored);
        return stored.sha256;
      });
    },
    async payloads(events) {
      const found = new Map<EventId, string>();
      for (const id of events) {
        const payload = payloads.get(id);
        if (payload !== undefined) found.set(id, payload.body);
      }
      return found;
    },
    async putAnswer(answer) {
      const stored = answers.get(answer.delivery);
      if (stored !== undefined && isLater(stored, answer)) return;
      answers.delete(answer.delivery);
      if (answer.body.length > 0) answers.set(answer.delivery, answer);
    },
    async answers(attempts) {
      const found = new Map<WebhookDeliveryId, Uint8Array>();
      for (const attempt of attempts) {
        const answer = answers.get(attempt.delivery);
        const isThis = answer?.series === attempt.series && answer.attempt === attempt.attempt;
        if (isThis) found.set(attempt.delivery, answer.body);
      }
      return found;
    },
    isEmpty: async () => payloads.size + answers.size === 0,
    async forgetAccount(account) {
      for (const [id, payload] of payloads) if (payload.account === account) payloads.delete(id);
      for (const [key, answer] of answers) if (answer.account === account) answers.delete(key);
    },
    async removeBefore(at, limit) {
      const oldPayloads = [...payloads].filter(([, { storedAt }]) => storedAt < at).slice(0, limit);
      const oldAnswers = [...answers].filter(([, { storedAt }]) => storedAt < at).slice(0, limit);
      for (const [id] of oldPayloads) payloads.delete(id);
      for (const [key] of oldAnswers) answers.delete(key);
      return oldPayloads.length + oldAnswers.length;
    },
    async accountsBeyond({ payloadBytes, answerBytes }) {
      const accounts = new Set([...payloads.values(), ...answers.values()].map(({ account }) => account));
      return [...accounts]
        .map((account) => ({
          account,
          payloadBytes: sum(bodies(account, 'payload')),
          answerBytes: sum(bodies(account, 'answer')),
        }))
        .filter((sums) => sums.payloadBytes > payloadBytes || sums.answerBytes > answerBytes);
    },
    oldest: async (account, kind, skip, limit) => bodies(account, kind).slice(skip, skip + limit),
    async remove(events, deliveries) {
      const gone = [...events.map((id) => payloads.delete(id)), ...deliveries.map((id) => answers.delete(id))];
      return gone.filter(Boolean).length;
    },
  };
}

export function createMemoryPolicyMarks(): PolicyMarks {
  const marks = new Map<string, ReadMark>();
  return {
    read: async (policy) => marks.get(policy) ?? null,
    save: async (policy, mark) => {
      marks.set(policy, mark);
    },
  };
}
