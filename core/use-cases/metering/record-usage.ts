/**
 * The policy that sums each account's operational events once a day into its record, as `UsageRecorded`: so the events
 * themselves can be pruned.
 *
 * Invariants: an operational event is in exactly one `UsageRecorded` of its account, whichever process dies. The
 * account's `UsageRecorded` name the events up to which they sum; the mark only says from where to read the log, and is
 * saved after all accounts have theirs. Any number of nodes may run the policy: of two that sum the same account one
 * loses the append, and its mark stays. Positions in events are not used: those of an imported log are another log's.
 */
import { readEvent } from '../../kernel/decider.ts';
import { categoryOf, LOG_START, type LogPosition, type RecordedEvent, streamName } from '../../kernel/envelope.ts';
import { type AccountId, plusMs, type Timestamp } from '../../kernel/ids.ts';
import { wholeAppends } from '../../kernel/whole-appends.ts';
import type { ExpectedRevision } from '../../ports/event-store.ts';
import type { PolicyMarks } from '../../ports/policy-marks.ts';
import type { ReadMark } from '../../ports/read-mark.ts';
import { type Context, envelop } from '../../runtime/execute.ts';
import { lastRecordOf, markAfter, provenMark } from '../../runtime/read-mark.ts';
import { systemCause } from '../../runtime/system-cause.ts';
import { DailySums, USAGE_SUMMING } from '../../usage/daily-sums.ts';
import { usageEventKinds } from '../../usage/events.ts';

/**
 * Pairs of reader and repository, and what else is named, of all accounts, that the daily sums hold in memory: some
 * 60 MB. Then a part of the log is summed first. Internal: the sums are the same in parts.
 */
const USAGE_SUMS_AT_ONCE_MAX = 200_000;

export interface UsageRecordingContext extends Pick<Context, 'events' | 'clock' | 'ids' | 'written'> {
  readonly marks: PolicyMarks;
}

/** Events that are read together. Internal: the rest is read in further pages. */
const PAGE_EVENTS_MAX = 100;

const DAY_MS = 24 * 60 * 60_000;

/**
 * Sums what was appended before today (UTC). Rejects if the log or the marks cannot be reached. Resolves early when the
 * signal is aborted, or when another node was faster.
 */
export async function recordUsage(
  context: UsageRecordingContext,
  signal: { readonly aborted: boolean },
  sumsAtOnceMax: number = USAGE_SUMS_AT_ONCE_MAX,
): Promise<void> {
  const saved = await context.marks.read(USAGE_SUMMING);
  let mark = saved === null ? null : await provenMark(context.events, saved);
  for (let isDone = false; !isDone && !signal.aborted; ) {
    const run = new Run(context, mark, sumsAtOnceMax);
    isDone = await run.read(signal);
    if (signal.aborted || !(await run.append())) return;
    mark = run.mark();
    if (mark !== null) await context.marks.save(USAGE_SUMMING, mark);
  }
}

/** An account in a run. */
interface Summed {
  sums: DailySums;
  /** The revision and the time of the account's last `UsageRecorded`. */
  readonly revision: ExpectedRevision;
  readonly lastAt: Timestamp | null;
  /** The last events of the sums that were recorded since the mark. */
  readonly throughs: ReadonlySet<string>;
  /** Those of them that were read. */
  readonly met: Set<string>;
}

/** One stretch of the log: as much as fits into memory. */
class Run {
  readonly #context: UsageRecordingContext;
  readonly #before: ReadMark | null;
  readonly #accounts = new Map<AccountId, Summed>();
  #mark: ReadMark | null;
  #position: LogPosition;
  /** What the sums take of memory, by the accounts and the names in them. */
  #size = 0;
  readonly #sizeMax: number;
  readonly #today: Timestamp;

  constructor(context: UsageRecordingContext, mark: ReadMark | null, sumsAtOnceMax: number) {
    this.#context = context;
    // One time for the whole run: the sums are of the days before, also when midnight passes during it.
    this.#today = context.clock.now();
    this.#sizeMax = sumsAtOnceMax;
    this.#before = mark;
    this.#mark = mark;
    this.#position = mark?.position ?? LOG_START;
  }

  mark(): ReadMark | null {
    return this.#mark;
  }

  /** Resolves true if everything before today was read, false if memory is full. */
  async read(signal: { readonly aborted: boolean }): Promise<boolean> {
    const { events } = this.#context;
    const today = this.#today.slice(0, 10);
    const head = await events.head();
    while (this.#position < head && !signal.aborted) {
      const page = await events.readAll(this.#position, PAGE_EVENTS_MAX);
      if (page.length === 0) return true;
      const past = wholeAppends(page);
      const untilToday = past.findIndex((append) => append.some(({ occurredAt }) => occurredAt.slice(0, 10) >= today));
      const read = (untilToday < 0 ? past : past.slice(0, untilToday)).flat();
      for (const event of read) await this.#add(event);
      this.#position = read.at(-1)?.position ?? this.#position;
      this.#mark = markAfter(this.#mark, this.#position, lastRecordOf(read));
      if (untilToday >= 0) return true;
      if (this.#size >= this.#sizeMax) return false;
    }
    return true;
  }

  async #add(event: RecordedEvent): Promise<void> {
    const { accountId, isRecord, id, stream } = event;
    if (accountId === null) return;
    if (categoryOf(stream) === 'usage') this.#meet(accountId, event);
    if (isRecord) return;
    let account = this.#accounts.get(accountId);
    if (account === undefined) {
      account = await this.#load(accountId);
      this.#accounts.set(accountId, account);
      this.#size += 1;
    }
    const before = account.sums.named;
    account.sums.add(event);
    this.#size += account.sums.named - before;
    if (!account.throughs.has(id)) return;
    account.met.add(id);
    account.sums = new DailySums();
  }

  /**
   * Without a mark every event is read that was summed, or it was pruned. Of a pruned one it is known only that it was
   * before its `UsageRecorded`.
   */
  #meet(accountId: AccountId, event: RecordedEvent): void {
    const account = this.#accounts.get(accountId);
    const { through } = readEvent(usageEventKinds, event).data;
    if (this.#before !== null || account === undefined || through === null) return;
    if (!account.met.has(through.event_id)) account.sums = new DailySums();
  }

  /** Reads what the account has recorded since the mark: another node, or this policy before it died, may have. */
  async #load(accountId: AccountId): Promise<Summed> {
    const { events } = this.#context;
    const stream = streamName('usage', accountId);
    const after = this.#before?.position ?? LOG_START;
    const recorded: RecordedEvent[] = [];
    for (let from: number | undefined; ; ) {
      const options = { direction: 'backwards' as const, limit: PAGE_EVENTS_MAX };
      const page = await events.readStream(stream, from === undefined ? options : { ...options, from });
      recorded.push(...page);
      const oldest = page.at(-1);
      if (oldest === undefined || oldest.revision === 0 || oldest.position <= after) break;
      from = oldest.revision - 1;
    }
    const last = recorded[0];
    const since = recorded.filter(({ position }) => position > after);
    return {
      sums: new DailySums(),
      revision: last?.revision ?? 'none',
      lastAt: last?.occurredAt ?? null,
      throughs: new Set(since.flatMap((one) => readEvent(usageEventKinds, one).data.through?.event_id ?? [])),
      met: new Set(),
    };
  }

  /** Resolves false if another node has recorded an account first. */
  async append(): Promise<boolean> {
    const { events, ids } = this.#context;
    const day = plusMs(this.#today, -DAY_MS).slice(0, 10);
    let isFirst = true;
    for (const [account, { sums, revision, lastAt }] of this.#accounts) {
      const event = sums.recorded(day);
      if (event === null) continue;
      const about = { account, cause: systemCause(ids, USAGE_SUMMING), lastAt };
      const enveloped = envelop(this.#context, { kinds: usageEventKinds }, [event], about);
      const stream = streamName('usage', account);
      const { outcome } = await events.append({ stream, expected: revision, events: enveloped });
      if (outcome === 'conflict') isFirst = false;
    }
    return isFirst;
  }
}
