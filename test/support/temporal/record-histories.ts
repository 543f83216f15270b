/**
 * Records histories of Temporal's workflow runs into test/golden/temporal, on the test server: `node
 * test/support/temporal/record-histories.ts NAME...`, or all missing ones without a name.
 *
 * Invariants: a recorded history is kept and never recorded again, because it shows a run that began with
 * the code of its day. It names no machine.
 */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { streamName } from '../../../core/kernel/envelope.ts';
import { plusMs } from '../../../core/kernel/ids.ts';
import { carriedOut, type StepAction, type Workflow } from '../../../core/ports/workflows.ts';
import { newEvent, newId } from '../events.ts';
import { until } from '../read-models.ts';
import { type OpenOnTemporal, openOnTemporal } from '../temporal-workflows.ts';

const FOLDER = path.join(import.meta.dirname, '..', '..', 'golden', 'temporal');
const ATTEMPTS = 8;

/** Waits between attempts as webhook deliveries do. */
const retrying: Workflow<'attempt'> = {
  name: 'retrying',
  version: 1,
  category: 'retrying',
  next(_wait, { type, data, occurredAt }) {
    if (type === 'Cancelled') return null;
    const attempts = Number(data['attempts'] ?? 0);
    if (attempts === ATTEMPTS) return null;
    const waitMs = attempts === 0 ? 0 : 4_000 * 2 ** attempts;
    return { step: 'attempt', dueAt: plusMs(occurredAt, waitMs), memory: {} };
  },
};

interface Run {
  append(type: string): Promise<void>;
  /** Resolves when this many attempts are recorded and the run waits for the next one. */
  attempted(attempts: number): Promise<void>;
  /** Moves the clock to the end of the wait after this many attempts. */
  advance(attempts: number): void;
  ended(): Promise<void>;
}

const SCENARIOS: { readonly [name: string]: (run: Run) => Promise<void> } = {
  'eight-attempts': async (run) => {
    await run.append('Begun');
    for (let attempts = 1; attempts < ATTEMPTS; attempts += 1) {
      await run.attempted(attempts);
      run.advance(attempts);
    }
    await run.ended();
  },
  cancelled: async (run) => {
    await run.append('Begun');
    await run.attempted(1);
    await run.append('Cancelled');
    await run.ended();
  },
  'begun-anew': async (run) => {
    await run.append('Begun');
    await run.attempted(1);
    await run.append('Cancelled');
    await run.ended();
    await run.append('Begun');
    await run.attempted(1);
    await run.append('Cancelled');
    await run.ended();
  },
  'retried-step': async (run) => {
    await run.append('Begun');
    await run.attempted(1);
    await run.append('Cancelled');
    await run.ended();
  },
};

async function record(name: string, scenario: (run: Run) => Promise<void>): Promise<void> {
  const steps: (() => unknown)[] = [];
  const opened = await openOnTemporal({ onTestFinished: (step) => void steps.push(step) });
  try {
    const id = newId();
    await opened.start([carriedOut(retrying, { attempt: attemptOf(opened, id, name === 'retried-step') })]);
    await scenario(runOf(opened, id));
    await mkdir(FOLDER, { recursive: true });
    await writeFile(path.join(FOLDER, `${name}.json`), withoutMachine(await opened.historyOf(id)));
    console.log(`recorded ${name}`);
  } finally {
    for (const step of steps) await step();
  }
}

function runOf({ events, clock, waitsUntil, waitsForNothing }: OpenOnTemporal, id: string): Run {
  const stream = streamName('retrying', id);
  const read = () => events.readStream(stream, { direction: 'forwards', limit: 100 });
  const waitMs = (attempts: number): number => 4_000 * 2 ** attempts;
  return {
    append: async (type) => {
      const { length } = await read();
      const event = newEvent({ type, occurredAt: clock.now(), data: { attempts: 0 } });
      await events.append({ stream, expected: length === 0 ? 'none' : length - 1, events: [event] });
    },
    attempted: async (attempts) => {
      await until(async () => (await read()).at(-1)?.data['attempts'] === attempts);
      await waitsUntil(plusMs(clock.now(), waitMs(attempts)));
    },
    advance: (attempts) => clock.advance(waitMs(attempts)),
    ended: () => waitsForNothing(),
  };
}

function attemptOf({ events, clock }: OpenOnTemporal, id: string, failsFirst: boolean): StepAction {
  const stream = streamName('retrying', id);
  let fails = failsFirst;
  return async ({ revision }) => {
    if (fails) {
      fails = false;
      throw new Error('no luck');
    }
    const [last] = await events.readStream(stream, { direction: 'backwards', limit: 1 });
    const attempts = Number(last?.data['attempts'] ?? 0) + 1;
    const event = newEvent({ type: 'Attempted', occurredAt: clock.now(), data: { attempts } });
    await events.append({ stream, expected: revision, events: [event] });
  };
}

/** Formats a history with one event a line, without the identities of workers. */
function withoutMachine(history: string): string {
  const { events } = JSON.parse(history, (key, value: unknown) => (key === 'identity' ? undefined : value)) as {
    events: readonly unknown[];
  };
  return `{"events":[\n${events.map((event) => JSON.stringify(event)).join(',\n')}\n]}\n`;
}

const words = process.argv.slice(2);
for (const [name, scenario] of Object.entries(SCENARIOS)) {
  const wanted = words.length === 0 ? !existsSync(path.join(FOLDER, `${name}.json`)) : words.includes(name);
  if (wanted) await record(name, scenario);
}
