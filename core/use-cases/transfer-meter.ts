/**
 * Counts what reads send, and puts the sums into the log by account and minute.
 *
 * Must stay true: a read costs no event of its own; a crash loses at most the minute not yet flushed, a log
 * that is down loses nothing while the process lives.
 */
import type { Cause } from '../kernel/envelope.ts';
import { streamName } from '../kernel/envelope.ts';
import { type AccessTokenId, type AccountId, type RepositoryId, timestamp } from '../kernel/ids.ts';
import type { ExpectedRevision } from '../ports/event-store.ts';
import { type TransferRecorded, transferEventKinds } from '../transfer/events.ts';
import { type Context, envelop } from './execute.ts';

export interface TransferMeter {
  add(read: {
    readonly account: AccountId;
    readonly token: AccessTokenId;
    readonly repository: RepositoryId;
    readonly sentBytes: number;
  }): void;
  /** What was added and is not yet in the log: quotas count it too. */
  unflushedBytes(account: AccountId): number;
  /** Raised whenever sums moved into the log: what a projection said before is then short of them. */
  flushes(): number;
  /** Appends what is pending; called every minute and at shutdown. Rejects when the log is down: nothing is lost. */
  flush(): Promise<void>;
}

interface Sum {
  reads: number;
  sentBytes: number;
}

/** Pairs of token and repository named in one event at most; what is beyond counts in the total only. */
const DETAILS_MAX = 1_000;

export function createTransferMeter(
  context: Pick<Context, 'events' | 'clock' | 'ids'>,
  /** Distinguishes this process's streams: letters and digits. */
  node: string,
): TransferMeter {
  let pending = new Map<AccountId, Map<string, Sum>>();
  const revisions = new Map<AccountId, ExpectedRevision>();
  let flushing: Promise<void> = Promise.resolve();
  /** Taken from `pending`, and not yet known to be in the log. */
  let taken = new Map<AccountId, Map<string, Sum>>();
  let flushes = 0;
  const sumsOf = (account: AccountId): Map<string, Sum> => {
    let sums = pending.get(account);
    if (sums === undefined) {
      sums = new Map();
      pending.set(account, sums);
    }
    return sums;
  };
  const merge = (account: AccountId, key: string, reads: number, sentBytes: number): void => {
    const sums = sumsOf(account);
    const sum = sums.get(key);
    if (sum === undefined) sums.set(key, { reads, sentBytes });
    else {
      sum.reads += reads;
      sum.sentBytes += sentBytes;
    }
  };

  async function append(account: AccountId, sums: ReadonlyMap<string, Sum>): Promise<void> {
    const byToken = [...sums].map(([key, { reads, sentBytes }]) => {
      const [token_id = '', repository_id = ''] = key.split(' ');
      return { token_id, repository_id, reads, sent_bytes: sentBytes };
    });
    const event: TransferRecorded = {
      type: 'TransferRecorded',
      data: {
        minute: timestamp(`${context.clock.now().slice(0, 16)}:00.000Z`),
        sent_bytes: byToken.reduce((total, sum) => total + sum.sent_bytes, 0),
        by_token: byToken.slice(0, DETAILS_MAX),
      },
    };
    const cause: Cause = {
      actor: { kind: 'system', id: 'transfer-meter' },
      requestId: context.ids.next(),
      sourceAddressRef: null,
      causationId: null,
    };
    const about = { account, cause, lastAt: null };
    const events = envelop<TransferRecorded>(context, { kinds: transferEventKinds }, [event], about);
    const stream = streamName('transfer', `${account}-${node}`);
    for (;;) {
      const expected = revisions.get(account) ?? 'none';
      const result = await context.events.append({ stream, expected, events });
      if (result.outcome === 'appended') {
        revisions.set(account, result.revision);
        return;
      }
      revisions.set(account, result.actual);
    }
  }

  async function flushPending(): Promise<void> {
    taken = pending;
    pending = new Map();
    for (const [account, sums] of taken) {
      try {
        await append(account, sums);
        taken.delete(account);
        flushes += 1;
      } catch (cause) {
        const left = taken;
        taken = new Map();
        for (const [other, leftSums] of left) {
          for (const [key, sum] of leftSums) merge(other, key, sum.reads, sum.sentBytes);
        }
        throw cause;
      }
    }
  }

  return {
    add({ account, token, repository, sentBytes }) {
      merge(account, `${token} ${repository}`, 1, sentBytes);
    },
    unflushedBytes(account) {
      let total = 0;
      for (const sum of pending.get(account)?.values() ?? []) total += sum.sentBytes;
      for (const sum of taken.get(account)?.values() ?? []) total += sum.sentBytes;
      return total;
    },
    flushes: () => flushes,
    flush() {
      flushing = flushing.catch(() => undefined).then(flushPending);
      return flushing;
    },
  };
}
