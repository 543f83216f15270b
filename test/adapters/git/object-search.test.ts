/** Searches by git: their bounds, whose slots they take, and what must not change what git finds. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import {
  createObjectSearch,
  FILE_LISTING_CPU_SECONDS_MAX,
  FILE_LISTING_MEMORY_BYTES_MAX,
  SEARCH_CPU_SECONDS_MAX,
  SEARCH_MEMORY_BYTES_MAX,
} from '../../../adapters/git/object-search.ts';
import type { GitCommand } from '../../../adapters/git/process/git-commands.ts';
import { createReadingSlots, SEARCHES_PER_ACCOUNT_MAX } from '../../../adapters/git/reading-slots.ts';
import { type ObjectId, objectId } from '../../../core/kernel/ids.ts';
import { ObjectDatabaseError, type ObjectReader } from '../../../core/ports/object-database.ts';
import { temporaryFolder, testRepository } from '../../support/git.ts';
import { type TestDatabase, testDatabase } from '../../support/object-database.ts';

describe('a search of a repository', () => {
  const folder = temporaryFolder('object-search');
  const repository = testRepository(join(folder.path, 'repository'));
  const signal = new AbortController().signal;
  const bounded = { signal, spanMs: 60_000 };
  let database: TestDatabase;
  let reader: ObjectReader;
  let tree: ObjectId;

  const wanted = (text: string) => ({ text, isRegex: false, without: [] });
  const treeOf = (commit: ObjectId): ObjectId => objectId(repository.line(['rev-parse', `${commit}^{tree}`]));
  const textOf = async (chunks: AsyncIterable<Uint8Array>): Promise<string> =>
    Buffer.concat(await Array.fromAsync(chunks)).toString();

  beforeAll(async () => {
    database = await testDatabase();
    // More than sockets and pipes hold, so that git waits for its reader.
    const wide = 'a line of a long text that comes again and again\n'.repeat(150_000);
    const commit = repository.commit({ 'a.txt': 'foo\n', 'b/c.txt': 'foo\n', wide, binary: Buffer.from('\0foo\n') });
    tree = treeOf(commit);
    reader = await database.database.open(await database.push(database.newObjects(), repository.pack([commit])));
  });
  afterAll(async () => {
    reader.close();
    await database.close();
    folder.remove();
  });

  test('is read by git within its limits of memory, processor time and time', async () => {
    const asked: GitCommand[] = [];
    const git = {
      stream: async function* (command: GitCommand) {
        asked.push(command);
        yield Buffer.alloc(0);
      },
      run: async (command: GitCommand) => {
        asked.push(command);
        return { killed: 'no', code: 1 };
      },
    } as never;
    const slots = createReadingSlots();
    const search = createObjectSearch({ git, slots }, { key: 'a' } as never);
    await Array.fromAsync(search.files(tree, { sizes: false }, bounded));
    await Array.fromAsync(search.lines(tree, wanted('foo'), bounded));
    await search.isBinary(tree, bounded);
    assert.equal(await search.regexFault('foo', bounded), null);
    const ofSearch = { memoryBytesMax: SEARCH_MEMORY_BYTES_MAX, cpuSecondsMax: SEARCH_CPU_SECONDS_MAX };
    const ofList = { memoryBytesMax: FILE_LISTING_MEMORY_BYTES_MAX, cpuSecondsMax: FILE_LISTING_CPU_SECONDS_MAX };
    assert.deepEqual(
      asked.map(({ limits, wallMsMax }) => [limits, wallMsMax]),
      [ofList, ofSearch, ofSearch, ofSearch].map((limits) => [limits, bounded.spanMs]),
    );
    const { listings, searches } = slots;
    assert.deepEqual(
      asked.map((command) => command.slots),
      [listings, searches, searches, searches],
    );
  });

  // The attack: begin many searches that find much, and read none of them.
  test('ends with its request, whose slot the next one gets; no more than the limit run at the same time', async () => {
    const running: { readonly stop: AbortController; readonly chunks: AsyncIterator<Uint8Array> }[] = [];
    const begin = () => {
      const stop = new AbortController();
      const lines = reader.search.lines(tree, wanted('again'), { ...bounded, signal: stop.signal });
      const chunks = lines[Symbol.asyncIterator]();
      running.push({ stop, chunks });
      return chunks.next();
    };
    for (let count = 0; count < SEARCHES_PER_ACCOUNT_MAX; count += 1) assert.equal((await begin()).done, false);
    const later = begin();
    // Other reads of the account do not wait. Two of them take longer than a search to begin, if it does.
    const others = async (): Promise<string> => {
      await textOf(reader.search.files(tree, { sizes: true }, bounded));
      return textOf(reader.search.files(tree, { sizes: false }, bounded));
    };
    assert.match(await Promise.race([later.then(() => 'began'), others()]), /\tb\/c\.txt\0/);
    running[0]?.stop.abort(new Error('The client left'));
    const rest = async (): Promise<void> => {
      for (let done = false; !done; ) done = (await running[0]?.chunks.next())?.done ?? true;
    };
    await assert.rejects(rest(), /The client left/);
    assert.equal((await later).done, false);
    for (const { stop } of running) stop.abort(new Error('The client left'));
    for (const { chunks } of running.slice(1)) await chunks.return?.();
  });

  // The attack: ask for as many large files as an account may read at the same time, and read none of them.
  test('goes on while slow readers of the account hold all the processes that they may have', async () => {
    const narrow = await testDatabase({ cacheBytesMax: 16 * 1024 * 1024, processesPerAccountMax: 1 });
    const tip = repository.commit({ noise: randomBytes(8 * 1024 * 1024), 'a.txt': 'foo\n' }, { parents: [] });
    const reading = await narrow.database.open(await narrow.push(narrow.newObjects(), repository.pack([tip])));
    const noise = objectId(repository.line(['rev-parse', `${tip}:noise`]));
    const slow = Array.from({ length: 3 }, () => reading.blob(noise)[Symbol.asyncIterator]());
    for (const chunks of slow) assert.equal((await chunks.next()).done, false);
    const root = treeOf(tip);
    assert.match(await textOf(reading.search.lines(root, wanted('foo'), bounded)), /:a\.txt\x001\x001\0foo\n$/);
    assert.match(await textOf(reading.search.files(root, { sizes: false }, bounded)), /\ta\.txt\0/);
    for (const chunks of slow) await chunks.return?.();
    reading.close();
    await narrow.close();
  });

  test('says that git reached its limit of time', async () => {
    const read = async (): Promise<void> => {
      for await (const _chunk of reader.search.lines(tree, wanted('again'), { ...bounded, spanMs: 50 })) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    await assert.rejects(
      read(),
      (error) => error instanceof ObjectDatabaseError && error.code === 'reading-too-costly',
    );
  });

  test('leaves out the files that it is told to, whose names are no patterns', async () => {
    const commit = repository.commit(
      { '*': 'foo\n', 'a.txt': 'foo\n', ':x': 'foo\n', 'f/*': 'foo\n' },
      { parents: [] },
    );
    const at = await database.database.open(await database.push(database.newObjects(), repository.pack([commit])));
    const without = ['*', ':x', 'b'].map((name) => Buffer.from(name));
    const text = await textOf(at.search.lines(treeOf(commit), { ...wanted('foo'), without }, bounded));
    assert.deepEqual(
      [...text.matchAll(/:([^\0]*)\x001\x001\0/g)].map(([, name]) => name),
      ['a.txt', 'f/*'],
    );
    at.close();
  });

  test('takes a file for binary as git does', async () => {
    const isBinary = (name: string) =>
      reader.search.isBinary(objectId(repository.line(['rev-parse', `${tree}:${name}`])), bounded);
    assert.deepEqual([await isBinary('binary'), await isBinary('a.txt'), await isBinary('wide')], [true, false, false]);
  });

  test('lists files with their sizes where they are asked for', async () => {
    assert.match(await textOf(reader.search.files(tree, { sizes: true }, bounded)), /blob [0-9a-f]{40} +4\ta\.txt\0/);
  });
});
