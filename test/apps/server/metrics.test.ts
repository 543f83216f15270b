/** What the metrics say of the process, and what they cost it while nobody asks. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { test } from 'vitest';
import { createMetrics } from '../../../apps/server/metrics.ts';

/**
 * Prints the turns of the quietest of four half seconds, in a process of its own, since the runner of the tests has
 * turns too. In the first ones V8 still works in the background for what was loaded, and each end of that is a turn.
 */
const COUNT_TURNS = `
  import { performance } from 'node:perf_hooks';
  import { setTimeout as sleep } from 'node:timers/promises';
  import { createMetrics } from ${JSON.stringify(new URL('../../../apps/server/metrics.ts', import.meta.url).href)};
  createMetrics();
  const turns = [];
  for (let span = 0; span < 4; span += 1) {
    const before = performance.nodeTiming.uvMetricsInfo.loopCount;
    await sleep(500);
    turns.push(performance.nodeTiming.uvMetricsInfo.loopCount - before);
  }
  console.log(Math.min(...turns));
`;

test('The metrics wake no process that does nothing', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', COUNT_TURNS]);
  const turns = Number(stdout);
  assert.ok(turns > 0 && turns < 20, `${turns} turns of the event loop in half a second`);
});

test('The metrics say how busy the event loop was, and nothing that is not measured', async () => {
  const text = await createMetrics().text();
  const busy = /^strata_nodejs_eventloop_utilization (\S+)$/m.exec(text)?.[1];
  assert.ok(Number(busy) >= 0 && Number(busy) <= 1, text);
  assert.match(text, /^strata_nodejs_eventloop_lag_seconds /m);
  assert.doesNotMatch(text, /eventloop_lag_(min|max|mean|stddev|p\d+)_seconds/);
});

test('The metrics say which version this process is', async () => {
  const metrics = createMetrics();
  metrics.build('1.2.3', 'v24.0.0');
  assert.match(await metrics.text(), /^strata_build_info\{version="1\.2\.3",node="v24\.0\.0"\} 1$/m);
});
