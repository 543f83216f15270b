/** Views: folders that show a repository with one set of refs. */
import assert from 'node:assert/strict';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { makeCacheFolder } from '../../../../adapters/git/cache/cache-folder.ts';
import { createViewFolders } from '../../../../adapters/git/cache/view-folders.ts';
import { objectId, type RepositoryId, uuid } from '../../../../core/kernel/ids.ts';
import type { RefsView } from '../../../../core/ports/object-database.ts';
import { temporaryFolder } from '../../../support/git.ts';
import { eventually } from '../../../support/processes.ts';
import { mountSmallDisk } from '../../../support/small-disk.ts';

const a = objectId('a'.repeat(40));
const b = objectId('b'.repeat(40));

const neverFull = async (): Promise<void> => assert.fail('The disk is not full');
const newViews = (freeDisk = neverFull) => createViewFolders({ freeDisk, onError: assert.ifError });

describe('a view', () => {
  const folder = temporaryFolder('views');
  afterAll(() => folder.remove());
  const repository = uuid<RepositoryId>('01890000-0000-7000-8000-000000000000');
  const viewOf = (key: string): RefsView => {
    const runs = [[{ name: 'refs/heads/main', id: a, peeled: null }], [{ name: 'refs/tags/v1', id: b, peeled: a }]];
    return { key, head: 'refs/heads/main', runs };
  };

  test('is a bare repository of packed refs', async () => {
    const cached = await makeCacheFolder(folder.path, repository, 0);
    const view = await newViews().acquire(cached, viewOf('one'));
    const packed = `# pack-refs with: peeled fully-peeled sorted \n${a} refs/heads/main\n${b} refs/tags/v1\n^${a}\n`;
    assert.equal(await readFile(join(view.path, 'packed-refs'), 'utf8'), packed);
    assert.equal(await readFile(join(view.path, 'HEAD'), 'utf8'), 'ref: refs/heads/main\n');
    assert.deepEqual(await readdir(join(view.path, 'refs')), []);
    assert.deepEqual(await readdir(join(view.path, 'objects')), ['pack']);
  });

  test('on a full disk is made once space was freed', async (context) => {
    const disk = mountSmallDisk(1024 * 1024);
    if ('skip' in disk) return context.skip(disk.skip);
    context.onTestFinished(() => disk.remove());
    const cached = await makeCacheFolder(disk.path, repository, 0);
    const answers = join(disk.path, 'answers');
    await assert.rejects(writeFile(answers, Buffer.alloc(2 * 1024 * 1024)), /ENOSPC/);
    const view = await newViews(() => rm(answers)).acquire(cached, viewOf('one'));
    assert.match(await readFile(join(view.path, 'packed-refs'), 'utf8'), /main/);
  });

  test('is made once for a key, and kept while it is leased, however many others are made', async () => {
    const cached = await makeCacheFolder(folder.path, repository, 1);
    const views = newViews();
    const leased = await Promise.all(['x', 'x', 'x'].map((key) => views.acquire(cached, viewOf(key))));
    assert.equal(new Set(leased.map(({ path }) => path)).size, 1);
    for (let index = 0; index < 10; index += 1) (await views.acquire(cached, viewOf(`other ${index}`))).release();
    const left = () => readdir(join(cached.path, 'views'));
    await eventually('four are left', async () => (await left()).length === 4);
    assert.equal(await readFile(join(leased[0]?.path ?? '', 'HEAD'), 'utf8'), 'ref: refs/heads/main\n');
    for (const view of leased) view.release();
    for (let index = 10; index < 15; index += 1) (await views.acquire(cached, viewOf(`other ${index}`))).release();
    await eventually('it is removed', async () => !(await left()).some((name) => leased[0]?.path.endsWith(name)));
  });
});
