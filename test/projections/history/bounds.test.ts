/** The limits of memory and time for one repository, and what happens to repositories that exceed them. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { BranchRow } from '../../../core/ports/history.ts';
import { ObjectDatabaseError } from '../../../core/ports/object-database.ts';
import {
  BRANCHES_COMMITS_BYTES_MAX,
  BRANCHES_READ_AT_ONCE,
  readBranches,
} from '../../../projections/history/queries.ts';
import { createLiveReader, type LiveReader } from '../../../projections/live-reader.ts';
import { isReadModelError, Pushed, type Service, serve } from '../../support/pushed-repository.ts';
import { until, waitingStreams } from '../../support/read-models.ts';

/** The approximate memory of a small commit. */
const COMMIT_BYTES = 600;

async function nothingParked({ runner }: Service): Promise<boolean> {
  return (await runner.parked()).length === 0;
}

describe('the memory limit', () => {
  test('counts all repositories of a batch together; a batch that exceeds it is applied push by push', async (context) => {
    const bounds = { turnBounds: { memoryBytes: 10 * COMMIT_BYTES } };
    const service = await serve(context, { started: false, bounds });
    const repositories: Pushed[] = [];
    for (let made = 0; made < 6; made += 1) repositories.push(await Pushed.create(service));
    for (const one of repositories) await one.push({ 'refs/heads/main': one.line(3) });
    await service.runner.start();
    await service.reads.caughtUp(service.append.last);
    for (const one of repositories) await one.check();
    assert.ok(await nothingParked(service));
    const history = service.applied.filter(({ model, events }) => model === 'history' && events > 0);
    assert.ok(history.length >= 6, `${history.length} transactions`);
  });

  test('parks a repository that alone takes most of it, and replays it beside the others', async (context) => {
    const service = await serve(context, { bounds: { turnBounds: { memoryBytes: 10 * COMMIT_BYTES } } });
    const heavy = await Pushed.create(service);
    const other = await Pushed.create(service);
    await heavy.push({ 'refs/heads/main': heavy.line(40) });
    await other.push({ 'refs/heads/main': other.line(3) });
    await service.reads.caughtUp(service.append.last);
    await other.check();
    await until(() => nothingParked(service));
    await heavy.check();
    assert.ok(!service.log.lines.some(({ level }) => level === 'error'));
  });

  test('is kept by patient work, which writes piece by piece', async (context) => {
    const tight = { memoryBytes: 5 * COMMIT_BYTES };
    const service = await serve(context, { bounds: { turnBounds: tight, patientBounds: tight } });
    const heavy = await Pushed.create(service);
    const base = heavy.line(60);
    await heavy.push({ 'refs/heads/main': base });
    await service.reads.caughtUp(service.append.last);
    await until(() => nothingParked(service));
    await heavy.check();
    // A merge far back is ordered by stored dates and parents, or by a walk if those exceed the limit.
    const [old = base] = heavy.git('rev-list', '--skip=30', '-n1', base).split('\n') as (typeof base)[];
    const merge = heavy.commit('merge', [base, heavy.commit('side', [old], 900_000)], 2_000_000);
    await heavy.push({ 'refs/heads/main': merge });
    await service.reads.caughtUp(service.append.last);
    await until(() => nothingParked(service));
    await heavy.check();
  });
});

describe('a repository that exceeds a limit', () => {
  test('is parked until an operator requests a retry, and no other waits for it', async (context) => {
    const patientBounds = { orderedCommits: 20 };
    const service = await serve(context, { bounds: { turnBounds: { orderedCommits: 10 }, patientBounds } });
    const great = await Pushed.create(service);
    const other = await Pushed.create(service);
    await great.push({ 'refs/heads/main': great.line(30) });
    await other.push({ 'refs/heads/main': other.line(3) });
    await service.reads.caughtUp(service.append.last);
    await other.check();
    const isLeft = async (): Promise<boolean> => (await waitingStreams(service.runner)) === 1;
    await until(isLeft);
    const [parked] = await service.runner.parked();
    assert.deepEqual([parked?.stream, parked?.projection], [`repository-${great.id}`, 'history']);
    assert.match(parked?.error ?? '', /More than 20 commits to order/);
    await assert.rejects(service.reads.branches(great.id), isReadModelError('read-model-parked'));

    // A restart does not retry it, and a requested retry fails as before.
    await service.runner.close();
    const { runner, reads } = service.again();
    await runner.start();
    assert.equal(await runner.replay(`repository-${great.id}`), 1);
    await until(async () => ((await runner.parked())[0]?.attempts ?? 0) > (parked?.attempts ?? 0));
    await until(async () => (await waitingStreams(runner)) === 1);
    await other.push({ 'refs/heads/main': other.line(5, null, 77) });
    await reads.caughtUp(service.append.last);
    await other.check('main', reads);

    // With a higher limit the replay succeeds and loses nothing.
    patientBounds.orderedCommits = 30;
    await runner.replay(`repository-${great.id}`);
    await until(async () => (await runner.parked()).length === 0);
    await great.check('main', reads);
  });

  test('of time is replayed beside the others, and stays parked if that takes too long, too', async (context) => {
    const bounds = { turnBounds: { spanMs: 200 }, patientBounds: { spanMs: 400 } };
    const service = await serve(context, { bounds });
    const slow = await Pushed.create(service);
    const other = await Pushed.create(service);
    const { open } = service.objects;
    let isSlow = true;
    service.objects.open = (committed) =>
      isSlow && committed.repository === slow.id ? new Promise(() => undefined) : open(committed);
    await slow.push({ 'refs/heads/main': slow.line(3) });
    await other.push({ 'refs/heads/main': other.line(3) });
    await service.reads.caughtUp(service.append.last);
    await other.check();
    await until(async () => (await waitingStreams(service.runner)) === 1);
    assert.match((await service.runner.parked())[0]?.error ?? '', /take more than 400 ms to be read/);
    isSlow = false;
    await service.runner.replay(null);
    await until(() => nothingParked(service));
    await slow.check();
  });

  test('of object size is parked immediately', async (context) => {
    const service = await serve(context);
    const large = await Pushed.create(service);
    const other = await Pushed.create(service);
    let openings = 0;
    service.objects.onOpen = ({ repository }) => {
      if (repository !== large.id) return;
      openings += 1;
      throw new ObjectDatabaseError('object-too-large', 'commit 00 has 2 bytes, at most 1 are allowed');
    };
    await large.push({ 'refs/heads/main': large.line(3) });
    await other.push({ 'refs/heads/main': other.line(3) });
    await service.reads.caughtUp(service.append.last);
    await other.check();
    assert.equal(openings, 1);
    assert.equal(await waitingStreams(service.runner), 1);
    await assert.rejects(service.reads.branches(large.id), isReadModelError('read-model-parked'));
  });
});

test('a list of branches is read in parts of one revision', async (context) => {
  const service = await serve(context);
  const one = await Pushed.create(service);
  const [first, second] = [one.commit('first', [], 1_000_000), one.commit('second', [], 1_000_001)];
  const names = Array.from({ length: 2 * BRANCHES_READ_AT_ONCE }, (_, n) => `b${String(n).padStart(5, '0')}`);
  const pushAll = (tip: typeof first) => one.push(Object.fromEntries(names.map((name) => [`refs/heads/${name}`, tip])));
  await pushAll(first);
  await service.reads.caughtUp(service.append.last);
  // The attack on the list: a push is applied after its first part was read.
  const reader = createLiveReader(service.pool, service.models.history, service.runner);
  let reads = 0;
  const pushedMeanwhile: LiveReader = {
    read: async (...given) => {
      reads += 1;
      const answer = await reader.read(...given);
      if (reads === 1) {
        await pushAll(second);
        await service.reads.caughtUp(service.append.last);
      }
      return answer;
    },
  };
  const { answer } = (await readBranches(pushedMeanwhile, one.id)) ?? assert.fail('unknown');
  assert.deepEqual(
    answer.branches.map(({ name, commit }) => [name, commit.id]),
    names.map((name) => [name, second]),
  );
  assert.equal(answer.revision, 1);
  assert.equal(reads, 2 + 3);
});

test('a list of branches has a bounded size, however long the messages of its commits are', async (context) => {
  const service = await serve(context);
  const one = await Pushed.create(service);
  const short = one.commit('short', [], 1_000_000);
  const long = one.commit(`Long\n\n${'m'.repeat(60_000)}`, [short], 1_000_001);
  const few = Math.floor(BRANCHES_COMMITS_BYTES_MAX / 61_000);
  const push = (count: number) =>
    one.push(Object.fromEntries(Array.from({ length: count }, (_, n) => [`refs/heads/${n}`, n === 7 ? short : long])));
  const listed = async (): Promise<readonly BranchRow[]> => {
    await service.reads.caughtUp(service.append.last);
    return (await service.reads.branches(one.id))?.branches ?? [];
  };
  await push(few);
  assert.ok((await listed()).filter(({ commit }) => commit.message.length > 60_000).length === few - 1, 'whole');
  // Their messages alone are one too many.
  await push(Math.ceil(BRANCHES_COMMITS_BYTES_MAX / 60_000) + 1);
  assert.ok(
    (await listed()).every(({ commit }) => commit.message.length < 60_000),
    'cut',
  );
  await push(2 * few);
  const cut = await listed();
  assert.equal(cut.length, 2 * few);
  assert.ok(cut.reduce((sum, { commit }) => sum + commit.message.length, 0) <= BRANCHES_COMMITS_BYTES_MAX);
  assert.deepEqual(cut.find(({ name }) => name === '7')?.commit.message, 'short');
  const { commit } = cut.find(({ name }) => name === '8') ?? assert.fail('no branch');
  assert.match(commit.message, /^Long\n\nm{20000,}$/);
  assert.deepEqual([commit.id, commit.committedAt, commit.parents], [long, 1_000_001, []]);
});
