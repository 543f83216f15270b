/** Repositories whose objects cannot be read, or not quickly; other repositories do not wait for them. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'vitest';
import { ObjectDatabaseError } from '../../../core/ports/object-database.ts';
import { isReadModelError, Pushed, serve } from '../../support/pushed-repository.ts';
import { until } from '../../support/read-models.ts';

describe('when objects cannot be read,', () => {
  test('only that repository is parked, and it recovers without help', async (context) => {
    const service = await serve(context);
    const broken = await Pushed.create(service);
    const sound = await Pushed.create(service);
    let away = true;
    service.objects.onOpen = (committed) => {
      if (!away || committed.repository !== broken.id) return;
      throw new ObjectDatabaseError('object-database-unavailable', 'The bucket does not answer');
    };
    await broken.push({ 'refs/heads/main': broken.line(3) });
    await sound.push({ 'refs/heads/main': sound.line(3) });
    await broken.push({ 'refs/heads/other': broken.line(3, null, 77) });
    await service.reads.caughtUp(service.append.last);
    await sound.check();
    await assert.rejects(service.reads.branches(broken.id), isReadModelError('read-model-behind'));
    away = false;
    await service.pool.query(`UPDATE read_models.parked SET retry_at = now() WHERE retry_at IS NOT NULL`);
    await until(async () => (await service.runner.parked()).length === 0);
    await broken.check();
    assert.equal(service.objects.leases(), 0);
  });
});

describe('a bucket of a user that never answers', () => {
  test('makes others wait once: its repositories are then read beside them', async (context) => {
    const service = await serve(context, { bounds: { turnBounds: { spanMs: 300 } } });
    const bucket = randomUUID();
    const slow = [await Pushed.create(service, 'main', bucket), await Pushed.create(service, 'main', bucket)] as const;
    const sound = await Pushed.create(service);
    const { promise: answers, resolve: answer } = Promise.withResolvers<void>();
    const { open } = service.objects;
    service.objects.open = async (committed) => {
      if (committed.place.storageBucketId === bucket) await answers;
      return open(committed);
    };
    for (const one of slow) {
      await one.push({ 'refs/heads/main': one.line(2) });
      await service.reads.caughtUp(service.append.last);
    }
    await sound.push({ 'refs/heads/main': sound.line(3) });
    await service.reads.caughtUp(service.append.last);
    await sound.check();
    const parked = await service.runner.parked();
    assert.deepEqual(parked.map(({ error }) => /took too long a moment ago/.test(error)).filter((is) => is).length, 1);
    assert.equal(parked.length, 2);
    answer();
    await until(async () => (await service.runner.parked()).length === 0);
    for (const one of slow) await one.check();
  });
});

describe('a history too long to be read while others wait', () => {
  const bounds = { turnBounds: { newCommits: 20, orderedCommits: 60 } };

  test('is replayed beside the other repositories, with all pushes to it in between', async (context) => {
    const service = await serve(context, { bounds });
    const long = await Pushed.create(service);
    const other = await Pushed.create(service);
    let proceed: () => void = () => undefined;
    const blocked = new Promise<void>((resolve) => {
      proceed = resolve;
    });
    const { open } = service.objects;
    const opened = new Set<number | 'none'>();
    service.objects.open = async (committed) => {
      // The first opening finds that the history is too long; the next one is the replay's.
      if (committed.repository === long.id && opened.size > 0) await blocked;
      if (committed.repository === long.id) opened.add(committed.revision);
      return open(committed);
    };
    const base = long.line(100);
    await long.push({ 'refs/heads/main': base });
    await other.push({ 'refs/heads/main': other.line(5) });
    await service.reads.caughtUp(service.append.last);
    await other.check();
    const waiting = service.reads.branches(long.id);
    await long.push({ 'refs/heads/main': long.commit('next', [base], 3_000_000), 'refs/heads/side': base });
    await service.reads.caughtUp(service.append.last);
    proceed();
    assert.equal((await waiting)?.branches.length, 2, 'a read waits for the replay');
    await until(async () => (await service.runner.parked()).length === 0);
    await long.check();
    // After the replay, the writer applies its pushes like any other's.
    const tip = long.commit('last', [base], 3_000_001);
    await long.push({ 'refs/heads/main': tip });
    await service.reads.caughtUp(service.append.last);
    await long.check();
    assert.ok(!service.log.lines.some(({ level }) => level === 'error'));
    const [verified] = await service.runner.verify('history');
    assert.equal(verified?.differences, 0);
    await service.append.deleteRepository(long.account, long.id, 'project');
    await service.reads.caughtUp(service.append.last);
    await until(async () => (await service.runner.parked()).length === 0);
    assert.equal(await service.reads.branches(long.id), null);
    const { rowCount } = await service.pool.query('SELECT FROM read_models.history_commits_v4_1');
    assert.equal(rowCount, 5);
  });

  test('is finished by the next runner if the first one closes during its replay', async (context) => {
    const service = await serve(context, { bounds });
    const long = await Pushed.create(service);
    const { open } = service.objects;
    let openings = 0;
    service.objects.open = async (committed) => {
      openings += 1;
      if (openings > 1) await new Promise(() => undefined);
      return open(committed);
    };
    await long.push({ 'refs/heads/main': long.line(100) });
    await service.reads.caughtUp(service.append.last);
    await until(() => openings === 2);
    await service.runner.close();
    service.objects.open = open;
    const { runner, reads } = service.again();
    await runner.start();
    await until(async () => (await runner.parked()).length === 0);
    await reads.caughtUp(service.append.last);
    await long.check('main', reads);
  });
});
