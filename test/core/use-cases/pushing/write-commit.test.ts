/** Commits over the API, with the real git: what others push in between, what has no name, and who waits for memory. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { refName } from '../../../../core/git/ref-name.ts';
import { encodeUtf8 } from '../../../../core/git/utf8.ts';
import { readEvent } from '../../../../core/kernel/decider.ts';
import { createFairSlots, type FairSlots } from '../../../../core/kernel/fair-slots.ts';
import { type ObjectId, uuid, ZERO_OBJECT_ID } from '../../../../core/kernel/ids.ts';
import type { NewObjects } from '../../../../core/ports/new-objects.ts';
import { repositoryEventKinds } from '../../../../core/repository/events.ts';
import type { CommitFault, WantedChange, WantedCommit } from '../../../../core/use-cases/pushing/decide-commit.ts';
import { type PushKey, REDECISIONS_MAX } from '../../../../core/use-cases/pushing/push-refs.ts';
import { readWritten, type WriteCommitContext, writeCommit } from '../../../../core/use-cases/pushing/write-commit.ts';
import { committedObjects } from '../../../../core/use-cases/reading/committed-objects.ts';
import type { Files } from '../../../support/git.ts';
import { type GitReading, startGitReading } from '../../../support/git-reading.ts';
import { layersIn } from '../../../support/layers-in.ts';
import { CAUSE } from '../../../support/node.ts';
import { once as chunks } from '../../../support/object-database.ts';

const MAIN = 'refs/heads/main';
const NEWEST = { direction: 'backwards', limit: 1 } as const;
const AUTHOR = { name: 'Grace', email: 'grace@example.org', seconds: 1_800_000_000, offsetMinutes: 0 };

const at = (path: string) => ({ path: encodeUtf8(path), expected: 'any' }) as const;
const put = (path: string, text: string): WantedChange => {
  return { ...at(path), action: 'put', mode: null, content: encodeUtf8(text) };
};
const remove = (path: string): WantedChange => ({ ...at(path), action: 'delete' });
const move = (path: string, to: string): WantedChange => ({ ...at(path), action: 'move', to: encodeUtf8(to) });

describe('A commit over the API', () => {
  let reading: GitReading;
  let head: ObjectId;
  /** One turn for all that takes much memory. */
  let turns: FairSlots;

  beforeEach(async () => {
    reading = await startGitReading();
    head = reading.git.commit({ a: 'a\n', 'folder/b': 'b\n', c: 'c\n' });
    await reading.push({ [MAIN]: head });
    turns = createFairSlots({ slots: 1, slotsPerKey: 1 });
  });
  afterEach(() => reading.close());

  const nothing = async (): Promise<void> => undefined;

  /** `beforeAppend` runs whenever the objects are stored, and the event is not. */
  async function write(wanted: Partial<WantedCommit>, beforeAppend = nothing, parts: Partial<WriteCommitContext> = {}) {
    const { node, database, account } = reading;
    const context: WriteCommitContext = {
      ...node,
      layers: layersIn(database.layers),
      newObjects: database.database.newObjects,
      largeListings: turns,
      usage: { usageOf: async () => ({ storageBytes: 0, transferBytes: 0, ingressBytes: 0 }) },
      onLayer: () => undefined,
      failpoint: async (point) => {
        if (point === 'push-layer-stored') await beforeAppend();
      },
      ...parts,
    };
    const origin = { account, cause: CAUSE, guarding: async () => ({ guards: [] }), door: 'api' as const };
    return writeCommit(context, origin, {
      ...{ repository: await reading.current(), branch: 'main', expected: 'any', start: null, message: 'A change\n' },
      ...{ author: AUTHOR, committer: AUTHOR, changes: [put('new', 'new\n')], allowEmpty: false, key: null },
      signal: new AbortController().signal,
      ...wanted,
    });
  }

  async function written(...args: Parameters<typeof write>) {
    const outcome = await write(...args);
    assert.ok('commit' in outcome, JSON.stringify(outcome));
    return outcome;
  }

  async function refused(...args: Parameters<typeof write>): Promise<CommitFault> {
    const outcome = await write(...args);
    assert.ok('fault' in outcome, JSON.stringify(outcome));
    return outcome.fault;
  }

  /** Does it the first time, and nothing from then on. */
  function once(act: () => Promise<unknown>): () => Promise<void> {
    let done = false;
    return async () => {
      if (done) return;
      done = true;
      await act();
    };
  }

  /** Another commits these files. */
  function rival(files: Files): () => Promise<void> {
    return once(() => reading.push({ [MAIN]: reading.git.commit(files) }));
  }

  async function tip(): Promise<ObjectId | undefined> {
    return (await reading.current()).entity.state.refs.get(refName(MAIN))?.id;
  }

  const theirs = (what: string) => reading.git.line(['rev-parse', what]);
  const blobOf = (text: string) => reading.git.object('blob', text);

  test('with any head is applied to the head that another pushed in between', async () => {
    const { before, after, commit, event } = await written({}, rival({ other: 'other\n' }));
    assert.deepEqual([before, commit.parents], [theirs('main'), [theirs('main')]]);
    assert.equal(await tip(), after);
    const { stream } = (await reading.current()).entity;
    const [pushed] = await reading.node.events.readStream(stream, NEWEST);
    assert.deepEqual([pushed?.id, pushed?.data['door']], [event, 'api']);
  });

  test('with any head changes nothing that another wrote to its paths in between', async () => {
    const cases: readonly (readonly [WantedChange, Files, string | null])[] = [
      [put('a', 'mine\n'), { a: 'theirs\n' }, 'theirs\n'],
      [put('new', 'mine\n'), { new: 'theirs\n' }, 'theirs\n'],
      [put('a', 'mine\n'), { a: null }, null],
      [remove('c'), { c: 'theirs\n' }, 'theirs\n'],
      [remove('c'), { c: null }, null],
      [move('c', 'd'), { c: 'theirs\n' }, 'theirs\n'],
      [move('c', 'd'), { d: 'theirs\n' }, 'theirs\n'],
    ];
    for (const [change, files, found] of cases) {
      await reading.push({ [MAIN]: reading.git.commit({}, { parents: [head] }) });
      const fault = await refused({ changes: [put('first', ''), change] }, rival(files));
      assert.ok(fault.at === 'change', JSON.stringify(fault));
      assert.deepEqual(
        [fault.code, fault.index, fault.found],
        ['blob-moved', 1, found === null ? null : blobOf(found)],
      );
      assert.equal(await tip(), theirs('main'));
    }
  });

  test('with a key is not decided on what another request with the key has written', async () => {
    const positions: bigint[] = [];
    const key: PushKey = {
      ...{ id: uuid('0190f3e2-7c1a-5b4e-9a35-0000000000aa'), requestDigest: 'e'.repeat(64) },
      isUsed: async (position) => positions.push(position) === 4,
    };
    const outcome = await write({ changes: [put('a', 'mine\n')], key }, rival({ a: 'theirs\n' }));
    assert.deepEqual(outcome, { refused: { code: 'key-in-use' } });
    const [first, , late] = positions;
    assert.deepEqual(positions, [first, first, late, late], 'of the decision and its push, before and after the race');
    assert.equal(await tip(), theirs('main'));
  });

  test('is read from its event as it was answered, until its objects have left storage', async () => {
    for (const branch of ['main', 'new']) {
      const { event, ...answered } = await written({ branch });
      const repository = await reading.current();
      const [recorded] = await reading.node.events.readStream(repository.entity.stream, NEWEST);
      assert.ok(recorded !== undefined && recorded.id === event);
      const { type, data } = readEvent(repositoryEventKinds, recorded);
      assert.ok(type === 'RefsUpdated');
      const read = (of: typeof data) =>
        readWritten({ objects: reading.database.database }, repository, { event, data: of });
      assert.deepEqual(await read(data), { ...answered, event });
      const gone = data.updates.map((update) => ({ ...update, after: 'f'.repeat(40) }));
      assert.equal(await read({ ...data, updates: gone }), null);
    }
  });

  test('with any head deletes and moves a folder only as it was, and tells what it is', async () => {
    for (const change of [remove('folder'), move('folder', 'elsewhere')]) {
      const fault = await refused({ changes: [change] }, rival({ 'folder/b': `${change.action}\n` }));
      const found = theirs('main:folder');
      assert.deepEqual(fault, { at: 'change', code: 'blob-moved', index: 0, field: 'path', found });
    }
  });

  test('with any head is judged by what it expects at a path, where it says so', async () => {
    const changes = [{ ...put('a', 'mine\n'), expected: blobOf('a\n') }];
    const fault = await refused({ changes }, rival({ a: 'theirs\n' }));
    assert.ok(fault.at === 'change');
    assert.deepEqual([fault.code, fault.found], ['blob-moved', blobOf('theirs\n')]);
    const again = [{ ...put('a', 'mine\n'), expected: blobOf('theirs\n') }];
    const { before } = await written({ changes: again }, rival({ other: 'other\n' }));
    assert.equal(before, theirs('main'));
  });

  test('with the head that its writer saw is refused where that moved in between', async () => {
    const fault = await refused({ expected: head }, rival({ other: 'other\n' }));
    assert.deepEqual(fault, {
      at: 'branch',
      fault: { ref: MAIN, code: 'ref-moved', detail: null, head: theirs('main') },
    });
    const begun = once(() => reading.push({ 'refs/heads/begun': head }));
    const exists = await refused({ branch: 'begun', expected: null }, begun);
    assert.ok(exists.at === 'branch');
    assert.deepEqual([exists.fault.code, exists.fault.head], ['ref-exists', head]);
  });

  test('with any head begins a branch that another deleted in between, and none that another began', async () => {
    const { git } = reading;
    const begun = once(() => reading.push({ 'refs/heads/late': head }));
    const fault = await refused({ branch: 'late', start: 'main' }, begun);
    assert.deepEqual(fault, { at: 'start', code: 'start-of-existing-branch' });
    await reading.push({ 'refs/heads/gone': git.commit({ only: 'here\n' }, { branch: 'gone', parents: [] }) });
    const deleted = once(() => reading.push({ 'refs/heads/gone': null }));
    const { before, commit } = await written({ branch: 'gone' }, deleted);
    assert.deepEqual([before, commit.parents], [null, []]);
  });

  // The story: a form shows a branch, and somebody deletes the branch before the form is saved.
  test('with a branch that its writer saw and any head is refused where another deleted the branch in between', async () => {
    const gone = 'refs/heads/gone';
    const wanted = { branch: 'gone', expected: 'any-head' } as const;
    const missing = { at: 'branch', fault: { ref: gone, code: 'ref-missing', detail: null, head: ZERO_OBJECT_ID } };
    await reading.push({ [gone]: head });
    const deleted = once(() => reading.push({ [gone]: null }));
    assert.deepEqual(await refused(wanted, deleted), missing);
    assert.deepEqual(await refused(wanted), missing, 'which is also refused before anything is stored');
    const { refs } = (await reading.current()).entity.state;
    assert.equal(refs.get(refName(gone)), undefined);
    const { before } = await written({ expected: 'any-head' }, rival({ other: 'other\n' }));
    assert.equal(before, theirs('main'));
  });

  test(`is decided again ${REDECISIONS_MAX} times, and not once more`, async () => {
    let pushes = 0;
    const always = async () => {
      pushes += 1;
      await reading.push({ [MAIN]: reading.git.commit({ other: `${pushes}\n` }) });
    };
    assert.deepEqual(await write({}, always), { refused: { code: 'refs-moved-too-often', waitSeconds: 1 } });
    assert.equal(pushes, REDECISIONS_MAX + 1);
  });

  /** A content that waits on the disk until it is discarded. */
  async function onDisk(bytes: Uint8Array) {
    const { database, account } = reading;
    const { signal } = new AbortController();
    const held = database.database.newContents.hold({ account, bytesMax: Number.POSITIVE_INFINITY, signal });
    const content = await held.add(chunks(bytes));
    if ('refused' in content) assert.fail(content.refused);
    return { content, discard: () => held.remove() };
  }

  test('has contents that wait on the disk, also where it is decided again', async () => {
    const { database } = reading;
    const large = randomBytes(200_000);
    const { content, discard } = await onDisk(large);
    const changes = [{ ...at('large'), action: 'put', mode: '100755', content } as const, put('small', 'small\n')];
    const { commit } = await written({ changes }, rival({ other: 'other\n' }));
    await discard();
    const repository = await reading.current();
    const reader = await database.database.open(committedObjects(repository, repository.entity));
    try {
      assert.deepEqual(Buffer.concat(await Array.fromAsync(reader.blob(content.id))), large);
      const tree = (await reader.commit(commit.id))?.tree ?? assert.fail('There is no such commit');
      const entry = await reader.entry(tree, encodeUtf8('large'));
      assert.deepEqual([entry?.mode, entry?.id], ['100755', content.id]);
    } finally {
      reader.close();
    }
  });

  test('is refused where one of its objects has no name', async () => {
    const real = reading.database.database.newObjects;
    for (const [type, where, code] of [
      ['blob', 'change', 'content-refused'],
      ['tree', 'objects', 'objects-refused'],
      ['commit', 'objects', 'objects-refused'],
    ] as const) {
      const newObjects: NewObjects = { ...real, name: (object) => (object.type === type ? null : real.name(object)) };
      const fault = await refused({}, nothing, { newObjects });
      assert.ok(fault.at !== 'branch');
      assert.deepEqual([fault.at, fault.code], [where, code]);
    }
    assert.equal(await tip(), head);
  });

  describe('that takes much memory', () => {
    const inWide = [put('wide/new', 'new\n')];

    /** Pushes a folder `wide` of half a mebibyte. */
    async function widen(): Promise<void> {
      const { git } = reading;
      const id = blobOf('a\n');
      const names = Array.from({ length: 2_000 }, (_, n) => `${n + 10_000}-${'n'.repeat(200)}`);
      const wide = git.tree(names.map((name) => ({ mode: '100644', name, id })));
      const tree = git.tree([{ mode: '40000', name: 'wide', id: wide }]);
      const person = 'Ada <ada@example.org> 1700000000 +0000';
      const lines = [`tree ${tree}`, `parent ${head}`, `author ${person}`, `committer ${person}`, '', 'Widen', ''];
      await reading.push({ [MAIN]: git.object('commit', lines.join('\n')) });
    }

    /** Whether the turn is free. */
    function isFree(): boolean {
      const release = turns.take(reading.account);
      release?.();
      return release !== null;
    }

    /** The same turns, and how often one was asked for. */
    function counted() {
      const counts = { asked: 0 };
      const largeListings: FairSlots = {
        ...turns,
        acquire: (key, signal) => {
          counts.asked += 1;
          return turns.acquire(key, signal);
        },
      };
      return { counts, largeListings };
    }

    test('holds the turn of its account until its pack is read; another commit needs none', async () => {
      await widen();
      const { counts, largeListings } = counted();
      const { newObjects } = reading.database.database;
      const free: boolean[] = [];
      const pack: NewObjects['pack'] = (objects) => {
        free.push(isFree());
        return newObjects.pack(objects);
      };
      const stored = async () => void free.push(isFree());
      const parts = { largeListings, newObjects: { ...newObjects, pack } };
      await written({}, stored, parts);
      assert.deepEqual([counts.asked, ...free.splice(0)], [0, true, true]);
      await written({ changes: inWide }, stored, parts);
      assert.deepEqual([counts.asked, ...free], [1, false, true]);
    });

    test('holds the turn no longer when what is still to be read lies on the disk', async () => {
      await widen();
      const { counts, largeListings } = counted();
      const { content, discard } = await onDisk(randomBytes(200_000));
      const free: boolean[] = [];
      const deflated = () => {
        free.push(isFree());
        return content.deflated();
      };
      const large: WantedChange = { ...at('large'), action: 'put', mode: null, content: { ...content, deflated } };
      await written({ changes: [large, ...inWide] }, nothing, { largeListings });
      assert.deepEqual([counts.asked, free], [1, [true]]);
      await discard();
    });

    test('waits for the turn, unless its client leaves', async () => {
      await widen();
      const release = turns.take(reading.account);
      let isWritten = false;
      const waiting = written({ changes: inWide }).then(() => {
        isWritten = true;
      });
      const client = new AbortController();
      const asked = Promise.withResolvers<void>();
      const largeListings: FairSlots = {
        ...turns,
        acquire: (key, signal) => {
          const acquired = turns.acquire(key, signal);
          asked.resolve();
          return acquired;
        },
      };
      const left = write({ changes: inWide, signal: client.signal }, nothing, { largeListings });
      await asked.promise;
      client.abort(new Error('The client left'));
      await assert.rejects(left, /The client left/);
      assert.equal(isWritten, false);
      release?.();
      await waiting;
      assert.ok(isFree());
    });

    test('gives the turn back where it is refused, changes nothing or fails', async () => {
      await widen();
      const { counts, largeListings } = counted();
      const parts = { largeListings };
      const { newObjects } = reading.database.database;
      await refused({ changes: [put('wide', 'a file\n'), put('wide/other', '')] }, nothing, parts);
      assert.deepEqual([counts.asked, isFree()], [1, true]);
      await written({ changes: [put(`wide/10000-${'n'.repeat(200)}`, 'a\n')] }, nothing, parts);
      assert.deepEqual([counts.asked, isFree()], [2, true]);
      const failing: NewObjects = {
        ...newObjects,
        name: (object) => {
          if (object.type === 'tree') throw new Error('The hash is broken');
          return newObjects.name(object);
        },
      };
      await assert.rejects(
        write({ changes: inWide }, nothing, { ...parts, newObjects: failing }),
        /The hash is broken/,
      );
      assert.ok(isFree());
    });

    test('may have long paths instead', async () => {
      const { counts, largeListings } = counted();
      const changes = Array.from({ length: 50 }, (_, n) => put(`${'d'.repeat(200)}/${'e'.repeat(200)}${n}`, ''));
      await written({ changes: changes.slice(0, 5) }, nothing, { largeListings });
      assert.equal(counts.asked, 0);
      await written({ changes: changes.slice(5) }, nothing, { largeListings });
      assert.equal(counts.asked, 1);
    });
  });
});
