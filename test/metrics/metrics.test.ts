/** docs/metrics.md is current, lists every metric, and what the reader of the sources must refuse. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { ROOT, treeOf } from '../architecture/source-tree.ts';
import { productSources, sourcesOf } from '../architecture/syntax.ts';
import { cachesOf } from './found-caches.ts';
import { metricsOf, misnamed } from './found-metrics.ts';
import { metricsPage } from './metrics-page.ts';

describe('The metrics of the project', () => {
  const metrics = metricsOf(productSources());

  test('are listed in docs/metrics.md as they are: `npm run metrics` writes it again', () => {
    assert.ok(readFileSync(join(ROOT, 'docs/metrics.md'), 'utf8') === metricsPage(metrics), 'docs/metrics.md is stale');
  });

  test('are those of test/golden/names, each once, with a text', () => {
    const golden = readFileSync(join(ROOT, 'test/golden/names/metrics.txt'), 'utf8').split('\n');
    const stored = golden.flatMap((line) => /^metric (\S+)/.exec(line)?.[1] ?? []);
    assert.deepEqual(metrics.map(({ name }) => name).sort(), stored.sort());
    assert.deepEqual(
      metrics.filter(({ help }) => help === ''),
      [],
    );
  });

  test('have names that begin with strata_', () => {
    assert.deepEqual(misnamed(metrics), []);
  });
});

describe('The caches of the project', () => {
  const { names, hidden } = cachesOf(productSources());

  test('are all shown by the metrics', () => {
    assert.deepEqual(hidden, []);
    assert.ok(names.length > 35, names.join(' '));
  });

  test('are refused where the metrics do not show them', () => {
    const made = `import { LRUCache } from 'lru-cache';
      const hidden = new LRUCache<string, true>({ max: 3 });
      const shown = countedCache('some', 'entries', new LRUCache<string, true>({ max: 3 }));`;
    const found = cachesOf(sourcesOf(treeOf({ 'apps/server/some.ts': made })));
    assert.deepEqual(found, { names: ['some'], hidden: ['apps/server/some.ts:2'] });
  });
});

describe('A metric', () => {
  const found = (text: string) => metricsOf(sourcesOf(treeOf({ 'apps/server/some.ts': text })));

  test('is found where it is made, and where a function makes it', () => {
    const made = `
      import { Counter } from 'prom-client';
      new Counter({ name: 'strata_b_total', help: 'All b', labelNames: ['of'], registers });
      metrics.gauges('strata_a', 'Some a', 'which', { one: () => 1 });
    `;
    assert.deepEqual(found(made), [
      { name: 'strata_a', kind: 'gauge', help: 'Some a', labels: ['which'] },
      { name: 'strata_b_total', kind: 'counter', help: 'All b', labels: ['of'] },
    ]);
  });

  test('whose name is not constant is refused', () => {
    assert.throws(() => found("metrics.gauge(name + other(), 'Some', () => 1);"), /some\.ts:1: this part of a metric/);
  });
});
