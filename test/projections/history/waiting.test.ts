/**
 * Reads right after a change that takes long to apply: they wait for it, as a read after a write does, and refuse only
 * what takes longer than a read may wait.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { streamName } from '../../../core/kernel/envelope.ts';
import { ObjectDatabaseError } from '../../../core/ports/object-database.ts';
import { readVersion } from '../../../projections/history/queries.ts';
import { createLiveReader } from '../../../projections/live-reader.ts';
import { isReadModelError, Pushed, type Service, serve } from '../../support/pushed-repository.ts';
import { until } from '../../support/read-models.ts';

/** So few that a change of the whole history is replayed beside the others. */
const FEW = { turnBounds: { newCommits: 20, orderedCommits: 20 } };
const ROWS = { default_branch: null, size_bytes: 2_000, pushed_at: null };

async function restore({ append }: Service, { account, id }: Pushed): Promise<void> {
  await append.restoreRepository(account, id, 'again', ROWS);
}

describe('A read', () => {
  test('right after a repository came back shows all of it', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service);
    await repository.push({ 'refs/heads/main': repository.line(10), 'refs/heads/next': repository.line(12) });
    for (let round = 0; round < 5; round += 1) {
      await service.append.deleteRepository(repository.account, repository.id, 'project');
      if (round % 2 === 0) await service.reads.caughtUp(service.append.last);
      await restore(service, repository);
      await repository.defaultBranch('main');
      await service.reads.caughtUp(service.append.last);
      await repository.check();
    }
  });

  test('right after it was pushed to while it came back shows the push', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service);
    await repository.push({ 'refs/heads/main': repository.line(10) });
    await service.append.deleteRepository(repository.account, repository.id, 'project');
    await restore(service, repository);
    await repository.defaultBranch('main');
    for (let count = 11; count < 15; count += 1) {
      await repository.push({ 'refs/heads/main': repository.line(count) });
      await service.reads.caughtUp(service.append.last);
      await repository.check();
    }
  });

  test('right after a large history was pushed, forced away, restored or made the default shows it', async (context) => {
    const service = await serve(context, { bounds: FEW });
    const repository = await Pushed.create(service);
    const [long, other] = [repository.line(60), repository.line(50, null, 77)];
    const steps: readonly (readonly [string, () => Promise<unknown>, string?])[] = [
      ['pushed', () => repository.push({ 'refs/heads/main': long })],
      ['forced', () => repository.push({ 'refs/heads/main': other })],
      ['restored', () => repository.push({ 'refs/heads/main': long, 'refs/heads/other': other })],
      ['default', () => repository.defaultBranch('other'), 'other'],
    ];
    for (const [, change, branch] of steps) {
      await change();
      await service.reads.caughtUp(service.append.last);
      await repository.check(branch);
    }
    const { account, id } = repository;
    await service.append.deleteRepository(account, id, 'project');
    await service.reads.caughtUp(service.append.last);
    assert.equal(await service.reads.branches(id), null, 'its removal takes long too');
  });

  test('waits while the model is built again after its tables were dropped', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service);
    await repository.push({ 'refs/heads/main': repository.line(5) });
    await service.reads.caughtUp(service.append.last);
    const { rows } = await service.pool.query<{ tablename: string }>(
      `SELECT tablename FROM pg_tables WHERE schemaname = 'read_models' AND tablename LIKE 'history%'`,
    );
    await service.pool.query(`DROP TABLE ${rows.map(({ tablename }) => `read_models.${tablename}`).join()}`);
    // The writer finds that they are gone with the next event that it writes.
    await repository.push({ 'refs/heads/next': repository.line(6) });
    const read = service.reads.branches(repository.id);
    await service.reads.caughtUp(service.append.last);
    assert.ok((await read) !== null);
    await repository.check();
  });

  test('of many at the same time costs the database one look at a time', async (context) => {
    const service = await serve(context, { bounds: FEW });
    const repository = await Pushed.create(service);
    const { promise: blocked, resolve: proceed } = Promise.withResolvers<void>();
    const { open } = service.objects;
    let openings = 0;
    service.objects.open = async (committed) => {
      openings += 1;
      if (openings > 1) await blocked;
      return open(committed);
    };
    await repository.push({ 'refs/heads/main': repository.line(60) });
    await service.reads.caughtUp(service.append.last);
    let queries = 0;
    const counting = {
      query: (async (statement: never) => {
        queries += 1;
        return service.pool.query(statement);
      }) as typeof service.pool.query,
    };
    const reader = createLiveReader(counting, service.models.history, service.runner);
    const reads = Array.from({ length: 100 }, () => readVersion(reader, repository.id));
    // Each asks for the live generation, for its answer and for what is parked.
    await until(() => queries >= 300);
    const before = queries;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    assert.ok(queries - before < 60, `${queries - before} queries of 100 readers in a second`);
    proceed();
    for (const version of await Promise.all(reads)) assert.equal(version?.revision, 0);
  });

  test('is refused when it waited long enough, and right away if only time or an operator helps', async (context) => {
    const service = await serve(context, { bounds: FEW });
    const [slow, broken] = [await Pushed.create(service), await Pushed.create(service)];
    const { promise: blocked, resolve: proceed } = Promise.withResolvers<void>();
    const { open } = service.objects;
    const opened = new Set<string>();
    service.objects.open = async (committed) => {
      if (committed.repository === broken.id) {
        throw new ObjectDatabaseError('object-database-unavailable', 'The bucket does not answer');
      }
      if (opened.has(committed.repository)) await blocked;
      opened.add(committed.repository);
      return open(committed);
    };
    await slow.push({ 'refs/heads/main': slow.line(60) });
    await broken.push({ 'refs/heads/main': broken.line(3) });
    await service.reads.caughtUp(service.append.last);
    const WAIT_MS = 300;
    const reader = createLiveReader(service.pool, service.models.history, service.runner, WAIT_MS);
    const startedMs = performance.now();
    await assert.rejects(readVersion(reader, slow.id), isReadModelError('read-model-behind'));
    const waitedMs = performance.now() - startedMs;
    assert.ok(waitedMs >= WAIT_MS && waitedMs < 10 * WAIT_MS, `${waitedMs} ms`);
    const again = performance.now();
    await assert.rejects(service.reads.branches(broken.id), isReadModelError('read-model-behind'));
    assert.ok(performance.now() - again < 2_000, 'it is tried again in some seconds only');
    // A later event of a parked stream does not make it one that waits for an operator.
    await slow.push({ 'refs/heads/side': slow.line(3) });
    await service.reads.caughtUp(service.append.last);
    await assert.rejects(readVersion(reader, slow.id), isReadModelError('read-model-behind'));
    proceed();
    assert.equal((await service.reads.branches(slow.id))?.branches.length, 2);
    const stream = streamName('repository', slow.id);
    assert.ok(!(await service.runner.parked()).some((parked) => parked.stream === stream));
  });
});
