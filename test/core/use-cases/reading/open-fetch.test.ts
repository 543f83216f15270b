/** Which fetches are answered, and what names their answers. The attack: a fetch of objects that no ref reaches. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { DEPTH_OF_ALL, type FetchRequest } from '../../../../core/git/wire/fetch-request.ts';
import type { ObjectId } from '../../../../core/kernel/ids.ts';
import { LEFT_TIP_SPAN_MS } from '../../../../core/kernel/limits.ts';
import {
  ANSWER_KEPT_BYTES_MAX,
  type OpenFetch,
  type OpenFetchContext,
  openFetch,
} from '../../../../core/use-cases/reading/open-fetch.ts';
import type { FoundRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import { appendPush } from '../../../support/memory/pushes.ts';
import { startReading } from '../../../support/reading.ts';

const WANTS_NOTHING: FetchRequest = {
  version: 2,
  ...{ wants: [], haveCount: 0, shallow: [] },
  ...{ done: true, waitForDone: false, thinPack: true, ofsDelta: true, includeTag: true },
  ...{ noProgress: false, noDone: false, multiAck: 'none', sideBand: 'side-band-64k' },
  ...{ deepen: null, filter: null },
};

function excluding(...not: readonly string[]): FetchRequest['deepen'] {
  return { kind: 'limits', sinceSeconds: null, not };
}

/**
 * A repository with a layer of an older version, whose branch `topic` was deleted long enough ago for its commits to be
 * out of reach.
 */
async function started() {
  const reading = await startReading();
  const { objects, node } = reading;
  const tree = objects.tree({});
  const first = objects.commit({ tree, seconds: 1 });
  const second = objects.commit({ tree, seconds: 2, parents: [first] });
  const gone = objects.commit({ tree, seconds: 3, parents: [first] });
  const known = await reading.repository('r');
  const refs = { 'refs/heads/master': second, 'refs/tags/v1': first, 'refs/heads/topic': gone };
  await appendPush(node, objects, known, refs, 1_000);
  const repository = await reading.push(known, { 'refs/heads/topic': null });
  node.clock.advance(2 * LEFT_TIP_SPAN_MS);
  const state = { hasRoom: true };
  const context = { ...node, transferBudget: { hasRoom: async () => state.hasRoom } };
  const opened = (request: Partial<FetchRequest>, seen: FoundRepository = repository) =>
    openFetch(context, seen, { ...WANTS_NOTHING, ...request }, node.clock.now());
  /** Returns why the fetch is refused, after checking that no objects were left open. */
  const refused = async (request: Partial<FetchRequest>) => {
    const answer = await opened(request);
    if (!('refused' in answer)) assert.fail('The fetch was opened');
    await Promise.resolve();
    assert.equal(objects.openReaders(), 0);
    return answer.refused;
  };
  const using = async <Value>(
    request: Partial<FetchRequest>,
    use: (fetch: OpenFetch) => Value,
    seen: FoundRepository = repository,
  ): Promise<Value> => {
    const fetch = await opened(request, seen);
    if ('refused' in fetch) assert.fail(`Refused with ${fetch.refused.code}`);
    if ('held' in fetch) assert.fail('Nothing is in memory');
    const value = use(fetch);
    fetch.close();
    return value;
  };
  const keyOf = (request: Partial<FetchRequest>, seen?: FoundRepository): Promise<string | null> =>
    using({ wants: [second], ...request }, ({ answerKey }) => answerKey, seen);
  return { reading, objects, repository, context, state, first, second, gone, refused, using, keyOf };
}

describe('A fetch is refused', () => {
  test('when the transfer quota is reached, whatever it wants', async () => {
    const { state, refused, second, gone } = await started();
    state.hasRoom = false;
    assert.deepEqual(await refused({ wants: [second] }), { code: 'transfer-quota-reached' });
    assert.deepEqual(await refused({ wants: [gone] }), { code: 'transfer-quota-reached' });
  });

  test('when it wants a commit that only a deleted branch reached, or one that does not exist', async () => {
    const { refused, second, gone } = await started();
    const unknown = 'f'.repeat(40) as ObjectId;
    assert.deepEqual(await refused({ wants: [second, gone] }), { code: 'want-not-reachable', id: gone });
    assert.deepEqual(await refused({ wants: [unknown] }), { code: 'want-not-reachable', id: unknown });
    // The answer about the want comes first: it says nothing about the refs.
    const both = await refused({ wants: [gone], deepen: excluding('none') });
    assert.equal(both.code, 'want-not-reachable');
  });

  test('when a deepen-not names no ref or an expression, and in other words when it names more than one ref', async () => {
    const { reading, repository, context, refused, second } = await started();
    for (const name of ['none', 'topic', 'HEAD~1', second, '--all', '']) {
      const denial = await refused({ wants: [second], deepen: excluding('v1', name) });
      assert.deepEqual(denial, { code: 'deepen-not-unresolved', name });
    }
    const remote = await reading.push(repository, { 'refs/remotes/v1/HEAD': second });
    const twice = await reading.push(remote, { 'refs/heads/v2': second, 'refs/remotes/v2': second });
    const request: FetchRequest = { ...WANTS_NOTHING, wants: [second], deepen: null };
    for (const name of ['v1', 'v2']) {
      const fetch = { ...request, deepen: excluding(name) };
      const answer = await openFetch(context, twice, fetch, context.clock.now());
      assert.deepEqual(answer, { refused: { code: 'deepen-not-ambiguous', name } });
    }
  });
});

describe('A fetch that is answered', () => {
  test('gets the refs of the revision that was found, and its objects until it is closed', async () => {
    const { objects, repository, second, first, using } = await started();
    const view = await using({ wants: [second] }, (fetch) => {
      assert.equal(objects.openReaders(), 1);
      return fetch.view;
    });
    await Promise.resolve();
    assert.equal(objects.openReaders(), 0);
    assert.equal(view.head, 'refs/heads/master');
    assert.equal(view.key, `${repository.entity.lastEventId} master`);
    assert.deepEqual(
      view.runs.flat().map(({ name, id }) => [name, id]),
      [
        ['refs/heads/master', second],
        ['refs/tags/v1', first],
      ],
    );
  });

  test('may exclude what a branch, a tag, a full name or HEAD reaches', async () => {
    const { second, using } = await started();
    const names = ['v1', 'master', 'tags/v1', 'refs/heads/master', 'HEAD'];
    assert.equal(await using({ wants: [second], deepen: excluding(...names) }, () => 'opened'), 'opened');
  });

  test('is a plain clone only for a client that has nothing, takes everything, and takes it as packs are stored', async () => {
    const { first, second, using } = await started();
    const cloneOf = (request: Partial<FetchRequest>) => using({ wants: [second], ...request }, ({ clone }) => clone);
    assert.deepEqual(await cloneOf({}), { wants: [second], includeTag: true });
    assert.deepEqual(await cloneOf({ version: 0, includeTag: false }), { wants: [second], includeTag: false });
    const others: readonly Partial<FetchRequest>[] = [
      { wants: [] },
      { haveCount: 1 },
      { done: false },
      { shallow: [first] },
      { deepen: { kind: 'depth', commits: 1, relative: false } },
      { deepen: excluding('v1') },
      { filter: { kind: 'blob:none' } },
      { ofsDelta: false },
      { sideBand: 'side-band' },
      { sideBand: null },
    ];
    for (const other of others) assert.equal(await cloneOf(other), null, JSON.stringify(other));
  });

  test('hides commits of the shallow boundary that the client could not fetch, only if it asks for all history', async () => {
    const { first, second, gone, using } = await started();
    const shallow = [first, gone];
    const hidden = (deepen: FetchRequest['deepen']) =>
      using({ wants: [second], shallow, deepen }, ({ hiddenEdges, answerKey }) => [
        [...hiddenEdges],
        answerKey !== null,
      ]);
    assert.deepEqual(await hidden({ kind: 'depth', commits: DEPTH_OF_ALL, relative: false }), [[gone], false]);
    assert.deepEqual(await hidden({ kind: 'depth', commits: DEPTH_OF_ALL - 1, relative: false }), [[], true]);
    assert.deepEqual(await hidden(null), [[], true]);
  });
});

describe('An answer in memory', () => {
  const held = { bytes: Buffer.from('answer'), release: () => undefined };

  async function startedWithHeld() {
    const parts = await started();
    const asked: [string, string][] = [];
    const open = () => assert.fail('The objects were opened');
    const heldAnswer = (repository: string, key: string) => {
      asked.push([repository, key]);
      return held;
    };
    const fetchOf = (request: Partial<FetchRequest>, objects: OpenFetchContext['objects']) => {
      const { context, repository } = parts;
      return openFetch({ ...context, objects }, repository, { ...WANTS_NOTHING, ...request }, context.clock.now());
    };
    return { ...parts, asked, fetchOf, heldAnswer, open };
  }

  test('is given for its key, and needs no objects', async () => {
    const { repository, second, keyOf, asked, fetchOf, heldAnswer, open } = await startedWithHeld();
    assert.deepEqual(await fetchOf({ wants: [second] }, { heldAnswer, open }), { held });
    assert.deepEqual(asked, [[repository.id, await keyOf({})]]);
  });

  // The attack: a client repeats the fetch of a branch that was deleted since.
  test('is given to nobody whose fetch is refused', async () => {
    const { context, state, second, gone, asked, fetchOf, heldAnswer } = await startedWithHeld();
    const objects = { heldAnswer, open: context.objects.open };
    const code = async (request: Partial<FetchRequest>) => {
      const answer = await fetchOf(request, objects);
      return 'refused' in answer ? answer.refused.code : 'answered';
    };
    assert.equal(await code({ wants: [gone] }), 'want-not-reachable');
    assert.equal(await code({ wants: [second, gone] }), 'want-not-reachable');
    assert.equal(await code({ wants: [second], deepen: excluding('topic') }), 'deepen-not-unresolved');
    state.hasRoom = false;
    assert.equal(await code({ wants: [second] }), 'transfer-quota-reached');
    assert.deepEqual(asked, []);
  });

  test('leaves no objects open that a want was looked up in', async () => {
    const { objects, context, fetchOf, heldAnswer } = await startedWithHeld();
    const tree = objects.tree({});
    const answer = await fetchOf({ wants: [tree] }, { heldAnswer, open: context.objects.open });
    assert.deepEqual(answer, { held });
    await Promise.resolve();
    assert.equal(objects.openReaders(), 0);
  });

  test('is not asked for by a request whose answers are not kept', async () => {
    const { context, second, asked, fetchOf, heldAnswer } = await startedWithHeld();
    const answer = await fetchOf({ wants: [second], haveCount: 1 }, { heldAnswer, open: context.objects.open });
    assert.ok('reader' in answer);
    answer.close();
    assert.deepEqual(asked, []);
  });
});

describe('The key of an answer', () => {
  test('is the same for the same request, in whatever order its lines came', async () => {
    const { first, second, keyOf } = await started();
    const key = await keyOf({ wants: [first, second] });
    assert.match(key ?? '', /^[0-9a-f]{64}$/);
    assert.equal(await keyOf({ wants: [second, first] }), key);
    const shallow = await keyOf({ shallow: [first, second] });
    assert.equal(await keyOf({ shallow: [second, first] }), shallow);
  });

  test('differs for each part of the request that can change a byte', async () => {
    const { first, second, keyOf } = await started();
    const requests: readonly Partial<FetchRequest>[] = [
      {},
      { version: 0 },
      { version: 1 },
      { wants: [first] },
      { wants: [first, second] },
      { shallow: [first] },
      { deepen: { kind: 'depth', commits: 1, relative: false } },
      { deepen: { kind: 'depth', commits: 1, relative: true } },
      { deepen: { kind: 'depth', commits: 2, relative: false } },
      { deepen: { kind: 'limits', sinceSeconds: 1, not: [] } },
      { deepen: excluding('v1') },
      { filter: { kind: 'blob:none' } },
      { filter: { kind: 'blob:limit', sizeBytes: 0 } },
      { filter: { kind: 'tree', depth: 0 } },
      { done: false },
      { waitForDone: true },
      { thinPack: false },
      { ofsDelta: false },
      { includeTag: false },
      { noProgress: true },
      { noDone: true },
      { multiAck: 'multi_ack_detailed' },
      { sideBand: 'side-band' },
      { sideBand: null },
    ];
    const keys = await Promise.all(requests.map((request) => keyOf(request)));
    assert.ok(!keys.includes(null));
    assert.equal(new Set(keys).size, requests.length);
  });

  test('differs for other refs and for another HEAD', async () => {
    const { reading, repository, first, keyOf } = await started();
    const key = await keyOf({});
    assert.notEqual(await keyOf({}, { ...repository, defaultBranch: 'main' }), key);
    assert.notEqual(await keyOf({}, await reading.push(repository, { 'refs/tags/v2': first })), key);
  });

  test('is not made for a client that has commits, since its request does not recur', async () => {
    const { keyOf } = await started();
    assert.equal(await keyOf({ haveCount: 1 }), null);
  });

  test('is not made for a repository that is larger than the answers that are kept', async () => {
    const { repository, keyOf } = await started();
    const sized = (layersSizeBytes: number): FoundRepository => {
      const { entity } = repository;
      return { ...repository, entity: { ...entity, state: { ...entity.state, layersSizeBytes } } };
    };
    assert.notEqual(await keyOf({}, sized(ANSWER_KEPT_BYTES_MAX)), null);
    assert.equal(await keyOf({}, sized(ANSWER_KEPT_BYTES_MAX + 1)), null);
  });
});
