/** Walks and diffs by git: their bounds, and what must not change what git prints. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import {
  ARCHIVE_CPU_SECONDS_MAX,
  ARCHIVE_MEMORY_BYTES_MAX,
  ARCHIVE_SPAN_MS,
  archive,
  createArchiveContext,
} from '../../../adapters/git/archive.ts';
import { COMMIT_TEXT_SPAN_MS, commitText } from '../../../adapters/git/commit-text.ts';
import {
  ARGUMENTS_BYTES_MAX,
  BLAMED_PATH_BYTES_MAX,
  COUNT_SPAN_MS,
  countCommits,
  createObjectHistory,
  DIFF_CPU_SECONDS_MAX,
  DIFF_MEMORY_BYTES_MAX,
  DIFF_RENAME_FILES_MAX,
  HISTORY_READ_MEMORY_BYTES_MAX,
} from '../../../adapters/git/object-history.ts';
import { createPacing, type GitCommand } from '../../../adapters/git/process/git-commands.ts';
import {
  BLAMES_PER_ACCOUNT_MAX,
  createReadingSlots,
  DIFFS_PER_ACCOUNT_MAX,
} from '../../../adapters/git/reading-slots.ts';
import { createBlameParser } from '../../../core/git/blame.ts';
import { createDiffParser } from '../../../core/git/diff/diff-parser.ts';
import { type ObjectId, objectId } from '../../../core/kernel/ids.ts';
import { HISTORY_READ_CPU_SECONDS_MAX } from '../../../core/kernel/limits.ts';
import { type CommittedObjects, ObjectDatabaseError, type ObjectReader } from '../../../core/ports/object-database.ts';
import { temporaryFolder, testRepository } from '../../support/git.ts';
import { ANY_COMMIT } from '../../support/no-history.ts';
import { type TestDatabase, testDatabase } from '../../support/object-database.ts';
import { rawEntry, rawId, rawPack } from '../../support/raw-pack.ts';
import { storeUnchecked } from '../../support/unchecked-layer.ts';

const ARCHIVE = { format: 'zip', prefix: 'a/', refs: null } as const;

describe('the history of a repository', () => {
  const folder = temporaryFolder('object-history');
  const repository = testRepository(join(folder.path, 'repository'));
  const signal = new AbortController().signal;
  const bounded = { signal, spanMs: 60_000 };
  let database: TestDatabase;
  let objects: CommittedObjects;
  let reader: ObjectReader;
  let small: ObjectId;
  let large: ObjectId;

  beforeAll(async () => {
    database = await testDatabase();
    small = repository.commit({ text: 'one\n', '.gitattributes': '* -diff\n*.c diff=cpp\n' });
    // More than sockets and pipes hold, so that git waits for its reader.
    large = repository.commit({ text: 'one line of a long text that comes again\n'.repeat(150_000) });
    objects = await database.push(database.newObjects(), repository.pack([large]));
    reader = await database.database.open(objects);
  });
  afterAll(async () => {
    reader.close();
    await database.close();
    folder.remove();
  });

  test('is not changed by attributes, neither of the repository nor of the machine', async () => {
    const parser = createDiffParser();
    for await (const chunk of reader.history.diff(null, small, bounded)) parser.add(chunk);
    const { files } = parser.end('whole');
    assert.deepEqual(
      files.map(({ binary, additions }) => [binary, additions]),
      [
        [false, 2],
        [false, 1],
      ],
    );
  });

  // The attack: open many pages whose diff is large, and read none of them.
  test('ends a diff with its request, whose slot the next one gets; no more than the limit run at the same time', async () => {
    const running: { readonly stop: AbortController; readonly chunks: AsyncIterator<Uint8Array> }[] = [];
    const begin = () => {
      const stop = new AbortController();
      const chunks = reader.history.diff(small, large, { ...bounded, signal: stop.signal })[Symbol.asyncIterator]();
      running.push({ stop, chunks });
      return chunks.next();
    };
    for (let count = 0; count < DIFFS_PER_ACCOUNT_MAX; count += 1) assert.equal((await begin()).done, false);
    const later = begin();
    const waits = await Promise.race([later.then(() => 'began'), reader.lookup([large]).then(() => 'waits')]);
    assert.equal(waits, 'waits');
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
  test('is read while slow readers of the account hold all the processes that they may have', async () => {
    const narrow = await testDatabase({ cacheBytesMax: 16 * 1024 * 1024, processesPerAccountMax: 1 });
    // More than sockets, pipes and the disk of its account hold, so that git waits for its reader.
    const tip = repository.commit({ noise: randomBytes(8 * 1024 * 1024) });
    const reading = await narrow.database.open(await narrow.push(narrow.newObjects(), repository.pack([tip])));
    const noise = objectId(repository.line(['rev-parse', `${tip}:noise`]));
    // Two leave their slots for those of slow readers; the third waits for one.
    const slow = Array.from({ length: 3 }, () => reading.blob(noise)[Symbol.asyncIterator]());
    for (const chunks of slow) assert.equal((await chunks.next()).done, false);
    assert.deepEqual(await Array.fromAsync(reading.walk({ include: [tip], exclude: [large] })), [tip]);
    assert.deepEqual(await reading.history.aheadBehind(small, tip, bounded), { ahead: 0, behind: 2 });
    assert.equal(await reading.count(tip), 3);
    for (const chunks of slow) await chunks.return?.();
    reading.close();
    await narrow.close();
  });

  test('is read by git within its limits of memory, processor time and time', async () => {
    const asked: GitCommand[] = [];
    const git = {
      stream: async function* (command: GitCommand) {
        asked.push(command);
        yield Buffer.alloc(0);
      },
    } as never;
    const [view, slots] = [{ key: 'a' } as never, createReadingSlots()];
    const history = createObjectHistory({ git, slots }, view);
    await Array.fromAsync(history.diff(small, large, bounded));
    await history.commitsBetween(small, large, { offset: 0, limit: 1 }, bounded);
    await Array.fromAsync(history.blame(large, Buffer.from('text'), 10, bounded));
    await countCommits(git, view, slots, large);
    await Array.fromAsync(
      archive({ archives: createArchiveContext(git), views: {} as never }, {} as never, 'a' as never, {
        ...ARCHIVE,
        tip: large,
        signal,
      }),
    );
    const text = { commit: large, parent: small, form: 'patch', signal } as const;
    await Array.fromAsync(commitText({ git, slots }, view, text, createPacing()));
    const others = {
      memoryBytesMax: HISTORY_READ_MEMORY_BYTES_MAX,
      cpuSecondsMax: HISTORY_READ_CPU_SECONDS_MAX,
    };
    assert.deepEqual(
      asked.map(({ limits, wallMsMax }) => [limits, wallMsMax]),
      [
        [{ memoryBytesMax: DIFF_MEMORY_BYTES_MAX, cpuSecondsMax: DIFF_CPU_SECONDS_MAX }, bounded.spanMs],
        [others, bounded.spanMs],
        [others, bounded.spanMs],
        [others, COUNT_SPAN_MS],
        [{ memoryBytesMax: ARCHIVE_MEMORY_BYTES_MAX, cpuSecondsMax: ARCHIVE_CPU_SECONDS_MAX }, ARCHIVE_SPAN_MS],
        [{ ...others, cpuSecondsMax: DIFF_CPU_SECONDS_MAX }, COMMIT_TEXT_SPAN_MS],
      ],
    );
  });

  test('has slots of its own for who brought the lines of a file', async () => {
    const taken: unknown[] = [];
    const git = {
      stream: async function* (command: GitCommand) {
        taken.push(command.slots);
        yield Buffer.alloc(0);
      },
    } as never;
    const slots = createReadingSlots();
    const history = createObjectHistory({ git, slots }, { key: 'a' } as never);
    await Array.fromAsync(history.blame(large, Buffer.from('text'), 10, bounded));
    assert.deepEqual(taken, [slots.blames]);
    const releases = Array.from({ length: BLAMES_PER_ACCOUNT_MAX }, () => slots.blames.take('a'));
    assert.ok(releases.every((release) => release !== null));
    assert.equal(slots.blames.take('a'), null);
    assert.notEqual(slots.blames.take('b'), null);
  });

  // The attack: ask for who brought the lines of large files, and leave.
  test('ends a search for who brought lines with its request, and gives its slot to the next one', async () => {
    const stop = new AbortController();
    const searches = Array.from({ length: BLAMES_PER_ACCOUNT_MAX + 1 }, () =>
      Array.fromAsync(reader.history.blame(large, Buffer.from('text'), 100_000, { ...bounded, signal: stop.signal })),
    );
    stop.abort(new Error('The client left'));
    for (const search of await Promise.allSettled(searches)) {
      assert.match(search.status === 'rejected' ? String(search.reason) : 'found', /The client left/);
    }
    const chunks = await Array.fromAsync(reader.history.blame(large, Buffer.from('text'), 100_000, bounded));
    assert.match(Buffer.concat(chunks).toString(), /^[0-9a-f]{40} \d+ \d+ \d+\n/);
  });

  test('says that git reached its limit of time, which a retry would reach again', async () => {
    const read = async (): Promise<void> => {
      for await (const _chunk of reader.history.diff(small, large, { ...bounded, spanMs: 50 })) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    await assert.rejects(
      read(),
      (error) => error instanceof ObjectDatabaseError && error.code === 'reading-too-costly',
    );
  });

  // The attack: commits whose folders have half a million files each, and a hundred requests for what they changed.
  test('gives up a diff that takes more memory than it may', async () => {
    const blob = Buffer.alloc(0);
    const id = Buffer.from(rawId('blob', blob), 'hex');
    const trees = ['a', 'b'].map((letter) =>
      Buffer.concat(
        Array.from({ length: 450_000 }, (_, n) =>
          Buffer.concat([Buffer.from(`100644 ${letter}${String(n).padStart(6, '0')}\0`), id]),
        ),
      ),
    );
    const commits = trees.map((tree) =>
      Buffer.from(`tree ${rawId('tree', tree)}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nx\n`),
    );
    const pack = rawPack([
      rawEntry({ type: 'blob', bytes: blob }),
      ...trees.map((bytes) => rawEntry({ type: 'tree', bytes })),
      ...commits.map((bytes) => rawEntry({ type: 'commit', bytes })),
    ]);
    const wide = await database.database.open(await storeUnchecked(database, pack));
    const [from, to] = commits.map((bytes) => objectId(rawId('commit', bytes)));
    assert.ok(from !== undefined && to !== undefined);
    await assert.rejects(
      Array.fromAsync(wide.history.diff(from, to, bounded)),
      (error) =>
        error instanceof ObjectDatabaseError &&
        error.code === 'reading-too-costly' &&
        /[Oo]ut of memory|allocate/.test(error.message),
    );
    wide.close();
  });

  test('finds renames among as many files as the limit, and only of equal files among more', async () => {
    for (const [count, renamed] of [
      [DIFF_RENAME_FILES_MAX, DIFF_RENAME_FILES_MAX],
      [DIFF_RENAME_FILES_MAX + 1, 0],
    ] as const) {
      const { pack, commits } = renaming(count);
      const opened = await database.database.open(await storeUnchecked(database, pack));
      const parser = createDiffParser();
      for await (const chunk of opened.history.diff(commits[0], commits[1], bounded)) parser.add(chunk);
      const { files } = parser.end('whole');
      assert.equal(files.filter(({ status }) => status === 'renamed').length, renamed);
      opened.close();
    }
  });

  test('refuses a path that git cannot be asked for, and leaves it out of a list of several', async () => {
    const none = Buffer.from([0xff, 0x0a]);
    const longest = Buffer.from(`${'x'.repeat(ARGUMENTS_BYTES_MAX - 1)}\n`);
    assert.deepEqual(
      await Array.fromAsync(reader.history.findCommits(large, { ...ANY_COMMIT, path: longest }, bounded)),
      [],
    );
    const long = Buffer.concat([Buffer.from('x'), longest]);
    for (const path of [none, long]) {
      await assert.rejects(
        Array.fromAsync(reader.history.findCommits(large, { ...ANY_COMMIT, path }, bounded)),
        (error) => error instanceof ObjectDatabaseError && error.code === 'reading-too-costly',
      );
    }
    assert.deepEqual(await Array.fromAsync(reader.history.changesBelow(large, [], [none, long], bounded)), []);
    const both = await Array.fromAsync(
      reader.history.changesBelow(large, [], [none, long, Buffer.from('text')], bounded),
    );
    assert.match(Buffer.concat(both).toString(), new RegExp(`^${large}.*${small}`, 's'));
  });

  test('asks git who brought the lines at a path as long as the limit, whatever its bytes are, and at no longer one', async () => {
    const id = Buffer.from(rawId('blob', Buffer.from('a line')), 'hex');
    const path = Buffer.alloc(BLAMED_PATH_BYTES_MAX, 0xff);
    const longer = Buffer.alloc(BLAMED_PATH_BYTES_MAX + 1, 0xff);
    const tree = Buffer.concat([path, longer].flatMap((name) => [Buffer.from('100644 '), name, Buffer.from([0]), id]));
    const commit = Buffer.from(`tree ${rawId('tree', tree)}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nx\n`);
    const pack = rawPack([
      rawEntry({ type: 'blob', bytes: Buffer.from('a line') }),
      rawEntry({ type: 'tree', bytes: tree }),
      rawEntry({ type: 'commit', bytes: commit }),
    ]);
    const opened = await database.database.open(await storeUnchecked(database, pack));
    const tip = objectId(rawId('commit', commit));
    const parser = createBlameParser();
    for await (const chunk of opened.history.blame(tip, path, 10, bounded)) parser.add(chunk);
    const [range] = parser.end('whole').ranges;
    assert.deepEqual([range?.count, range?.origin.commit], [1, tip]);
    assert.equal(Buffer.compare(Buffer.from(range?.origin.path ?? []), path), 0);
    await assert.rejects(
      Array.fromAsync(opened.history.blame(tip, longer, 10, bounded)),
      (error) => error instanceof ObjectDatabaseError && error.code === 'reading-too-costly',
    );
    opened.close();
  });
});

/** Two commits. The second has the files of the first under other names, and each with another last line. */
function renaming(count: number) {
  const blobs: Buffer[] = [];
  const trees = ['old', 'new'].map((word) => {
    const entries = Array.from({ length: count }, (_, n) => {
      const blob = Buffer.from(`${`A line of file ${n}\n`.repeat(20)}It is ${word}\n`);
      blobs.push(blob);
      const name = `${word}-${String(n).padStart(4, '0')}`;
      return Buffer.concat([Buffer.from(`100644 ${name}\0`), Buffer.from(rawId('blob', blob), 'hex')]);
    });
    return Buffer.concat(entries);
  });
  const commitOf = (tree: Buffer): Buffer =>
    Buffer.from(`tree ${rawId('tree', tree)}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nx\n`);
  const commits = trees.map(commitOf);
  const pack = rawPack([
    ...blobs.map((bytes) => rawEntry({ type: 'blob', bytes })),
    ...trees.map((bytes) => rawEntry({ type: 'tree', bytes })),
    ...commits.map((bytes) => rawEntry({ type: 'commit', bytes })),
  ]);
  const [from = Buffer.alloc(0), to = Buffer.alloc(0)] = commits;
  return { pack, commits: [objectId(rawId('commit', from)), objectId(rawId('commit', to))] as const };
}
