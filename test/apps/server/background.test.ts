/** Whether the table of what runs in the background is true. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test, vi } from 'vitest';
import {
  OTHER_WORK,
  type OtherWork,
  PERIODIC,
  type PeriodicWork,
  startPeriodic,
} from '../../../apps/server/background.ts';
import { closer } from '../../../apps/server/closer.ts';
import { createMetrics } from '../../../apps/server/metrics.ts';
import { modulesOf, projectTree, ROOT } from '../../architecture/source-tree.ts';

const MODULES = [...modulesOf(projectTree())].filter(([path]) =>
  /^(adapters|apps|core|projections|workflows)\//.test(path),
);
const SERVER = MODULES.filter(([path]) => path.startsWith('apps/server/'));
const periodic: Readonly<Record<string, PeriodicWork>> = PERIODIC;
const other: Readonly<Record<string, OtherWork>> = OTHER_WORK;

/** Returns what the group of the pattern matches in the modules, sorted. */
function found(modules: typeof MODULES, pattern: RegExp): readonly string[] {
  return modules.flatMap(([, text]) => [...text.matchAll(pattern)].map((match) => match[1] ?? '')).sort();
}

describe('Periodic work', () => {
  const NAME = 'session-expiry';
  const EVERY_MS = PERIODIC[NAME].everyMs;

  /** Starts the work with `run`; `shown` returns when it last succeeded, as the metrics show it. */
  function started(context: TestContext, run: () => Promise<void>) {
    vi.useFakeTimers({ now: 1_000_000 });
    context.onTestFinished(() => void vi.useRealTimers());
    const metrics = createMetrics();
    const faults: string[] = [];
    const parts = closer();
    startPeriodic<'worker'>({ onFault: (what) => faults.push(what), metrics }, parts)(NAME, run);
    const shown = async (): Promise<string | undefined> =>
      /^strata_background_last_success_timestamp_seconds\{work="session-expiry"\} (\S+)$/m.exec(
        await metrics.text(),
      )?.[1];
    return { shown, faults, parts };
  }

  test('shows 0 before its first success, and then the time of the last one', async (context) => {
    const { shown, parts } = started(context, async () => undefined);
    assert.equal(await shown(), '0');
    await vi.advanceTimersByTimeAsync(EVERY_MS);
    assert.equal(await shown(), String((1_000_000 + EVERY_MS) / 1_000));
    await parts.close();
  });

  test('shows no success for a run that failed', async (context) => {
    const { shown, faults, parts } = started(context, async () => Promise.reject(new Error('away')));
    await vi.advanceTimersByTimeAsync(EVERY_MS);
    assert.deepEqual([await shown(), faults], ['0', [NAME]]);
    await parts.close();
  });

  test('shows no success for a run that was told to stop', async (context) => {
    let end: () => void = () => undefined;
    const { shown, parts } = started(context, () => new Promise((resolve) => (end = resolve)));
    await vi.advanceTimersByTimeAsync(EVERY_MS);
    const closed = parts.close();
    end();
    await closed;
    assert.equal(await shown(), '0');
  });
});

describe('The table of what runs in the background', () => {
  test('has a row for each piece of periodic work, and each row is started in one place', () => {
    const started = found(
      SERVER,
      /\b(?:start|startPeriodic<'(?:worker|every node)'>\(\{ onFault, metrics \}, parts\))\(\s*'([^']+)'/g,
    );
    assert.deepEqual(started, Object.keys(PERIODIC).sort());
  });

  test('is the only way to start periodic work', () => {
    const others = SERVER.filter(([, text]) => /\b(every|setInterval)\(/.test(text.replaceAll(/\.every\(/g, '')));
    assert.deepEqual(
      others.map(([path]) => path),
      [
        'apps/server/background.ts',
        'apps/server/periodic.ts',
        'apps/server/running-process.ts',
        'apps/server/slow-readers.ts',
      ],
    );
  });

  test('has a row for each piece of work that a request leaves behind', () => {
    const begun = new Set(found(MODULES, /\bbackground\.run\(\s*'([^']+)'/g));
    // The first run of a row of `PERIODIC`.
    begun.delete('cache-drops');
    // The adapter of git begins it by a queue of its own.
    begun.add('cached-packs');
    const rows = Object.entries(other).filter(([, { when }]) => when === 'behind a request');
    assert.deepEqual([...begun].sort(), rows.map(([name]) => name).sort());
  });

  test('names only metrics, tables and policies that exist for the last success', () => {
    const named = ['metrics', 'database', 'object-store'].flatMap((file) =>
      readFileSync(join(ROOT, `test/golden/names/${file}.txt`), 'utf8').split('\n'),
    );
    const exists: Readonly<Record<string, (name: string) => boolean>> = {
      metric: (name) => named.some((line) => line === `metric ${name}` || line.startsWith(`metric ${name} `)),
      '/readyz': (name) => found(SERVER, /readiness\(\{ (\w+):/g).includes(name),
      policy_marks: (name) => named.includes(`policy ${name}`),
      table: (name) => named.includes(`table ${name}`),
      store: (name) => named.some((line) => line.startsWith(`key ${name}`)),
    };
    for (const [name, { lastSuccess }] of Object.entries({ ...other, ...periodic })) {
      const [kind = '', place = ''] = lastSuccess.split(' ');
      assert.ok(lastSuccess === 'nowhere' || exists[kind]?.(place), `${name}: ${lastSuccess}`);
    }
  });
});
