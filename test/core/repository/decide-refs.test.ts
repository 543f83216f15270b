/** The result of each command of a push. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { ObjectId } from '../../../core/kernel/ids.ts';
import { ZERO_OBJECT_ID } from '../../../core/kernel/ids.ts';
import type { RequestedUpdate, UpdateRefs } from '../../../core/repository/commands.ts';
import { decideRefs, REPOSITORY_REFS_MEMORY_BYTES_MAX } from '../../../core/repository/decide.ts';
import type { RepositoryEvent } from '../../../core/repository/events.ts';
import { repositories } from '../../../core/repository/evolve.ts';
import { refMemoryBytes } from '../../../core/repository/state.ts';
import { given } from '../../support/fold.ts';
import { branch, moved, oid, pushed, tag, wanted } from '../../support/repository-history.ts';

const [A, B, C] = [oid('a'), oid('b'), oid('c')];

function decide(
  history: readonly RepositoryEvent[],
  updates: readonly RequestedUpdate[],
  more: Partial<UpdateRefs> = {},
) {
  const state = given(repositories, ...history);
  assert.ok(state.status === 'open');
  return decideRefs(state, { updates, atomic: false, initialDefaultBranch: null, commitSeconds: new Map(), ...more });
}

/** Returns the codes in the order of the commands; null for an accepted one. */
function codes(...given: Parameters<typeof decide>) {
  return decide(...given).results.map(({ code }) => code);
}

const main = (at: ObjectId = A): RepositoryEvent => pushed([moved(branch('main'), null, at)]);

describe('A command of a push', () => {
  test("is accepted if it names exactly the ref's current value", () => {
    assert.deepEqual(codes([], [wanted(branch('main'), null, A)]), [null]);
    assert.deepEqual(codes([main()], [wanted(branch('main'), A, B)]), [null]);
    assert.deepEqual(codes([main()], [wanted(branch('main'), A, null)]), [null]);
  });

  test('is refused if another push moved, created or deleted the ref first', () => {
    assert.deepEqual(codes([main(B)], [wanted(branch('main'), A, C)]), ['ref-moved']);
    assert.deepEqual(codes([main(B)], [wanted(branch('main'), A, null)]), ['ref-moved']);
    assert.deepEqual(codes([main(B)], [wanted(branch('main'), null, C)]), ['ref-exists']);
    assert.deepEqual(codes([main(A)], [wanted(branch('main'), null, A)]), ['ref-exists']);
    assert.deepEqual(codes([], [wanted(branch('main'), A, B)]), ['ref-missing']);
    assert.deepEqual(codes([], [wanted(branch('main'), A, null)]), ['ref-missing']);
  });

  test('that deletes a ref without naming its value succeeds only if there is none', () => {
    const gone = wanted(branch('gone'), null, null);
    const { results, updates } = decide([main()], [gone, wanted(branch('main'), A, B)]);
    assert.deepEqual(
      results.map(({ code }) => code),
      [null, null],
    );
    assert.deepEqual(
      updates.map(({ ref }) => ref),
      ['refs/heads/main'],
    );
    assert.deepEqual(codes([main()], [wanted(branch('main'), null, null), gone]), ['ref-exists', null]);
  });

  test('creates no branch or tag that readers would take for something else, but moves and deletes those of before', () => {
    for (const ref of [
      branch('HEAD'),
      tag('HEAD/x'),
      branch('refs/tags/v1'),
      tag('a'.repeat(40)),
      branch(`${A}/docs`),
    ]) {
      assert.deepEqual(codes([main()], [wanted(ref, null, A), wanted(branch('x'), null, A)]), ['name-ambiguous', null]);
      const before = pushed([moved(ref, null, A)]);
      assert.deepEqual(codes([before], [wanted(ref, A, B)]), [null]);
      assert.deepEqual(codes([before], [wanted(ref, A, null)]), [null]);
      assert.deepEqual(codes([before], [wanted(ref, null, B)]), ['ref-exists']);
      assert.deepEqual(codes([], [wanted(ref, A, B)]), ['ref-missing']);
      const both = [wanted(ref, null, A), wanted(branch('x'), null, A)];
      assert.deepEqual(codes([], both, { atomic: true }), ['name-ambiguous', 'atomic-push-refused']);
    }
  });

  test('is refused if its new tip does not exist', () => {
    assert.deepEqual(codes([], [wanted(branch('main'), null, A, { tip: null })]), ['object-missing']);
    assert.deepEqual(codes([], [wanted(tag('v1'), null, A, { tip: null })]), ['object-missing']);
  });

  test('may point branches only to commits, and tags to any object', () => {
    for (const type of ['tree', 'blob', 'tag'] as const) {
      const tip = { id: A, type, peeled: null };
      assert.deepEqual(codes([], [wanted(branch('main'), null, A, { tip })]), ['branch-needs-commit']);
      assert.deepEqual(codes([], [wanted(tag('v1'), null, A, { tip })]), [null]);
    }
  });

  test('has a result that names its ref, in the order of the commands', () => {
    const updates = [wanted(tag('z'), null, A), wanted(branch('b'), A, B), wanted(branch('a'), null, A)];
    assert.deepEqual(decide([], updates).results, [
      { ref: tag('z'), code: null },
      { ref: branch('b'), code: 'ref-missing' },
      { ref: branch('a'), code: null },
    ]);
  });
});

describe('Refs beyond the memory that those of a repository may take', () => {
  // The attack: 90 KB of a compressed push make 15 MiB of names, in the log permanently and in the memory of each
  // server.
  const long = (n: number) => branch(`${`${'x'.repeat(249)}/`.repeat(15)}${n}`);
  const each = refMemoryBytes(long(10_000));
  const fitting = Math.floor(REPOSITORY_REFS_MEMORY_BYTES_MAX / each);
  const names = Array.from({ length: fitting }, (_, n) => long(10_000 + n));
  const full = pushed(names.map((name) => moved(name, null, A)));

  test('are refused by name, and those that fit are made', () => {
    const updates = [...names.slice(0, -1), long(90_000), long(90_001)].map((name) => wanted(name, null, A));
    const results = codes([], updates);
    assert.equal(results.filter((code) => code === null).length, fitting);
    assert.deepEqual(results.slice(-2), [null, 'too-many-refs']);
  });

  test('are made once others are deleted, also in the same push, and existing ones move', () => {
    const [first = branch('none'), second = branch('none')] = names;
    assert.deepEqual(codes([full], [wanted(long(90_000), null, A), wanted(first, A, B)]), ['too-many-refs', null]);
    const updates = [wanted(long(90_000), null, A), wanted(first, A, null), wanted(second, A, B)];
    assert.deepEqual(codes([full], updates), [null, null, null]);
  });
});

describe('Refs that would collide', () => {
  test('are refused if one would be a folder of another', () => {
    assert.deepEqual(codes([main()], [wanted(branch('main/x'), null, A)]), ['ref-collides']);
    assert.deepEqual(codes([pushed([moved(branch('a/b'), null, A)])], [wanted(branch('a'), null, A)]), [
      'ref-collides',
    ]);
    const both = [wanted(branch('a'), null, A), wanted(branch('a/b'), null, A), wanted(branch('c'), null, A)];
    assert.deepEqual(codes([], both), ['ref-collides', 'ref-collides', null]);
  });

  test('are accepted if the same push deletes the ref in the way', () => {
    assert.deepEqual(codes([main()], [wanted(branch('main'), A, null), wanted(branch('main/x'), null, B)]), [
      null,
      null,
    ]);
  });

  test('are refused if the deletion of the ref in the way is itself refused', () => {
    const updates = [wanted(branch('main'), B, null), wanted(branch('main/x'), null, B)];
    assert.deepEqual(codes([main()], updates), ['ref-moved', 'ref-collides']);
  });

  test('are not counted if they were refused for another reason', () => {
    const updates = [wanted(branch('a'), null, A, { tip: null }), wanted(branch('a/b'), null, A)];
    assert.deepEqual(codes([], updates), ['object-missing', null]);
  });

  test('are not checked for a push that only moves and deletes refs', () => {
    assert.deepEqual(codes([main()], [wanted(branch('main'), A, B)]), [null]);
  });
});

describe('An atomic push', () => {
  test('is accepted as a whole', () => {
    const updates = [wanted(branch('main'), A, B), wanted(tag('v1'), null, B)];
    assert.deepEqual(codes([main()], updates, { atomic: true }), [null, null]);
    assert.equal(decide([main()], updates, { atomic: true }).updates.length, 2);
  });

  test('is refused as a whole, each ref for its own reason or because of the others', () => {
    const updates = [
      wanted(branch('main'), B, C),
      wanted(tag('v1'), null, B),
      wanted(branch('x'), null, A, { tip: null }),
    ];
    const decision = decide([main()], updates, { atomic: true });
    assert.deepEqual(
      decision.results.map(({ code }) => code),
      ['ref-moved', 'atomic-push-refused', 'object-missing'],
    );
    assert.deepEqual(decision.updates, []);
    assert.equal(decision.defaultBranch, null);
  });

  test('is refused as a whole for a collision', () => {
    const updates = [wanted(branch('main/x'), null, A), wanted(tag('v1'), null, B)];
    assert.deepEqual(codes([main()], updates, { atomic: true }), ['ref-collides', 'atomic-push-refused']);
  });

  test('is accepted in part if it was not requested as atomic', () => {
    const decision = decide([main()], [wanted(branch('main'), B, C), wanted(tag('v1'), null, B)]);
    assert.deepEqual(
      decision.updates.map(({ ref }) => ref),
      [tag('v1')],
    );
  });
});

describe('What a push stores', () => {
  test('names the kind of each update', () => {
    const history = [
      pushed([moved(branch('main'), null, A), moved(branch('old'), null, A), moved(branch('x'), null, A)]),
    ];
    const updates = [
      wanted(branch('main'), A, B, { fastForward: true }),
      wanted(branch('x'), A, C),
      wanted(branch('old'), A, null),
      wanted(branch('new'), null, B),
    ];
    assert.deepEqual(decide(history, updates).updates, [
      moved(branch('main'), A, B, { kind: 'fast-forward' }),
      moved(branch('x'), A, C, { kind: 'force-push' }),
      moved(branch('old'), A, null),
      moved(branch('new'), null, B),
    ]);
  });

  test('holds the type of the object, and what an annotated tag peels to', () => {
    const tip = { id: A, type: 'tag', peeled: { id: B, type: 'commit' } } as const;
    assert.deepEqual(decide([], [wanted(tag('v1'), null, A, { tip })]).updates, [
      { ref: tag('v1'), before: ZERO_OBJECT_ID, after: A, type: 'tag', peeled: B, kind: 'create' },
    ]);
  });

  test('leaves out updates that change nothing, which are still accepted', () => {
    const decision = decide([main()], [wanted(branch('main'), A, A), wanted(branch('x'), null, B)]);
    assert.deepEqual(
      decision.results.map(({ code }) => code),
      [null, null],
    );
    assert.deepEqual(decision.updates, [moved(branch('x'), null, B)]);
  });

  test('is empty if every command changes nothing or is refused', () => {
    assert.deepEqual(decide([main()], [wanted(branch('main'), A, A)]).updates, []);
    assert.deepEqual(decide([main()], [wanted(branch('main'), B, C)]).updates, []);
  });

  test('may consist of deletions only', () => {
    const decision = decide([main()], [wanted(branch('main'), A, null)]);
    assert.deepEqual(decision.updates, [moved(branch('main'), A, null)]);
    assert.equal(decision.defaultBranch, null);
  });
});

describe('The default branch', () => {
  const chosen = (names: readonly string[], history: readonly RepositoryEvent[] = [], initial: string | null = null) =>
    decide(
      history,
      names.map((name) => wanted(branch(name), null, A)),
      { initialDefaultBranch: initial },
    ).defaultBranch;

  test('is main if the first push creates it, whatever else it creates', () => {
    assert.equal(chosen(['main']), 'main');
    assert.equal(chosen(['a', 'main', 'z']), 'main');
  });

  test('is the branch with the newest commit where neither main nor master is pushed', () => {
    const updates = [wanted(branch('a'), null, A), wanted(branch('dev'), null, B), wanted(branch('z'), null, C)];
    const dates = [
      [A, 1],
      [B, 3],
      [C, 2],
    ] as const;
    assert.equal(decide([], updates, { commitSeconds: new Map(dates) }).defaultBranch, 'dev');
    assert.equal(decide([], updates, { commitSeconds: new Map([[C, 0]]) }).defaultBranch, 'z');
    const main_ = [...updates, wanted(branch('main'), null, C)];
    assert.equal(decide([], main_, { commitSeconds: new Map(dates) }).defaultBranch, 'main');
  });

  test('is the only branch of the first push, or among branches of one date the first in byte order', () => {
    assert.equal(chosen(['trunk']), 'trunk');
    assert.equal(chosen(['z', 'b', 'a']), 'a');
    // U+FF61 sorts before U+1F600 in bytes, and after it in UTF-16.
    assert.equal(chosen(['\u{1f600}', '\uff61']), '\uff61');
    assert.equal(chosen(['b', 'B']), 'B');
  });

  test('stays the fallback if the push creates that', () => {
    assert.equal(chosen(['master']), null);
    assert.equal(chosen(['main', 'master']), null);
  });

  test("stays the creator's choice, whether or not the push creates it", () => {
    assert.equal(chosen(['main'], [], 'trunk'), null);
    assert.equal(chosen(['trunk', 'main'], [], 'trunk'), null);
  });

  test("stays the owner's choice", () => {
    assert.equal(chosen(['main'], [{ type: 'DefaultBranchChanged', data: { default_branch: 'master' } }]), null);
  });

  test('is chosen only once: later pushes keep it, even after its branch was deleted', () => {
    assert.equal(chosen(['main'], [pushed([moved(branch('master'), null, A)])]), null);
    const emptied = [pushed([moved(branch('master'), null, A)]), pushed([moved(branch('master'), A, null)])];
    assert.equal(chosen(['main'], emptied), null);
  });

  test('is chosen by the first push that creates a branch; tags and notes choose nothing', () => {
    const tags = pushed([moved(tag('v1'), null, A)]);
    assert.equal(decide([], [wanted(tag('v1'), null, A)]).defaultBranch, null);
    assert.equal(chosen(['main'], [tags]), 'main');
  });

  test('is chosen from the accepted branches only', () => {
    const updates = [wanted(branch('main'), null, A, { tip: null }), wanted(branch('z'), null, A)];
    assert.equal(decide([], updates).defaultBranch, 'z');
    assert.equal(decide([], updates, { atomic: true }).defaultBranch, null);
  });
});
