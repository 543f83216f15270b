/**
 * Gives a few slots to many who wait for one. Who took least lately comes first, and of those who took the same, who
 * asked first. So nobody gets ahead by asking often, nor by asking from ever new places.
 *
 * Invariants:
 * - everybody who waits counts as having taken a turn, and who did not get one counts no more;
 * - who was turned away and asks again has the place of the first time: with a thousand others, it is the turn of a
 *   newcomer after a thousand turns at the latest;
 * - when a lane is full, whoever is last gives way to somebody who comes before;
 * - nobody waits longer than `waitMs`, and neither lane keeps the other from every turn.
 */
import { createRecentCounts } from '../../core/kernel/recent-counts.ts';

/** A lane of its own for those who are known; of four turns, one is the strangers' if any of them waits. */
export type Lane = 'known' | 'stranger';
/** Turns of those who are known before one of a stranger who waits. Internal: it is a part of whose turn is next. */
const KNOWN_IN_A_ROW_MAX = 3;

export interface Asking {
  readonly lane: Lane;
  /**
   * What the turn counts for: who asks, and larger groups that they belong to, such as an address and its network. One
   * with a share of 8 may take eight turns to one.
   */
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
  /** Returns whether `take` would let this one wait, as things are, and remembers that they asked. */
  ask(asking: Asking): boolean;
  /**
   * Resolves with the release of a slot, or null if there is no room, somebody who took less needed the place, or the
   * wait was too long. The release says what the turn was worth, 1 or less; only its first call counts.
   */
  take(asking: Asking): Promise<((worth: number) => void) | null>;
}

interface Place {
  /** The turns that they have taken: the most of what the turn counts for. */
  readonly rank: number;
  /** When they asked first, since their last turn. */
  readonly askedAt: number;
}

interface Waiter extends Place {
  readonly asking: Asking;
  readonly since: number;
  readonly answer: (isTurn: boolean) => void;
}

export function createTurns(options: TurnsOptions): Turns {
  const { waitingMax, waitMs, monotonicMs } = options;
  const taken = createRecentCounts(options);
  const asked = createAskedTimes(options);
  const lanes: Readonly<Record<Lane, Waiter[]>> = { known: [], stranger: [] };
  let free = options.slots;
  let knownInARow = 0;

  const placeOf = ({ counts }: Asking): Place => ({
    // In whole turns, so that a part of one, or a turn of a neighbour, costs nobody the place.
    rank: Math.floor(Math.max(...counts.map(({ key, share }) => taken.of(key) / share))),
    askedAt: asked.note(nameOf(counts)),
  });
  const count = ({ counts }: Asking, amount: number): void => {
    for (const { key } of counts) taken.add(key, amount);
  };
  const turnAway = (waiter: Waiter): void => {
    const lane = lanes[waiter.asking.lane];
    lane.splice(lane.indexOf(waiter), 1);
    count(waiter.asking, -1);
    waiter.answer(false);
  };
  const hasRoom = (lane: readonly Waiter[], place: Place): boolean => {
    const last = lastOf(lane);
    return free > 0 || lane.length < waitingMax || (last !== undefined && isBefore(place, last));
  };
  const giveTurns = (): void => {
    const now = monotonicMs();
    for (const waiter of [...lanes.known, ...lanes.stranger]) if (now - waiter.since > waitMs) turnAway(waiter);
    for (;;) {
      const waiter = free > 0 ? nextOf(lanes, knownInARow) : undefined;
      if (waiter === undefined) return;
      const { lane } = waiter.asking;
      lanes[lane].splice(lanes[lane].indexOf(waiter), 1);
      knownInARow = lane === 'known' ? knownInARow + 1 : 0;
      free -= 1;
      asked.forget(nameOf(waiter.asking.counts));
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
    ask: (asking) => hasRoom(lanes[asking.lane], placeOf(asking)),
    take: async (asking) => {
      const lane = lanes[asking.lane];
      const place = placeOf(asking);
      if (!hasRoom(lane, place)) return null;
      const last = lastOf(lane);
      if (lane.length >= waitingMax && last !== undefined) turnAway(last);
      count(asking, 1);
      const isTurn = await new Promise<boolean>((answer) => {
        lane.push({ ...place, asking, since: monotonicMs(), answer });
        giveTurns();
      });
      return isTurn ? releaseOf(asking) : null;
    },
  };
}

function nextOf(lanes: Readonly<Record<Lane, readonly Waiter[]>>, knownInARow: number): Waiter | undefined {
  const [known, stranger] = [firstOf(lanes.known), firstOf(lanes.stranger)];
  const isStrangersTurn = known === undefined || knownInARow >= KNOWN_IN_A_ROW_MAX;
  return stranger !== undefined && isStrangersTurn ? stranger : known;
}

/** Who asks, the first of what their turn counts for. */
function nameOf([who]: Asking['counts']): string {
  return who?.key ?? '';
}

function isBefore(one: Place, other: Place): boolean {
  return one.rank < other.rank || (one.rank === other.rank && one.askedAt < other.askedAt);
}

/** The one of the same place who has waited longest. */
function firstOf(lane: readonly Waiter[]): Waiter | undefined {
  let first = lane[0];
  for (const waiter of lane) if (first !== undefined && isBefore(waiter, first)) first = waiter;
  return first;
}

/** The one of the same place who came last. */
function lastOf(lane: readonly Waiter[]): Waiter | undefined {
  let last = lane[0];
  for (const waiter of lane) if (last !== undefined && !isBefore(waiter, last)) last = waiter;
  return last;
}

interface AskedTimes {
  /** Returns when the one of this name asked first, which is now if that is not known. */
  note(name: string): number;
  forget(name: string): void;
}

/** Who had no turn for `spanMs`, and the first of more than `keysMax`, lose their place. */
function createAskedTimes({ spanMs, keysMax, monotonicMs }: TurnsOptions): AskedTimes {
  // In the order of their times, since a time is never replaced.
  const times = new Map<string, number>();
  return {
    note(name) {
      const now = monotonicMs();
      for (const [oldest, at] of times) {
        if (times.size < keysMax && now - at < spanMs) break;
        times.delete(oldest);
      }
      const at = times.get(name) ?? now;
      times.set(name, at);
      return at;
    },
    forget: (name) => void times.delete(name),
  };
}
