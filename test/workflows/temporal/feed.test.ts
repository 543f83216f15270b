/** Temporal is notified of every event, whatever dies in between; the server here is a list of the notices it took. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'vitest';
import { pause } from '../../../adapters/node/pause.ts';
import { LOG_START, streamName } from '../../../core/kernel/envelope.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import type { PolicyMarks } from '../../../core/ports/policy-marks.ts';
import type { WaitingRows, Workflow } from '../../../core/ports/workflows.ts';
import { type Feed, startFeed } from '../../../workflows/temporal/feed.ts';
import { newRequest } from '../../contract/device-login-requests.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { newEvent, newId } from '../../support/events.ts';
import { type KeptLog, keepLog } from '../../support/log.ts';
import { createMemoryPolicyMarks } from '../../support/memory/delivery-store.ts';
import { createMemoryDeviceLoginRequests } from '../../support/memory/device-login-requests.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';
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

/** A server that takes notices while `answers` is true. */
function newServer(id = 'server-1') {
  const notices: string[] = [];
  const server = { id, answers: true, notices, replacing: new AbortController() };
  const answer = async (line: string): Promise<void> => {
    if (!server.answers) throw new Error('14 UNAVAILABLE');
    notices.push(line);
  };
  return {
    server,
    connection: {
      server: { identify: async () => ({ id: server.id, replaced: server.replacing.signal }) },
      signals: {
        signalWithStart: (run: { readonly id: string }, moved: { readonly revision: number }) =>
          answer(`start ${run.id} ${moved.revision}`),
        signal: (run: { readonly id: string }, moved: { readonly revision: number }) =>
          answer(`signal ${run.id} ${moved.revision}`),
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
  start(connection: ReturnType<typeof newServer>['connection'], own?: Partial<Start>): Process;
}

interface Start {
  readonly marks: PolicyMarks;
  readonly events: EventStore;
  readonly workflow: Workflow;
  readonly rows: WaitingRows;
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
    start: (connection, own = {}) => {
      const dead = new AbortController();
      const feed = startFeed({
        workflows: [own.workflow ?? waiting],
        rowWorkflows: own.rows === undefined ? [] : [{ name: 'rows', version: 1, rows: own.rows, lookMs: 60_000 }],
        events: own.events ?? events,
        lead: leads.of(dead.signal),
        marks: own.marks ?? marks,
        ...{ clock, pause, log, ...connection },
        onFault: (_what, cause) => faults.push(cause),
      });
      cleanUp(context, () => feed.close());
      return { feed, kill: () => dead.abort() };
    },
  };
}

/** Resolves when every notice was sent. */
async function allSent({ feed }: Process): Promise<void> {
  await until(() => feed.behind()?.runs === 0);
}

test('runs that wait are started, others are signaled, and those that ended before the first start get no signal', async (context) => {
  const { append, start } = newWorld(context);
  const { server, connection } = newServer();
  const [ended, waits] = [newId(), newId()];
  for (const type of ['Begun', 'Ended']) await append(ended, type);
  await append(waits, 'Begun');
  start(connection);
  await until(() => server.notices.length === 1);
  assert.deepEqual(server.notices, [`start ${waits} 0`]);
  await append(waits, 'Ended');
  await until(() => server.notices.length === 2);
  assert.deepEqual(server.notices.slice(1), [`signal ${waits} 1`]);
});

test('a process that takes over from one killed between a signal and its mark sends the signal again', async (context) => {
  const { append, start, marks } = newWorld(context);
  const { server, connection } = newServer();
  const id = newId();
  await append(id, 'Begun');
  let noted = false;
  const dying = start(connection, {
    marks: {
      ...marks,
      save: () => {
        noted = true;
        return new Promise(() => undefined);
      },
    },
  });
  await until(() => noted);
  assert.deepEqual(server.notices, [`start ${id} 0`]);
  dying.kill();
  start(connection);
  await until(() => server.notices.length === 2);
  assert.deepEqual(server.notices, [`start ${id} 0`, `start ${id} 0`]);
});

test('a notice whose mark was saved is not sent again by the next process', async (context) => {
  const { append, start, marks } = newWorld(context);
  const { server, connection } = newServer();
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
  const before = start(connection, { marks: counting });
  await until(() => saves === 1);
  before.kill();
  await append(second, 'Begun');
  start(connection);
  await until(() => server.notices.length === 2);
  assert.deepEqual(server.notices, [`start ${first} 0`, `start ${second} 0`]);
});

test('no notice is lost while Temporal is unreachable, and the unsent ones are reported with their age', async (context) => {
  const { append, start, events, faults } = newWorld(context);
  const { server, connection } = newServer();
  server.answers = false;
  const ids = [newId(), newId()];
  for (const id of ids) await append(id, 'Begun');
  const process = start(connection);
  await until(() => process.feed.behind()?.runs === ids.length && faults.length > 0);
  const [oldest] = await events.readAll(LOG_START, 1);
  assert.equal(process.feed.behind()?.oldestAt, oldest?.occurredAt);
  server.answers = true;
  await until(() => server.notices.length === ids.length);
  await allSent(process);
  assert.deepEqual(process.feed.behind(), { runs: 0, oldestAt: null });
});

test('a process that does not lead sends nothing, and does not know what is unsent', async (context) => {
  const { start } = newWorld(context);
  const { connection } = newServer();
  const leading = start(connection);
  await until(() => leading.feed.behind() !== null);
  assert.equal(start(connection).feed.behind(), null);
});

for (const [what, change] of [
  ['a server that lost its data', { id: 'server-2', version: 1 }],
  ['a workflow with another version', { id: 'server-1', version: 2 }],
] as const) {
  test(`${what} is notified of every run that waits`, async (context) => {
    const { append, start } = newWorld(context);
    const before = newServer();
    const id = newId();
    await append(id, 'Begun');
    const process = start(before.connection);
    await until(() => before.server.notices.length === 1);
    await allSent(process);
    process.kill();
    const after = newServer(change.id);
    start(after.connection, { workflow: { ...waiting, version: change.version } });
    await until(() => after.server.notices.length === 1);
    assert.deepEqual(after.server.notices, [`start ${id} 0`]);
  });
}

test('a server that replaces another while the feed runs is notified of every run that waits', async (context) => {
  const { append, start } = newWorld(context);
  const { server, connection } = newServer();
  const id = newId();
  await append(id, 'Begun');
  await allSent(start(connection));
  await until(() => server.notices.length === 1);
  server.id = 'server-2';
  server.replacing.abort();
  server.replacing = new AbortController();
  await until(() => server.notices.length === 2);
  assert.deepEqual(server.notices, [`start ${id} 0`, `start ${id} 0`]);
});

test('a log that replaced another is sent from its start, with a warning', async (context) => {
  const before = newWorld(context);
  const { server, connection } = newServer();
  await before.append(newId(), 'Begun');
  let saved = false;
  const process = before.start(connection, {
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
  after.start(connection, { marks: before.marks });
  await until(() => server.notices.length === 2);
  assert.equal(server.notices[1], `start ${id} 0`);
  assert.equal(after.log.lines[0]?.level, 'warn');
});

test('a stream that cannot be read delays no other: its run is started and reports the failure itself', async (context) => {
  const { append, start, faults } = newWorld(context);
  const { server, connection } = newServer();
  const [broken, sound] = [newId(), newId()];
  await append(broken, 'Broken');
  await append(sound, 'Begun');
  start(connection);
  await until(() => server.notices.length === 2);
  assert.deepEqual(server.notices.toSorted(), [`start ${broken} 0`, `start ${sound} 0`].sort());
  assert.equal(faults.length, 1);
});

test('a server is told of each row once, and an emptied one of every row again', async (context) => {
  const { start, faults } = newWorld(context);
  const { server, connection } = newServer();
  const rows = createMemoryDeviceLoginRequests();
  const requests = [newRequest({ after: 0 }), newRequest({ after: 1 })];
  const bounds = { pendingMax: 10, keptSince: newRequest().requestedAt };
  for (const request of requests) await rows.add(request, bounds);
  server.answers = false;
  const one = start(connection, { rows });
  await until(() => faults.length > 0);
  assert.equal((await rows.untold('temporal/server-1/1', 9)).length, 2, 'no row is marked that was not told');
  server.answers = true;
  const told = requests.map(({ id }) => `start ${id} 0`).sort();
  await until(async () => (await rows.untold('temporal/server-1/1', 9)).length === 0);
  assert.deepEqual(new Set(server.notices), new Set(told));
  one.kill();
  server.notices.length = 0;
  await rows.forgetDevice(requests[0]?.id ?? newRequest().id, bounds.keptSince);
  const two = start(connection, { rows });
  await until(() => two.feed.behind() !== null);
  await rows.add(newRequest({ after: 2 }), bounds);
  assert.deepEqual(server.notices, [], 'what the server knows is not told again');
  two.kill();
  const emptied = newServer('server-2');
  start(emptied.connection, { rows });
  await until(() => emptied.server.notices.length === 3);
  assert.ok(emptied.server.notices.includes(`start ${requests[0]?.id} 1`));
});
