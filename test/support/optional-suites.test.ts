/** A suite that is left out must say why. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { needs } from './optional-suites.ts';

test('a suite is skipped with a reason where its outside part is not, and runs where it is', (t) => {
  const before = process.env['STRATA_EVENTSTORE_URL'];
  t.after(() => {
    if (before === undefined) delete process.env['STRATA_EVENTSTORE_URL'];
    else process.env['STRATA_EVENTSTORE_URL'] = before;
  });
  delete process.env['STRATA_EVENTSTORE_URL'];
  assert.deepEqual(needs('STRATA_EVENTSTORE_URL'), { skip: 'needs STRATA_EVENTSTORE_URL' });
  process.env['STRATA_EVENTSTORE_URL'] = 'esdb://127.0.0.1:2113';
  assert.deepEqual(needs('STRATA_EVENTSTORE_URL'), { skip: false });
});

test('a suite that needs a program is skipped where it is not installed', (t) => {
  const { PATH: searchPath, STRATA_TOOLS_DIR: tools } = process.env;
  t.after(() => {
    process.env['PATH'] = searchPath;
    if (tools === undefined) delete process.env['STRATA_TOOLS_DIR'];
    else process.env['STRATA_TOOLS_DIR'] = tools;
  });
  process.env['PATH'] = '';
  process.env['STRATA_TOOLS_DIR'] = import.meta.dirname;
  assert.deepEqual(needs('temporal'), { skip: 'needs temporal' });
});
