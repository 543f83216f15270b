/** Files of a ref by a part of their path, compared with `git ls-files`. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { createKnownAnswers } from '../../../../apps/front-door/known-answers.ts';
import { createFairSlots, type FairSlots } from '../../../../core/kernel/fair-slots.ts';
import type { ObjectId } from '../../../../core/kernel/ids.ts';
import { ObjectDatabaseError, type ObjectReader } from '../../../../core/ports/object-database.ts';
import {
  FILE_LISTING_SPAN_MS,
  type FindFilesContext,
  findFiles,
  type WantedFiles,
} from '../../../../core/use-cases/reading/find-files.ts';
import { accepted, codeOf } from '../../../support/accounts.ts';
import { type GitReading, startGitReading } from '../../../support/git-reading.ts';

const signal = new AbortController().signal;
const PAGE = { offset: 0, limit: 1_000 };

describe('The files of a ref', () => {
  let reading: GitReading;
  let main: ObjectId;
  let listings = 0;
  let largeListings: FairSlots;

  beforeAll(async () => {
    reading = await startGitReading();
    largeListings = createFairSlots({ slots: 2, slotsPerKey: 1 });
    main = reading.git.commit({ 'src/main.c': '1', 'src/other.c': '2', 'lib/main.ts': '3', README: '4' });
    await reading.push({ 'refs/heads/main': main });
  });
  afterAll(() => reading.close());

  /** A node that has listed nothing yet. `files` stands in for git. */
  const newNode = (files?: ObjectReader['search']['files']): FindFilesContext => {
    const open: FindFilesContext['objects']['open'] = async (committed) => {
      const reader = await reading.node.objects.open(committed);
      const search: ObjectReader['search'] = {
        ...reader.search,
        files: (...given) => {
          listings += 1;
          return (files ?? reader.search.files)(...given);
        },
      };
      return { ...reader, search };
    };
    return { ...reading.node, ...createKnownAnswers(), objects: { open }, largeListings };
  };
  const find = async (node: FindFilesContext, text: string, more: Partial<WantedFiles> = {}) =>
    findFiles(node, await reading.current(), { ref: null, text, page: PAGE, signal, ...more });
  const paths = async (...given: Parameters<typeof find>) =>
    accepted(await find(...given)).files.items.map(({ path }) => Buffer.from(path).toString());

  test('are those of git, listed once for each tree', async () => {
    const node = newNode();
    listings = 0;
    assert.deepEqual(await paths(node, ''), reading.git.line(['ls-tree', '-r', '--name-only', main]).split('\n'));
    assert.deepEqual(await paths(node, 'main'), ['src/main.c', 'lib/main.ts']);
    assert.deepEqual(await paths(node, 'MAIN.C', { ref: 'main' }), ['src/main.c']);
    assert.deepEqual(await paths(node, 'none'), []);
    assert.equal(listings, 1);
    // Another commit of the same tree.
    const again = reading.git.commit({}, { parents: [main], branch: 'again' });
    await reading.push({ 'refs/heads/again': again });
    await paths(node, '', { ref: 'again' });
    assert.equal(listings, 1);
  });

  test('are listed once for all who ask for them at the same time', async () => {
    const node = newNode();
    listings = 0;
    await Promise.all(Array.from({ length: 5 }, () => paths(node, 'main')));
    assert.equal(listings, 1);
  });

  test('are listed again where the client for whom they were listed has left', async () => {
    let stop = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      stop = resolve;
    });
    const leaves = new AbortController();
    let first = true;
    const node = newNode(async function* (tree, options, bounded) {
      if (first) {
        first = false;
        await held;
        bounded.signal.throwIfAborted();
      }
      const reader = await reading.node.objects.open({ ...(await committed()) });
      yield* reader.search.files(tree, options, bounded);
      reader.close();
    });
    const committed = async () => {
      const { id, accountId, owned, entity } = await reading.current();
      const { layers, shrinkEpoch, keptSinceEpoch } = entity.state;
      const place = { account: accountId, storageBucketId: owned.storageBucketId };
      return { repository: id, place, revision: entity.revision, shrinkEpoch, keptSinceEpoch, layers };
    };
    const left = find(node, 'main', { signal: leaves.signal });
    const stays = paths(node, 'main');
    leaves.abort(new Error('The client left'));
    stop();
    await assert.rejects(left, /The client left/);
    assert.equal((await stays).length, 2);
  });

  // The attack: ask for many searches of a list that is as long as lists may be.
  test('are searched one after the other for an account where they are many, and not for a client that left', async () => {
    const record = Buffer.from(`100644 blob ${'a'.repeat(40)}\t${'folder/'.repeat(10)}name\0`);
    const many = Buffer.concat(Array.from({ length: 20_000 }, () => record));
    const node = newNode(async function* () {
      yield many;
    });
    const { accountId } = await reading.current();
    const release = await largeListings.acquire(accountId);
    const leaves = new AbortController();
    const left = find(node, 'name', { signal: leaves.signal });
    const waits = find(node, 'name');
    assert.equal(accepted(await find(node, '')).files.total, 20_000, 'a page of the whole list needs no search');
    leaves.abort(new Error('The client left'));
    await assert.rejects(left, /The client left/);
    const turn = new Promise((resolve) => setImmediate(() => resolve('waits')));
    assert.equal(await Promise.race([waits, turn]), 'waits');
    release();
    assert.equal(accepted(await waits).files.total, 20_000);
    assert.notEqual(largeListings.take(accountId), null);
  });

  test('may be those of a tag of a tree; a tag of a blob has none', async () => {
    const { git } = reading;
    const tree = git.line(['rev-parse', `${main}:src`]) as ObjectId;
    const blob = git.line(['rev-parse', `${main}:README`]) as ObjectId;
    await reading.push({ 'refs/tags/tree': tree, 'refs/tags/blob': blob });
    const node = newNode();
    assert.deepEqual(await paths(node, '', { ref: 'tree' }), ['main.c', 'other.c']);
    assert.equal(codeOf(await find(node, '', { ref: 'blob' })), 'ref-not-a-tree');
    for (const ref of ['none', '--all', 'main~1', 'f'.repeat(40)]) {
      assert.equal(codeOf(await find(node, '', { ref })), 'ref-not-found', ref);
    }
  });

  test('are refused where a tree has too many, and where git takes too long', async () => {
    const record = Buffer.from(`100644 blob ${'a'.repeat(40)}\tx\0`);
    const many = Buffer.concat(Array.from({ length: 100_000 }, () => record));
    let chunks = 0;
    const spans = new Set<number>();
    const node = newNode(async function* (_tree, _options, { spanMs }) {
      spans.add(spanMs);
      for (;;) {
        chunks += 1;
        yield many;
      }
    });
    assert.equal(codeOf(await find(node, 'x')), 'files-too-many');
    listings = 0;
    assert.equal(codeOf(await find(node, 'x')), 'files-too-many');
    assert.deepEqual([chunks, listings, [...spans]], [4, 0, [FILE_LISTING_SPAN_MS]]);
    let late = true;
    const slow = newNode(async function* () {
      if (late) throw new ObjectDatabaseError('reading-too-costly', 'late');
      yield record;
    });
    assert.equal(codeOf(await find(slow, 'x')), 'files-too-many');
    late = false;
    assert.deepEqual(await paths(slow, 'x'), ['x']);
  });
});
