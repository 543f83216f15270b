/** When pushes ask for a compaction. */
import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { type AccountId, type RepositoryId, uuid } from '../../../../core/kernel/ids.ts';
import { COMPACTION_IDLE_MS, LAYERS_MAX } from '../../../../core/kernel/limits.ts';
import { LAYERS_AT_REST_MAX } from '../../../../core/repository/compaction.ts';
import {
  COMPACTION_ASKED_AGAIN_MS,
  createCompactionRequests,
} from '../../../../core/use-cases/compacting/request-compactions.ts';
import { createTestClock } from '../../../support/test-clock.ts';

const account = uuid<AccountId>('0192f0c1-0000-7000-8000-000000000001');
const repository = uuid<RepositoryId>('0192f0c1-0000-7000-8000-000000000002');

function start() {
  const clock = createTestClock();
  const wanted: number[] = [];
  const failures: unknown[] = [];
  let fault: Error | null = null;
  const onLayer = createCompactionRequests({
    clock,
    compactions: {
      want: async (_compaction, dueAt) => {
        if (fault !== null) throw fault;
        wanted.push(Date.parse(dueAt) - Date.parse(clock.now()));
      },
    },
    background: { run: (_what, work) => void work().catch((cause: unknown) => failures.push(cause)) },
  });
  const push = (layers: number) => onLayer({ account, repository, layers });
  const fail = (error: Error | null) => {
    fault = error;
  };
  return { clock, wanted, failures, push, fail };
}

describe('A push asks for a compaction', () => {
  test('never while its repository has few layers', () => {
    const { push, wanted } = start();
    push(LAYERS_AT_REST_MAX);
    assert.deepEqual(wanted, []);
  });

  test('in a minute with some layers, and again only after that minute', () => {
    const { push, wanted, clock } = start();
    for (let layers = LAYERS_AT_REST_MAX + 1; layers < LAYERS_MAX; layers += 1) push(layers);
    assert.deepEqual(wanted, [COMPACTION_IDLE_MS]);
    clock.advance(COMPACTION_IDLE_MS);
    push(LAYERS_AT_REST_MAX + 1);
    assert.deepEqual(wanted, [COMPACTION_IDLE_MS, COMPACTION_IDLE_MS]);
  });

  test('immediately with many layers, though it was asked for later before, and then not at every push', () => {
    const { push, wanted, clock } = start();
    push(LAYERS_MAX - 1);
    push(LAYERS_MAX);
    push(LAYERS_MAX + 1);
    assert.deepEqual(wanted, [COMPACTION_IDLE_MS, 0]);
    clock.advance(COMPACTION_ASKED_AGAIN_MS);
    push(LAYERS_MAX + 2);
    assert.deepEqual(wanted, [COMPACTION_IDLE_MS, 0, 0]);
  });

  test('immediately again when as many layers have come since a compaction, however soon', () => {
    const { push, wanted } = start();
    for (const layers of [
      LAYERS_MAX,
      LAYERS_MAX + 1,
      LAYERS_AT_REST_MAX + 1,
      LAYERS_MAX - 1,
      LAYERS_MAX,
      LAYERS_MAX + 1,
    ]) {
      push(layers);
    }
    assert.deepEqual(wanted, [0, COMPACTION_IDLE_MS, 0]);
  });

  test('behind its answer: a database that is away is reported, and fails no push', async () => {
    const { push, wanted, failures, fail } = start();
    fail(new Error('away'));
    push(LAYERS_MAX);
    await setImmediate();
    assert.match(String(failures), /away/);
    fail(null);
    push(LAYERS_MAX);
    assert.deepEqual(wanted, [0], 'the next push asks again');
  });
});
