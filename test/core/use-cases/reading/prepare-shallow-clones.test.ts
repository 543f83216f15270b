/** Shallow clones that are made again behind a push: which ones, from which request, and what is left of them. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import type { FetchRequest } from '../../../../core/git/wire/fetch-request.ts';
import { parseUploadPackRequest } from '../../../../core/git/wire/upload-pack-request.ts';
import type { ObjectId } from '../../../../core/kernel/ids.ts';
import { openFetch } from '../../../../core/use-cases/reading/open-fetch.ts';
import { createWarmClones } from '../../../../core/use-cases/reading/prepare-shallow-clones.ts';
import { findDefaultBranch } from '../../../../core/use-cases/reading/resolve-ref.ts';
import { startGitReading } from '../../../support/git-reading.ts';
import { DELIMITER, FLUSH, packet } from '../../../support/git-wire.ts';

const nextTurn = async () => undefined;

async function parsed(body: Buffer): Promise<FetchRequest> {
  const request = await parseUploadPackRequest(body, 2, nextTurn);
  if ('refused' in request || request.kind !== 'fetch') return assert.fail(JSON.stringify(request));
  return request.request;
}

function bodyOf(want: ObjectId, ...lines: readonly string[]): Buffer {
  const asked = [`want ${want}\n`, ...lines, 'done\n'];
  return Buffer.concat([packet('command=fetch'), DELIMITER, ...asked.map(packet), FLUSH]);
}

async function start(context: TestContext) {
  const reading = await startGitReading();
  context.onTestFinished(() => reading.close());
  const { database, node, git, account } = reading;
  let hasRoom = true;
  const waiting: ((signal: AbortSignal) => Promise<void>)[] = [];
  const done: Promise<void>[] = [];
  const parts = { ...node, transferBudget: { hasRoom: async () => hasRoom }, clock: { ...node.clock, nextTurn } };
  const warmClones = createWarmClones({
    ...parts,
    background: { run: (_what, work) => void done.push(work()) },
    whenIdle: async (work) => void waiting.push(work),
  });
  const push = async (files: Readonly<Record<string, string>>, branch = 'main') => {
    const tip = git.commit(files, { branch });
    const { id: repository } = await reading.push({ [`refs/heads/${branch}`]: tip });
    warmClones.pushed({ account, repository });
    return tip;
  };
  /** Asks as a client does, and is granted. */
  const ask = async (body: Buffer) =>
    warmClones.asked({ repository: await reading.current(), fetch: await parsed(body), body });
  /** Does what waits for an idle moment; returns how many bytes git made. */
  const idle = async () => {
    const before = database.database.answerFigures().madeBytes;
    for (const work of waiting.splice(0)) await work(new AbortController().signal);
    return database.database.answerFigures().madeBytes - before;
  };
  /** What a client gets; how many bytes git makes for it. */
  const fetched = async (body: Buffer) => {
    const before = database.database.answerFigures().madeBytes;
    const fetch = await parsed(body);
    const opened = await openFetch(parts, await reading.current(), fetch, node.clock.now());
    if (!('reader' in opened)) return assert.fail(JSON.stringify(opened));
    const { reader, view, answerKey } = opened;
    const request = (async function* () {
      yield body;
    })();
    const { signal } = new AbortController();
    const chunks = await Array.fromAsync(reader.uploadPack({ view, protocol: 2, request, answerKey, signal }));
    opened.close();
    return { bytes: Buffer.concat(chunks), made: database.database.answerFigures().madeBytes - before };
  };
  const refuse = () => {
    hasRoom = false;
  };
  return { reading, waiting, push, ask, idle, fetched, refuse };
}

describe('A shallow clone', () => {
  test('is made again for the next commit, as the client asked for it', async (context) => {
    const { push, ask, idle, fetched } = await start(context);
    const first = await push({ a: 'a\n' });
    // git asks for HEAD and for its branch.
    const lines = (tip: ObjectId) => ['ofs-delta\n', 'no-progress\n', 'deepen 1\n', `want ${tip}\n`];
    await ask(bodyOf(first, ...lines(first)));
    const second = await push({ b: 'b\n' });
    assert.ok((await idle()) > 0);
    const same = await fetched(bodyOf(second, ...lines(second)));
    assert.equal(same.made, 0);
    assert.ok(same.bytes.includes(`shallow ${second}`));
    const other = await fetched(bodyOf(second, 'deepen 1\n'));
    assert.ok(other.made > 0, 'another request has another answer');
  });

  test('is made once for many pushes, and not again before somebody asks', async (context) => {
    const { push, ask, idle, fetched, waiting } = await start(context);
    await ask(bodyOf(await push({ a: 'a\n' }), 'deepen 1\n'));
    await push({ b: 'b\n' });
    const last = await push({ c: 'c\n' });
    assert.equal(waiting.length, 1);
    assert.ok((await idle()) > 0);
    assert.equal((await fetched(bodyOf(last, 'deepen 1\n'))).made, 0);
    await push({ d: 'd\n' });
    assert.equal(waiting.length, 0);
  });

  test('is made again after a push to another branch, which changes the refs that an answer may hold', async (context) => {
    const { push, ask, idle, fetched } = await start(context);
    const tip = await push({ a: 'a\n' });
    await ask(bodyOf(tip, 'deepen 1\n'));
    await push({ b: 'b\n' }, 'topic');
    assert.ok((await idle()) > 0);
    assert.equal((await fetched(bodyOf(tip, 'deepen 1\n'))).made, 0);
  });

  test('alone is remembered: no whole clone, no fetch of a client that has commits, none of another branch', async (context) => {
    const { push, ask, waiting } = await start(context);
    const tip = await push({ a: 'a\n' });
    const topic = await push({ b: 'b\n' }, 'topic');
    await ask(bodyOf(tip));
    await ask(bodyOf(tip, `have ${tip}\n`, 'deepen 1\n'));
    await ask(bodyOf(tip, `shallow ${tip}\n`, 'deepen 2\n'));
    await ask(bodyOf(tip, `want ${topic}\n`, 'deepen 1\n'));
    await ask(bodyOf(topic, 'deepen 1\n'));
    await ask(bodyOf(tip, ...Array.from({ length: 60 }, () => `want ${tip}\n`), 'deepen 1\n'));
    await push({ c: 'c\n' });
    assert.equal(waiting.length, 0);
  });

  test('is not made where a client would be refused, or of a repository that is gone', async (context) => {
    const { reading, push, ask, idle, refuse } = await start(context);
    await ask(bodyOf(await push({ a: 'a\n' }), 'deepen 1\n'));
    await push({ b: 'b\n' });
    refuse();
    assert.equal(await idle(), 0);
    const tip = findDefaultBranch(await reading.current())?.id ?? assert.fail();
    await ask(bodyOf(tip, 'deepen 1\n'));
    await push({ c: 'c\n' });
    await reading.push({ 'refs/heads/main': null });
    assert.equal(await idle(), 0);
  });
});
