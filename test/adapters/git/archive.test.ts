/** What git may take for an archive, and that archives leave the slots of fetches and pushes alone. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, onTestFinished, test } from 'vitest';
import { ARCHIVE_CPU_SECONDS_MAX, ARCHIVE_MEMORY_BYTES_MAX } from '../../../adapters/git/archive.ts';
import type { ObjectId } from '../../../core/kernel/ids.ts';
import { ARCHIVES_AT_ONCE_MAX } from '../../../core/kernel/limits.ts';
import { type CommittedObjects, ObjectDatabaseError, type ObjectReader } from '../../../core/ports/object-database.ts';
import { type TestRepository, temporaryFolder, testRepository } from '../../support/git.ts';
import { gitProcessesBelow, NO_PROC } from '../../support/git-below.ts';
import { type TestDatabase, testDatabase } from '../../support/object-database.ts';
import { eventually } from '../../support/processes.ts';
import { skippedFor } from '../../support/skipped.ts';

const { signal } = new AbortController();

/** A commit whose tree names the same folder `width` times at each of `depth` levels. */
function wideCommit(repository: TestRepository, width: number, depth: number): ObjectId {
  const names = Array.from({ length: width }, (_, index) => `${String(index).padStart(3, '0')}`);
  let tree = repository.tree(names.map((name) => ({ mode: '100644', name, id: repository.object('blob', 'x') })));
  for (let level = 1; level < depth; level += 1) {
    const below = tree;
    tree = repository.tree(names.map((name) => ({ mode: '40000', name, id: below })));
  }
  return repository.object('commit', `tree ${tree}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nx\n`);
}

const archiveProcesses = () => gitProcessesBelow(process.pid).filter(({ command }) => command === 'archive');

const isTooCostly = (error: unknown): boolean =>
  error instanceof ObjectDatabaseError && error.code === 'reading-too-costly';

describe('An archive', () => {
  const folder = temporaryFolder('archive');
  const repository = testRepository(join(folder.path, 'repository'));
  let database: TestDatabase;
  let objects: CommittedObjects;
  let reader: ObjectReader;
  let large: ObjectId;
  let thousand: ObjectId;
  let million: ObjectId;
  let billions: ObjectId;

  beforeAll(async () => {
    database = await testDatabase({ processesMax: 1, cacheBytesMax: 16 * 1024 * 1024 });
    // More than sockets, pipes and the disk of its account hold, so that git waits for its reader.
    large = repository.commit({ large: randomBytes(8 * 1024 * 1024) });
    [thousand, million, billions] = [1, 3, 5].map((depth) => wideCommit(repository, 100, depth)) as [
      ObjectId,
      ObjectId,
      ObjectId,
    ];
    objects = await database.push(database.newObjects(), repository.pack([large, thousand, million, billions]));
    reader = await database.database.open(objects);
  });
  afterAll(async () => {
    reader.close();
    await database.close();
    folder.remove();
  });

  const begin = (from: ObjectReader, commit: ObjectId, ending = signal) =>
    from.archive({ tip: commit, refs: null, format: 'tar.gz', prefix: 'x/', signal: ending })[Symbol.asyncIterator]();

  async function sizeOf(from: ObjectReader, commit: ObjectId): Promise<number> {
    let bytes = 0;
    for await (const chunk of { [Symbol.asyncIterator]: () => begin(from, commit) }) bytes += chunk.length;
    return bytes;
  }

  test('is made to its end where there is room, although nobody reads on', async () => {
    const roomy = await testDatabase({ layers: database.layers });
    const reading = await roomy.database.open(objects);
    const made = Promise.withResolvers<void>();
    const chunks = reading.archive({
      tip: large,
      refs: null,
      format: 'zip',
      prefix: 'x/',
      signal,
      onMade: made.resolve,
    });
    let bytes = 0;
    for await (const chunk of chunks) {
      bytes += chunk.length;
      await made.promise;
    }
    assert.ok(bytes > 8 * 1024 * 1024);
    reading.close();
    await roomy.close();
  });

  // The attack: 20 KB of pushed trees name ten billion files, all of which git lists in memory before it writes one.
  test('of more files than git may list in its memory ends with an error, and the next one is made', async () => {
    await assert.rejects(sizeOf(reader, billions), isTooCostly);
    assert.ok((await sizeOf(reader, thousand)) > 500);
  });

  test('that takes more processor time than it may ends with an error', async () => {
    const strict = await testDatabase({ layers: database.layers, archiveLimits: { cpuSecondsMax: 1 } });
    const reading = await strict.database.open(objects);
    await assert.rejects(sizeOf(reading, million), isTooCostly);
    assert.ok((await sizeOf(reading, thousand)) > 500);
    reading.close();
    await strict.close();
  });

  test('runs under the limits of archives, and gives way to other processes', skippedFor(NO_PROC), async () => {
    const chunks = begin(reader, large);
    onTestFinished(async () => void (await chunks.return?.()));
    assert.equal((await chunks.next()).done, false);
    const pid = archiveProcesses()[0]?.pid;
    const limits = readFileSync(`/proc/${pid}/limits`, 'utf8');
    assert.match(limits, new RegExp(`^Max cpu time +${ARCHIVE_CPU_SECONDS_MAX} `, 'm'));
    assert.match(limits, new RegExp(`^Max data size +${ARCHIVE_MEMORY_BYTES_MAX} `, 'm'));
    const [, nice] = /^.*\) (?:\S+ ){16}(\d+) /s.exec(readFileSync(`/proc/${pid}/stat`, 'latin1')) ?? [];
    assert.equal(Number(nice), Math.min(getPriority() + 13, 19), 'lower than whoever runs the tests');
  });

  // The attack: begin archives and read none of them, until no process is left for anybody's push.
  test(
    'takes no slot of other processes, and no more run at the same time than the limit',
    skippedFor(NO_PROC),
    async () => {
      const stop = new AbortController();
      const running = Array.from({ length: ARCHIVES_AT_ONCE_MAX }, () => begin(reader, large, stop.signal));
      for (const chunks of running) assert.equal((await chunks.next()).done, false);
      const later = begin(reader, large, stop.signal);
      const began = later.next();
      // The database has one slot for all other processes.
      assert.equal(await reader.isAncestor(thousand, thousand), true);
      await database.push(database.newObjects(), repository.pack([thousand]));
      assert.equal(archiveProcesses().length, ARCHIVES_AT_ONCE_MAX);
      await running[0]?.return?.();
      assert.equal((await began).done, false);
      stop.abort(new Error('The client left'));
      await eventually('every git ends with its client', () => archiveProcesses().length === 0);
      for (const chunks of [...running, later]) await chunks.return?.();
    },
  );
});

describe('An archive whose files ask git to describe the commit', () => {
  // The attack: the history is so long that describing takes minutes, and a file of 1 KB asks for it a hundred times.
  test('is made without that where it is too dear, and git tries once, within the limits of archives', async (context) => {
    const folder = temporaryFolder('archive-describe');
    context.onTestFinished(() => folder.remove());
    const repository = testRepository(join(folder.path, 'repository'));
    const tip = repository.commit({
      '.gitattributes': 'version export-subst\n',
      version: '[$Format:%(describe)$]'.repeat(100),
    });
    const { gitPath, begun } = gitThatKeepsDescribing(folder.path);
    const strict = await testDatabase({ gitPath, archiveLimits: { cpuSecondsMax: 1 } });
    context.onTestFinished(() => strict.close());
    const reading = await strict.database.open(await strict.push(strict.newObjects(), repository.pack([tip])));
    context.onTestFinished(() => reading.close());
    const runs = [[{ name: 'refs/heads/main', id: tip, peeled: null }]];
    const refs = { key: 'all', head: 'refs/heads/main', runs };
    const chunks = await Array.fromAsync(reading.archive({ tip, refs, format: 'tar.gz', prefix: 'x/', signal }));
    assert.match(String(gunzipSync(Buffer.concat(chunks))), /\[\](?:\[%\(describe\)\]){99}/);
    assert.equal(begun(), 1);
  });
});

/** The real git, whose `describe` never ends by itself; `begun` counts how often it has begun. */
function gitThatKeepsDescribing(folder: string): { readonly gitPath: string; readonly begun: () => number } {
  const program = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim();
  const [gitPath, exec, log] = [join(folder, 'git'), join(folder, 'exec'), join(folder, 'described')];
  mkdirSync(exec);
  // git finds the git that describes in this folder.
  const archives = `if [ "$1" = archive ]; then GIT_EXEC_PATH=${exec}; export GIT_EXEC_PATH; fi`;
  const describes = `if [ "$1" = describe ]; then echo >> ${log}; while :; do :; done; fi`;
  for (const [file, line] of [
    [gitPath, archives],
    [join(exec, 'git'), describes],
  ] as const) {
    writeFileSync(file, `#!/bin/sh\n${line}\nexec ${program} "$@"\n`);
    chmodSync(file, 0o755);
  }
  return { gitPath, begun: () => readFileSync(log, 'utf8').length };
}
