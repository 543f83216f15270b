/**
 * The contract of core/ports/workflows.ts, run on every engine.
 *
 * The workflow here retries as webhook deliveries do: eight attempts, waits of 8 to 512 s from the end of each. Time
 * is the test's: an engine is asked only for what it does at which time of that clock.
 */
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { type RecordedEvent, type StreamName, streamName } from '../../core/kernel/envelope.ts';
import { plusMs, type Timestamp } from '../../core/kernel/ids.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import { carriedOut, type CarriedOutWorkflow, type DueStep, type Workflow } from '../../core/ports/workflows.ts';
import { newEvent, newId } from '../support/events.ts';
import { until } from '../support/read-models.ts';
import type { TestClock } from '../support/test-clock.ts';

export interface Worker {
  /** Ends in order. */
  stop(): Promise<void>;
  /** As a process that died: nothing of it goes on, and its steps under way never end. */
  kill(): Promise<void>;
}

export interface OpenWorkflows {
  readonly events: EventStore;
  readonly clock: TestClock;
  /** Begins to carry out the workflows, as one more worker. */
  start(workflows: readonly CarriedOutWorkflow[]): Promise<Worker>;
  /** Resolves once some worker has seen every event so far, and waits for this time. */
  waitsUntil(at: Timestamp): Promise<void>;
  /** Resolves once some worker has seen every event so far, and waits for none of these runs. */
  waitsForNothing(): Promise<void>;
  /** Breaks every connection of the workers to their server, as its crash and restart do. */
  crashServer(): Promise<void>;
}

const WAITS_SECONDS = [8, 16, 32, 64, 128, 256, 512];
const ATTEMPT_MS = 30_000;
/** What an engine may leave between tries of a step at most. */
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
    test('attempts go out on the schedule, each wait from the end of the attempt before', async (context) => {
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

    test('two workers on one run carry each step out once', async (context) => {
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

    test('what ended a run before any worker came leaves nothing to do', async (context) => {
      const run = await newRun(await open(context));
      for (const type of ['Begun', 'Cancelled']) await run.append(type);
      await run.work();
      await run.waitsForNothing();
      assert.deepEqual(run.started, []);
    });

    test('a cancelled run does nothing more, and may begin anew', async (context) => {
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

    test('a worker killed between what a step does and its record: the next one does it again', async (context) => {
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
      assert.equal(run.started.length, 2, 'carried out twice, recorded once');
    });

    test('a step that fails is carried out again, after a pause', async (context) => {
      const run = await newRun(await open(context));
      await run.append('Begun');
      let failures = 0;
      await run.work(async () => {
        failures += 1;
        if (failures <= 2) throw new Error('no luck');
      });
      for (const tries of [1, 2]) {
        await until(() => failures === tries && run.clock.awaited().some((at) => at > run.clock.now()));
        assert.equal(run.started.length, tries, 'not again at once');
        run.clock.advance(PAUSE_MS_MAX);
      }
      await until(() => run.attempts().length === 1);
      assert.equal(run.started.length, 3);
    });

    test('what came due while the server was away is carried out when it is back', async (context) => {
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

    test('what came due while no worker ran is carried out by the next', async (context) => {
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

    test('a clock that is set back makes nothing early, and nothing twice', async (context) => {
      const run = await newRun(await open(context));
      await run.append('Begun');
      await run.work();
      await until(() => run.attempts().length === 1);
      const dueAt = plusMs(run.clock.now(), 8_000);
      await run.waitsUntil(dueAt);
      run.clock.set(plusMs(run.clock.now(), -3_600_000));
      await run.append('Noted', plusMs(dueAt, -8_000));
      await run.waitsUntil(dueAt);
      assert.equal(run.started.length, 1);
      run.clock.set(dueAt);
      await until(() => run.attempts().length === 2);
      assert.equal(run.started.length, 2);
    });

    test('a step that hangs holds up no other run', async (context) => {
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

/** One run of the workflow, and what its steps did. */
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

  /** What the steps of this run do: an attempt takes half a minute, and is claimed by its append. */
  async function attempt({ revision }: DueStep, meanwhile: (due: DueStep) => Promise<void>): Promise<void> {
    started.push(clock.now());
    await meanwhile({ id, revision });
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
    /** A worker for this run, and for others given. */
    work: (meanwhile: (due: DueStep) => Promise<void> = async () => undefined, ...others: readonly Run[]) => {
      const runOf = (due: DueStep): Run => [own, ...others].find((run) => run.id === due.id) ?? own;
      const steps = {
        attempt: (due: DueStep) => runOf(due).attempt(due, meanwhile),
        fail: (due: DueStep) => runOf(due).fail(due),
      };
      return start([carriedOut(retrying, steps)]);
    },
  };
}

interface Run {
  readonly id: string;
  attempt(due: DueStep, meanwhile: (due: DueStep) => Promise<void>): Promise<void>;
  fail(due: DueStep): Promise<void>;
}

/** Whether the stream stood at the revision. */
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
