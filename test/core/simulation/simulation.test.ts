/**
 * Random clients on several nodes, checked against the log: reads after a barrier are linearizable, pushes are
 * committed as a whole or not at all, and revisions have no gaps.
 *
 * `STRATA_SIMULATION_SEED=<n>` repeats one run, `STRATA_SIMULATION_MS=<n>` sets how long new seeds are tried.
 */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { type Run, simulate } from './cluster.ts';
import { historyOf } from './history.ts';

/** Enough runs for outcomes that occur in most of them. */
const KNOWN_SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];

const SPAN_MS = Number(process.env['STRATA_SIMULATION_MS'] ?? 1_500);
const GIVEN_SEED = process.env['STRATA_SIMULATION_SEED'];

function check(run: Run): void {
  const history = historyOf(run.log);
  history.checkLog();
  for (const read of [...run.reads, ...run.finally]) history.checkRead(read);
  for (const push of run.pushes) history.checkPush(push);
  for (const { seen } of run.finally) {
    if (seen !== null) assert.deepEqual(seen.refs, history.finalRefs(seen.stream));
  }
}

async function runSeed(seed: number): Promise<Run> {
  try {
    const run = await simulate(seed);
    check(run);
    return run;
  } catch (error) {
    throw new Error(`The simulation failed: repeat it with STRATA_SIMULATION_SEED=${seed}`, { cause: error });
  }
}

interface Counts {
  readonly pushes: number;
  readonly accepted: number;
  readonly refused: number;
  readonly unknown: number;
}

/** Counts the pushes, and the results of their updates. */
function countsOf(runs: readonly Run[]): Counts {
  const outcomes = runs.flatMap(({ pushes }) => pushes.map(({ outcome }) => outcome));
  const codes = outcomes.flatMap((outcome) => (Array.isArray(outcome) ? outcome : []));
  const accepted = codes.filter((code) => code === null).length;
  const unknown = outcomes.filter((outcome) => outcome === 'unknown').length;
  return { pushes: outcomes.length, accepted, refused: codes.length - accepted, unknown };
}

test('clients see one history, in any order of events and faults', async (context) => {
  if (GIVEN_SEED !== undefined) {
    await runSeed(Number(GIVEN_SEED));
    return;
  }
  const first = Date.now() % 2 ** 31;
  const end = performance.now() + SPAN_MS;
  const runs: Run[] = [];
  for (let seed = first; seed === first || performance.now() < end; seed += 1) runs.push(await runSeed(seed));
  await context.annotate(`${runs.length} seeds from ${first}: ${JSON.stringify(countsOf(runs))}`);
});

test('most updates are accepted, some are refused, and few have an unknown outcome after a fault', async () => {
  const runs: Run[] = [];
  for (const seed of KNOWN_SEEDS) runs.push(await runSeed(seed));
  const counts = countsOf(runs);
  const { pushes, accepted, refused, unknown } = counts;
  assert.ok(pushes > 50 && accepted > refused && refused > 0, JSON.stringify(counts));
  assert.ok(unknown < pushes / 5, JSON.stringify(counts));
});

test('a seed repeats its run', async () => {
  const traces = await Promise.all(
    [1, 1, 2].map(async (seed) =>
      (await simulate(seed)).log.map(({ type, requestId, revision }) => [type, requestId, revision]),
    ),
  );
  assert.deepEqual(traces[0], traces[1]);
  assert.notDeepEqual(traces[0], traces[2]);
});
