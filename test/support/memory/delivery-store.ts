/** In-memory versions of core/ports/delivery-store.ts and core/ports/policy-marks.ts, for tests. */
import type { EventId, WebhookDeliveryId } from '../../../core/kernel/ids.ts';
import type { AttemptId, DeliveryStore, StoredAnswer, StoredPayload } from '../../../core/ports/delivery-store.ts';
import type { PolicyMarks } from '../../../core/ports/policy-marks.ts';
import type { ReadMark } from '../../../core/ports/read-mark.ts';

export function createMemoryDeliveryStore(): DeliveryStore {
  const payloads = new Map<EventId, StoredPayload>();
  const answers = new Map<string, StoredAnswer>();
  const keyOf = ({ delivery, series, attempt }: AttemptId): string => `${delivery} ${series} ${attempt}`;
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
      answers.set(keyOf(answer), answer);
    },
    async answers(attempts) {
      const found = new Map<WebhookDeliveryId, Uint8Array>();
      for (const attempt of attempts) {
        const answer = answers.get(keyOf(attempt));
        if (answer !== undefined) found.set(attempt.delivery, answer.body);
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
