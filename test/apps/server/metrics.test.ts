/** What the metrics say of the process, and what they cost it while nobody asks. */
import assert from 'node:assert/strict';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { createMetrics } from '../../../apps/server/metrics.ts';

test('The metrics wake no process that does nothing', async () => {
  createMetrics();
  const before = performance.nodeTiming.uvMetricsInfo.loopCount;
  await sleep(1_000);
  const turns = performance.nodeTiming.uvMetricsInfo.loopCount - before;
  assert.ok(turns < 40, `${turns} turns of the event loop in a second`);
});

test('The metrics say how busy the event loop was, and nothing that is not measured', async () => {
  const text = await createMetrics().text();
  const busy = /^strata_nodejs_eventloop_utilization (\S+)$/m.exec(text)?.[1];
  assert.ok(Number(busy) >= 0 && Number(busy) <= 1, text);
  assert.match(text, /^strata_nodejs_eventloop_lag_seconds /m);
  assert.doesNotMatch(text, /eventloop_lag_(min|max|mean|stddev|p\d+)_seconds/);
});
