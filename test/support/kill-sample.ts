/**
 * Which points of a scenario a run kills a server at, and which rows of other long tests it takes. All by default.
 * `STRATA_KILL_SAMPLE=SEED` chooses a third of them by the seed, as `.ci/run` does with the commit's id: a kill takes
 * half a minute, and every commit tries others.
 *
 * Invariants: a point that is left out is listed as skipped, with the seed; each scenario runs one point at least. Of
 * rows, a figure at the end of the run says how many it took.
 */
import { createHash } from 'node:crypto';
import { type SkipOptions, skippedFor } from './skipped.ts';

const SHARE = 1 / 3;

/** Returns the options of the test of each point. */
export function killSample<Point extends string>(
  points: readonly Point[],
  seed: string = process.env['STRATA_KILL_SAMPLE'] ?? '',
): (point: Point) => SkipOptions {
  const chosen = new Set(thirdOf(points, seed));
  return (point) => skippedFor(!chosen.has(point) && `not in the sample of STRATA_KILL_SAMPLE=${seed}`);
}

/** Returns the third that the seed chooses, one at least; all without a seed. Its test notes how many it took. */
export function thirdOf<Name extends string>(
  names: readonly Name[],
  seed: string = process.env['STRATA_KILL_SAMPLE'] ?? '',
): readonly Name[] {
  if (seed === '') return names;
  const rank = (name: Name): string => createHash('sha256').update(`${seed} ${name}`).digest('hex');
  const inOrder = names.toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1));
  return inOrder.slice(0, Math.ceil(names.length * SHARE));
}
