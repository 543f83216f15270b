/** How many requests of one account are worked on. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { uuids } from '../../../adapters/node/ids.ts';
import { ACCOUNT_REQUESTS_WORKED_ON_MAX, createRequestTurns } from '../../../apps/front-door/request-turns.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';

test('An account has a bounded number of requests worked on at the same time, the others in their order, and others do not wait', async () => {
  const turns = createRequestTurns();
  const [ada, grace] = [uuids.next<AccountId>(), uuids.next<AccountId>()];
  const running = Array.from({ length: ACCOUNT_REQUESTS_WORKED_ON_MAX }, () => turns.begin(ada));
  assert.deepEqual(new Set(running.map(({ waits }) => waits)), new Set([null]));
  const begun: string[] = [];
  const waiting = ['left', 'first', 'second'].map((name) => {
    const turn = turns.begin(ada);
    void turn.waits?.then(() => begun.push(name));
    return turn;
  });
  assert.equal(turns.begin(grace).waits, null);
  // Its client has gone: it takes nobody's turn.
  waiting[0]?.end();
  await Promise.resolve();
  assert.deepEqual(begun, ['left']);
  running[0]?.end();
  running[0]?.end();
  await Promise.resolve();
  assert.deepEqual(begun, ['left', 'first']);
  waiting[1]?.end();
  await Promise.resolve();
  assert.deepEqual(begun, ['left', 'first', 'second']);
  for (const turn of [...running, ...waiting]) turn.end();
  const again = Array.from({ length: ACCOUNT_REQUESTS_WORKED_ON_MAX + 1 }, () => turns.begin(ada).waits === null);
  assert.equal(again.filter(Boolean).length, ACCOUNT_REQUESTS_WORKED_ON_MAX);
});
