/**
 * Counts the bytes that reads send, and appends the sums to the log, one event for each account and minute.
 *
 * Must stay true: a read appends no event of its own. A crash loses at most what was not yet flushed, about a minute.
 * While the process lives, an outage of the log or a lost answer neither loses a byte nor counts one twice.
 */
import type { NewEvent, StreamName } from '../kernel/envelope.ts';
import { type AccountId, type RepositoryId, type Timestamp, timestamp } from '../kernel/ids.ts';
import type { ExpectedRevision } from '../ports/event-store.ts';
import { type Reader, type TransferRecorded, transferEventKinds, transferStream } from './events.ts';
import { type Context, envelop } from '../runtime/execute.ts';
import { systemCause } from '../runtime/system-cause.ts';

/** One answer to a read. */
export interface TransferRead {
  readonly account: AccountId;
  readonly reader: Reader;
  readonly repository: RepositoryId;
  readonly sentBytes: number;
}

export interface TransferMeter {
  add(read: TransferRead): void;
  /** Returns the bytes that were added and are not known to be in the log: quotas count them too. */
  unflushedBytes(account: AccountId): number;
  /** Returns a number that grows with every event appended: sums that a projection returned before lack that event. */
  flushes(): number;
  /** Appends the sums; called every minute and at shutdown. Rejects if the log is down: nothing is lost. */
  flush(): Promise<void>;
}

type MinuteSum = TransferRecorded['data']['by_reader'][number];

/** The reads of one minute, by reader and repository. */
type Minute = Map<string, MinuteSum>;

/** An event to append. It keeps its id and stream until the log has it, so that a retry counts nothing twice. */
interface Outgoing {
  readonly stream: StreamName;
  readonly event: NewEvent;
  readonly sentBytes: number;
}

type MeterContext = Pick<Context, 'events' | 'clock' | 'ids'>;

/** The most pairs of reader and repository that one event names; further pairs count in the total only. */
const DETAILS_MAX = 1_000;

export function createTransferMeter(
  context: MeterContext,
  /** Distinguishes the streams of this process: letters and digits. */
  node: string,
): TransferMeter {
  const accounts = new Map<AccountId, AccountTransfer>();
  let lastFlush: Promise<void> = Promise.resolve();
  let flushes = 0;

  function transferOf(account: AccountId): AccountTransfer {
    const known = accounts.get(account);
    if (known !== undefined) return known;
    const transfer = new AccountTransfer(context, node, account);
    accounts.set(account, transfer);
    return transfer;
  }

  async function flushAll(): Promise<void> {
    const onAppended = () => {
      flushes += 1;
    };
    const flushed = await Promise.allSettled([...accounts.values()].map((transfer) => transfer.flush(onAppended)));
    const causes = flushed.flatMap((one): unknown[] => (one.status === 'rejected' ? [one.reason] : []));
    if (causes.length > 0)
      throw new AggregateError(causes, `The transfer of ${causes.length} accounts is not in the log`);
  }

  return {
    add: (read) => transferOf(read.account).add(read),
    unflushedBytes: (account) => accounts.get(account)?.unflushedBytes() ?? 0,
    flushes: () => flushes,
    flush() {
      // The caller of the flush before has received its error.
      lastFlush = lastFlush.then(flushAll, flushAll);
      return lastFlush;
    },
  };
}

/** What this node sent of one account's repositories, until it is in the log. */
class AccountTransfer {
  readonly #context: MeterContext;
  readonly #node: string;
  readonly #account: AccountId;
  readonly #pending = new Map<Timestamp, Minute>();
  #outgoing: readonly Outgoing[] = [];
  /**
   * The stream of the day, and the revision of its last event as far as this node knows. Each day has its own stream.
   */
  #today: { readonly stream: StreamName; readonly revision: ExpectedRevision } | null = null;
  /** The time of the last event on any day's stream: even if the clock goes back, no event goes to an earlier day. */
  #lastAt: Timestamp | null = null;

  constructor(context: MeterContext, node: string, account: AccountId) {
    this.#context = context;
    this.#node = node;
    this.#account = account;
  }

  add({ reader, repository, sentBytes }: TransferRead): void {
    const minute = timestamp(`${this.#context.clock.now().slice(0, 16)}:00.000Z`);
    const sums = this.#pending.get(minute) ?? new Map<string, MinuteSum>();
    this.#pending.set(minute, sums);
    const key = `${reader.kind} ${reader.id} ${repository}`;
    const { reads, sent_bytes } = sums.get(key) ?? { reads: 0, sent_bytes: 0 };
    sums.set(key, { reader, repository_id: repository, reads: reads + 1, sent_bytes: sent_bytes + sentBytes });
  }

  unflushedBytes(): number {
    let total = this.#outgoing.reduce((sum, { sentBytes }) => sum + sentBytes, 0);
    for (const sums of this.#pending.values()) total += sentBytesOf(sums);
    return total;
  }

  /** Appends the sums, and calls `onAppended` after each event. Rejects if the log is down: nothing is lost. */
  async flush(onAppended: () => void): Promise<void> {
    // While older events are not in the log, newer sums stay in `#pending`: an outage makes no queue of events.
    if (this.#outgoing.length === 0) {
      this.#outgoing = [...this.#pending].map(([minute, sums]) => this.#outgoingOf(minute, sums));
      this.#pending.clear();
    }
    for (let first = this.#outgoing[0]; first !== undefined; first = this.#outgoing[0]) {
      await this.#append(first);
      this.#outgoing = this.#outgoing.slice(1);
      onAppended();
    }
  }

  async #append({ stream, event }: Outgoing): Promise<void> {
    for (;;) {
      const expected = this.#today?.stream === stream ? this.#today.revision : 'none';
      const result = await this.#context.events.append({ stream, expected, events: [event] });
      if (result.outcome === 'appended') {
        this.#today = { stream, revision: result.revision };
        this.#lastAt = event.occurredAt;
        return;
      }
      // Only this node appends to the stream: it did so before a restart under the same name.
      this.#today = { stream, revision: result.actual };
    }
  }

  #outgoingOf(minute: Timestamp, sums: Minute): Outgoing {
    const account = this.#account;
    const cause = systemCause(this.#context.ids, 'transfer-meter');
    const sentBytes = sentBytesOf(sums);
    const by_reader = [...sums.values()].slice(0, DETAILS_MAX);
    const recorded: TransferRecorded = {
      type: 'TransferRecorded',
      data: { minute, sent_bytes: sentBytes, by_reader, details: null },
    };
    const about = { account, cause, lastAt: this.#lastAt };
    const [event] = envelop(this.#context, { kinds: transferEventKinds }, [recorded], about);
    if (event === undefined) throw new TypeError('One event makes one envelope');
    return { stream: transferStream(account, this.#node, event.occurredAt), event, sentBytes };
  }
}

function sentBytesOf(sums: Minute): number {
  let total = 0;
  for (const { sent_bytes } of sums.values()) total += sent_bytes;
  return total;
}
