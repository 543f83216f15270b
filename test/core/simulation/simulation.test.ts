/**
 * Random clients on several nodes, judged by the log: reads after a barrier are linearizable, pushes are whole or
 * absent, revisions have no gaps.
 *
 * `STRATA_SIMULATION_SEED=<n>` repeats one run, `STRATA_SIMULATION_MS=<n>` goes on for longer.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { historyOf } from './history.ts';
import { type Run, simulate } from './cluster.ts';

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

test('whatever happens in which order, clients see one history', async (context) => {
  if (GIVEN_SEED !== undefined) {
    await runSeed(Number(GIVEN_SEED));
    return;
  }
  const first = Date.now() % 2 ** 31;
  const end = performance.now() + SPAN_MS;
  const counts = { runs: 0, reads: 0, pushes: 0, accepted: 0, refused: 0, unknown: 0 };
  for (let seed = first; seed === first || performance.now() < end; seed += 1) {
    const { reads, pushes } = await runSeed(seed);
    counts.runs += 1;
    counts.reads += reads.length;
    counts.pushes += pushes.length;
    counts.unknown += pushes.filter(({ outcome }) => outcome === 'unknown').length;
    const codes = pushes.flatMap(({ outcome }) => (Array.isArray(outcome) ? outcome : []));
    counts.accepted += codes.filter((code) => code === null).length;
    counts.refused += codes.filter((code) => code !== null).length;
  }
  context.diagnostic(`seeds from ${first}: ${JSON.stringify(counts)}`);
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
