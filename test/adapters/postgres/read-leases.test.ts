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
import { databaseOn, startTestCluster } from '../../support/postgres.ts';
import { eventually } from '../../support/processes.ts';
import { openClient, openDatabase } from './open-store.ts';

const LOCK_OF_APPENDS = 8317987319222330741n;
const SPAN_MS = 400;
/** Lets the life of the database have begun more than the longest span ago. */
const OLD = `UPDATE database_life SET written_at = clock_timestamp() - interval '10001 ms'`;

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

/**
 * Kills a backend after `write`, for which PostgreSQL ends all others and recovers. What `write` did not wait for is
 * lost: the writer of PostgreSQL's own log is stopped first, and killed before it could go on.
 */
async function crashAfter(write: () => Promise<void>, ending: Ending, connectionString: string): Promise<void> {
  const [killed, witness] = [await openClient(ending, connectionString), await openClient(ending, connectionString)];
  const { rows } = await killed.query<{ backend: number; writer: number }>(
    `SELECT pg_backend_pid() AS backend, pid AS writer FROM pg_stat_activity WHERE backend_type = 'walwriter'`,
  );
  const [pids] = rows;
  assert.ok(pids !== undefined);
  process.kill(pids.writer, 'SIGSTOP');
  try {
    await write();
    const ended = new Promise((resolve) => void witness.once('end', resolve));
    process.kill(pids.backend, 'SIGKILL');
    await ended;
  } finally {
    process.kill(pids.writer, 'SIGKILL');
  }
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
    const client = await openClient(context, connectionString);
    const { rows: lives } = await client.query('SELECT id FROM database_life');
    const lease = { node: 'holder', epoch, renewals: 1, heard: 1n, spanMs: SPAN_MS, life: Number(lives[0].id) };
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
    const client = await openClient(context, connectionString);
    await client.query(OLD);
    await table.renew(epoch);
    await other.remove(seen);
    assert.equal((await other.rows()).length, 1);
    await other.remove({ ...seen, renewals: 1 });
    assert.deepEqual(await other.rows(), []);
  });

  test('is not removed for a count of renewals from before a crash, which lost some', async (context) => {
    const cluster = await startTestCluster({ bgwriter_lru_maxpages: '0', autovacuum: 'off' });
    cleanUp(context, () => cluster.stop());
    const { connectionString } = await databaseOn(cluster.connectionString);
    const [table, other] = ['holder', 'other'].map((node) => openTable(context, connectionString, node));
    assert.ok(table !== undefined && other !== undefined);
    const log = openLog(context, connectionString, 'appender');
    const epoch = await table.insert(SPAN_MS);
    await log.append();
    const [seen] = log.seen[0]?.leases ?? [];
    assert.ok(seen !== undefined && seen.life !== null);

    const renewed = async (): Promise<void> => assert.equal(await table.renew(epoch), true);
    await crashAfter(renewed, context, connectionString);
    const found = async () => other.rows().catch(() => null);
    await eventually('the database has recovered', async () => (await found()) !== null);
    const [after] = await other.rows();
    assert.deepEqual({ ...after, life: 0 }, { ...seen, life: 0 }, 'the crash lost the renewal');
    const client = await openClient(context, connectionString);
    await client.query(OLD);
    await other.remove(seen);
    assert.deepEqual(await other.rows(), [after], 'its holder still counts on it');
    assert.ok(after !== undefined);
    await other.remove(after);
    assert.deepEqual(await other.rows(), []);
  });

  test('is not removed within the longest span after a life of the database began, nor while none is known', async (context) => {
    const connectionString = await openDatabase(context);
    const [table, other] = ['holder', 'other'].map((node) => openTable(context, connectionString, node));
    assert.ok(table !== undefined && other !== undefined);
    await table.insert(SPAN_MS);
    const [seen] = await other.rows();
    assert.ok(seen !== undefined);
    const client = await openClient(context, connectionString);
    const stands = async (): Promise<boolean> => (await client.query('SELECT FROM read_leases')).rowCount === 1;
    const age = (by: string) =>
      client.query(`UPDATE database_life SET written_at = clock_timestamp() - interval '${by}'`);
    await age('9900 ms');
    await other.remove(seen);
    assert.ok(await stands());
    await client.query(OLD);
    await other.remove({ ...seen, life: null });
    assert.ok(await stands());
    // The clock was set back by an hour: how old the life is cannot be told, so that it begins again.
    await age('-1 hour');
    await other.rows();
    const { rows } = await client.query(`SELECT clock_timestamp() - written_at < interval '9 s' AND
      written_at <= clock_timestamp() AS is_young FROM database_life`);
    assert.deepEqual(rows, [{ is_young: true }]);
    await other.remove(seen);
    assert.ok(await stands());
    await client.query(OLD);
    await other.remove(seen);
    assert.equal(await stands(), false);
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
