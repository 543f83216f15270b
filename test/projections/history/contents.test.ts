/** The refs and commits of a repository in the history model, compared with the answers of a real git. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'vitest';
import { streamName } from '../../../core/kernel/envelope.ts';
import { type ObjectId, objectId } from '../../../core/kernel/ids.ts';
import { splitUpdates, updatesDigestText } from '../../../core/repository/wide-updates.ts';
import { git } from '../../support/git-process.ts';
import { isReadModelError, Pushed, serve } from '../../support/pushed-repository.ts';
import { digest, layer, until } from '../../support/read-models.ts';

describe('a repository', () => {
  test('shows branches in byte order, commits with all their fields, and pages at any offset', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service);
    await service.reads.caughtUp(service.append.last);
    assert.deepEqual(await service.reads.branches(repository.id), { revision: -1, branches: [] });
    assert.equal(await service.reads.defaultBranchCommits(repository.id, { offset: 0, limit: 10 }), null);
    const base = repository.line(300);
    const tip = repository.commit('Subject\n\nBody \u{1F600}\n', [base], 2_000_000);
    await repository.push({
      'refs/heads/main': tip,
      'refs/heads/a-b': base,
      'refs/heads/a/b': base,
      'refs/heads/Z': tip,
    });
    await service.reads.caughtUp(service.append.last);
    await repository.check();
    const page = await service.reads.defaultBranchCommits(repository.id, { offset: 0, limit: 1 });
    assert.deepEqual(page?.items, [
      {
        id: tip,
        message: 'Subject\n\nBody \u{1F600}\n',
        author: { name: 'A', email: 'a@example.org' },
        committer: { name: 'A', email: 'a@example.org' },
        ...{ authoredAt: 2_000_000, committedAt: 2_000_000, parents: [base] },
      },
    ]);
    assert.equal(page?.revision, 0);
    const order = repository.git('rev-list', tip).split('\n');
    const deep = await service.reads.defaultBranchCommits(repository.id, { offset: 290, limit: 50 });
    assert.deepEqual(
      deep?.items.map(({ id }) => id),
      order.slice(290),
    );
    const beyond = await service.reads.defaultBranchCommits(repository.id, { offset: 301, limit: 50 });
    assert.deepEqual([beyond?.items, beyond?.total], [[], 301]);
    assert.equal(service.objects.leases(), 0);
  });

  test('lists commits as git log does after pushes, merges, forced moves and deletions', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service);
    const base = repository.line(20);
    const show = async (): Promise<void> => {
      await service.reads.caughtUp(service.append.last);
      await repository.check();
    };
    await repository.push({ 'refs/heads/main': base });
    await show();
    const feature = repository.line(3, base, 1_000_005);
    await repository.push({ 'refs/heads/feature': feature });
    await show();
    const next = repository.commit('next', [base], 1_000_100);
    await repository.push({ 'refs/heads/main': next });
    await show();
    // The merge makes commits reachable that already have rows and are older than some of main's.
    const merge = repository.commit('merge', [next, feature], 1_000_200);
    await repository.push({ 'refs/heads/main': merge });
    await show();
    const walks = service.objects.walks();
    const plain = repository.commit('plain', [merge], 1_000_300);
    await repository.push({ 'refs/heads/main': plain });
    await show();
    assert.equal(service.objects.walks(), walks, 'an ordinary push walked the history');
    await repository.push({ 'refs/heads/main': repository.commit('other', [next], 1_000_250) });
    await show();
    await repository.push({ 'refs/heads/main': repository.line(5) });
    await show();
    await repository.push({ 'refs/heads/main': null, 'refs/heads/feature': null });
    await show();
    await repository.push({ 'refs/heads/main': merge });
    await show();
  });

  test('accepts another branch as default, and one that does not exist', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service, null);
    await repository.push({ 'refs/heads/master': repository.line(3), 'refs/heads/dev': repository.line(7, null, 500) });
    await service.reads.caughtUp(service.append.last);
    await repository.check('master');
    await repository.defaultBranch('dev');
    await service.reads.caughtUp(service.append.last);
    await repository.check('dev');
    await repository.defaultBranch('nowhere');
    await service.reads.caughtUp(service.append.last);
    await repository.check('nowhere');
    await repository.push({ 'refs/heads/nowhere': repository.line(2, null, 900) });
    await service.reads.caughtUp(service.append.last);
    await repository.check('nowhere');
  });

  test('accepts tags of every kind, notes, and texts that PostgreSQL cannot hold', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service);
    const tip = repository.line(2);
    const tree = objectId(repository.git('rev-parse', `${tip}^{tree}`));
    const tag = (of: ObjectId, type: string): ObjectId =>
      objectId(
        git(['hash-object', '-t', 'tag', '-w', '--stdin'], {
          cwd: repository.bare,
          input: `object ${of}\ntype ${type}\ntag t\ntagger A <a@example.org> 1 +0000\n\nmessage\n`,
        })
          .toString()
          .trimEnd(),
      );
    const raw = Buffer.concat([
      Buffer.from(
        `tree ${tree}\nauthor \xff\xfe <a@example.org> 1 +0000\ncommitter B <b@example.org> 2 +0000\n\nnul `,
        'latin1',
      ),
      Buffer.from([0, 0xed, 0xa0, 0x80, 0x5c]),
      Buffer.from('u0000 "end"\n'),
    ]);
    const odd = objectId(
      git(['hash-object', '-t', 'commit', '-w', '--literally', '--stdin'], { cwd: repository.bare, input: raw })
        .toString()
        .trimEnd(),
    );
    const tagged = repository.commit('only tagged', [odd], 3);
    await repository.push({
      'refs/heads/main': tip,
      'refs/heads/odd': odd,
      'refs/tags/annotated': tag(tagged, 'commit'),
      'refs/tags/tree': tag(tree, 'tree'),
      'refs/tags/light-tree': tree,
      'refs/notes/commits': tip,
    });
    await service.reads.caughtUp(service.append.last);
    await repository.check();
    const branches = await service.reads.branches(repository.id);
    const oddCommit = branches?.branches.find(({ name }) => name === 'odd')?.commit;
    assert.equal(oddCommit?.message, 'nul \uFFFD\uFFFD\uFFFD\uFFFD\\u0000 "end"\n');
    assert.equal(oddCommit?.author.name, '\uFFFD\uFFFD');
    assert.deepEqual(await service.runner.parked(), []);
  });

  test('accepts a wide push, whose updates are in a stream of parts', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service);
    const tip = repository.line(3);
    const names = Array.from({ length: 5_000 }, (_, index) => `refs/heads/${'x'.repeat(100)}/${index}`);
    const updates = repository.updates(Object.fromEntries([...names, 'refs/heads/main'].map((name) => [name, tip])));
    const stream = streamName('refUpdates', randomUUID());
    const parts = splitUpdates(updates);
    assert.ok(parts.length > 1);
    for (const { data } of parts) await service.append.append(stream, repository.account, 'RefUpdatesPart', data);
    await service.append.push(repository.account, repository.id, {
      parts: {
        ...{ stream, count: parts.length, updates: updates.length },
        sha256: digest.sha256(updatesDigestText(updates)),
      },
    });
    await service.reads.caughtUp(service.append.last);
    await repository.check();
    // Parts that do not match the digest in the event park that event's stream only.
    const other = await Pushed.create(service);
    const wrong = { stream, count: parts.length, updates: updates.length, sha256: '0'.repeat(64) };
    await service.append.push(other.account, other.id, { parts: wrong });
    await service.reads.caughtUp(service.append.last);
    await assert.rejects(service.reads.branches(other.id), isReadModelError('read-model-parked'));
    await repository.check();
  });

  test('loses all its rows when it is deleted', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service);
    await repository.push({ 'refs/heads/main': repository.line(10) });
    await service.append.deleteRepository(repository.account, repository.id, 'project');
    await service.reads.caughtUp(service.append.last);
    assert.equal(await service.reads.branches(repository.id), null);
    for (const table of ['repositories', 'refs', 'commits', 'order', 'layers']) {
      const { rowCount } = await service.pool.query(`SELECT FROM read_models.history_${table}_v4_1`);
      assert.equal(rowCount, 0, table);
    }
  });

  test('stays away when its layers expire after its deletion, the replaced and the current ones', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service);
    const [first, second] = [layer(10), layer(20)];
    await repository.push({ 'refs/heads/main': repository.line(2) }, { layer: first });
    const stream = streamName('repository', repository.id);
    const replaced = { id: first.id, size_bytes: first.size_bytes };
    await service.append.append(stream, repository.account, 'LayersCompacted', {
      ...{ revision: 0, added: [{ ...second, holds: 'merged' }], removed: [replaced], shrink_epoch: 1, clean: true },
    });
    await service.append.deleteRepository(repository.account, repository.id, 'project');
    const expiries = [
      { layers: [{ ...replaced, current: false }], compacted_at: 1, shrink_epoch: 1 },
      { layers: [{ id: second.id, size_bytes: 20, current: true }], compacted_at: null, shrink_epoch: 2 },
    ];
    for (const expiry of expiries) {
      await service.reads.caughtUp(service.append.last);
      await service.append.append(stream, repository.account, 'LayersExpired', { ...expiry, reason: 'retention' });
    }
    await service.reads.caughtUp(service.append.last);
    assert.deepEqual(await service.runner.parked(), []);
    for (const { differences } of await service.runner.verify('history')) assert.equal(differences, 0);
  });

  test('opens Git with the shrink epoch of its events and with the layers that remain', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service);
    const opened: (readonly [epoch: number, layers: readonly number[]])[] = [];
    service.objects.onOpen = ({ shrinkEpoch, layers }) => {
      opened.push([shrinkEpoch, [...layers].map(({ sizeBytes }) => sizeBytes)]);
    };
    const [first, second] = [layer(10), layer(20)];
    await repository.push({ 'refs/heads/main': repository.line(2) }, { layer: first });
    await repository.push({ 'refs/heads/next': repository.line(3) }, { layer: second });
    await service.reads.caughtUp(service.append.last);
    opened.length = 0;
    const compaction = {
      ...{ revision: 1, added: [{ ...layer(25), holds: 'merged' }], shrink_epoch: 1, clean: true },
      removed: [first, second].map(({ id, size_bytes }) => ({ id, size_bytes })),
    };
    const stream = streamName('repository', repository.id);
    await service.append.append(stream, repository.account, 'LayersCompacted', compaction);
    await repository.push({ 'refs/heads/main': repository.line(4) }, { layer: layer(5) });
    await service.reads.caughtUp(service.append.last);
    // A new runner has no cache: it knows only the stored rows.
    const again = service.again();
    await service.runner.close();
    await again.runner.start();
    await repository.push({ 'refs/heads/next': repository.line(5) }, { layer: layer(7) });
    await again.reads.caughtUp(service.append.last);
    await repository.check('main', again.reads);
    assert.deepEqual(opened.at(-1), [1, [25, 5, 7]]);
    assert.ok(opened.some(([epoch, layers]) => epoch === 1 && layers.length === 2));
  });

  test('has all its content again after it was restored', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service, 'trunk');
    await repository.push({ 'refs/heads/trunk': repository.line(10), 'refs/heads/gone': repository.line(2) });
    await repository.push({ 'refs/heads/gone': null, 'refs/heads/next': repository.line(12) });
    await service.append.deleteRepository(repository.account, repository.id, 'project');
    await service.reads.caughtUp(service.append.last);
    assert.equal(await service.reads.branches(repository.id), null);
    const back = { default_branch: null, size_bytes: 2_000, pushed_at: null };
    const restore = async (): Promise<void> => {
      const data = { repository_id: repository.id, name: 'again', description: null, storage_bucket_id: null };
      await service.append.append(streamName('account', repository.account), repository.account, 'RepositoryRestored', {
        ...{ ...data, default_branch: 'trunk', created_at: '2026-11-20T10:00:00.000Z' },
      });
      const stream = streamName('repository', repository.id);
      await service.append.append(stream, repository.account, 'RepositoryReopened', back);
    };
    await restore();
    await repository.push({ 'refs/heads/trunk': repository.line(11) });
    // It is parked while its stream is read from the start, and other streams continue.
    await until(async () => {
      await service.reads.caughtUp(service.append.last);
      return (await service.runner.parked()).length === 0;
    });
    await repository.check('trunk');
    // Deleted and restored in one batch.
    await service.append.deleteRepository(repository.account, repository.id, 'again');
    await restore();
    await until(async () => {
      await service.reads.caughtUp(service.append.last);
      return (await service.runner.parked()).length === 0;
    });
    await repository.check('trunk');
    for (const { differences } of await service.runner.verify('history')) assert.equal(differences, 0);
  });
});
