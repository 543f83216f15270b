/** Waiting for connections to PostgreSQL that others hold. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import {
  ConnectionsTakenError,
  patienceOf,
  whenConnectionsAreFree,
} from '../../../adapters/postgres/free-connections.ts';
import { keepLog } from '../../support/log.ts';

const taken = (): Error => Object.assign(new Error('sorry, too many clients already'), { code: '53300' });

test('a command that is refused for want of connections waits, with one line, until some are free', async () => {
  const log = keepLog();
  let tries = 0;
  const done = await whenConnectionsAreFree(patienceOf(10_000, log), async () => {
    tries += 1;
    if (tries < 3) throw taken();
    return 'done';
  });
  assert.deepEqual([done, tries], ['done', 3]);
  assert.deepEqual(
    log.lines.map(({ message }) => message),
    ['All connections to PostgreSQL are taken: waiting for one, for up to 10 s'],
  );
});

test('a command that waited for its span says what to do', async () => {
  const patience = patienceOf(100, keepLog());
  const waiting = whenConnectionsAreFree(patience, () => Promise.reject(taken()));
  await assert.rejects(waiting, (error) => {
    assert.ok(error instanceof ConnectionsTakenError);
    assert.match(error.message, /too many clients already.*STRATA_DATABASE_CONNECTIONS_MAX.*max_connections/);
    return true;
  });
});

test('no other failure is waited for', async () => {
  const other = Object.assign(new Error('no such database'), { code: '3D000' });
  const waiting = whenConnectionsAreFree(patienceOf(10_000, keepLog()), () => Promise.reject(other));
  await assert.rejects(Promise.race([waiting, sleep(5_000)]), other);
});
