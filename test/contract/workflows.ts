/**
 * The contract of core/ports/workflows.ts, run on every engine.
 *
 * The workflow here retries as webhook deliveries do: eight attempts, with waits of 8 to 512 s from the end of each. A
 * clock of the test sets the time: the tests only check at which time of that clock an engine does what.
 */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import { type RecordedEvent, type StreamName, streamName } from '../../core/kernel/envelope.ts';
import { plusMs, type Timestamp } from '../../core/kernel/ids.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import { type CarriedOutWorkflow, carriedOut, type DueStep, type Workflow } from '../../core/ports/workflows.ts';
import { newEvent, newId } from '../support/events.ts';
import { until } from '../support/read-models.ts';
import type { TestClock } from '../support/test-clock.ts';

export interface Worker {
  /** Shuts the worker down in an orderly way. */
  stop(): Promise<void>;
  /** Ends the worker as a killed process ends: nothing of it continues, and its running steps never finish. */
  kill(): Promise<void>;
}

export interface OpenWorkflows {
  readonly events: EventStore;
  readonly clock: TestClock;
  /** Starts one more worker, which carries out the workflows. */
  start(workflows: readonly CarriedOutWorkflow[]): Promise<Worker>;
  /** Resolves when the engine's own clock, if it has one, has moved as far as `clock`. */
  clockFollowed(): Promise<void>;
  /** Resolves when some worker has read all events so far and waits for this time. */
  waitsUntil(at: Timestamp): Promise<void>;
  /** Resolves when some worker has read all events so far and waits for no run of these workflows. */
  waitsForNothing(): Promise<void>;
  /** Breaks every connection of the workers to their server, as a crash and restart of the server does. */
  crashServer(): Promise<void>;
}

const WAITS_SECONDS = [8, 16, 32, 64, 128, 256, 512];
const ATTEMPT_MS = 30_000;
/** The longest pause that an engine may make between two tries of a step. */
const PAUSE_MS_MAX = 60_000;

const retrying: Workflow<'attempt' | 'fail'> = {
  name: 'retrying',
  version: 1,
  category: 'retrying',
  next(wait, { type, data, occurredAt }) {
    if (type === 'Begun') return { step: 'attempt', dueAt: occurredAt, memory: {} };
    if (type === 'Noted') return wait;
    if (type !== 'Attempted') return null;
    const seconds = WAITS_SECONDS[Number(data['attempt']) - 1];
    if (seconds === undefined) return { step: 'fail', dueAt: occurredAt, memory: {} };
    return { step: 'attempt', dueAt: plusMs(occurredAt, seconds * 1_000), memory: { attempt: data['attempt'] ?? 0 } };
  },
};

/** Declares the suite; `open` is called for each test. */
export function workflowsContract(engine: string, open: (context: TestContext) => Promise<OpenWorkflows>): void {
  describe(`workflows on ${engine}`, () => {
    test('make attempts on schedule, each wait counted from the end of the attempt before', async (context) => {
      const run = await newRun(await open(context));
      await run.append('Begun');
      await run.work();
      for (const [index, seconds] of WAITS_SECONDS.entries()) {
        await until(() => run.attempts().length === index + 1);
        const dueAt = plusMs(run.clock.now(), seconds * 1_000);
        await run.waitsUntil(dueAt);
        run.clock.advance(seconds * 1_000 - 1);
        await run.append('Noted');
        await run.waitsUntil(dueAt);
        assert.equal(run.attempts().length, index + 1, `not before ${seconds} s`);
        run.clock.advance(1);
      }
      await until(async () => (await run.types()).at(-1) === 'Failed');
      assert.equal(run.started.length, 8);
      const startSpans = run.started.slice(1).map((at, index) => spanMs(run.started[index] ?? at, at));
      assert.deepEqual(
        startSpans,
        WAITS_SECONDS.map((seconds) => seconds * 1_000 + ATTEMPT_MS),
      );
      await run.waitsForNothing();
    });

    test('carry each step out once with two workers on one run', async (context) => {
      const run = await newRun(await open(context));
      await run.work();
      await run.work();
      await run.append('Begun');
      await until(() => run.attempts().length === 1);
      await run.waitsUntil(plusMs(run.clock.now(), 8_000));
      run.clock.advance(8_000);
      await until(() => run.attempts().length === 2);
      await run.waitsUntil(plusMs(run.clock.now(), 16_000));
      assert.equal(run.started.length, 2);
    });

    test('do nothing for a run that ended before any worker started', async (context) => {
      const run = await newRun(await open(context));
      for (const type of ['Begun', 'Cancelled']) await run.append(type);
      await run.work();
      await run.waitsForNothing();
      assert.deepEqual(run.started, []);
    });

    test('do nothing more for a cancelled run, which may begin again', async (context) => {
      const run = await newRun(await open(context));
      await run.append('Begun');
      await run.work();
      await until(() => run.attempts().length === 1);
      const dueAt = plusMs(run.clock.now(), 8_000);
      await run.waitsUntil(dueAt);
      await run.append('Cancelled');
      await run.waitsForNothing();
      run.clock.advance(60_000);
      await run.waitsForNothing();
      assert.equal(run.started.length, 1);
      await run.append('Begun');
      await until(() => run.attempts().length === 2);
    });

    test('carry out again a step whose worker was killed before its append', async (context) => {
      const run = await newRun(await open(context));
      await run.append('Begun');
      let reached = false;
      const dying = await run.work(async () => {
        reached = true;
        await new Promise(() => undefined);
      });
      await until(() => reached);
      await dying.kill();
      assert.deepEqual(run.attempts(), []);
      await run.work();
      await until(() => run.attempts().length === 1);
      await run.waitsUntil(plusMs(run.clock.now(), 8_000));
      assert.equal(run.started.length, 2, 'carried out twice, appended once');
    });

    test('carry out a failed step again after a pause', async (context) => {
      const run = await newRun(await open(context));
      await run.append('Begun');
      let failures = 0;
      await run.work(async () => {
        failures += 1;
        if (failures <= 2) throw new Error('a temporary failure');
      });
      for (const tries of [1, 2]) {
        await until(() => failures === tries && run.clock.awaited().some((at) => at > run.clock.now()));
        assert.equal(run.started.length, tries, 'no try before the pause is over');
        run.clock.advance(PAUSE_MS_MAX);
      }
      await until(() => run.attempts().length === 1);
      assert.equal(run.started.length, 3);
    });

    test('carry out steps that came due during an outage of the server', async (context) => {
      const run = await newRun(await open(context));
      await run.append('Begun');
      await run.work();
      await until(() => run.attempts().length === 1);
      await run.waitsUntil(plusMs(run.clock.now(), 8_000));
      await run.crashServer();
      run.clock.advance(3_600_000);
      await until(() => run.attempts().length === 2);
      assert.equal(run.started.length, 2);
    });

    test('carry out steps that came due while no worker ran', async (context) => {
      const run = await newRun(await open(context));
      await run.append('Begun');
      const worker = await run.work();
      await until(() => run.attempts().length === 1);
      await run.waitsUntil(plusMs(run.clock.now(), 8_000));
      await worker.stop();
      run.clock.advance(8_000);
      assert.equal(run.started.length, 1);
      await run.work();
      await until(() => run.attempts().length === 2);
    });

    test('carry no step out early or twice when the clock is set back', async (context) => {
      const run = await newRun(await open(context));
      await run.append('Begun');
      await run.work();
      await until(() => run.attempts().length === 1);
      const dueAt = plusMs(run.clock.now(), 8_000);
      await run.clockFollowed();
      await run.waitsUntil(dueAt);
      run.clock.set(plusMs(run.clock.now(), -3_600_000));
      await run.append('Noted', plusMs(dueAt, -8_000));
      await run.waitsUntil(dueAt);
      assert.equal(run.started.length, 1);
      run.clock.set(dueAt);
      await until(() => run.attempts().length === 2);
      assert.equal(run.started.length, 2);
    });

    test('do not delay other runs while a step hangs', async (context) => {
      const opened = await open(context);
      const [slow, quick] = [await newRun(opened), await newRun(opened)];
      await slow.append('Begun');
      let hangs = false;
      await slow.work(async ({ id }) => {
        if (id !== slow.id) return;
        hangs = true;
        await slow.released;
        throw new Error('It took too long');
      }, quick);
      await until(() => hangs);
      await quick.append('Begun');
      await until(() => quick.attempts().length === 1);
      slow.release();
    });
  });
}

function spanMs(from: Timestamp, to: Timestamp): number {
  return Date.parse(to) - Date.parse(from);
}

/** One run of the workflow, which records what its steps did. */
async function newRun({ events, clock, start, ...opened }: OpenWorkflows) {
  const id: string = newId();
  const stream = streamName('retrying', id);
  const started: Timestamp[] = [];
  const attempts: number[] = [];
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });

  const read = (): Promise<readonly RecordedEvent[]> =>
    events.readStream(stream, { direction: 'forwards', limit: 100 });

  async function append(type: string, occurredAt = clock.now()): Promise<void> {
    await appendTo(events, stream, (await read()).length - 1, type, occurredAt, {});
  }

  /** The step of an attempt takes half a minute; it counts only if its append succeeds. */
  async function attempt({ revision }: DueStep, duringAttempt: (due: DueStep) => Promise<void>): Promise<void> {
    started.push(clock.now());
    await duringAttempt({ id, revision });
    clock.advance(ATTEMPT_MS);
    const next = attempts.length + 1;
    if (await appendTo(events, stream, revision, 'Attempted', clock.now(), { attempt: next })) attempts.push(next);
  }

  async function fail({ revision }: DueStep): Promise<void> {
    await appendTo(events, stream, revision, 'Failed', clock.now(), {});
  }

  const own: Run = { id, attempt, fail };
  return {
    ...opened,
    ...own,
    clock,
    started,
    released,
    release: () => release(),
    attempts: () => attempts,
    append,
    types: async () => (await read()).map(({ type }) => type),
    /** Starts a worker for this run and the others. */
    work: (duringAttempt: (due: DueStep) => Promise<void> = async () => undefined, ...others: readonly Run[]) => {
      const runOf = (due: DueStep): Run => [own, ...others].find((run) => run.id === due.id) ?? own;
      const steps = {
        attempt: (due: DueStep) => runOf(due).attempt(due, duringAttempt),
        fail: (due: DueStep) => runOf(due).fail(due),
      };
      return start([carriedOut(retrying, steps)]);
    },
  };
}

interface Run {
  readonly id: string;
  attempt(due: DueStep, duringAttempt: (due: DueStep) => Promise<void>): Promise<void>;
  fail(due: DueStep): Promise<void>;
}

/** Resolves with false if the stream was not at the revision: then nothing was appended. */
async function appendTo(
  events: EventStore,
  stream: StreamName,
  revision: number,
  type: string,
  occurredAt: Timestamp,
  data: { readonly attempt?: number },
): Promise<boolean> {
  const result = await events.append({
    stream,
    expected: revision < 0 ? 'none' : revision,
    events: [newEvent({ type, occurredAt, data })],
  });
  return result.outcome === 'appended';
}
