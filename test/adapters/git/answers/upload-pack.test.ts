/** Fetches through the object database, compared with git's own upload-pack on a clone. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type ObjectId, objectId } from '../../../../core/kernel/ids.ts';
import type { CommittedObjects, ObjectReader, RefsView } from '../../../../core/ports/object-database.ts';
import { runGit, type TestRepository, temporaryFolder, testRepository } from '../../../support/git.ts';
import { once, type TestDatabase, testDatabase } from '../../../support/object-database.ts';
import { eventually } from '../../../support/processes.ts';

describe('upload-pack', () => {
  const folder = temporaryFolder('upload');
  const repository = testRepository(join(folder.path, 'repository'));
  let database: TestDatabase;
  let objects: CommittedObjects;
  let reader: ObjectReader;
  let first: ObjectId;
  let tip: ObjectId;

  beforeAll(async () => {
    database = await testDatabase();
    objects = database.newObjects();
    first = repository.commit({ a: '1', 'noise.bin': randomBytes(2_000_000) });
    objects = await database.push(objects, repository.pack([first]));
    for (let index = 0; index < 5; index += 1) repository.commit({ [`b/${index}`]: `${index}` });
    tip = objectId(repository.line(['rev-parse', 'main']));
    repository.git(['tag', '-a', '-m', 'One', 'v1', 'main']);
    repository.git(['branch', 'old', first]);
    objects = await database.push(objects, repository.pack(['--all', `^${first}`]));
    reader = await database.database.open(objects);
  });
  afterAll(async () => {
    reader.close();
    await database.close();
    folder.remove();
  });

  const answer = async (protocol: 0 | 1 | 2, request: Buffer, view = viewOf(repository)) => {
    const signal = new AbortController().signal;
    return Buffer.concat(
      await Array.fromAsync(reader.uploadPack({ view, protocol, request: once(request), answerKey: null, signal })),
    );
  };
  const gits = (protocol: number, request: Buffer) =>
    runGit(['-c', 'uploadpack.allowFilter=true', 'upload-pack', '--stateless-rpc', repository.path], {
      input: request,
      env: { GIT_PROTOCOL: `version=${protocol}` },
    });

  test('sends a clone the same objects as git does, in every version of the protocol', async () => {
    const tag = repository.line(['rev-parse', 'v1']);
    const v2 = packets('command=fetch', null, 'ofs-delta', `want ${tip}`, `want ${tag}`, 'done', undefined);
    const v0 = packets(`want ${tip} side-band-64k ofs-delta`, `want ${tag}`, undefined, 'done\n');
    for (const [protocol, request] of [
      [2, v2],
      [0, v0],
      [1, v0],
    ] as const) {
      const ours = objectsIn(folder.path, await answer(protocol, request));
      assert.deepEqual(ours, objectsIn(folder.path, gits(protocol, request)), `version ${protocol}`);
      assert.ok(ours.length > 15);
    }
  });

  test('sends only new objects to a fetch, the depth to a shallow clone, and no blobs to a filtered one', async () => {
    const requests = {
      fetch: packets('command=fetch', null, `want ${tip}`, `have ${first}`, 'done', undefined),
      shallow: packets('command=fetch', null, `want ${tip}`, 'deepen 1', 'done', undefined),
      filtered: packets('command=fetch', null, `want ${tip}`, 'filter blob:none', 'done', undefined),
      tree: packets('command=fetch', null, `want ${tip}`, 'filter tree:1', 'done', undefined),
    };
    const sizes = new Set<number>();
    for (const [name, request] of Object.entries(requests)) {
      const ours = objectsIn(folder.path, await answer(2, request));
      assert.deepEqual(ours, objectsIn(folder.path, gits(2, request)), name);
      sizes.add(ours.length);
    }
    assert.equal(sizes.size, 4);
  });

  test('has an answer that is read again in memory, until its repository is dropped', async () => {
    const pushed = await database.push(database.newObjects(), repository.pack(['--all']));
    const request = packets('command=fetch', null, `want ${tip}`, 'deepen 1', 'done', undefined);
    const { signal } = new AbortController();
    const own = await database.database.open(pushed);
    const send = async () => {
      const options = { view: viewOf(repository), protocol: 2, answerKey: 'shallow', signal } as const;
      return Buffer.concat(await Array.fromAsync(own.uploadPack({ ...options, request: once(request) })));
    };
    const held = () => database.database.heldAnswer(pushed.repository, 'shallow');
    try {
      const made = await send();
      assert.equal(held(), null);
      assert.ok((await send()).equals(made));
      const first = held();
      assert.ok(Buffer.from(first?.bytes ?? []).equals(made));
      assert.equal(database.database.heldAnswer(objects.repository, 'shallow'), null, 'of this repository alone');
      assert.equal(database.database.answerFigures().memoryBytes, made.length);
      await database.database.drop(pushed.repository);
      assert.equal(held(), null);
      first?.release();
      assert.equal(database.database.answerFigures().memoryBytes, 0);
    } finally {
      own.close();
    }
  });

  test('lists the refs of a view as git lists those of the repository', async () => {
    const request = packets('command=ls-refs', null, 'peel', 'symrefs', undefined);
    assert.deepEqual(await answer(2, request), gits(2, request));
  });

  test("passes on git's error for a bad request, and the error of a request body that fails", async () => {
    const unknown = packets('command=fetch', null, `want ${'6'.repeat(40)}`, 'done', undefined);
    assert.match(String(await answer(2, unknown)), /^[0-9a-f]{4}ERR upload-pack: not our ref/);
    const sparse = packets('command=fetch', null, `want ${tip}`, 'filter sparse:oid=main:a', 'done', undefined);
    assert.match(String(await answer(2, sparse)), /^[0-9a-f]{4}ERR filter 'sparse:oid' not supported/);
    await assert.rejects(answer(2, Buffer.from('zzzz')), /git upload-pack ended with/);
    const failure = new Error('the client went away');
    async function* failing() {
      yield packets('command=fetch');
      throw failure;
    }
    const signal = new AbortController().signal;
    const broken = reader.uploadPack({
      view: viewOf(repository),
      protocol: 2,
      request: failing(),
      answerKey: null,
      signal,
    });
    await assert.rejects(Array.fromAsync(broken), failure);
  });

  test('keeps a few views, and makes others again', async () => {
    const request = packets('command=ls-refs', null, undefined);
    const view = viewOf(repository);
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) => answer(2, request, { ...view, key: `key ${index % 6}` })),
    );
    assert.ok(answers.every((given) => given.equals(answers[0] ?? Buffer.alloc(0))));
    await eventually('at most four views are left', () => viewsIn(database.directory) <= 4);
  });

  test('kills git and its children when the client leaves early, or its request is cancelled', async () => {
    const request = packets('command=fetch', null, `want ${tip}`, 'done', undefined);
    const abort = new AbortController();
    const options = { view: viewOf(repository), protocol: 2, request: once(request), answerKey: null } as const;
    for await (const _ of reader.uploadPack({ ...options, signal: abort.signal })) {
      assert.ok(processesIn(database.directory) > 0);
      break;
    }
    await eventually('no process is left', () => processesIn(database.directory) === 0);
    const cancelled = async () => {
      for await (const _ of reader.uploadPack({
        ...options,
        request: once(request),
        answerKey: null,
        signal: abort.signal,
      })) {
        abort.abort(new Error('cancelled'));
      }
    };
    await assert.rejects(cancelled(), /cancelled/);
    await eventually('no process is left', () => processesIn(database.directory) === 0);
  });
});

function viewOf(repository: TestRepository): RefsView {
  const listed = repository.line(['for-each-ref', '--format=%(refname) %(objectname) %(*objectname)']).split('\n');
  const refs = listed.map((line) => {
    const [name = '', id = '', peeled = ''] = line.split(' ');
    return { name, id: objectId(id), peeled: peeled === '' ? null : objectId(peeled) };
  });
  return { key: 'all', head: 'refs/heads/main', runs: [refs] };
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

/** The ids of all objects of the pack in an answer. The pack must be complete. */
function objectsIn(folder: string, answer: Buffer): readonly string[] {
  const bands: Buffer[] = [];
  for (let at = 0; at < answer.length; ) {
    const length = Number.parseInt(answer.toString('latin1', at, at + 4), 16);
    if (answer[at + 4] === 1) bands.push(answer.subarray(at + 5, at + length));
    at += Math.max(length, 4);
  }
  const repository = testRepository(join(folder, `clone-${randomBytes(6).toString('hex')}`));
  repository.git(['index-pack', '--stdin'], { input: Buffer.concat(bands) });
  return repository.line(['cat-file', '--batch-all-objects', '--batch-check=%(objectname)']).split('\n').sort();
}

function viewsIn(directory: string): number {
  return (
    execFileSync('find', [directory, '-path', '*/views/*', '-name', 'packed-refs'], { encoding: 'utf8' }).split('\n')
      .length - 1
  );
}

/** Processes that work in a folder: found by their arguments, and on Linux by their working directory, too. */
function processesIn(directory: string): number {
  const listed = execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).split('\n');
  const named = listed.filter((line) => line.includes(`upload-pack`) && line.includes(directory)).length;
  const places = process.platform === 'linux' ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : [];
  const there = places.filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`).startsWith(directory);
    } catch {
      return false;
    }
  });
  return named + there.length;
}
