/** The dependency rule and the absence of cycles, each with sources that it must refuse and accept. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { dependencyViolations, importCycles } from './dependency-rule.ts';
import { projectTree, treeOf } from './source-tree.ts';

function violations(path: string, specifier: string): string[] {
  return dependencyViolations(treeOf({ [path]: `import type { A } from '${specifier}';\n` }));
}

test('every import of the project points the way the architecture says', () => {
  assert.deepEqual(dependencyViolations(projectTree()), []);
});

describe('refuses', () => {
  const samples: readonly [string, string, string][] = [
    ['core importing node:fs', 'core/git/a.ts', 'node:fs'],
    // A pattern `node:*` lets this one through.
    ['core importing a node module below another', 'core/git/a.ts', 'node:fs/promises'],
    ['core importing a node module by its old name', 'core/git/a.ts', 'fs/promises'],
    ['core importing an npm package', 'core/kernel/a.ts', 'zod'],
    ['core importing a scoped npm package', 'core/kernel/a.ts', '@temporalio/workflow'],
    ['core importing an adapter', 'core/use-cases/a.ts', '../../adapters/git/b.ts'],
    ['core importing a projection', 'core/use-cases/a.ts', '../../projections/refs/table.ts'],
    ['core importing a test', 'core/use-cases/a.ts', '../../test/support/b.ts'],
    ['an adapter importing its sibling', 'adapters/eventstoredb/a.ts', '../postgres/pool.ts'],
    ['an adapter importing a sibling whose name starts like its own', 'adapters/git/a.ts', '../git-lfs/b.ts'],
    ['an adapter importing a projection', 'adapters/postgres/a.ts', '../../projections/runner/run.ts'],
    ['an adapter importing a workflow', 'adapters/temporal/a.ts', '../../workflows/webhook-delivery/b.ts'],
    ['an adapter importing an app', 'adapters/git/a.ts', '../../apps/server/compose.ts'],
    ['a projection importing an adapter', 'projections/runner/a.ts', '../../adapters/postgres/pool.ts'],
    ['a projection importing a workflow', 'projections/runner/a.ts', '../../workflows/webhook-delivery/b.ts'],
    ['a projection importing an app', 'projections/runner/a.ts', '../../apps/api/errors.ts'],
    ['a projection importing node:fs', 'projections/runner/a.ts', 'node:fs'],
    ['a workflow importing an app', 'workflows/device-login/a.ts', '../../apps/worker/main.ts'],
    ['a workflow importing an adapter', 'workflows/device-login/a.ts', '../../adapters/temporal/b.ts'],
    ['a workflow importing a projection', 'workflows/device-login/a.ts', '../../projections/refs/queries.ts'],
    ['a workflow importing a node module', 'workflows/device-login/a.ts', 'node:timers/promises'],
    ['a workflow importing a package that is not its engine', 'workflows/device-login/a.ts', 'pg'],
    ['an app importing a test', 'apps/server/a.ts', '../../test/support/b.ts'],
    ['an app importing the launcher', 'apps/server/a.ts', '../launcher/install.mjs'],
    ['the launcher importing a package', 'apps/launcher/a.mjs', 'commander'],
    ['the verifier importing the core', 'apps/verifier/a.ts', '../../core/audit/tree.ts'],
    ['the verifier importing the command line', 'apps/verifier/a.ts', '../cli/client/client.ts'],
    ['the verifier importing a package', 'apps/verifier/a.ts', 'commander'],
    ['the server importing the verifier', 'apps/api/a.ts', '../verifier/verify.ts'],
    ['the command line importing the server', 'apps/cli/a.ts', '../api/routes.ts'],
    ['the website importing the API', 'apps/website/a.ts', '../api/routes.ts'],
    [
      'the website importing a folder whose name starts like a granted one',
      'apps/website/a.ts',
      '../api/schemas-b/c.ts',
    ],
    ['the website importing an adapter', 'apps/website/a.ts', '../../adapters/git/b.ts'],
    ['the website importing the server', 'apps/website/a.ts', '../server/compose.ts'],
    ['the command line importing the core', 'apps/cli/client/a.ts', '../../../core/kernel/grants.ts'],
    ['the command line importing a package of the server', 'apps/cli/a.ts', 'zod'],
    ['a replay importing an adapter', 'apps/replay/a.ts', '../../adapters/node/digest.ts'],
    ['an app importing the command line', 'apps/server/a.ts', '../cli/client/client.ts'],
    ['the launcher importing an app', 'apps/launcher/a.mjs', '../server/main.ts'],
    ['an import of this package by its name', 'core/git/a.ts', 'strata/adapters/git/b.ts'],
    ['an import by alias', 'apps/api/a.ts', '#adapters/git'],
    ['an import by absolute path', 'apps/api/a.ts', '/adapters/git/b.ts'],
    ['an import by address', 'apps/api/a.ts', 'https://example.org/a.js'],
  ];
  for (const [name, path, specifier] of samples) {
    test(name, () => assert.equal(violations(path, specifier).length, 1));
  }

  test('a module named only at run time, outside tests', () => {
    const source = 'const a = await import(name);\n';
    assert.equal(dependencyViolations(treeOf({ 'apps/server/a.ts': source })).length, 1);
    assert.deepEqual(dependencyViolations(treeOf({ 'test/run.ts': source })), []);
  });

  test('every form of import, not just declarations', () => {
    for (const source of [`export * from 'node:fs';`, `import('node:fs');`, `type A = import('node:fs').Stats;`]) {
      assert.equal(dependencyViolations(treeOf({ 'core/git/a.ts': source })).length, 1, source);
    }
  });

  test('a source outside the folders of the architecture', () => {
    assert.equal(dependencyViolations(treeOf({ 'lib/a.ts': '' })).length, 1);
  });

  test('an adapter outside the folder of a technology', () => {
    assert.equal(dependencyViolations(treeOf({ 'adapters/a.ts': '' })).length, 1);
  });
});

describe('accepts', () => {
  const samples: readonly [string, string, string][] = [
    ['core importing core', 'core/use-cases/a.ts', '../ports/clock.ts'],
    ['an adapter importing core', 'adapters/git/a.ts', '../../core/ports/clock.ts'],
    ['an adapter importing its own folder', 'adapters/git/pack/a.ts', '../spawn.ts'],
    ['an adapter importing its library and node', 'adapters/postgres/a.ts', 'pg'],
    ['an adapter importing a node module', 'adapters/filesystem/a.ts', 'node:fs/promises'],
    ['a projection importing another', 'projections/refs/a.ts', '../runner/run.ts'],
    ['a projection waiting', 'projections/runner/a.ts', 'node:timers/promises'],
    ['a projection importing its query builder', 'projections/refs/a.ts', 'kysely'],
    ['a workflow importing its engine', 'workflows/device-login/a.ts', '@temporalio/workflow'],
    ['an app importing an adapter', 'apps/server/compose.ts', '../../adapters/git/b.ts'],
    ['an app importing package.json', 'apps/server/compose.ts', '../../package.json'],
    ['an app importing another', 'apps/server/compose.ts', '../api/plugin.ts'],
    ['an app importing the website', 'apps/server/compose.ts', '../website/site.ts'],
    ['the website importing a schema of the API', 'apps/website/trust/a.ts', '../../api/schemas/trust-rules.ts'],
    ['the website importing the front door', 'apps/website/a.ts', '../front-door/admission.ts'],
    ['a test importing an app', 'test/scenarios/a.test.ts', '../../apps/server/compose.ts'],
  ];
  for (const [name, path, specifier] of samples) {
    test(name, () => assert.deepEqual(violations(path, specifier), []));
  }
});

test('no modules import each other in a circle', () => {
  assert.deepEqual(importCycles(projectTree()), []);
});

test('refuses a circle, also one of types only', () => {
  const circle = { 'core/a.ts': `import './b/c.ts';`, 'core/b/c.ts': `import type { A } from '../a.ts';` };
  assert.deepEqual(importCycles(treeOf(circle)), ['core/a.ts -> core/b/c.ts -> core/a.ts']);
  assert.equal(importCycles(treeOf({ 'core/a.ts': `import './a.ts';` })).length, 1);
});
