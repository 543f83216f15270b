/** The order of commits compared with `git rev-list`, and its updates compared with a rebuilt order. */
import assert from 'node:assert/strict';
import { afterAll, describe, test } from 'vitest';
import { type OrderUpdate, type TipMove, updateOrder } from '../../../../core/git/history/commit-order.ts';
import { commitOrder, type OrderCommit } from '../../../../core/git/history/commit-queue.ts';
import type { StoredOrder } from '../../../../core/git/history/stored-commits.ts';
import type { ObjectId } from '../../../../core/kernel/ids.ts';
import { git, temporaryFolder } from '../../../support/git-process.ts';
import {
  CLOCKS,
  importHistories,
  inventHistory,
  randomShapes,
  reachedFrom,
  seededNumbers,
} from './random-histories.ts';

class History {
  readonly commits: readonly OrderCommit[];
  readonly byId: ReadonlyMap<ObjectId, OrderCommit>;
  constructor(commits: readonly OrderCommit[]) {
    this.commits = commits;
    this.byId = new Map(commits.map((commit) => [commit.id, commit]));
  }
  get(id: ObjectId): OrderCommit {
    const commit = this.byId.get(id);
    assert.ok(commit !== undefined);
    return commit;
  }
  id(index: number): ObjectId {
    const commit = this.commits[index];
    assert.ok(commit !== undefined);
    return commit.id;
  }
  order(...tips: readonly ObjectId[]): ObjectId[] {
    return [...commitOrder(tips, (id) => this.get(id))];
  }
  /** Returns the move with the commits it gains, and those it drops if `namesDropped`. */
  move(oldTip: ObjectId, newTip: ObjectId, namesDropped: boolean): TipMove {
    const before = reachedFrom(oldTip, this.byId);
    const now = reachedFrom(newTip, this.byId);
    // Sorted by id, so that the code under test cannot rely on a meaningful order.
    const gained = [...now.difference(before)].sort().map((id) => this.get(id));
    return { oldTip, newTip, gained, dropped: namesDropped ? [...before.difference(now)].sort() : [] };
  }
  /** Returns the old order as a projection reads it; counts the reads. */
  stored(order: readonly ObjectId[], read = { commits: 0, pageCommits: 0 }): StoredOrder {
    return {
      commits: async (ids) => {
        read.commits += ids.length;
        assert.ok(
          ids.every((id) => order.includes(id)),
          'only commits of the old order are requested',
        );
        return ids.toReversed().map((id) => this.get(id));
      },
      fromTip: async (offset, limit) => {
        read.pageCommits += limit;
        return order.slice(offset, offset + limit).map((id) => this.get(id));
      },
    };
  }
}

function applied(order: readonly ObjectId[], update: OrderUpdate): ObjectId[] | null {
  switch (update.kind) {
    case 'prepend':
      return [...update.commits, ...order];
    case 'splice':
      return [...update.commits, ...order.slice(update.replaced)];
    case 'rebuild':
      return null;
  }
}

/** Returns git's own order, for several tips in the order passed. */
function revList(path: string, ...tips: readonly ObjectId[]): string[] {
  return git(['rev-list', ...tips], { cwd: path })
    .toString()
    .trim()
    .split('\n');
}

type Outcomes = Record<OrderUpdate['kind'], number>;

/** Moves a tip at random and compares the order after each move with `expected`. */
async function moveAround(
  history: History,
  moves: number,
  random: (below: number) => number,
  outcomes: Outcomes,
  expected: (tip: ObjectId) => readonly string[],
): Promise<void> {
  let tip = history.id(random(Math.ceil(history.commits.length / 3)));
  let order = history.order(tip);
  for (let count = 0; count < moves; count++) {
    const current = tip;
    const ahead = history.commits.filter(({ id }) => reachedFrom(id, history.byId).has(current));
    // Usually forward, near or far; sometimes to any commit.
    const near = ahead[1 + random(Math.min(3, ahead.length))] ?? ahead.at(-1);
    const far = ahead[random(ahead.length)];
    const choice = random(10);
    const next = choice < 5 ? near : choice < 8 ? far : history.commits[random(history.commits.length)];
    assert.ok(next !== undefined);
    const move = history.move(tip, next.id, random(2) === 0);
    const update = await updateOrder(move, history.stored(order));
    outcomes[update.kind]++;
    order = applied(order, update) ?? history.order(next.id);
    tip = next.id;
    assert.deepEqual(order, expected(tip), `from ${current} to ${tip} by ${JSON.stringify(update)}`);
  }
}

describe('The order of commits', () => {
  const folder = temporaryFolder('commit-order');
  afterAll(() => folder.remove());
  const histories = Number(process.env['STRATA_TEST_HISTORIES'] ?? 100);

  test('is that of git rev-list, when built and after every update, for random histories', async (t) => {
    const random = seededNumbers(20_261_121);
    git(['init', '--quiet', '--bare', folder.path]);
    const shapes = Array.from({ length: histories }, (_, index) =>
      randomShapes(8 + random(60), CLOCKS[index % CLOCKS.length] ?? 'wild', random),
    );
    const outcomes: Outcomes = { prepend: 0, splice: 0, rebuild: 0 };
    for (const commits of importHistories(folder.path, shapes)) {
      const history = new History(commits);
      await moveAround(history, 6, random, outcomes, (tip) => revList(folder.path, tip));
      const tips = [...new Set([history.id(random(commits.length)), history.id(random(commits.length))])];
      assert.deepEqual(history.order(...tips), revList(folder.path, ...tips));
    }
    await t.annotate(`${histories} histories: ${JSON.stringify(outcomes)}`);
    assert.ok(outcomes.prepend > histories && outcomes.splice > histories / 2 && outcomes.rebuild > histories / 10);
  });

  test('stays right through thousands of moves in larger histories with every kind of clock', async (t) => {
    const random = seededNumbers(7);
    for (const clock of CLOCKS) {
      const outcomes: Outcomes = { prepend: 0, splice: 0, rebuild: 0 };
      for (let count = 0; count < 40; count++) {
        const history = new History(inventHistory(randomShapes(20 + random(150), clock, random)));
        await moveAround(history, 10, random, outcomes, (tip) => history.order(tip));
      }
      await t.annotate(`${clock}: ${JSON.stringify(outcomes)}`);
    }
  });
});

describe('An update of the order', () => {
  /** A linear history of commits ten seconds apart, the oldest first. */
  const line = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ parents: index === 0 ? [] : [index - 1], seconds: index * 10 }));

  test('by a fast-forward push reads only the old tip', async () => {
    const history = new History(inventHistory(line(1_000)));
    const read = { commits: 0, pageCommits: 0 };
    const [oldTip, newTip] = [history.id(900), history.id(999)];
    const order = history.order(oldTip);
    const update = await updateOrder(history.move(oldTip, newTip, true), history.stored(order, read));
    assert.equal(update.kind, 'prepend');
    assert.deepEqual(applied(order, update), history.order(newTip));
    assert.deepEqual(read, { commits: 1, pageCommits: 0 });
  });

  test('by a merge of a side branch replaces the order down to the fork point', async () => {
    // 0 - 1 - 2 - 3 (old tip), 0 - 4 (dated before 3, new), 5 merges 3 and 4.
    const shapes = [...line(4), { parents: [0], seconds: 5 }, { parents: [3, 4], seconds: 50 }];
    const history = new History(inventHistory(shapes));
    const [oldTip, newTip] = [history.id(3), history.id(5)];
    const order = history.order(oldTip);
    const update = await updateOrder(history.move(oldTip, newTip, true), history.stored(order));
    assert.deepEqual(update, {
      kind: 'splice',
      replaced: 3,
      commits: [history.id(5), history.id(3), history.id(2), history.id(1), history.id(4)],
    });
    assert.deepEqual(applied(order, update), history.order(newTip));
  });

  test('by an amended tip replaces that tip if the dropped commits are passed, and rebuilds otherwise', async () => {
    const history = new History(inventHistory([...line(500), { parents: [498], seconds: 5_000 }]));
    const [oldTip, newTip] = [history.id(499), history.id(500)];
    const stored = history.stored(history.order(oldTip));
    const told = await updateOrder(history.move(oldTip, newTip, true), stored);
    assert.deepEqual(told, { kind: 'splice', replaced: 1, commits: [newTip] });
    const untold = await updateOrder(history.move(oldTip, newTip, false), stored);
    assert.deepEqual(untold, { kind: 'rebuild', reason: 'not-an-ancestor' });
  });

  test('back to an ancestor removes the commits after it', async () => {
    const history = new History(inventHistory(line(500)));
    const [oldTip, newTip] = [history.id(499), history.id(489)];
    const update = await updateOrder(history.move(oldTip, newTip, true), history.stored(history.order(oldTip)));
    assert.deepEqual(update, { kind: 'splice', replaced: 10, commits: [] });
  });

  test('to the same tip or to an unrelated history gives the right order', async () => {
    const history = new History(inventHistory([...line(5), { parents: [], seconds: 7 }]));
    const [oldTip, newTip] = [history.id(4), history.id(5)];
    const stored = history.stored(history.order(oldTip));
    assert.deepEqual(await updateOrder(history.move(oldTip, oldTip, true), stored), { kind: 'prepend', commits: [] });
    const update = await updateOrder(history.move(oldTip, newTip, true), stored);
    assert.deepEqual(update, { kind: 'splice', replaced: 5, commits: [newTip] });
  });

  test('is right even if the queues are equal while the two walks have popped different commits', async () => {
    // 1 and 2 are ancestors of 3 but dated after it. The parents of the old tip 4 are 3 and 1, of the new tip 5 3 and
    // 2.
    const shapes = [
      { parents: [], seconds: 0 },
      { parents: [0], seconds: 80 },
      { parents: [0], seconds: 80 },
      { parents: [1, 2], seconds: 50 },
      { parents: [3, 1], seconds: 90 },
      { parents: [3, 2], seconds: 90 },
    ];
    const history = new History(inventHistory(shapes));
    const order = history.order(history.id(4));
    const update = await updateOrder(history.move(history.id(4), history.id(5), true), history.stored(order));
    assert.equal(update.kind, 'splice');
    assert.deepEqual(applied(order, update), history.order(history.id(5)));
  });

  test('at the depth limit is a splice, and one commit deeper a rebuild', async () => {
    // A new commit dated before the whole line, merged at its end, replaces all of the line except the root.
    const shapes = [...line(300), { parents: [0], seconds: -1 }, { parents: [299, 300], seconds: 5_000 }];
    const history = new History(inventHistory(shapes));
    const [oldTip, newTip] = [history.id(299), history.id(301)];
    const order = history.order(oldTip);
    const move = history.move(oldTip, newTip, true);
    const made = await updateOrder({ ...move, depthMax: 300 }, history.stored(order));
    assert.deepEqual(applied(order, made), history.order(newTip));
    assert.ok(made.kind === 'splice' && made.replaced === 300);
    const refused = await updateOrder({ ...move, depthMax: 299 }, history.stored(order));
    assert.deepEqual(refused, { kind: 'rebuild', reason: 'too-deep' });
  });

  test('of a wrong stored order is a rebuild, not a wrong order', async () => {
    const history = new History(
      inventHistory([...line(50), { parents: [40], seconds: 455 }, { parents: [49, 50], seconds: 900 }]),
    );
    const [oldTip, newTip] = [history.id(49), history.id(51)];
    const order = history.order(oldTip);
    const [first, second, ...others] = order;
    assert.ok(first !== undefined && second !== undefined);
    const move = history.move(oldTip, newTip, true);
    const right = await updateOrder(move, history.stored(order));
    assert.equal(right.kind, 'splice');
    const wrong = await updateOrder(move, history.stored([second, first, ...others]));
    assert.deepEqual(wrong, { kind: 'rebuild', reason: 'inconsistent' });
    const reset = { ...history.move(oldTip, history.id(20), true), dropped: [oldTip] };
    assert.equal((await updateOrder(reset, history.stored(order))).kind, 'rebuild');
  });

  test('attack: for a thousand roots of one date, whose queues never become equal, ends in bounded work', async () => {
    // The new tip lists the same roots in reverse, so both queues hold the same commits, but never in the same order.
    const roots = Array.from({ length: 1_000 }, () => ({ parents: [], seconds: 5 }));
    const all = roots.map((_, index) => index);
    const shapes = [...roots, { parents: all, seconds: 9 }, { parents: [...all.toReversed(), 1_000], seconds: 9 }];
    const history = new History(inventHistory(shapes));
    const order = history.order(history.id(1_000));
    const move = history.move(history.id(1_000), history.id(1_001), true);
    const update = await updateOrder(move, history.stored(order));
    assert.deepEqual(applied(order, update) ?? history.order(history.id(1_001)), history.order(history.id(1_001)));
    assert.deepEqual(await updateOrder({ ...move, depthMax: 100 }, history.stored(order)), {
      kind: 'rebuild',
      reason: 'too-deep',
    });
  });
});
