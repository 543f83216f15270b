/** deploy/alerts.yaml and the dashboard name what exists: metrics, chapters, and work in the background. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { PERIODIC, type PeriodicWork } from '../../apps/server/background.ts';
import { ROOT } from '../architecture/source-tree.ts';
import { productSources } from '../architecture/syntax.ts';
import { metricsOf } from '../metrics/found-metrics.ts';
import { needs } from '../support/optional-suites.ts';
import { ALERTS_FILE, alertRules, dashboardExpressions, seriesIn } from './alert-rules.ts';
import { DRILLS } from './drills.ts';
import { promtool } from './promtool.ts';

/** prom-client makes it, so docs/metrics.md does not list it. */
const OF_PROM_CLIENT = 'strata_process_start_time_seconds';

describe('The alerts', () => {
  const rules = alertRules();

  test('and the dashboard name only metrics of docs/metrics.md', () => {
    const series = metricsOf(productSources()).flatMap(({ name, kind }) =>
      kind === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name + end) : [name],
    );
    const known: ReadonlySet<string> = new Set([OF_PROM_CLIENT, ...series]);
    const named = [...rules.map(({ expr }) => expr), ...dashboardExpressions()].flatMap(seriesIn);
    assert.ok(named.length > 40, `${named.length} names`);
    assert.deepEqual(
      named.filter((name) => !known.has(name)),
      [],
    );
  });

  test('name a chapter of docs/operating.md that says what to do', () => {
    const chapters = readFileSync(join(ROOT, 'docs/operating.md'), 'utf8').split('\n');
    for (const { alert, annotations } of rules) {
      assert.ok(chapters.includes(`## ${annotations.chapter}`), `${alert}: ${annotations.chapter}`);
    }
  });

  test('are all in the drill, which breaks each thing', () => {
    assert.deepEqual(rules.map(({ alert }) => alert).toSorted(), [...DRILLS].toSorted());
  });

  test('wait for at least two intervals of work in the background', () => {
    const { expr } = rules.find(({ alert }) => alert === 'StrataSweepFails') ?? assert.fail('no such alert');
    const spans = [...expr.matchAll(/(?:\{work=~?"([^"]+)"\})? \+ (\d+) \* 3600/g)];
    assert.equal(spans.length, 3);
    for (const [work, { everyMs }] of Object.entries<PeriodicWork>(PERIODIC)) {
      const hours = Number(spans.find(([, works]) => works === undefined || works.split('|').includes(work))?.[2]);
      const everyHours = everyMs / 3_600_000;
      assert.ok(hours > 2 * everyHours && hours <= 2 * everyHours + 3, `${work}: ${hours} h`);
    }
  });

  test('are rules that Prometheus takes', needs('promtool'), async () => {
    await promtool('check', 'rules', ALERTS_FILE);
  });
});
