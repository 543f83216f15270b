/**
 * Counts what reads send, and puts the sums into the log by account and minute.
 *
 * Must stay true: a read costs no event of its own; a crash loses at most the minute not yet flushed; a log that is
 * down, or whose answer was lost, neither loses a byte nor counts one twice while the process lives.
 */
import type { NewEvent } from '../kernel/envelope.ts';
import { streamName } from '../kernel/envelope.ts';
import { type AccessTokenId, type AccountId, type RepositoryId, type Timestamp, timestamp } from '../kernel/ids.ts';
import type { ExpectedRevision } from '../ports/event-store.ts';
import { type TransferRecorded, transferEventKinds } from '../transfer/events.ts';
import { type Context, envelop } from '../runtime/execute.ts';
import { systemCause } from '../runtime/system-cause.ts';

export interface TransferMeter {
  add(read: {
    readonly account: AccountId;
    readonly token: AccessTokenId;
    readonly repository: RepositoryId;
    readonly sentBytes: number;
  }): void;
  /** What was added and is not known to be in the log: quotas count it too. */
  unflushedBytes(account: AccountId): number;
  /** Raised whenever sums moved into the log: what a projection said before is then short of them. */
  flushes(): number;
  /** Appends what is pending; called every minute and at shutdown. Rejects when the log is down: nothing is lost. */
  flush(): Promise<void>;
}

type MinuteSum = TransferRecorded['data']['by_token'][number];

/** What a minute brought, by token and repository. */
type Minute = Map<string, MinuteSum>;

/** An event on its way: it keeps its id and its place until the log has it, so that trying again counts nothing twice. */
interface Outgoing {
  readonly event: NewEvent;
  readonly sentBytes: number;
}

/** What one account sent from this node. */
interface AccountMeter {
  readonly pending: Map<Timestamp, Minute>;
  outgoing: readonly Outgoing[];
  revision: ExpectedRevision;
  lastAt: Timestamp | null;
}

/** Pairs of token and repository named in one event at most; what is beyond counts in the total only. */
const DETAILS_MAX = 1_000;

export function createTransferMeter(
  context: Pick<Context, 'events' | 'clock' | 'ids'>,
  /** Distinguishes this process's streams: letters and digits. */
  node: string,
): TransferMeter {
  const meters = new Map<AccountId, AccountMeter>();
  let lastFlush: Promise<void> = Promise.resolve();
  let flushes = 0;

  function meterOf(account: AccountId): AccountMeter {
    const known = meters.get(account);
    if (known !== undefined) return known;
    const meter: AccountMeter = { pending: new Map(), outgoing: [], revision: 'none', lastAt: null };
    meters.set(account, meter);
    return meter;
  }

  async function flushAccount(account: AccountId, meter: AccountMeter): Promise<void> {
    // While older events are on their way, newer sums wait: an outage fills no queue.
    if (meter.outgoing.length === 0) {
      meter.outgoing = [...meter.pending].map(([minute, sums]) => outgoingOf(context, account, minute, sums, meter));
      meter.pending.clear();
    }
    for (let first = meter.outgoing[0]; first !== undefined; first = meter.outgoing[0]) {
      await append(account, meter, first.event);
      meter.outgoing = meter.outgoing.slice(1);
      flushes += 1;
    }
  }

  async function append(account: AccountId, meter: AccountMeter, event: NewEvent): Promise<void> {
    const stream = streamName('transfer', `${account}-${node}`);
    for (;;) {
      const result = await context.events.append({ stream, expected: meter.revision, events: [event] });
      if (result.outcome === 'appended') {
        meter.revision = result.revision;
        meter.lastAt = event.occurredAt;
        return;
      }
      // Only this node writes here: it did before it was started anew under the same name.
      meter.revision = result.actual;
    }
  }

  async function flushAll(): Promise<void> {
    const flushed = await Promise.allSettled([...meters].map(([account, meter]) => flushAccount(account, meter)));
    const causes = flushed.flatMap((one): unknown[] => (one.status === 'rejected' ? [one.reason] : []));
    if (causes.length > 0)
      throw new AggregateError(causes, `The transfer of ${causes.length} accounts is not in the log`);
  }

  return {
    add({ account, token, repository, sentBytes }) {
      const { pending } = meterOf(account);
      const minute = timestamp(`${context.clock.now().slice(0, 16)}:00.000Z`);
      const sums = pending.get(minute) ?? new Map<string, MinuteSum>();
      pending.set(minute, sums);
      const key = `${token} ${repository}`;
      const { reads, sent_bytes } = sums.get(key) ?? { reads: 0, sent_bytes: 0 };
      sums.set(key, {
        token_id: token,
        repository_id: repository,
        reads: reads + 1,
        sent_bytes: sent_bytes + sentBytes,
      });
    },
    unflushedBytes(account) {
      const meter = meters.get(account);
      if (meter === undefined) return 0;
      let total = meter.outgoing.reduce((sum, { sentBytes }) => sum + sentBytes, 0);
      for (const sums of meter.pending.values()) total += sentBytesOf(sums);
      return total;
    },
    flushes: () => flushes,
    flush() {
      // Whatever became of the flush before, its own caller was told.
      lastFlush = lastFlush.then(flushAll, flushAll);
      return lastFlush;
    },
  };
}

function sentBytesOf(sums: Minute): number {
  let total = 0;
  for (const { sent_bytes } of sums.values()) total += sent_bytes;
  return total;
}

function outgoingOf(
  context: Pick<Context, 'clock' | 'ids'>,
  account: AccountId,
  minute: Timestamp,
  sums: Minute,
  { lastAt }: AccountMeter,
): Outgoing {
  const cause = systemCause(context.ids, 'transfer-meter');
  const sentBytes = sentBytesOf(sums);
  const by_token = [...sums.values()].slice(0, DETAILS_MAX);
  const recorded: TransferRecorded = {
    type: 'TransferRecorded',
    data: { minute, sent_bytes: sentBytes, by_token },
  };
  const [event] = envelop(context, { kinds: transferEventKinds }, [recorded], { account, cause, lastAt });
  if (event === undefined) throw new TypeError('One event makes one envelope');
  return { event, sentBytes };
}
