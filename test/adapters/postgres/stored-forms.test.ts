/** Rows of the event log as older and current versions write them. Older ones send no `is_record`. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { logMigrations, migrate } from '../../../adapters/postgres/migrate.ts';
import { LOG_START } from '../../../core/kernel/envelope.ts';
import { asNew, newEvent } from '../../support/events.ts';
import {
  appendGolden,
  GOLDEN_APPENDS,
  GOLDEN_PLACES,
  GOLDEN_PLACES_FIRST_FORM,
  goldenText,
} from '../../support/golden-log.ts';
import { keepLog } from '../../support/log.ts';
import { emptyDatabase, openClient, openStore } from './open-store.ts';

const EVENTS = GOLDEN_APPENDS.flatMap(({ events }) => events);

/** The migrations of the version before `008-appends`. */
const olderMigrations = Object.fromEntries(
  Object.entries(logMigrations.migrations).filter(([name]) => name < '008-appends'),
);

describe('an event in PostgreSQL', () => {
  test('is stored in the golden form', async (context) => {
    const connectionString = await emptyDatabase(context);
    await migrate({ connectionString, log: keepLog() });
    const { store } = openStore(context, connectionString);
    await appendGolden(store);
    const client = await openClient(context, connectionString);
    const { rows } = await client.query('SELECT * FROM events ORDER BY position');
    const golden: unknown = JSON.parse(goldenText('stored/postgres-2.json'));
    assert.deepEqual(
      rows.map(({ position: _position, ...row }) => row),
      golden,
    );
  });

  test('that an older version stored is read, appended after, and recognised by a retry', async (context) => {
    const connectionString = await emptyDatabase(context);
    await migrate({ connectionString, log: keepLog(), set: { name: logMigrations.name, migrations: olderMigrations } });
    const client = await openClient(context, connectionString);
    const rows: readonly { stream: string; revision: number }[] = JSON.parse(goldenText('stored/postgres-1.json'));
    const batch = rows.map(({ stream, revision, ...event }) => ({ stream, expected: revision - 1, events: [event] }));
    await client.query('SELECT append_events($1)', [JSON.stringify(batch)]);
    await migrate({ connectionString, log: keepLog() });
    const { store } = openStore(context, connectionString);
    const read = await store.readAll(LOG_START, 100);
    assert.deepEqual(read.map(asNew), EVENTS);
    assert.deepEqual(
      read.map(({ isRecord, appendIndex, appendCount }) => [isRecord, appendIndex, appendCount]),
      GOLDEN_PLACES_FIRST_FORM,
    );
    assert.equal((await store.readAll(LOG_START, 2)).length, 2, 'each event counts as an append of its own');
    for (const request of GOLDEN_APPENDS) {
      assert.deepEqual((await store.append(request)).outcome, 'appended');
    }
    assert.equal(await store.head(), BigInt(EVENTS.length));
    const [request] = GOLDEN_APPENDS;
    assert.ok(request !== undefined);
    await store.append({ ...request, expected: 0, events: [newEvent(), newEvent()] });
    const later = await store.readStream(request.stream, { direction: 'forwards', from: 1, limit: 1 });
    assert.deepEqual(
      later.map(({ appendIndex, appendCount }) => [appendIndex, appendCount]),
      [
        [0, 2],
        [1, 2],
      ],
    );
  });

  test('from a node of an older version gets its place in its append, and is record by category', async (context) => {
    const connectionString = await emptyDatabase(context);
    await migrate({ connectionString, log: keepLog() });
    const client = await openClient(context, connectionString);
    const rows: readonly { stream: string; revision: number }[] = JSON.parse(goldenText('stored/postgres-1.json'));
    const byStream = [...Map.groupBy(rows, ({ stream }) => stream)];
    const batch = byStream.map(([stream, of]) => ({
      ...{ stream, expected: -1 },
      events: of.map(({ stream: _stream, revision: _revision, ...event }) => event),
    }));
    for (let attempt = 0; attempt < 2; attempt += 1) {
      await client.query('SELECT append_events($1)', [JSON.stringify(batch)]);
      const { store } = openStore(context, connectionString);
      const read = await store.readAll(LOG_START, 100);
      assert.deepEqual(read.map(asNew), EVENTS);
      assert.deepEqual(
        read.map(({ isRecord, appendIndex, appendCount }) => [isRecord, appendIndex, appendCount]),
        GOLDEN_PLACES,
      );
    }
  });
});
