/**
 * Which points of a scenario a run kills a server at. All by default. `STRATA_KILL_SAMPLE=SEED` chooses a third of them
 * by the seed, as `.ci/run` does with the commit's id: a kill takes half a minute, and every commit tries others.
 *
 * Invariants: a point that is left out is listed as skipped, with the seed; each scenario runs one point at least.
 */
import { createHash } from 'node:crypto';
import { type SkipOptions, skippedFor } from './skipped.ts';

const SHARE = 1 / 3;

/** Returns the options of the test of each point. */
export function killSample<Point extends string>(
  points: readonly Point[],
  seed: string = process.env['STRATA_KILL_SAMPLE'] ?? '',
): (point: Point) => SkipOptions {
  if (seed === '') return () => skippedFor(false);
  const rank = (point: Point): string => createHash('sha256').update(`${seed} ${point}`).digest('hex');
  const inOrder = points.toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1));
  const chosen = new Set(inOrder.slice(0, Math.ceil(points.length * SHARE)));
  return (point) => skippedFor(!chosen.has(point) && `not in the sample of STRATA_KILL_SAMPLE=${seed}`);
}
