/**
 * Lets others have the event loop while objects are read in process, however small each piece of that work is: a chain
 * of medium deltas, or many reads in a row, block it as one large delta would.
 *
 * Invariants: all reads together do at most `TURN_WORK`, and the piece that goes beyond it, between two turns of
 * the event loop. Who waits goes on in the order of asking, one a turn.
 */
import type { NextTurn } from '../../../core/kernel/turns.ts';

/** Bytes that take some five milliseconds to inflate. */
const TURN_WORK = 1024 * 1024;
/**
 * What else reads do, in bytes inflated in the same time: to find an entry, and to follow an instruction of a delta.
 */
export const ENTRY_WORK = 4 * 1024;
export const INSTRUCTION_WORK = 8;

export interface ReadTurns {
  /** Counts a piece of work. Returns null, or what to wait for before the next one, which never rejects. */
  spend(work: number): Promise<void> | null;
}

export function createReadTurns(nextTurn: NextTurn): ReadTurns {
  let spent = 0;
  let last = Promise.resolve();
  const turn = async (before: Promise<void>) => {
    await before;
    await nextTurn();
    spent = 0;
  };
  return {
    spend: (work) => {
      spent += work;
      if (spent < TURN_WORK) return null;
      last = turn(last);
      return last;
    },
  };
}
