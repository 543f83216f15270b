/**
 * Gives a few slots to many who wait for one. Who took least lately comes first, so that nobody gets ahead by asking
 * often or from many places.
 *
 * Must stay true:
 * - everybody who waits counts as having taken a turn, and who did not get one counts no more;
 * - when a lane is full, whoever took most gives way to somebody who took less;
 * - nobody waits longer than `waitMs`, and neither lane keeps the other from every turn.
 */
import { createRecentCounts } from './recent-counts.ts';

/** A lane of its own for those who are known; of four turns, one is the strangers' if any of them waits. */
export type Lane = 'known' | 'stranger';
const KNOWN_IN_A_ROW_MAX = 3;

export interface Asking {
  readonly lane: Lane;
  /** What the turn counts for, such as an address and its network. One with a share of 8 may take eight turns to one. */
  readonly counts: readonly { readonly key: string; readonly share: number }[];
}

export interface TurnsOptions {
  readonly slots: number;
  /** Who may wait in each lane. */
  readonly waitingMax: number;
  /** How long one may wait: it is looked at whenever a slot becomes free. */
  readonly waitMs: number;
  /** How long a turn that was taken counts. */
  readonly spanMs: number;
  readonly keysMax: number;
  readonly monotonicMs: () => number;
}

export interface Turns {
  /** Whether `take` would let this one wait, as things are. */
  hasRoom(asking: Asking): boolean;
  /**
   * Resolves with the release of a slot, or null if there is no room, somebody who took less needed the place, or the
   * wait was too long. The release says what the turn was worth, 1 or less; only its first call counts.
   */
  take(asking: Asking): Promise<((worth: number) => void) | null>;
}

interface Waiter {
  readonly asking: Asking;
  readonly rank: number;
  readonly since: number;
  readonly answer: (isTurn: boolean) => void;
}

export function createTurns(options: TurnsOptions): Turns {
  const { waitingMax, waitMs, monotonicMs } = options;
  const taken = createRecentCounts(options);
  const lanes: Readonly<Record<Lane, Waiter[]>> = { known: [], stranger: [] };
  let free = options.slots;
  let knownInARow = 0;

  const rankOf = ({ counts }: Asking): number => Math.max(...counts.map(({ key, share }) => taken.of(key) / share));
  const count = ({ counts }: Asking, amount: number): void => {
    for (const { key } of counts) taken.add(key, amount);
  };
  const turnAway = (waiter: Waiter): void => {
    const lane = lanes[waiter.asking.lane];
    lane.splice(lane.indexOf(waiter), 1);
    count(waiter.asking, -1);
    waiter.answer(false);
  };
  const hasRoom = (asking: Asking): boolean => {
    const lane = lanes[asking.lane];
    const last = lastOf(lane);
    return free > 0 || lane.length < waitingMax || (last !== undefined && rankOf(asking) < last.rank);
  };
  const next = (): Waiter | undefined => {
    const [known, stranger] = [firstOf(lanes.known), firstOf(lanes.stranger)];
    const isStrangersTurn = known === undefined || knownInARow >= KNOWN_IN_A_ROW_MAX;
    return stranger !== undefined && isStrangersTurn ? stranger : known;
  };
  const giveTurns = (): void => {
    const now = monotonicMs();
    for (const waiter of [...lanes.known, ...lanes.stranger]) if (now - waiter.since > waitMs) turnAway(waiter);
    for (let waiter = next(); free > 0 && waiter !== undefined; waiter = next()) {
      const { lane } = waiter.asking;
      lanes[lane].splice(lanes[lane].indexOf(waiter), 1);
      knownInARow = lane === 'known' ? knownInARow + 1 : 0;
      free -= 1;
      waiter.answer(true);
    }
  };
  const releaseOf = (asking: Asking): ((worth: number) => void) => {
    let released = false;
    return (worth) => {
      if (released) return;
      released = true;
      count(asking, worth - 1);
      free += 1;
      giveTurns();
    };
  };

  return {
    hasRoom,
    take: async (asking) => {
      if (!hasRoom(asking)) return null;
      const lane = lanes[asking.lane];
      const last = lastOf(lane);
      if (lane.length >= waitingMax && last !== undefined) turnAway(last);
      const rank = rankOf(asking);
      count(asking, 1);
      const isTurn = await new Promise<boolean>((answer) => {
        lane.push({ asking, rank, since: monotonicMs(), answer });
        giveTurns();
      });
      return isTurn ? releaseOf(asking) : null;
    },
  };
}

/** Who is next: of those who took least, the one who has waited longest. */
function firstOf(lane: readonly Waiter[]): Waiter | undefined {
  let first = lane[0];
  for (const waiter of lane) if (first !== undefined && waiter.rank < first.rank) first = waiter;
  return first;
}

/** Who gives way first: of those who took most, the one who came last. */
function lastOf(lane: readonly Waiter[]): Waiter | undefined {
  let last = lane[0];
  for (const waiter of lane) if (last !== undefined && waiter.rank >= last.rank) last = waiter;
  return last;
}
