/** A suite that is left out must state the reason. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { needs } from './optional-suites.ts';

test('a suite is skipped with a reason where its external service is missing, and runs where it is present', (t) => {
  const before = process.env['STRATA_EVENTSTORE_URL'];
  t.onTestFinished(() => {
    if (before === undefined) delete process.env['STRATA_EVENTSTORE_URL'];
    else process.env['STRATA_EVENTSTORE_URL'] = before;
  });
  delete process.env['STRATA_EVENTSTORE_URL'];
  assert.deepEqual(needs('STRATA_EVENTSTORE_URL'), { skip: true, meta: { skippedFor: 'needs STRATA_EVENTSTORE_URL' } });
  process.env['STRATA_EVENTSTORE_URL'] = 'esdb://127.0.0.1:2113';
  assert.deepEqual(needs('STRATA_EVENTSTORE_URL'), { skip: false, meta: {} });
});

test('a suite that needs a program is skipped where the program is not installed', (t) => {
  const { PATH: searchPath, STRATA_TOOLS_DIR: tools } = process.env;
  t.onTestFinished(() => {
    process.env['PATH'] = searchPath;
    if (tools === undefined) delete process.env['STRATA_TOOLS_DIR'];
    else process.env['STRATA_TOOLS_DIR'] = tools;
  });
  process.env['PATH'] = '';
  process.env['STRATA_TOOLS_DIR'] = import.meta.dirname;
  assert.deepEqual(needs('temporal'), { skip: true, meta: { skippedFor: 'needs temporal' } });
});
