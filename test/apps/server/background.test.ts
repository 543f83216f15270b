/** Whether the table of what runs in the background is true. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { OTHER_WORK, type OtherWork, PERIODIC, type PeriodicWork } from '../../../apps/server/background.ts';
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

describe('The table of what runs in the background', () => {
  test('has a row for each piece of periodic work, and each row is started in one place', () => {
    const started = found(
      SERVER,
      /\b(?:start|startPeriodic<'(?:worker|every node)'>\(onFault, parts\))\(\s*'([^']+)'/g,
    );
    assert.deepEqual(started, Object.keys(PERIODIC).sort());
  });

  test('is the only way to start periodic work', () => {
    const others = SERVER.filter(([, text]) => /\b(every|setInterval)\(/.test(text.replaceAll(/\.every\(/g, '')));
    assert.deepEqual(
      others.map(([path]) => path),
      ['apps/server/background.ts', 'apps/server/periodic.ts', 'apps/server/slow-readers.ts'],
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
