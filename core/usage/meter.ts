/**
 * Counts the bytes that reads send and that refused pushes brought, and how often reads were refused, and appends the
 * sums to the log, one event for each account and minute.
 *
 * Invariants: a read appends no event of its own. A crash loses at most what was not yet flushed, about a minute. While
 * the process lives, an outage of the log or a lost answer neither loses a byte nor counts one twice. A read waits for
 * nothing: its address gets its vault record when the sums are appended, and the addresses of a minute are bounded.
 */
import type { NewEvent, StreamName } from '../kernel/envelope.ts';
import { type AccessTokenId, type AccountId, type RepositoryId, type Timestamp, timestamp } from '../kernel/ids.ts';
import type { ExpectedRevision } from '../ports/event-store.ts';
import { type Context, envelop } from '../runtime/execute.ts';
import { isOutage } from '../runtime/is-outage.ts';
import { systemCause } from '../runtime/system-cause.ts';
import {
  type Reader,
  type RefusedReadReason,
  type TransferRecorded,
  transferEventKinds,
  transferStream,
} from './events.ts';
import { RefusedReadSums } from './refused-reads.ts';

/** Different addresses of an account's readers that a node records in a minute: each is a record of the vault. */
export const TRANSFER_ADDRESSES_MAX = 50;
/** How often an event of transfer names addresses: one may have read as many readers in many repositories. */
export const TRANSFER_ADDRESS_REFS_MAX = 1_000;

/** Pairs of token and reason that an event of transfer names; refused reads of further tokens have the reason alone. */
export const TRANSFER_REFUSED_READS_MAX = 50;

/** One answer to a read. */
export interface TransferRead {
  readonly account: AccountId;
  readonly reader: Reader;
  readonly repository: RepositoryId;
  readonly sentBytes: number;
  /** Where the reader is. */
  readonly address: string;
}

/** A push that was refused after its pack had arrived whole. */
export interface RefusedPush extends Omit<TransferRead, 'sentBytes'> {
  readonly receivedBytes: number;
}

/** A read that was refused to a token, which may have ended. */
export interface RefusedRead {
  /** The token's. */
  readonly account: AccountId;
  readonly token: AccessTokenId;
  readonly reason: RefusedReadReason;
}

export interface TransferMeter {
  add(read: TransferRead): void;
  addRefused(push: RefusedPush): void;
  addRefusedRead(read: RefusedRead): void;
  /** Returns the bytes that were added and are not known to be in the log: quotas count them too. */
  unflushedBytes(account: AccountId): number;
  /** Returns a number that grows with every event appended: sums that a projection returned before lack that event. */
  flushes(): number;
  /** Appends the sums; called every minute and at shutdown. Rejects if the log is down: nothing is lost. */
  flush(): Promise<void>;
}

type RecordedSum = TransferRecorded['data']['by_reader'][number];

interface MinuteSum extends Omit<RecordedSum, 'address_refs'> {
  readonly addresses: ReadonlySet<string>;
}

type Counts = Pick<RecordedSum, 'reads' | 'sent_bytes' | 'received_bytes'>;

/** The reads and refused pushes of one minute. */
interface Minute {
  /** By reader and repository. */
  readonly sums: Map<string, MinuteSum>;
  readonly addresses: Set<string>;
  /** How often the sums name an address. */
  named: number;
  readonly refusedReads: RefusedReadSums;
}

/** An event to append. It keeps its id and stream until the log has it, so that a retry counts nothing twice. */
interface Outgoing {
  readonly stream: StreamName;
  readonly event: NewEvent;
  readonly sentBytes: number;
}

export interface MeterContext extends Pick<Context, 'events' | 'clock' | 'ids' | 'written'> {
  /** Returns the vault reference that events hold; null for an account that is erased. */
  readonly sourceAddressRef: (account: AccountId, address: string) => Promise<string | null>;
  /** Called when an address cannot be recorded: the bytes are, without it. */
  readonly onFault: (cause: unknown) => void;
}

/** The most pairs of reader and repository that one event names; further pairs count in the total only. */
const READERS_MAX = 1_000;

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
    add: (read) => transferOf(read.account).add(read, { reads: 1, sent_bytes: read.sentBytes, received_bytes: 0 }),
    addRefused: (push) =>
      transferOf(push.account).add(push, { reads: 0, sent_bytes: 0, received_bytes: push.receivedBytes }),
    addRefusedRead: ({ account, token, reason }) =>
      transferOf(account).addRefusedRead({ token_id: token, reason, count: 1 }),
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
  #pending = new Map<Timestamp, Minute>();
  /** What the next events are made of: complete, since reads are added to `#pending` alone. */
  #closed = new Map<Timestamp, Minute>();
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

  add({ reader, repository, address }: Omit<TransferRead, 'sentBytes'>, counts: Counts): void {
    const minute = this.#minute();
    const key = `${reader.kind} ${reader.id} ${repository}`;
    const { reads, sent_bytes, received_bytes, addresses } = minute.sums.get(key) ?? NOTHING;
    minute.sums.set(key, {
      reader,
      repository_id: repository,
      reads: reads + counts.reads,
      sent_bytes: sent_bytes + counts.sent_bytes,
      received_bytes: received_bytes + counts.received_bytes,
      addresses: addresses.has(address) || !nameIn(minute, address) ? addresses : new Set([...addresses, address]),
    });
  }

  addRefusedRead(refused: Parameters<RefusedReadSums['add']>[0]): void {
    this.#minute().refusedReads.add(refused);
  }

  /** The minute of the clock. */
  #minute(): Minute {
    const start = timestamp(`${this.#context.clock.now().slice(0, 16)}:00.000Z`);
    const minute = this.#pending.get(start) ?? newMinute();
    this.#pending.set(start, minute);
    return minute;
  }

  unflushedBytes(): number {
    let total = this.#outgoing.reduce((sum, { sentBytes }) => sum + sentBytes, 0);
    for (const minutes of [this.#pending, this.#closed]) {
      for (const minute of minutes.values()) total += sentBytesOf(minute);
    }
    return total;
  }

  /** Appends the sums, and calls `onAppended` after each event. Rejects if the log is down: nothing is lost. */
  async flush(onAppended: () => void): Promise<void> {
    // While older events are not in the log, newer sums stay in `#pending`: an outage makes no queue of events.
    if (this.#outgoing.length === 0) {
      if (this.#closed.size === 0) {
        this.#closed = this.#pending;
        this.#pending = new Map();
      }
      const refs = await this.#addressRefs();
      this.#outgoing = [...this.#closed].map(([start, minute]) => this.#outgoingOf(start, minute, refs));
      this.#closed = new Map();
    }
    for (let first = this.#outgoing[0]; first !== undefined; first = this.#outgoing[0]) {
      await this.#append(first);
      this.#outgoing = this.#outgoing.slice(1);
      onAppended();
    }
  }

  /** Rejects in an outage; an address that cannot be recorded for another reason is left out. */
  async #addressRefs(): Promise<ReadonlyMap<string, string>> {
    const { sourceAddressRef, onFault } = this.#context;
    const refs = new Map<string, string>();
    for (const address of new Set([...this.#closed.values()].flatMap(({ addresses }) => [...addresses]))) {
      try {
        const ref = await sourceAddressRef(this.#account, address);
        if (ref !== null) refs.set(address, ref);
      } catch (error) {
        if (isOutage(error)) throw error;
        onFault(error);
      }
    }
    return refs;
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

  #outgoingOf(start: Timestamp, minute: Minute, refs: ReadonlyMap<string, string>): Outgoing {
    const account = this.#account;
    const cause = systemCause(this.#context.ids, 'transfer-meter');
    const sentBytes = sentBytesOf(minute);
    const received_bytes = [...minute.sums.values()].reduce((sum, one) => sum + one.received_bytes, 0);
    const by_reader = [...minute.sums.values()].slice(0, READERS_MAX).map(
      ({ addresses, ...sum }): RecordedSum => ({
        ...sum,
        address_refs: [...addresses].flatMap((address) => refs.get(address) ?? []),
      }),
    );
    const recorded: TransferRecorded = {
      type: 'TransferRecorded',
      data: {
        minute: start,
        sent_bytes: sentBytes,
        received_bytes,
        by_reader,
        refused_reads: minute.refusedReads.list(),
      },
    };
    const about = { account, cause, lastAt: this.#lastAt };
    const [event] = envelop(this.#context, { kinds: transferEventKinds }, [recorded], about);
    if (event === undefined) throw new TypeError('One event makes one envelope');
    return { stream: transferStream(account, this.#node, event.occurredAt), event, sentBytes };
  }
}

function newMinute(): Minute {
  const refusedReads = new RefusedReadSums(TRANSFER_REFUSED_READS_MAX);
  return { sums: new Map(), addresses: new Set(), named: 0, refusedReads };
}

const NOTHING: Counts & Pick<MinuteSum, 'addresses'> = {
  reads: 0,
  sent_bytes: 0,
  received_bytes: 0,
  addresses: new Set<string>(),
};

/** Returns whether the minute has room to name the address once more, and counts it if so. */
function nameIn(minute: Minute, address: string): boolean {
  if (address === '' || minute.named >= TRANSFER_ADDRESS_REFS_MAX) return false;
  if (!minute.addresses.has(address) && minute.addresses.size >= TRANSFER_ADDRESSES_MAX) return false;
  minute.addresses.add(address);
  minute.named += 1;
  return true;
}

function sentBytesOf({ sums }: Minute): number {
  let total = 0;
  for (const { sent_bytes } of sums.values()) total += sent_bytes;
  return total;
}
