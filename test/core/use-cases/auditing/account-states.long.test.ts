/** The state of an account with a long log, from PostgreSQL. */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { test } from 'vitest';
import { digest } from '../../../../adapters/node/digest.ts';
import { createPostgresEventStore } from '../../../../adapters/postgres/event-store.ts';
import { createPool } from '../../../../adapters/postgres/pool.ts';
import { createPostgresSnapshots } from '../../../../adapters/postgres/snapshots.ts';
import type { LogPosition, RecordedEvent } from '../../../../core/kernel/envelope.ts';
import type { Timestamp } from '../../../../core/kernel/ids.ts';
import { createAccountStates } from '../../../../core/use-cases/auditing/account-states.ts';
import { createModels } from '../../../../projections/models.ts';
import { createReadModels } from '../../../../projections/read-models.ts';
import { cleanUp } from '../../../support/cleanup.ts';
import { keepLog } from '../../../support/log.ts';
import { appendLongAccount } from '../../../support/long-account.ts';
import { createMemoryObjects } from '../../../support/memory/object-database.ts';
import { testDatabase } from '../../../support/postgres.ts';
import { Appender, startRunner } from '../../../support/read-models.ts';

const ENTRIES = 100_000;
/** The time of this process, whatever else the machine does. */
const COLD_CPU_MS_MAX = 2_000;
/** What is read behind the nearest snapshot: they are thinned out with their age. */
const COLD_ENTRIES_MAX = ENTRIES / 5;

test('of 100,000 entries is folded at any time within two seconds, once there are snapshots', async (context) => {
  const { connectionString, close } = await testDatabase();
  cleanUp(context, close);
  const log = keepLog();
  const events = createPostgresEventStore({ connectionString, log });
  cleanUp(context, () => events.close());
  const database = createPool({ connectionString, log, connectionsMax: 20 });
  cleanUp(context, () => database.end());
  const append = new Appender(events);
  const { account, momentAt } = await appendLongAccount(append, ENTRIES);
  const objects = createMemoryObjects().database;
  const complete = async (event: RecordedEvent) => event;
  const models = createModels({ digest, workflows: [], events, complete, objects });
  const { runner } = await startRunner(context, { events, database, models: [models.accountLog] });
  const clock = { now: () => append.now, nextTurn: () => nextTurn() };
  const readModels = createReadModels({ digest, database, models, runner, clock });
  // It waits ten seconds at most.
  for (let isThere = false; !isThere; ) {
    isThere = await readModels.accountLogCaughtUp(append.last).then(
      () => true,
      () => false,
    );
  }
  const past = {
    repositoryAt: async (): Promise<never> => {
      throw new Error('The fold keeps all refs');
    },
  };
  const faults: unknown[] = [];
  let entriesRead = 0;
  const { readPositions } = events;
  assert.ok(readPositions !== undefined);
  const counted = {
    readStream: events.readStream,
    readPositions: async (positions: readonly LogPosition[]) => {
      entriesRead += positions.length;
      return readPositions(positions);
    },
  };
  const states = () =>
    createAccountStates({
      ...{ events: counted, readModels, past, complete, digest, clock },
      snapshots: createPostgresSnapshots(database),
      onFault: (_what, cause) => faults.push(cause),
    });
  const textAt = async (at: Timestamp | null): Promise<readonly [string, number]> => {
    const begun = process.cpuUsage();
    entriesRead = 0;
    const asked = { seen: append.last, signal: new AbortController().signal };
    const state = await states().stateAt(account, at, asked);
    assert.ok(!('refused' in state));
    let text = '';
    for await (const piece of state.chunks) text += piece;
    state.close();
    const { user, system } = process.cpuUsage(begun);
    return [text, Math.round((user + system) / 1_000)];
  };
  const [first, withoutSnapshotsMs] = await textAt(null);
  const durations: number[] = [];
  for (const part of [0.02, 0.19, 0.37, 0.5, 0.81, 0.97]) {
    const [, ms] = await textAt(momentAt(part));
    durations.push(ms);
    assert.ok(entriesRead <= COLD_ENTRIES_MAX, `${entriesRead} entries at ${part}`);
  }
  const [again, ms] = await textAt(null);
  durations.push(ms);
  assert.equal(again, first);
  const figures = `${withoutSnapshotsMs} ms without snapshots, then ${durations.join(', ')} ms`;
  assert.ok(Math.max(...durations) < COLD_CPU_MS_MAX, figures);
  process.stderr.write(`${figures}\n`);
  assert.deepEqual(faults, []);
});
