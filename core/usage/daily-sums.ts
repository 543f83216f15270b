/**
 * The sums of an account's operational events for its next `UsageRecorded`.
 *
 * Invariants: every event that is added is in the sums, whether its readers are named or not. The names are bounded, so
 * that the event fits into an append and the sums of many accounts into memory.
 */
import { readEvent } from '../kernel/decider.ts';
import { categoryOf, type RecordedEvent } from '../kernel/envelope.ts';
import { type SignInEvent, signInEventKinds } from '../sign-in/events.ts';
import { signIns } from '../sign-in/evolve.ts';
import { transferEventKinds, type UsageDetails, type UsageRecorded } from './events.ts';
import { RefusedReadSums } from './refused-reads.ts';

/** Pairs of reader and repository that a `UsageRecorded` names; the bytes of further ones are in its sums. */
export const USAGE_READERS_MAX = 1_000;
/** Sign-ins that a `UsageRecorded` names; further ones are counted. */
export const USAGE_SIGN_INS_MAX = 100;
/** Pairs of token and reason that it names; the refused reads of further ones are counted by the reason alone. */
export const USAGE_REFUSED_READS_MAX = 100;

/** The name under which the policy that writes them marks how far it has read the log. */
export const USAGE_SUMMING = 'usage-summing';

type Transfer = UsageRecorded['data']['transfer'][number];
type ReadSum = Transfer['by_reader'][number];

interface Day {
  sentBytes: number;
  receivedBytes: number;
  readonly byReader: Map<string, ReadSum>;
}

export class DailySums {
  readonly #days = new Map<string, Day>();
  readonly #signIns: UsageDetails['sign_ins'][number][] = [];
  readonly #failures = new Map<string, UsageDetails['failures'][number]>();
  readonly #refused = new RefusedReadSums(USAGE_REFUSED_READS_MAX);
  #readers = 0;
  #moreSignIns = 0;
  #webhookAttempts = 0;
  #signInFailures = 0;
  #through: UsageRecorded['data']['through'] = null;

  /** What is named one by one: what the sums take of memory. */
  get named(): number {
    return this.#readers + this.#signIns.length + this.#failures.size + this.#refused.size;
  }

  /** Adds the account's next operational event. */
  add(recorded: RecordedEvent): void {
    const { id, position, type } = recorded;
    if (categoryOf(recorded.stream) === 'transfer') this.#addTransfer(recorded);
    if (type === 'WebhookDeliveryAttempted') this.#webhookAttempts += 1;
    if (categoryOf(recorded.stream) === signIns.category) this.#addSignIn(recorded);
    this.#through = { event_id: id, position: String(position) };
  }

  #addSignIn(recorded: RecordedEvent): void {
    const event = readEvent<SignInEvent>(signInEventKinds, recorded);
    if (event.type === 'SignedIn') {
      const { occurredAt: at, sourceAddressRef: source_address_ref } = recorded;
      if (this.#signIns.length >= USAGE_SIGN_INS_MAX) this.#moreSignIns += 1;
      else this.#signIns.push({ at, source_address_ref, ...event.data });
    }
    if (event.type !== 'SignInFailed') return;
    this.#signInFailures += 1;
    const { factor, reason } = event.data;
    const key = `${factor} ${reason}`;
    this.#failures.set(key, { factor, reason, count: (this.#failures.get(key)?.count ?? 0) + 1 });
  }

  #addTransfer(recorded: RecordedEvent): void {
    const { minute, sent_bytes, received_bytes, by_reader, refused_reads } = readEvent(
      transferEventKinds,
      recorded,
    ).data;
    for (const refused of refused_reads) this.#refused.add(refused);
    const name = minute.slice(0, 10);
    const day = this.#days.get(name) ?? { sentBytes: 0, receivedBytes: 0, byReader: new Map<string, ReadSum>() };
    this.#days.set(name, day);
    day.sentBytes += sent_bytes;
    day.receivedBytes += received_bytes;
    for (const { address_refs: _, ...sum } of by_reader) {
      const key = `${sum.reader.kind} ${sum.reader.id} ${sum.repository_id}`;
      const before = day.byReader.get(key);
      if (before === undefined && this.#readers >= USAGE_READERS_MAX) continue;
      if (before === undefined) this.#readers += 1;
      day.byReader.set(key, {
        ...sum,
        reads: (before?.reads ?? 0) + sum.reads,
        sent_bytes: (before?.sent_bytes ?? 0) + sum.sent_bytes,
        received_bytes: (before?.received_bytes ?? 0) + sum.received_bytes,
      });
    }
  }

  /** Returns the event for a day that has ended; null if no event was added. */
  recorded(day: string): UsageRecorded | null {
    if (this.#through === null) return null;
    const days = [...this.#days].toSorted(([a], [b]) => (a < b ? -1 : 1));
    const transfer = days.map(
      ([name, { sentBytes, receivedBytes, byReader }]): Transfer => ({
        day: name,
        sent_bytes: sentBytes,
        received_bytes: receivedBytes,
        by_reader: [...byReader.values()],
      }),
    );
    const counts = { webhook_attempts: this.#webhookAttempts, sign_in_failures: this.#signInFailures };
    const details: UsageDetails = {
      sign_ins: this.#signIns,
      source_address_refs: distinct(this.#signIns.map((one) => one.source_address_ref)),
      user_agent_refs: distinct(this.#signIns.map((one) => one.user_agent_ref)),
      more_sign_ins: this.#moreSignIns,
      failures: [...this.#failures.values()],
      refused_reads: this.#refused.list(),
    };
    return { type: 'UsageRecorded', data: { day, through: this.#through, transfer, ...counts, details } };
  }
}

function distinct(refs: readonly (string | null)[]): readonly string[] {
  return [...new Set(refs.filter((ref) => ref !== null))];
}
