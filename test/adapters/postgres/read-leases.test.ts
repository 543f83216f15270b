/** The table of read leases on a real PostgreSQL, beside appends on other connections. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createPostgresEventStore } from '../../../adapters/postgres/event-store.ts';
import { createPool } from '../../../adapters/postgres/pool.ts';
import { createPostgresLeaseTable } from '../../../adapters/postgres/read-leases.ts';
import type { LogPosition } from '../../../core/kernel/envelope.ts';
import type { Lease, LeaseTable } from '../../../core/ports/read-leases.ts';
import { cleanUp, type Ending } from '../../support/cleanup.ts';
import { newEvent, newStream } from '../../support/events.ts';
import { keepLog } from '../../support/log.ts';
import { eventually } from '../../support/processes.ts';
import { openClient, openDatabase } from './open-store.ts';

const LOCK_OF_APPENDS = 8317987319222330741n;
const SPAN_MS = 400;

function openTable(ending: Ending, connectionString: string, node: string, listens = true): LeaseTable {
  const log = keepLog();
  const pool = createPool({ connectionString, log, connectionsMax: 2 });
  cleanUp(ending, () => pool.end());
  return createPostgresLeaseTable({ connectionString, pool, node, log, listens });
}

/** A log of a process; without a name, one of an older version, which knows no leases. */
function openLog(ending: Ending, connectionString: string, node: string | null) {
  const seen: { readonly position: LogPosition; readonly leases: readonly Lease[] }[] = [];
  const onAppended = (position: LogPosition, leases: readonly Lease[]): void => void seen.push({ position, leases });
  const leases = node === null ? {} : { leases: { node, onAppended } };
  const store = createPostgresEventStore({ connectionString, log: keepLog(), ...leases });
  cleanUp(ending, () => store.close());
  const append = () => store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
  return { seen, append, store };
}

describe('A read lease', () => {
  test('is seen by every append after its insert, with what its holder said', async (context) => {
    const connectionString = await openDatabase(context);
    const table = openTable(context, connectionString, 'holder');
    const log = openLog(context, connectionString, 'appender');
    await log.append();
    const epoch = await table.insert(SPAN_MS);
    assert.equal(await table.renew(epoch), true);
    await table.tell(epoch, 1n as LogPosition);
    await log.append();
    const lease = { node: 'holder', epoch, renewals: 1, heard: 1n, spanMs: SPAN_MS };
    assert.deepEqual(log.seen, [
      { position: 1n, leases: [] },
      { position: 2n, leases: [lease] },
    ]);
    assert.deepEqual(await table.rows(), [lease]);
  });

  test('is inserted only between two appends', async (context) => {
    const connectionString = await openDatabase(context);
    const table = openTable(context, connectionString, 'holder');
    const appending = await openClient(context, connectionString);
    await appending.query(`BEGIN; SELECT pg_advisory_xact_lock(${LOCK_OF_APPENDS})`);
    let isInserted = false;
    const inserting = table.insert(SPAN_MS).then(() => {
      isInserted = true;
    });
    const waiting = `SELECT count(*)::integer AS count FROM pg_stat_activity
      WHERE wait_event_type = 'Lock' AND datname = current_database()`;
    const other = await openClient(context, connectionString);
    await eventually('the insert waits', async () => isInserted || (await other.query(waiting)).rows[0].count === 1);
    assert.equal(isInserted, false);
    await appending.query('COMMIT');
    await inserting;
    assert.equal((await table.rows()).length, 1);
  });

  test('is renewed only with its epoch, and is another one after each insert', async (context) => {
    const connectionString = await openDatabase(context);
    const table = openTable(context, connectionString, 'holder');
    const first = await table.insert(SPAN_MS);
    const second = await table.insert(SPAN_MS);
    assert.deepEqual([await table.renew(first), await table.renew(second)], [false, true]);
    await table.giveUp(first);
    assert.equal((await table.rows()).length, 1);
    await table.giveUp(second);
    assert.equal(await table.renew(second), false);
  });

  test('is removed only as it was seen', async (context) => {
    const connectionString = await openDatabase(context);
    const [table, other] = ['holder', 'other'].map((node) => openTable(context, connectionString, node));
    assert.ok(table !== undefined && other !== undefined);
    const epoch = await table.insert(SPAN_MS);
    const [seen] = await other.rows();
    assert.ok(seen !== undefined);
    await table.renew(epoch);
    await other.remove(seen);
    assert.equal((await other.rows()).length, 1);
    await other.remove({ ...seen, renewals: 1 });
    assert.deepEqual(await other.rows(), []);
  });

  test('ends before an append of an older server is answered', async (context) => {
    const connectionString = await openDatabase(context);
    const table = openTable(context, connectionString, 'holder');
    const older = openLog(context, connectionString, null);
    await older.append();
    const epoch = await table.insert(SPAN_MS);
    const began = performance.now();
    await older.append();
    assert.ok(performance.now() - began >= SPAN_MS, 'the lease may still be held');
    assert.equal(await table.renew(epoch), false);
  });

  test('tells its holder of each append of another process, and the others of what it heard', async (context) => {
    const connectionString = await openDatabase(context);
    const table = openTable(context, connectionString, 'holder');
    const log = openLog(context, connectionString, 'appender');
    const heads: [LogPosition, number | undefined][] = [];
    const heard: [string, LogPosition][] = [];
    const listening = table.listen({
      onHead: (position, leases) => heads.push([position, leases?.length]),
      onHeard: (node, position) => heard.push([node, position]),
    });
    cleanUp(context, () => listening.close());
    const epoch = await table.insert(SPAN_MS);
    await eventually('the listener is there', async () => {
      await log.append();
      return heads.length > 0;
    });
    const [[position, leases] = []] = heads;
    assert.ok(position !== undefined && leases === 1);
    await table.tell(epoch, position);
    await eventually('the others are told', () => heard.length > 0);
    assert.deepEqual(heard, [['holder', position]]);
  });

  test('tells what it heard to a process that has no connection to listen on', async (context) => {
    const connectionString = await openDatabase(context);
    const table = openTable(context, connectionString, 'holder');
    const asking = openTable(context, connectionString, 'command', false);
    const heard = new Map<string, LogPosition>();
    const listening = asking.listen({
      onHead: () => assert.fail('nobody told it of the head'),
      onHeard: (node, position) => heard.set(node, position),
    });
    cleanUp(context, () => listening.close());
    const epoch = await table.insert(SPAN_MS);
    await table.tell(epoch, 7n as LogPosition);
    await eventually('it hears', () => heard.get('holder') === 7n);
  });
});
