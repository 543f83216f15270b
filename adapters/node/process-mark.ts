/**
 * Marks by which files say which process writes them, so that another process finds out whether that one has ended.
 *
 * Invariants: `hasEnded` is true only if the process has ended for certain. A process id alone says nothing: ids are
 * used again, so the mark holds the moment at which the process started, and an id of another machine, boot or
 * container means nothing here.
 */
import { createHash } from 'node:crypto';
import { type ProcessFacts, processFacts, processIdSpace } from './process-facts.ts';

export interface ProcessMarks {
  /** The mark of this process: `<pid>-<32 hex digits>`. */
  readonly mine: string;
  /** Whether the process that has the mark has ended. False if that cannot be known here, and for other texts. */
  hasEnded(mark: string): Promise<boolean>;
}

const MARK = /^(\d{1,10})-([0-9a-f]{16})([0-9a-f]{16})$/;

export async function createProcessMarks(pid = process.pid): Promise<ProcessMarks> {
  const [space, me] = await Promise.all([processIdSpace().then(shortHash), processFacts(pid)]);
  return {
    mine: `${pid}-${space}${startOf(me)}`,
    hasEnded: async (mark) => {
      const [, pidText = '', theirSpace, started] = MARK.exec(mark) ?? [];
      if (theirSpace !== space) return false;
      const facts = await processFacts(Number(pidText));
      if (facts === null) return isFree(Number(pidText));
      return facts.zombie || startOf(facts) !== started;
    },
  };
}

/** /proc may hide the processes of other users (proc(5), hidepid), but not from kill(2). */
function isFree(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH';
  }
}

function startOf(facts: ProcessFacts | null): string {
  return shortHash(facts?.started ?? '');
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
