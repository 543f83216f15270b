/** Clones that are answered with a stored pack as it lies: what they hold is exactly what git would send. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type ObjectId, objectId } from '../../../../core/kernel/ids.ts';
import type { CommittedObjects, PlainClone, RefsView } from '../../../../core/ports/object-database.ts';
import { runGit, type TestRepository, temporaryFolder, testRepository } from '../../../support/git.ts';
import { loggingGit } from '../../../support/logging-git.ts';
import { once, type TestDatabase, testDatabase } from '../../../support/object-database.ts';

/** Enough objects for a pack that is worth counting. */
const FILES = 1_100;
const NEVER = new AbortController().signal;

describe('a clone of an imported repository', () => {
  const folder = temporaryFolder('whole-packs');
  const imported = testRepository(join(folder.path, 'imported'));
  let database: TestDatabase;

  beforeAll(async () => {
    database = await testDatabase();
    importHistory(imported);
  });
  afterAll(async () => {
    await database.close();
    folder.remove();
  });

  /** A copy of the imported repository, pushed whole; `junk` are objects in the pack that no ref reaches. */
  const push = async (junk: readonly ObjectId[] = []) => {
    const repository = copyOf(imported, folder.path);
    const ids = repository.line(['rev-list', '--objects', '--no-object-names', '--all']).split('\n').map(objectId);
    // In an order that git would not send them in.
    const pack = imported.packOf([...ids.toReversed(), ...junk]);
    const objects = await pushed(database.newObjects(), repository, pack);
    await database.database.settled();
    return { repository, objects, pack };
  };
  /** Pushes what is new on all branches, as a client does that knows the tips `known`. */
  const pushMore = async (objects: CommittedObjects, repository: TestRepository, known: readonly string[]) => {
    const pack = repository.pack(['--all', ...known.map((id) => `^${id}`)], { thin: true });
    return pushed(objects, repository, pack);
  };
  const pushed = async (objects: CommittedObjects, repository: TestRepository, pack: Buffer) => {
    const received = await database.receive(objects, pack);
    assert.ok(!('refused' in received));
    // A layer of an older version may hold what is left over, so it stays.
    await received.leavesOver(tipsOf(repository), [], NEVER);
    return database.commit(objects, received);
  };
  const clone = async (objects: CommittedObjects, asked: Asked) => {
    const reader = await database.database.open(objects);
    try {
      const { repository, protocol = 2, wants = tipsOf(repository), includeTag = false } = asked;
      const request = requestOf(protocol, wants, includeTag);
      const plain: PlainClone = { wants, includeTag };
      const options = { view: viewOf(repository), protocol, answerKey: asked.answerKey ?? null, clone: plain };
      const signal = asked.signal ?? new AbortController().signal;
      return Buffer.concat(await Array.fromAsync(reader.uploadPack({ ...options, request: once(request), signal })));
    } finally {
      reader.close();
    }
  };

  test('gets the pack that was pushed, byte for byte', async () => {
    const { repository, objects, pack } = await push();
    const answer = await clone(objects, { repository });
    assert.ok(packIn(answer).equals(pack));
    assert.deepEqual(objectsIn(folder.path, answer), reachedIn(repository));
  });

  test('gets what later pushes brought behind it, each object once, in every version of the protocol', async () => {
    const { repository, objects, pack } = await push();
    const before = tipsOf(repository);
    // The first pack has this blob, though none of its tips shows it.
    repository.commit({ 'file-1': 'once' });
    repository.commit({ new: 'new' }, { branch: 'topic', parents: [objectId(repository.line(['rev-parse', 'main']))] });
    repository.git(['tag', '-a', '-m', 'Two', 'v2', 'main']);
    const after = await pushMore(objects, repository, before);
    for (const protocol of [2, 1, 0] as const) {
      for (const answerKey of [null, `key ${protocol}`, `key ${protocol}`]) {
        const answer = await clone(after, { repository, protocol, answerKey });
        assert.deepEqual(objectsIn(folder.path, answer), reachedIn(repository), `version ${protocol}`);
        assert.ok(startsWithBody(answer, pack), `version ${protocol}`);
      }
    }
  });

  test('gets no object that its pack smuggled in beside the pushed history', async () => {
    const secret = imported.object('blob', 'a secret that no ref reaches');
    const { repository, objects, pack } = await push([secret]);
    assert.ok(objectsOfPack(folder.path, pack).includes(secret));
    const answer = await clone(objects, { repository });
    assert.deepEqual(objectsIn(folder.path, answer), reachedIn(repository));
  });

  test('gets nothing of a branch that was deleted or forced away since', async () => {
    const { repository, objects } = await push();
    const before = tipsOf(repository);
    const gone = repository.line(['rev-parse', 'other']);
    repository.git(['branch', '-D', 'other']);
    repository.commit({ x: 'y' });
    const after = await pushMore(objects, repository, before);
    const ids = objectsIn(folder.path, await clone(after, { repository }));
    assert.ok(!ids.includes(gone));
    assert.deepEqual(ids, reachedIn(repository));
  });

  test('gets no annotated tag that was deleted, though its commit is still reached', async () => {
    const { repository, objects } = await push();
    const before = tipsOf(repository);
    const tag = repository.line(['rev-parse', 'v1']);
    repository.git(['tag', '-d', 'v1']);
    repository.commit({ x: 'y' });
    const after = await pushMore(objects, repository, before);
    const ids = objectsIn(folder.path, await clone(after, { repository }));
    assert.ok(!ids.includes(tag));
    assert.deepEqual(ids, reachedIn(repository));
  });

  test('gets only what it asks for', async () => {
    const { repository, objects } = await push();
    const wants = [objectId(repository.line(['rev-parse', 'other']))];
    const answer = await clone(objects, { repository, wants });
    assert.deepEqual(objectsIn(folder.path, answer), reachedIn(repository, ['other']));
  });

  test('gets the annotated tags that lead to what it gets, when it asks for them', async () => {
    const { repository, objects } = await push();
    const before = tipsOf(repository);
    repository.git(['tag', '-a', '-m', 'Two', 'v2', 'main']);
    const after = await pushMore(objects, repository, before);
    const answer = await clone(after, { repository, wants: before, includeTag: true });
    assert.deepEqual(objectsIn(folder.path, answer), reachedIn(repository));
  });

  test('gets a whole answer when the newer objects are too many to keep in memory', async () => {
    const { repository, objects } = await push();
    const before = tipsOf(repository);
    repository.commit({ noise: randomBytes(5 * 1024 * 1024) });
    const after = await pushMore(objects, repository, before);
    const answer = await clone(after, { repository, answerKey: 'large' });
    assert.deepEqual(objectsIn(folder.path, answer), reachedIn(repository));
  });

  test('shares what is made for it with all that ask for the same, and survives that some leave', async () => {
    const { repository, objects } = await push();
    const before = tipsOf(repository);
    repository.commit({ x: 'y' });
    const after = await pushMore(objects, repository, before);
    const leaving = new AbortController();
    const herd = Array.from({ length: 12 }, (_, index) =>
      clone(after, { repository, answerKey: 'herd', ...(index % 3 === 0 ? { signal: leaving.signal } : {}) }),
    );
    const settled = Promise.allSettled(herd);
    leaving.abort(new Error('left'));
    for (const [index, result] of (await settled).entries()) {
      if (index % 3 === 0) continue;
      assert.ok(result.status === 'fulfilled');
      assert.deepEqual(objectsIn(folder.path, result.value), reachedIn(repository));
    }
  });

  test('gets a whole answer after somebody deleted the cache', async () => {
    const { repository, objects } = await push();
    rmSync(join(database.directory, 'repositories', objects.repository), { recursive: true });
    const answer = await clone(objects, { repository });
    assert.deepEqual(objectsIn(folder.path, answer), reachedIn(repository));
  });
});

test('What an import holds is counted once, by its push', async () => {
  const folder = temporaryFolder('counted');
  const log = join(folder.path, 'commands');
  const repository = testRepository(join(folder.path, 'repository'));
  importHistory(repository);
  const database = await testDatabase({ gitPath: loggingGit(log) });
  const counts = () => readFileSync(log, 'utf8').match(/^(rev-list --objects --count|pack-objects)/gm);
  try {
    const objects = database.newObjects();
    const received = await database.receive(objects, repository.pack(['--all']));
    assert.ok(!('refused' in received));
    assert.equal(await received.leavesOver(tipsOf(repository), [], NEVER), false);
    const reader = await database.database.open(await database.commit(objects, received));
    const wants = tipsOf(repository);
    const options = { view: viewOf(repository), protocol: 2, answerKey: null, signal: NEVER } as const;
    const request = once(requestOf(2, wants, false));
    await Array.fromAsync(reader.uploadPack({ ...options, request, clone: { wants, includeTag: false } }));
    reader.close();
    await database.database.settled();
    assert.deepEqual(counts(), ['rev-list --objects --count']);
    assert.deepEqual(database.warnings, []);
  } finally {
    await database.close();
    folder.remove();
  }
});

interface Asked {
  readonly repository: TestRepository;
  readonly protocol?: 0 | 1 | 2;
  readonly wants?: readonly ObjectId[];
  readonly includeTag?: boolean;
  readonly answerKey?: string | null;
  readonly signal?: AbortSignal;
}

/** A first commit of many files, a few more, a second branch and an annotated tag. */
function importHistory(repository: TestRepository): void {
  const date = 'committer Ada <ada@example.org> 1700000000 +0000';
  const files = Array.from({ length: FILES }, (_, index) => {
    const content = `content ${index}`;
    return `M 100644 inline file-${index}\ndata ${content.length}\n${content}\n`;
  });
  const stream = `commit refs/heads/main\n${date}\ndata 5\nFirst\n${files.join('')}\ndone\n`;
  repository.git(['fast-import', '--quiet', '--done'], { input: stream });
  repository.git(['branch', 'other', 'main']);
  repository.commit({ 'file-1': 'once' });
  repository.commit({ 'file-1': 'content 1' });
  repository.commit({ only: 'on the other' }, { branch: 'other' });
  repository.git(['tag', '-a', '-m', 'One', 'v1', 'main']);
}

function copyOf(repository: TestRepository, parent: string): TestRepository {
  const copy = testRepository(join(parent, `copy-${randomBytes(6).toString('hex')}`));
  copy.git(['fetch', '--quiet', repository.path, '+refs/*:refs/*', '--update-head-ok']);
  return copy;
}

function tipsOf(repository: TestRepository): readonly ObjectId[] {
  return repository.line(['for-each-ref', '--format=%(objectname)']).split('\n').map(objectId);
}

function reachedIn(repository: TestRepository, revisions: readonly string[] = ['--all']): readonly string[] {
  return repository
    .line(['rev-list', '--objects', '--no-object-names', ...revisions])
    .split('\n')
    .sort();
}

function viewOf(repository: TestRepository): RefsView {
  const listed = repository.line(['for-each-ref', '--format=%(refname) %(objectname) %(*objectname)']).split('\n');
  const refs = listed.map((line) => {
    const [name = '', id = '', peeled = ''] = line.split(' ');
    return { name, id: objectId(id), peeled: peeled === '' ? null : objectId(peeled) };
  });
  return { key: refs.map(({ id }) => id).join(' '), head: 'refs/heads/main', runs: [refs] };
}

function requestOf(protocol: 0 | 1 | 2, wants: readonly ObjectId[], includeTag: boolean): Buffer {
  const tags = includeTag ? ['include-tag'] : [];
  const lines = wants.map((id) => `want ${id}`);
  if (protocol === 2) return packets('command=fetch', null, 'ofs-delta', ...tags, ...lines, 'done', undefined);
  const [first = '', ...others] = lines;
  return packets(`${[first, 'side-band-64k', 'ofs-delta', ...tags].join(' ')}`, ...others, undefined, 'done\n');
}

/** The pkt-lines of these texts; null is a delimiter packet, undefined a flush packet. */
function packets(...texts: (string | null | undefined)[]): Buffer {
  const framed = texts.map((text) => {
    if (text === undefined) return '0000';
    if (text === null) return '0001';
    return `${(text.length + 4).toString(16).padStart(4, '0')}${text}`;
  });
  return Buffer.from(framed.join(''));
}

/** The pack in an answer, which ends with a flush. */
function packIn(answer: Buffer): Buffer {
  const bands: Buffer[] = [];
  let at = 0;
  for (; at < answer.length; ) {
    const length = Number.parseInt(answer.toString('latin1', at, at + 4), 16);
    if (answer[at + 4] === 1) bands.push(answer.subarray(at + 5, at + length));
    at += Math.max(length, 4);
  }
  assert.equal(answer.toString('latin1', answer.length - 4), '0000');
  return Buffer.concat(bands);
}

function startsWithBody(answer: Buffer, pack: Buffer): boolean {
  const body = pack.subarray(12, pack.length - 20);
  return packIn(answer)
    .subarray(12, 12 + body.length)
    .equals(body);
}

function objectsIn(folder: string, answer: Buffer): readonly string[] {
  return objectsOfPack(folder, packIn(answer));
}

/** The ids of all objects of a pack. With --strict git refuses a pack that holds an object twice. */
function objectsOfPack(folder: string, pack: Buffer): readonly string[] {
  const repository = join(folder, `clone-${randomBytes(6).toString('hex')}`);
  runGit(['init', '-q', repository]);
  runGit(['index-pack', '--stdin', '--strict'], { cwd: repository, input: pack });
  const listed = runGit(['cat-file', '--batch-all-objects', '--batch-check=%(objectname)'], { cwd: repository });
  return listed.toString().trim().split('\n').sort();
}
