/** Temporal is told of every event, whatever dies in between; its server here is a list of what it was told. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { createMemoryPolicyMarks } from '../../support/memory/delivery-store.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';
import { LOG_START, streamName } from '../../../core/kernel/envelope.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import type { PolicyMarks } from '../../../core/ports/policy-marks.ts';
import type { Workflow } from '../../../core/ports/workflows.ts';
import { type Feed, startFeed } from '../../../workflows/temporal/feed.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { newEvent, newId } from '../../support/events.ts';
import { type KeptLog, keepLog } from '../../support/log.ts';
import { until } from '../../support/read-models.ts';
import { createTestClock } from '../../support/test-clock.ts';
import { createTestLeads } from '../../support/test-lead.ts';

const waiting: Workflow = {
  name: 'waiting',
  version: 1,
  category: 'waiting',
  next(_wait, { type, occurredAt }) {
    if (type === 'Broken') throw new TypeError('An event that nobody can read');
    return type === 'Ended' ? null : { step: 'go', dueAt: occurredAt, memory: {} };
  },
};

/** Takes what it is told, while it answers. */
function newServer(id = 'server-1') {
  const told: string[] = [];
  const server = { id, answers: true, told, replacing: new AbortController() };
  const answer = async (line: string): Promise<void> => {
    if (!server.answers) throw new Error('14 UNAVAILABLE');
    told.push(line);
  };
  return {
    server,
    line: {
      server: { standing: async () => ({ id: server.id, replaced: server.replacing.signal }) },
      signals: {
        begin: (run: { readonly id: string }, moved: { readonly revision: number }) =>
          answer(`begin ${run.id} ${moved.revision}`),
        tell: (run: { readonly id: string }, moved: { readonly revision: number }) =>
          answer(`tell ${run.id} ${moved.revision}`),
      },
    },
  };
}

interface World {
  readonly events: EventStore;
  readonly marks: PolicyMarks;
  readonly faults: unknown[];
  readonly log: KeptLog;
  append(id: string, type: string): Promise<void>;
  start(line: ReturnType<typeof newServer>['line'], own?: Partial<Start>): Process;
}

interface Start {
  readonly marks: PolicyMarks;
  readonly events: EventStore;
  readonly workflow: Workflow;
}

interface Process {
  readonly feed: Feed;
  kill(): void;
}

function newWorld(context: TestContext): World {
  const events = createMemoryEventStore();
  const marks = createMemoryPolicyMarks();
  const leads = createTestLeads();
  const clock = createTestClock();
  const log = keepLog();
  const faults: unknown[] = [];
  return {
    ...{ events, marks, faults, log },
    append: async (id, type) => {
      const stream = streamName('waiting', id);
      const { length } = await events.readStream(stream, { direction: 'forwards', limit: 100 });
      const event = newEvent({ type, occurredAt: clock.now() });
      await events.append({ stream, expected: length === 0 ? 'none' : length - 1, events: [event] });
    },
    start: (line, own = {}) => {
      const dead = new AbortController();
      const feed = startFeed({
        workflows: [own.workflow ?? waiting],
        events: own.events ?? events,
        lead: leads.of(dead.signal),
        marks: own.marks ?? marks,
        ...{ clock, log, ...line },
        onFault: (_what, cause) => faults.push(cause),
      });
      cleanUp(context, () => feed.close());
      return { feed, kill: () => dead.abort() };
    },
  };
}

/** Whether all there was to tell is told, and noted. */
async function isQuiet({ feed }: Process): Promise<void> {
  await until(() => feed.behind()?.runs === 0);
}

test('runs that wait are begun, others are told, and those that ended before the first start are left alone', async (context) => {
  const { append, start } = newWorld(context);
  const { server, line } = newServer();
  const [ended, waits] = [newId(), newId()];
  for (const type of ['Begun', 'Ended']) await append(ended, type);
  await append(waits, 'Begun');
  start(line);
  await until(() => server.told.length === 1);
  assert.deepEqual(server.told, [`begin ${waits} 0`]);
  await append(waits, 'Ended');
  await until(() => server.told.length === 2);
  assert.deepEqual(server.told.slice(1), [`tell ${waits} 1`]);
});

test('a process killed between a signal and its mark: the next one gives the signal again', async (context) => {
  const { append, start, marks } = newWorld(context);
  const { server, line } = newServer();
  const id = newId();
  await append(id, 'Begun');
  let noted = false;
  const dying = start(line, {
    marks: {
      ...marks,
      save: () => {
        noted = true;
        return new Promise(() => undefined);
      },
    },
  });
  await until(() => noted);
  assert.deepEqual(server.told, [`begin ${id} 0`]);
  dying.kill();
  start(line);
  await until(() => server.told.length === 2);
  assert.deepEqual(server.told, [`begin ${id} 0`, `begin ${id} 0`]);
});

test('what was told and noted is not told again by the next process', async (context) => {
  const { append, start, marks } = newWorld(context);
  const { server, line } = newServer();
  const [first, second] = [newId(), newId()];
  let saves = 0;
  const counting: PolicyMarks = {
    ...marks,
    save: async (policy, mark) => {
      await marks.save(policy, mark);
      saves += 1;
    },
  };
  await append(first, 'Begun');
  const before = start(line, { marks: counting });
  await until(() => saves === 1);
  before.kill();
  await append(second, 'Begun');
  start(line);
  await until(() => server.told.length === 2);
  assert.deepEqual(server.told, [`begin ${first} 0`, `begin ${second} 0`]);
});

test('while Temporal is away nothing is lost, and what it was not told of is shown with its age', async (context) => {
  const { append, start, events, faults } = newWorld(context);
  const { server, line } = newServer();
  server.answers = false;
  const ids = [newId(), newId()];
  for (const id of ids) await append(id, 'Begun');
  const process = start(line);
  await until(() => process.feed.behind()?.runs === ids.length && faults.length > 0);
  const [oldest] = await events.readAll(LOG_START, 1);
  assert.equal(process.feed.behind()?.oldestAt, oldest?.occurredAt);
  server.answers = true;
  await until(() => server.told.length === ids.length);
  await isQuiet(process);
  assert.deepEqual(process.feed.behind(), { runs: 0, oldestAt: null });
});

test('a process that does not lead tells nothing, and knows nothing of what is left', async (context) => {
  const { start } = newWorld(context);
  const { line } = newServer();
  const leading = start(line);
  await until(() => leading.feed.behind() !== null);
  assert.equal(start(line).feed.behind(), null);
});

for (const [what, change] of [
  ['a server that lost its data', { id: 'server-2', version: 1 }],
  ['a workflow that answers otherwise', { id: 'server-1', version: 2 }],
] as const) {
  test(`${what} is told of everything that waits`, async (context) => {
    const { append, start } = newWorld(context);
    const before = newServer();
    const id = newId();
    await append(id, 'Begun');
    const process = start(before.line);
    await until(() => before.server.told.length === 1);
    await isQuiet(process);
    process.kill();
    const after = newServer(change.id);
    start(after.line, { workflow: { ...waiting, version: change.version } });
    await until(() => after.server.told.length === 1);
    assert.deepEqual(after.server.told, [`begin ${id} 0`]);
  });
}

test('a server that is replaced under way is told of everything that waits', async (context) => {
  const { append, start } = newWorld(context);
  const { server, line } = newServer();
  const id = newId();
  await append(id, 'Begun');
  await isQuiet(start(line));
  await until(() => server.told.length === 1);
  server.id = 'server-2';
  server.replacing.abort();
  server.replacing = new AbortController();
  await until(() => server.told.length === 2);
  assert.deepEqual(server.told, [`begin ${id} 0`, `begin ${id} 0`]);
});

test('another log than the one before is told from its start, and that is said', async (context) => {
  const before = newWorld(context);
  const { server, line } = newServer();
  await before.append(newId(), 'Begun');
  let saved = false;
  const process = before.start(line, {
    marks: {
      ...before.marks,
      save: async (policy, mark) => {
        await before.marks.save(policy, mark);
        saved = true;
      },
    },
  });
  await until(() => saved);
  process.kill();
  const after = newWorld(context);
  const id = newId();
  await after.append(id, 'Begun');
  after.start(line, { marks: before.marks });
  await until(() => server.told.length === 2);
  assert.equal(server.told[1], `begin ${id} 0`);
  assert.equal(after.log.lines[0]?.level, 'warn');
});

test('a stream that cannot be read holds up no other: its run says so itself', async (context) => {
  const { append, start, faults } = newWorld(context);
  const { server, line } = newServer();
  const [broken, sound] = [newId(), newId()];
  await append(broken, 'Broken');
  await append(sound, 'Begun');
  start(line);
  await until(() => server.told.length === 2);
  assert.deepEqual(server.told.toSorted(), [`begin ${broken} 0`, `begin ${sound} 0`].sort());
  assert.equal(faults.length, 1);
});
