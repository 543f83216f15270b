/** Histories built again from the log: dropped tables, objects that left storage, changed rows. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { ObjectDatabaseError } from '../../../core/ports/object-database.ts';
import { contents, Pushed, serve } from '../../support/pushed-repository.ts';

describe('building histories again from the log', () => {
  test('gives identical content after all tables were dropped', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service);
    const base = repository.line(50);
    await repository.push({ 'refs/heads/main': base });
    await repository.push({ 'refs/heads/side': repository.line(10, base, 1_000_020) });
    await repository.push({ 'refs/heads/main': repository.commit('m', [base], 2_000_000), 'refs/heads/side': null });
    const other = await Pushed.create(service);
    await other.push({ 'refs/heads/main': other.line(5) });
    await service.append.deleteRepository(other.account, other.id, 'project');
    await service.append.token(repository.account, 'laptop');
    await service.reads.caughtUp(service.append.last);
    const before = await contents(service.pool);
    await service.runner.close();
    await service.pool.query('DROP SCHEMA read_models CASCADE');
    const { runner, reads } = service.again();
    await runner.start();
    await reads.caughtUp(service.append.last);
    assert.deepEqual(await contents(service.pool), before);
    await repository.check('main', reads);
  });

  test('needs no objects that left storage because a later event replaced them', async (context) => {
    const service = await serve(context, { started: false });
    const repository = await Pushed.create(service);
    const forced = repository.line(4);
    await repository.push({ 'refs/heads/main': forced, 'refs/heads/stays': forced });
    const kept = repository.line(6, null, 5_000);
    // More events than a batch holds, so that the first tip is in a batch without its replacement.
    for (let count = 0; count < 1_000; count += 1) await service.append.account(`filler-${count}`);
    await repository.push({ 'refs/heads/main': kept, 'refs/heads/stays': kept });
    const gone = await Pushed.create(service);
    await gone.push({ 'refs/heads/main': gone.line(3) });
    for (let count = 0; count < 1_000; count += 1) await service.append.account(`more-${count}`);
    await service.append.deleteRepository(gone.account, gone.id, 'project');
    repository.git('update-ref', 'refs/heads/keep', kept);
    repository.git('update-ref', '-d', 'refs/scratch/line');
    repository.git('-c', 'gc.pruneExpire=now', 'gc', '--quiet', '--prune=now');
    assert.throws(() => repository.git('cat-file', '-e', forced));
    service.objects.onOpen = (committed) => {
      if (committed.repository !== gone.id) return;
      throw new ObjectDatabaseError('layer-missing', 'It was deleted with its repository');
    };
    await service.runner.start();
    await service.reads.caughtUp(service.append.last);
    await repository.check();
    assert.equal(await service.reads.branches(gone.id), null);
    assert.deepEqual(await service.runner.parked(), []);
  });

  test('finds a commit whose row was changed, and one whose row is missing', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service);
    await repository.push({ 'refs/heads/main': repository.line(5) });
    await service.reads.caughtUp(service.append.last);
    const commits = 'read_models.history_commits_v4_1';
    await service.pool.query(
      `UPDATE ${commits} SET entry = replace(entry, '"A"', '"Mallory"') WHERE id = (SELECT min(id) FROM ${commits})`,
    );
    await service.pool.query(`DELETE FROM ${commits} WHERE id = (SELECT max(id) FROM ${commits})`);
    const results = await service.runner.verify(null);
    const found = results.find(({ projection }) => projection === 'history');
    assert.deepEqual(found?.examples.map(({ table, kind }) => `${table} ${kind}`).sort(), [
      'history_commits different',
      'history_commits missing',
    ]);
    await service.runner.rebuild('history');
    await repository.check();
  });
});
