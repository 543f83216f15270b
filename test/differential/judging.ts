/**
 * Compares what both sides did with a case, and finds the smallest case that shows a difference.
 *
 * Invariants: an outage or a cut connection of this service is always a fault, whatever git did.
 */
import type { Observation } from './answers.ts';
import { type Case, smallerCases } from './cases.ts';
import { MEANT, type MeantDifference, type Observed } from './meant.ts';

/** Runs to make a case smaller: each takes as long as the case. */
const SHRINKING_RUNS_MAX = 60;

export interface Compared extends Observed {
  /** What this service logged as a fault of its own while the case ran, and what its client saw of an outage. */
  readonly faults: readonly string[];
  /** What the clients of both sides were told. */
  readonly messages: string;
}

export type Verdict = 'equal' | 'differs' | MeantDifference;

export function judge(given: Case, compared: Compared): Verdict {
  if (compared.faults.length > 0) return 'differs';
  if (differences(compared).length === 0) return 'equal';
  return MEANT.find((row) => row.explains(given, compared)) ?? 'differs';
}

/** The names of what differs. */
function differences({ git, ours }: Pick<Observed, 'git' | 'ours'>): readonly string[] {
  const names = new Set([...Object.keys(git), ...Object.keys(ours)]);
  return [...names].filter((name) => JSON.stringify(git[name]) !== JSON.stringify(ours[name]));
}

/** Leaves out part after part of a case as long as it still differs. */
export async function smallest(
  given: Case,
  compare: (smaller: Case) => Promise<Compared>,
): Promise<{ readonly given: Case; readonly compared: Compared }> {
  let found = { given, compared: await compare(given) };
  let left = SHRINKING_RUNS_MAX;
  for (let isSmaller = true; isSmaller; ) {
    isSmaller = false;
    for (const smaller of smallerCases(found.given)) {
      if (left === 0) return found;
      left -= 1;
      const compared = await compare(smaller);
      if (judge(smaller, compared) !== 'differs') continue;
      found = { given: smaller, compared };
      isSmaller = true;
      break;
    }
  }
  return found;
}

const LINES_SHOWN_MAX = 20;
type Lines = Observation[string] | undefined;

/** What differs, for a person: of lists only the lines that one side lacks. */
export function shownDifference({ git, ours, faults, messages }: Compared): string {
  const lines = differences({ git, ours }).flatMap((name) => {
    const [of, from] = [git[name], ours[name]];
    return [`${name}:`, ...side('git', of, from), ...side('this service', from, of)];
  });
  return [...lines, ...faults.map((fault) => `fault: ${fault}`), messages.trim()].join('\n');
}

function side(name: string, own: Lines, other: Lines): readonly string[] {
  if (own === undefined) return [`  ${name}: nothing`];
  const alone = own.filter((line) => other?.includes(line) !== true);
  return [`  ${name}: ${own.length} lines`, ...alone.slice(0, LINES_SHOWN_MAX).map((line) => `    only: ${line}`)];
}
