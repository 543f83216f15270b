/**
 * Verifies the log, the vault and the layers in the background, round by round, and tells each account's first fault.
 *
 * Invariants: it changes nothing but its own cursors. A round goes on where it was, in whichever process; one process
 * walks at a time. In each process an account has one line and one count for each round. The walks of the week and of
 * the month take turns, so that neither keeps the other from its end.
 */
import { type AccountId, msBetween, type Timestamp } from '../../kernel/ids.ts';
import type { Clock, SettledWithin } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { VerificationWalks, Walk, WalkProgress } from '../../ports/verification-walks.ts';
import { createPace, type Pace, type PaceParts, unboundedPace } from './pace.ts';
import { type RoundContext, STEPS } from './rounds.ts';
import type { Report } from './verify-page.ts';

const DAY_MS = 24 * 60 * 60_000;

/**
 * How long after the start of a round the next one begins, if the round is over: early enough for all of it to be
 * verified within the week or the month.
 */
const ROUND_MS: { readonly [Name in Walk]: number } = { week: 5 * DAY_MS, month: 25 * DAY_MS };
const WALKS: readonly Walk[] = ['week', 'month'];

/** How long a run waits for the walk, which goes on behind it. Internal: the next run waits on. */
const RUN_MS = 9.5 * 60_000;
/** How long a walk goes on before the other one has its turn. Internal: both come to their ends. */
const TURN_MS = 60_000;
/** How often a long step says that it still walks. Internal: others only wait for one that does not. */
const KEEP_INTERVAL_MS = 60_000;
/** Accounts with faults that a round tells. Internal: the first ones are enough to find the cause. */
const TOLD_ACCOUNTS_MAX = 1_000;

/** The first fault of an account; `strata-admin log verify --references` names all of them. */
export interface Told {
  /** Null: what belongs to no account. */
  readonly account: AccountId | null;
  readonly fault: string;
}

export interface VerificationContext extends RoundContext {
  readonly clock: Pick<Clock, 'now' | 'monotonicMs'>;
  readonly walks: VerificationWalks;
  readonly settledWithin: SettledWithin;
  readonly log: Pick<Log, 'error'>;
  /** Called once for each account with a fault in a round, for the metrics. */
  readonly onFault: () => void;
}

export interface Verification {
  /**
   * Walks on within the bounds, and waits some minutes for it; the walk goes on behind it, and the next call waits for
   * that. Rejects on an outage. All calls take the same signal: aborted, it ends the walk, and the call behind it.
   */
  run(signal: AbortSignal): Promise<void>;
  /** When the last whole round began; before the first is whole, when it began. Null until the first run. */
  wholeSince(walk: Walk): Timestamp | null;
}

interface Teller {
  readonly report: Report;
  readonly told: ReadonlyMap<AccountId | null, Told>;
}

function createTeller({ log, onFault }: Pick<VerificationContext, 'log' | 'onFault'>): Teller {
  const told = new Map<AccountId | null, Told>();
  return {
    told,
    report(account, fault) {
      if (told.has(account) || told.size === TOLD_ACCOUNTS_MAX) return;
      told.set(account, { account, fault });
      log.error({ account, fault }, 'The verification found a fault');
      onFault();
    },
  };
}

interface Walker extends Pick<Verification, 'wholeSince'> {
  /** Walks for the time of a turn. Returns whether the walk goes on in its next turn. */
  takeTurn(walk: Walk, pace: Pace): Promise<boolean>;
}

function createWalker(context: VerificationContext, process: string): Walker {
  const { clock, walks } = context;
  const reporting = new Map<Walk, { readonly begunAt: Timestamp; readonly report: Report }>();
  const since = new Map<Walk, Timestamp | null>();
  const reportOf = (walk: Walk, begunAt: Timestamp): Report => {
    const known = reporting.get(walk);
    if (known?.begunAt === begunAt) return known.report;
    const { report } = createTeller(context);
    reporting.set(walk, { begunAt, report });
    return report;
  };
  /** Does one step, until then if it is long. Returns whether this process has another one to do. */
  const walkOn = async (walk: Walk, pace: Pace, untilMs: number): Promise<boolean> => {
    const held = await walks.take(walk, process);
    const round = held.isHeld ? roundOf(held, walk, clock.now()) : null;
    since.set(walk, held.wholeSince ?? held.begunAt ?? round?.begunAt ?? null);
    if (round === null) return false;
    const save = async (cursor: string | null): Promise<boolean> => {
      const wholeSince = cursor === null ? round.begunAt : round.wholeSince;
      since.set(walk, wholeSince ?? round.begunAt);
      return walks.save(walk, process, { begunAt: round.begunAt, cursor, wholeSince });
    };
    const reached = async (cursor: string): Promise<boolean> => (await save(cursor)) && clock.monotonicMs() < untilMs;
    const reports = { report: reportOf(walk, round.begunAt), reached };
    const cursor = await STEPS[walk](context, round.cursor, keeping(context, { walk, process, pace }), reports);
    return (await save(cursor)) && cursor !== null;
  };
  return {
    async takeTurn(walk, pace) {
      const untilMs = clock.monotonicMs() + TURN_MS;
      while (await walkOn(walk, pace, untilMs)) if (clock.monotonicMs() >= untilMs) return true;
      return false;
    },
    wholeSince: (walk) => since.get(walk) ?? null,
  };
}

type PacedContext = VerificationContext & Pick<PaceParts, 'computedMs'>;

/**
 * Walks until no round is under way that this process may walk, and none is due. Where one walk fails, the other one
 * goes on for the time of a run, so that it does not wait for whatever the first one lacks.
 */
async function walkAll(context: PacedContext, { takeTurn }: Walker, signal: AbortSignal): Promise<void> {
  const { clock } = context;
  const pace = createPace(context, signal);
  let failed: { readonly error: unknown; readonly atMs: number } | null = null;
  for (let walks = WALKS; walks.length > 0; ) {
    const left: Walk[] = [];
    for (const walk of walks) {
      try {
        if (await takeTurn(walk, pace)) left.push(walk);
      } catch (error) {
        if (signal.aborted) return;
        failed ??= { error, atMs: clock.monotonicMs() };
      }
    }
    walks = failed !== null && clock.monotonicMs() - failed.atMs >= RUN_MS ? [] : left;
  }
  if (failed !== null) throw failed.error;
}

/** `process` names this process among those that walk. */
export function createVerification(context: PacedContext, process: string): Verification {
  const walker = createWalker(context, process);
  let current: { readonly done: Promise<void>; isOver: boolean } | null = null;
  const begin = (signal: AbortSignal): NonNullable<typeof current> => {
    const done = walkAll(context, walker, signal).finally(() => void (begun.isOver = true));
    const begun = { done, isOver: false };
    return begun;
  };
  return {
    async run(signal) {
      current ??= begin(signal);
      const { done } = current;
      await context.settledWithin(RUN_MS, done);
      if (!current.isOver) return;
      current = null;
      await done;
    },
    wholeSince: walker.wholeSince,
  };
}

/** Walks one whole round of each walk without bounds. Returns the first fault of each account. */
export async function verifyOnce(context: VerificationContext, signal: AbortSignal): Promise<readonly Told[]> {
  const pace = unboundedPace(signal);
  const { told, report } = createTeller(context);
  const reports = { report, reached: async () => true };
  for (const walk of WALKS) {
    const begunAt = context.clock.now();
    for (let cursor: string | null = null, isBegun = false; cursor !== null || !isBegun; isBegun = true) {
      cursor = await STEPS[walk](context, cursor, pace, reports);
    }
    await context.walks.walked(walk, begunAt);
  }
  return [...told.values()];
}

interface Round extends WalkProgress {
  readonly begunAt: Timestamp;
}

/** Returns the round that is under way or due; null while none is. */
function roundOf({ begunAt, cursor, wholeSince }: WalkProgress, walk: Walk, now: Timestamp): Round | null {
  if (begunAt !== null && cursor !== null) return { begunAt, cursor, wholeSince };
  const isDue = begunAt === null || msBetween(begunAt, now) >= ROUND_MS[walk];
  return isDue ? { begunAt: now, cursor: null, wholeSince } : null;
}

/** A long step keeps its walk, and ends when another process has taken it. */
function keeping(
  { walks, clock }: Pick<VerificationContext, 'walks' | 'clock'>,
  { walk, process, pace }: { readonly walk: Walk; readonly process: string; readonly pace: Pace },
): Pace {
  let keptMs = clock.monotonicMs();
  return {
    signal: pace.signal,
    async run(work) {
      const result = await pace.run(work);
      if (clock.monotonicMs() - keptMs < KEEP_INTERVAL_MS) return result;
      keptMs = clock.monotonicMs();
      if (!(await walks.take(walk, process)).isHeld) throw new Error(`Another process walks the ${walk}`);
      return result;
    },
  };
}
