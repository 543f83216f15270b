/** The activities of runs in Temporal, without a Temporal server. */
import assert from 'node:assert/strict';
import { ApplicationFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { test } from 'vitest';
import { pause } from '../../../adapters/node/pause.ts';
import { streamName } from '../../../core/kernel/envelope.ts';
import { plusMs } from '../../../core/kernel/ids.ts';
import { carriedOut, type StepAction, type Workflow } from '../../../core/ports/workflows.ts';
import { createLookActivities, createStepActivities } from '../../../workflows/temporal/activities.ts';
import type { DueArguments, RunState } from '../../../workflows/temporal/protocol.ts';
import { newEvent, newId } from '../../support/events.ts';
import { heldBySignal } from '../../support/held-by-signal.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';
import { until } from '../../support/read-models.ts';
import { createTestClock } from '../../support/test-clock.ts';

const SECRET = 'whsec_cGFzc3dvcmQ';
const WAIT_MS = 60_000;

const waiting: Workflow = {
  name: 'waiting',
  version: 3,
  category: 'waiting',
  next(_wait, { type, occurredAt }) {
    if (type === 'Broken') throw new TypeError(`No such event: ${SECRET}`);
    return type === 'Ended' ? null : { step: 'go', dueAt: plusMs(occurredAt, WAIT_MS), memory: { secret: SECRET } };
  },
};

/** Creates a run whose stream has one event; `go` is its step. */
async function newRun(go: (append: (type: string) => Promise<void>) => Promise<void>, first = 'Begun') {
  const events = createMemoryEventStore();
  const clock = createTestClock();
  const id = newId();
  const stream = streamName('waiting', id);
  const faults: unknown[] = [];
  const ending = new AbortController();
  const started: number[] = [];
  const append = async (type: string): Promise<void> => {
    const { length } = await events.readStream(stream, { direction: 'forwards', limit: 100 });
    const event = newEvent({ type, occurredAt: clock.now() });
    await events.append({ stream, expected: length === 0 ? 'none' : length - 1, events: [event] });
  };
  await append(first);
  const action: StepAction = async ({ revision }) => {
    started.push(revision);
    await go(append);
  };
  const context = {
    workflows: [carriedOut(waiting, { go: action })],
    ...{ events, clock, alarm: clock, pause, ended: ending.signal },
    onFault: (_workflow: string, cause: unknown) => faults.push(cause),
  };
  const due: DueArguments = { workflow: 'waiting', id, revision: 0, step: 'go', dueAt: plusMs(clock.now(), WAIT_MS) };
  const environment = new MockActivityEnvironment();
  return {
    ...{ append, clock, due, faults, ending, started, environment },
    look: (workflow = 'waiting'): Promise<RunState> =>
      environment.run(createLookActivities(context).look, { workflow, id }),
    carryOut: (changed: Partial<DueArguments> = {}): Promise<RunState> =>
      environment.run(createStepActivities(context).carryOut, { ...due, ...changed }),
  };
}

/** Checks a failure as Temporal stores it: a code and nothing else, and retryable. */
function holdsOnly(code: string) {
  return (error: unknown): boolean => {
    assert.ok(error instanceof ApplicationFailure);
    const { type, message, stack, cause, details, nonRetryable } = error;
    assert.deepEqual({ type, message, stack }, { type: code, message: code, stack: code });
    assert.ok(cause === undefined && (details ?? []).length === 0 && nonRetryable !== true);
    return true;
  };
}

test('a look returns step, times and revision, and nothing that the workflow remembers', async () => {
  const run = await newRun(async () => undefined);
  run.clock.advance(20_000);
  assert.deepEqual(await run.look(), {
    revision: 0,
    version: 3,
    wait: { step: 'go', dueAt: run.due.dueAt, restMs: 40_000 },
  });
  await run.append('Ended');
  assert.deepEqual(await run.look(), { revision: 1, version: 3, wait: null });
});

test("a due step is carried out and returns the run's state afterwards", async () => {
  const run = await newRun((append) => append('Ended'));
  run.clock.advance(WAIT_MS);
  assert.deepEqual(await run.carryOut(), { revision: 1, version: 3, wait: null });
  assert.deepEqual(run.started, [0]);
});

test("a step that arrives much too early, by Temporal's clock, returns how long to wait", async () => {
  const run = await newRun((append) => append('Ended'));
  run.clock.advance(WAIT_MS - 5_000);
  assert.equal((await run.carryOut()).wait?.restMs, 5_000);
  assert.deepEqual(run.started, []);
});

test('a step that arrives slightly too early waits until its time', async () => {
  const run = await newRun((append) => append('Ended'));
  run.clock.advance(WAIT_MS - 1);
  const carriedOutOnce = run.carryOut();
  await until(() => run.clock.awaited().length === 1);
  assert.deepEqual(run.started, []);
  run.clock.advance(1);
  assert.equal((await carriedOutOnce).wait, null);
  assert.deepEqual(run.started, [0]);
});

test('a step whose stream moved in between is not carried out', async () => {
  const run = await newRun((append) => append('Ended'));
  run.clock.advance(WAIT_MS);
  await run.append('Noted');
  assert.equal((await run.carryOut()).revision, 1);
  assert.deepEqual(run.started, []);
});

test('a failed step reaches Temporal as a code only, and this program with its cause', async () => {
  const run = await newRun(async () => {
    throw new Error(`The receiver did not like ${SECRET}`);
  });
  run.clock.advance(WAIT_MS);
  await assert.rejects(run.carryOut(), holdsOnly('step-failed'));
  assert.match(String(run.faults[0]), new RegExp(SECRET));
});

test('a step that did not change its stream is retried', async () => {
  const run = await newRun(async () => undefined);
  run.clock.advance(WAIT_MS);
  await assert.rejects(run.carryOut(), holdsOnly('step-left-its-stream'));
});

test('a step that ends with its process is not reported as a fault', async () => {
  const run = await newRun(async () => {
    run.ending.abort();
    throw new Error('Aborted');
  });
  run.clock.advance(WAIT_MS);
  await assert.rejects(run.carryOut(), holdsOnly('worker-ended'));
  assert.deepEqual(run.faults, []);
});

test('steps leave nothing behind on the signal that ends their process', async () => {
  const run = await newRun((append) => append('Begun'));
  for (let revision = 0; revision < 20; revision += 1) {
    const dueAt = plusMs(run.clock.now(), WAIT_MS);
    run.clock.advance(WAIT_MS - 1);
    const early = run.carryOut({ revision, dueAt });
    await until(() => run.clock.awaited().length === 1);
    run.clock.advance(1);
    await early;
  }
  assert.equal(heldBySignal(run.ending.signal), 0);
});

test('an event that cannot be read, and a workflow that only newer processes know, are retried', async () => {
  const run = await newRun(async () => undefined, 'Broken');
  await assert.rejects(run.look(), holdsOnly('look-failed'));
  assert.equal(run.faults.length, 1);
  await assert.rejects(run.look('newer'), holdsOnly('unknown-workflow'));
});
