/** Readers during rebuilds and halts, and in other processes: what they answer, and when they refuse. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type RecordedEvent, streamName } from '../../core/kernel/envelope.ts';
import { createLiveReader, type ReadQuery } from '../../projections/live-reader.ts';
import { appendSome, counting, liveTable, setUp } from '../support/counting-model.ts';
import { isReadModelError, Pushed, serve } from '../support/pushed-repository.ts';
import { newRunner, newUuid, startRunner, until, WAIT_MS } from '../support/read-models.ts';

const eventsCounted: ReadQuery = { answer: (table) => `SELECT coalesce(sum(events), 0) FROM ${table('counts')}` };
/** So short a wait that a test need not wait long for a refusal. */
const SOON_MS = 100;
const nothing = (): { readonly streams: readonly string[] } => ({ streams: [] });

describe('a reader', () => {
  test('in another process never answers from tables that a rebuild replaced', async (context) => {
    const { pool, store, append } = await setUp(context);
    const model = counting();
    const other = newRunner(context, { events: store, database: pool, models: [model] });
    const reader = createLiveReader(pool, model, other.runner);
    const impatient = createLiveReader(pool, model, other.runner, SOON_MS);
    await assert.rejects(impatient.read(eventsCounted, [], nothing), isReadModelError('read-model-behind'));
    const { runner } = await startRunner(context, { events: store, database: pool, models: [model] });
    // Wait until it leads: a rebuild before that would create the first tables itself.
    await appendSome(append, 2, 1);
    await runner.waitFor(append.last, WAIT_MS);
    let appended = 2;
    let rebuilding = true;
    const rebuilds = (async () => {
      for (let round = 0; round < 3; round += 1) await runner.rebuild(null);
      rebuilding = false;
    })();
    while (rebuilding) {
      await appendSome(append, 2, 1);
      appended += 2;
      await runner.waitFor(append.last, WAIT_MS);
      const { value } = await reader.read(eventsCounted, [], nothing);
      assert.equal(Number(value), appended);
    }
    await rebuilds;
    assert.match(await liveTable(pool, 'counts'), /_4$/);
  });

  test('reads the tables that are live now, although the old ones still exist', async (context) => {
    const { pool, store, append } = await setUp(context);
    const model = counting();
    const { runner } = await startRunner(context, { events: store, database: pool, models: [model] });
    await runner.waitFor(append.last, WAIT_MS);
    await runner.close();
    const reader = createLiveReader(pool, model, runner);
    assert.equal(Number((await reader.read(eventsCounted, [], nothing)).value), 0);
    await pool.query(`CREATE TABLE read_models.counts_v1_2 AS SELECT 'account-x' AS stream, 7 AS events`);
    await pool.query(`INSERT INTO read_models.checkpoints (name, version, generation, tables, position)
      SELECT name, version, 2, tables, position FROM read_models.checkpoints`);
    await pool.query('UPDATE read_models.projections SET live_generation = 2');
    assert.deepEqual(await reader.read(eventsCounted, [], nothing), { value: 7, generation: 2 });
  });

  test('refuses rows that are older than a position that this process has seen', async (context) => {
    const { pool, store, append } = await setUp(context);
    const model = counting();
    const { runner } = await startRunner(context, { events: store, database: pool, models: [model] });
    await appendSome(append, 3, 1);
    await runner.waitFor(append.last, WAIT_MS);
    await runner.close();
    const reader = createLiveReader(pool, model, runner, SOON_MS);
    assert.equal(Number((await reader.read(eventsCounted, [], nothing)).value), 3);
    // The state after a crash of PostgreSQL: commits of checkpoints do not wait for the disk.
    await pool.query('UPDATE read_models.checkpoints SET position = position - 1');
    await assert.rejects(reader.read(eventsCounted, [], nothing), isReadModelError('read-model-behind'));
    await assert.rejects(runner.waitFor(append.last, 1), isReadModelError('read-model-behind'));
  });

  test('refuses to read a halted model, in every process', async (context) => {
    const { pool, store, append } = await setUp(context);
    const poison = (event: RecordedEvent): void => {
      if (event.type === 'PlanChanged') throw new Error('cannot be applied');
    };
    const model = counting({ poison, onPoison: 'halt' });
    const { runner } = await startRunner(context, { events: store, database: pool, models: [model] });
    await runner.waitFor(append.last, WAIT_MS);
    const reader = createLiveReader(pool, model, runner);
    assert.equal(Number((await reader.read(eventsCounted, [], nothing)).value), 0);
    await append.append(streamName('account', newUuid()), newUuid(), 'PlanChanged', { plan: 'PRO' });
    // Waiting for a halted model ends immediately: it does not wait for an operator.
    await runner.waitFor(append.last, WAIT_MS);
    await until(async () => {
      const refused = await reader.read(eventsCounted, [], nothing).catch((error: unknown) => error);
      return isReadModelError('read-model-unavailable')(refused);
    });
  });

  test('drops its cached branches after a rebuild repaired them', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service);
    await repository.push({ 'refs/heads/main': repository.line(2) });
    await service.reads.caughtUp(service.append.last);
    await service.pool.query(`UPDATE read_models.history_commits_v4_1 SET entry = replace(entry, '"A"', '"Mallory"')`);
    const wrong = await service.reads.branches(repository.id);
    assert.equal(wrong?.branches[0]?.commit.committer.name, 'Mallory');
    await service.runner.rebuild('history');
    const mended = await service.reads.branches(repository.id);
    assert.equal(mended?.branches[0]?.commit.committer.name, 'A');
    assert.equal(
      await service.reads.branches(repository.id),
      mended,
      'the second read was not answered from the cache',
    );
  });
});
