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
