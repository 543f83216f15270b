/** Which push brought a commit, compared with the first push whose tips git finds it from. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, beforeEach, describe, test } from 'vitest';
import { CommitMarks } from '../../../../core/git/history/commit-marks.ts';
import { type ObjectId, objectId, type RepositoryId } from '../../../../core/kernel/ids.ts';
import { ObjectDatabaseError, type ObjectReader } from '../../../../core/ports/object-database.ts';
import {
  type KnownPushes,
  PUSHED_COMMITS_MAX,
  PUSHED_SPAN_MS,
  PUSHED_TIPS_MAX,
  type PushedBounds,
  type PushedCommits,
  pushesOfCommits,
} from '../../../../core/use-cases/reading/pushes-of-commits.ts';
import { type GitReading, startGitReading } from '../../../support/git-reading.ts';
import { createDice } from '../../../support/seeded.ts';

const signal = new AbortController().signal;

describe('The push of a commit', () => {
  let reading: GitReading;
  let knownPushes: KnownPushes;
  let walks = 0;
  const commits: ObjectId[] = [];
  /** The tips of each push, by the revision of its event. */
  const pushed: { revision: number; tips: ObjectId[] }[] = [];

  const push = async (refs: Record<string, ObjectId | null>): Promise<void> => {
    const { entity } = await reading.push(refs);
    pushed.push({ revision: Number(entity.revision), tips: Object.values(refs).filter((id) => id !== null) });
  };
  const context = (
    links?: (history: ObjectReader['history']) => ObjectReader['history']['links'],
    pushedBounds?: PushedBounds,
  ) => ({
    ...reading.node,
    knownPushes,
    ...(pushedBounds === undefined ? {} : { pushedBounds }),
    objects: {
      open: async (committed: Parameters<GitReading['node']['objects']['open']>[0]): Promise<ObjectReader> => {
        const reader = await reading.node.objects.open(committed);
        const walk = links?.(reader.history) ?? reader.history.links;
        const counted: typeof walk = (...given) => {
          walks += 1;
          return walk(...given);
        };
        return { ...reader, history: { ...reader.history, links: counted } };
      },
    },
  });
  const found = async (ids: readonly ObjectId[], given = context()) => {
    const rows = await pushesOfCommits(given, await reading.current(), ids, signal);
    return ids.map((id) => rows.get(id)?.revision ?? null);
  };
  const expected = (id: ObjectId): number | null => {
    for (const { revision, tips } of pushed) {
      const reached = tips.some((tip) => reading.git.line(['rev-list', tip]).split('\n').includes(id));
      if (reached) return revision;
    }
    return null;
  };

  beforeAll(async () => {
    reading = await startGitReading();
    const { git } = reading;
    const dice = createDice(11);
    const commit = (branch: string, parents?: readonly ObjectId[]): ObjectId => {
      const options = { branch, ...(parents === undefined ? {} : { parents }) };
      const id = git.commit({ [dice.pick(['a', 'b'])]: `${commits.length}` }, options);
      commits.push(id);
      return id;
    };
    const first = commit('main');
    commit('main');
    await push({ 'refs/heads/main': commit('main') });
    const side = commit('side', [first]);
    await push({ 'refs/heads/side': commit('side') });
    const main = commit('main');
    git.git(['tag', '-a', 'v1', '-m', 'v1', main]);
    const tag = objectId(git.line(['rev-parse', 'v1']));
    await push({ 'refs/tags/v1': tag, 'refs/tags/tree': objectId(git.line(['rev-parse', `${main}^{tree}`])) });
    const merge = commit('main', [main, side]);
    await push({ 'refs/heads/main': merge });
    const forced = commit('side', [first]);
    await push({ 'refs/heads/side': forced });
    await push({ 'refs/heads/other': commit('other', [merge, forced]), 'refs/heads/more': commit('more', [forced]) });
    await push({ 'refs/heads/more': null });
  });
  afterAll(() => reading.close());
  beforeEach(() => {
    knownPushes = memoryPushes();
    walks = 0;
  });

  test('is the first whose tips reach it, through merges, tags, force pushes and deleted branches', async () => {
    assert.deepEqual(await found(commits), commits.map(expected));
    await found(commits);
    assert.equal(walks, 1);
  });

  test('is the same when it is asked for after each push', async () => {
    for (let count = 0; count < 3; count += 1) {
      const id = reading.git.commit({ a: `again ${count}` }, { branch: 'main' });
      commits.push(id);
      await push({ 'refs/heads/main': id });
      assert.deepEqual(await found(commits.slice(-1 - count)), commits.slice(-1 - count).map(expected));
      assert.equal(walks, count + 1);
    }
    assert.deepEqual(await found(commits), commits.map(expected));
  });

  test('names who pushed, when, and as which event', async () => {
    const rows = await pushesOfCommits(context(), await reading.current(), commits.slice(0, 1), signal);
    const [row] = rows.values();
    const { items } = await reading.node.readModels.activity((await reading.current()).id, { offset: 0, limit: 100 });
    assert.deepEqual(row, items.at(-1)?.push);
    assert.deepEqual([row?.revision, row?.actor.kind], [0, 'admin']);
  });

  test('is asked for at the same time by many requests, and worked out once', async () => {
    const all = await Promise.all([found(commits), found(commits.slice(2)), found(commits.slice(0, 1))]);
    assert.deepEqual(all[1], all[0]?.slice(2));
    assert.equal(walks, 1);
  });

  test('is found although the request that worked it out was given up', async () => {
    const abort = new AbortController();
    const links = (history: ObjectReader['history']): ObjectReader['history']['links'] =>
      async function* (...given) {
        for await (const batch of history.links(...given)) {
          yield batch.slice(0, 3);
          abort.abort(new Error('The client left'));
          throw abort.signal.reason;
        }
      };
    await found(commits.slice(0, 1), context(undefined, { commits: 1_000, tips: 1_000 }));
    const id = reading.git.commit({ a: 'aborted' }, { branch: 'main' });
    const next = reading.git.commit({ a: 'aborted again' }, { branch: 'main' });
    commits.push(id, next);
    await push({ 'refs/heads/main': next });
    const leader = pushesOfCommits(context(links), await reading.current(), [id], abort.signal);
    const follower = found(commits);
    await assert.rejects(leader, /The client left/);
    assert.deepEqual(await follower, commits.map(expected));
  });

  test('is known of as many commits as the limit, and not of one more', async () => {
    for (const missing of [0, 1]) {
      knownPushes = memoryPushes();
      const marks = new CrowdedMarks(PUSHED_COMMITS_MAX - commits.length + missing);
      knownPushes.set((await reading.current()).id, { marks, next: 0, boundary: [], incomplete: false });
      assert.equal((await found(commits)).filter((revision) => revision === null).length, missing);
    }
  });

  test('is looked for while refs changed as often as the limit, and not with one change more', async () => {
    for (const [changes, walked] of [
      [PUSHED_TIPS_MAX, 1],
      [PUSHED_TIPS_MAX + 1, 0],
    ] as const) {
      knownPushes = memoryPushes();
      walks = 0;
      const target = commits[0] ?? assert.fail('no commit');
      const pushTips = async (_: unknown, from: number, limit: number) =>
        Array.from({ length: Math.min(limit, changes - from) }, (_none, n) => ({
          number: from + n,
          target,
          revision: 0,
        }));
      const readModels = { ...context().readModels, pushTips };
      await found([target], { ...context(), readModels });
      assert.equal(walks, walked);
    }
  });

  test('is not known beyond the limits of commits, changes and time, and costs no further walk', async () => {
    const whole = { commits: commits.length, tips: 100 };
    assert.ok(!(await found(commits, context(undefined, whole))).includes(null));
    knownPushes = memoryPushes();
    const fewer = await found(commits, context(undefined, { ...whole, commits: commits.length - 1 }));
    assert.equal(fewer.filter((revision) => revision === null).length, 1);
    knownPushes = memoryPushes();
    const changes = pushed.reduce((sum, { tips }) => sum + tips.length, 0);
    assert.ok(!(await found(commits, context(undefined, { ...whole, tips: changes }))).includes(null));
    knownPushes = memoryPushes();
    const none = await found(commits, context(undefined, { ...whole, tips: changes - 1 }));
    assert.ok(none.every((revision) => revision === null));
    knownPushes = memoryPushes();
    walks = 0;
    const spans: number[] = [];
    const late = (): ObjectReader['history']['links'] =>
      async function* (_include, _exclude, { spanMs }) {
        spans.push(spanMs);
        yield [];
        throw new ObjectDatabaseError('reading-too-costly', 'late');
      };
    assert.ok((await found(commits, context(late))).every((revision) => revision === null));
    await found(commits, context(late));
    assert.equal(walks, 1);
    assert.deepEqual(spans, [PUSHED_SPAN_MS]);
  });
});

/** Counts this many commits more than it has marks of. */
class CrowdedMarks extends CommitMarks {
  readonly #others: number;

  constructor(others: number) {
    super();
    this.#others = others;
  }

  override get count(): number {
    return this.#others + super.count;
  }
}

function memoryPushes(): KnownPushes {
  const known = new Map<RepositoryId, PushedCommits>();
  return { get: (id) => known.get(id), set: (id, value) => void known.set(id, value), underWay: new Map() };
}
