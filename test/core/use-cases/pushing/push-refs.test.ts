/** A push, from its pack to its one commit point, and what remains of a push that ends early. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { readEvent } from '../../../../core/kernel/decider.ts';
import { LOG_START } from '../../../../core/kernel/envelope.ts';
import { plusMs, uuid } from '../../../../core/kernel/ids.ts';
import { PUSH_COMMIT_SPAN_MS } from '../../../../core/kernel/limits.ts';
import type { FailpointName } from '../../../../core/ports/failpoints.ts';
import { type RefsUpdated, repositoryEventKinds } from '../../../../core/repository/events.ts';
import { repositories } from '../../../../core/repository/evolve.ts';
import { DATED_BRANCHES_MAX, type PushKey } from '../../../../core/use-cases/pushing/push-refs.ts';
import { deleteRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import { CAUSE, startNode } from '../../../support/node.ts';
import { type Pushing, startPushing } from '../../../support/pushing.ts';
import { branch, oid, tag } from '../../../support/repository-history.ts';

const [A, B, C, D] = [oid('a'), oid('b'), oid('c'), oid('d')];
const main = branch('main');
const create = { ref: main, before: null, after: A };

/** Returns the codes of the refs, or the code of the refusal of the whole push. */
async function codes(outcome: ReturnType<Pushing['push']>): Promise<readonly (string | null)[] | string> {
  const settled = await outcome;
  return 'refused' in settled ? settled.refused.code : settled.results.map(({ code }) => code);
}

async function lastPush({ node, log, repository }: Pushing): Promise<RefsUpdated['data']> {
  const { stream } = await node.entities.get(repositories, repository);
  const events = await log.readStream(stream, { direction: 'backwards', limit: 2 });
  for (const event of events) {
    const read = readEvent(repositoryEventKinds, event);
    if (read.type === 'RefsUpdated') return read.data;
  }
  throw new Error('There was no push');
}

/** Makes another push, of another ref, through the whole use case. */
async function rival(pushing: Pushing, name = 'rival'): Promise<void> {
  assert.deepEqual(await codes(pushing.push([{ ref: branch(name), before: null, after: D }])), [null]);
}

describe('A push', () => {
  test('moves its refs, stores its pack as the layer that its event names, and records its facts', async () => {
    const pushing = await startPushing();
    const [v1, noted] = [tag('v1'), C];
    pushing.objects.types.set(noted, 'tag');
    pushing.objects.peeled.set(noted, A);
    const commands = [create, { ref: v1, before: null, after: noted }];
    assert.deepEqual(await codes(pushing.push(commands, { pushOptions: ['ci.skip'] })), [null, null]);
    assert.deepEqual(await pushing.refs(), { [main]: A, [v1]: C });
    const data = await lastPush(pushing);
    const [key] = await pushing.layerKeys();
    assert.ok(data.layer !== null && key !== undefined);
    assert.deepEqual(
      [data.layer.key, data.push_options, data.refused, data.received_bytes, data.parts, data.door],
      [key, ['ci.skip'], 0, 500, null, 'git'],
    );
    assert.equal(data.updates[1]?.peeled, A);
    const state = await pushing.state();
    assert.deepEqual(
      [...state.layers].map(({ id }) => id),
      [data.layer.id],
    );
    assert.equal(state.defaultBranch, 'main');
    assert.deepEqual(
      pushing.objects.installed.map(({ id }) => id),
      [data.layer.id],
    );
    assert.deepEqual([pushing.objects.open, pushing.objects.discarded], [0, 0]);
  });

  test('is checked against the layers committed at the revision that it starts from', async () => {
    const pushing = await startPushing();
    await pushing.push([create]);
    await pushing.push([{ ref: main, before: A, after: B }]);
    const [first, second] = pushing.objects.received.map(({ objects }) => objects);
    assert.deepEqual([first?.revision, [...(first?.layers ?? [])].length], ['none', 0]);
    assert.deepEqual([second?.revision, [...(second?.layers ?? [])].length, second?.shrinkEpoch], [1, 1, 0]);
  });

  test('stores a layer that lists its updates and names the push and the repository', async () => {
    const pushing = await startPushing();
    pushing.objects.types.set(C, 'tag');
    pushing.objects.peeled.set(C, A);
    pushing.objects.layerSizeBytes = 0;
    await pushing.push([create, { ref: tag('v1'), before: null, after: C }, { ref: branch('x'), before: B, after: A }]);
    const data = await lastPush(pushing);
    assert.ok(data.layer !== null);
    const stored = await pushing.layers.get(data.layer.key as Parameters<typeof pushing.layers.get>[0]);
    const [head, ...lines] = Buffer.concat(await Array.fromAsync(stored))
      .toString()
      .trimEnd()
      .split('\n');
    assert.deepEqual(JSON.parse(head ?? ''), {
      format: 1,
      layer_id: data.layer.id,
      push_id: data.push_id,
      repository_id: pushing.repository,
      object_count: 3,
    });
    assert.deepEqual(lines, [`${A} ${main}`, `${C} ${tag('v1')} ${A}`]);
  });

  test('moves refs and stores no layer if its pack has no objects', async () => {
    const pushing = await startPushing();
    pushing.objects.objectCount = 0;
    assert.deepEqual(await codes(pushing.push([create])), [null]);
    assert.equal((await lastPush(pushing)).layer, null);
    assert.deepEqual([await pushing.layerKeys(), pushing.objects.installed, pushing.objects.open], [[], [], 0]);
  });

  test('reads no pack if it only deletes refs', async () => {
    const pushing = await startPushing();
    await pushing.push([create]);
    assert.deepEqual(await codes(pushing.push([{ ref: main, before: A, after: null }])), [null]);
    assert.deepEqual(await pushing.refs(), {});
    assert.equal(pushing.objects.received.length, 1);
    assert.equal((await lastPush(pushing)).layer, null);
  });

  test('throws if it has new tips but no pack', async () => {
    const pushing = await startPushing();
    await assert.rejects(pushing.push([create], { pack: null }), TypeError);
  });

  test('distinguishes forward moves of branches from forced ones, and counts every move of a tag as forced', async () => {
    const pushing = await startPushing();
    const [next, v1] = [branch('next'), tag('v1')];
    await pushing.push([create, { ref: next, before: null, after: A }, { ref: v1, before: null, after: A }]);
    pushing.objects.ancestry.add(`${A} ${B}`);
    await pushing.push([
      { ref: main, before: A, after: B },
      { ref: next, before: A, after: C },
      { ref: v1, before: A, after: B },
    ]);
    const kinds = (await lastPush(pushing)).updates.map(({ kind }) => kind);
    assert.deepEqual(kinds, ['fast-forward', 'force-push', 'force-push']);
  });

  test('changes nothing if its moves would take too long to compare', async () => {
    const pushing = await startPushing();
    await pushing.push([create]);
    pushing.objects.movesRefusal = { refused: 'pack-too-costly', detail: 'push fewer refs in one push' };
    assert.deepEqual(await pushing.push([{ ref: main, before: A, after: B }]), {
      refused: { code: 'pack-too-costly', detail: 'push fewer refs in one push' },
    });
    assert.equal((await lastPush(pushing)).updates[0]?.kind, 'create');
    assert.equal(pushing.objects.open, 0);
  });

  test('changes nothing and stores nothing if its pack is refused while its layer is written', async () => {
    const pushing = await startPushing();
    pushing.objects.lateRefusal = { refused: 'pack-object-too-large', detail: 'a commit has too many bytes' };
    assert.deepEqual(await pushing.push([create]), {
      refused: { code: 'pack-object-too-large', detail: 'a commit has too many bytes' },
    });
    assert.deepEqual(await pushing.refs(), {});
    assert.equal(pushing.objects.open, 0);
  });

  test('records a partial refusal in its event, and leaves the repository not clean', async () => {
    const pushing = await startPushing();
    pushing.objects.types.set(B, null);
    assert.deepEqual(await codes(pushing.push([create, { ref: branch('x'), before: null, after: B }])), [
      null,
      'object-missing',
    ]);
    assert.deepEqual(await pushing.refs(), { [main]: A });
    assert.equal((await lastPush(pushing)).refused, 1);
    assert.equal((await pushing.state()).clean, false);
  });

  test('leaves nothing if it is atomic and partly refused', async () => {
    const pushing = await startPushing();
    pushing.objects.types.set(B, null);
    const commands = [create, { ref: branch('x'), before: null, after: B }];
    assert.deepEqual(await codes(pushing.push(commands, { atomic: true })), ['atomic-push-refused', 'object-missing']);
    assert.deepEqual([await pushing.eventTypes(), await pushing.layerKeys(), pushing.objects.open], [[], [], 0]);
  });

  test('commits and stores nothing if it changes nothing', async () => {
    const pushing = await startPushing();
    await pushing.push([create]);
    assert.deepEqual(await codes(pushing.push([{ ref: main, before: A, after: A }])), [null]);
    assert.equal((await pushing.layerKeys()).length, 1);
    assert.equal((await pushing.eventTypes()).length, 2);
    assert.deepEqual([pushing.objects.open, pushing.objects.discarded], [0, 1]);
  });

  test("keeps its creator's default branch, and chooses one if none was named", async () => {
    const named = await startPushing({ defaultBranch: 'trunk' });
    await named.push([create]);
    assert.deepEqual([await named.eventTypes(), (await named.state()).defaultBranch], [['RefsUpdated'], null]);
    const unnamed = await startPushing();
    await unnamed.push([{ ...create, ref: branch('z') }]);
    assert.deepEqual(await unnamed.eventTypes(), ['RefsUpdated', 'DefaultBranchChanged']);
    assert.equal((await unnamed.state()).defaultBranch, 'z');
  });

  test('is in the cache before its refs are visible in memory', async () => {
    const pushing = await startPushing();
    await pushing.push([create]);
    await pushing.state();
    pushing.log.on.deliver = () => new Promise(() => undefined);
    const seen: (string | undefined)[] = [];
    pushing.objects.onInstall = async () => {
      const { state } = await pushing.node.entities.get(repositories, pushing.repository);
      seen.push(state.status === 'open' ? state.refs.get(main)?.id : undefined);
    };
    await pushing.push([{ ref: main, before: A, after: B }]);
    const { state } = await pushing.node.entities.get(repositories, pushing.repository);
    seen.push(state.status === 'open' ? state.refs.get(main)?.id : undefined);
    assert.deepEqual(seen, [A, B]);
  });
});

describe('A push with a key', () => {
  const keyOf = (isUsed: PushKey['isUsed']): PushKey => {
    return { id: uuid('0190f3e2-7c1a-5b4e-9a35-0000000000aa'), requestDigest: 'e'.repeat(64), isUsed };
  };

  test('has the id of its key, and its event the digest of what was asked for', async () => {
    const pushing = await startPushing();
    const key = keyOf(async () => false);
    assert.deepEqual(await codes(pushing.push([create], { key })), [null]);
    const { push_id, request_digest } = await lastPush(pushing);
    assert.deepEqual([push_id, request_digest], [key.id, key.requestDigest]);
    await rival(pushing);
    assert.equal((await lastPush(pushing)).request_digest, null);
  });

  test('changes nothing if whoever won a race has used the key, and looks up to where it lost', async () => {
    const pushing = await startPushing();
    pushing.log.on.append = async () => {
      pushing.log.on.append = undefined;
      await rival(pushing);
    };
    const looks: bigint[] = [];
    const key = keyOf(async (position) => {
      looks.push(position);
      return looks.length === 2;
    });
    assert.equal(await codes(pushing.push([create], { key })), 'key-in-use');
    assert.deepEqual(Object.keys(await pushing.refs()), ['refs/heads/rival']);
    assert.equal((await pushing.layerKeys()).length, 1, 'that of the other push');
    assert.deepEqual(looks, [LOG_START, await pushing.log.head()]);
  });
});

describe('A push that ends before its append', () => {
  /** Checks that no ref moved, no event names anything and nothing remains in quarantine. */
  async function leftNothing(pushing: Pushing, layers: number): Promise<void> {
    pushing.log.on.append = undefined;
    const fresh = await startNode(pushing.log);
    const { state, revision } = await fresh.entities.get(repositories, pushing.repository);
    assert.deepEqual([revision, state.status === 'open' ? state.refs.size : null], ['none', 0]);
    assert.deepEqual([pushing.objects.open, pushing.objects.installed], [0, []]);
    assert.equal((await pushing.layerKeys()).length, layers);
    assert.deepEqual(await codes(pushing.push([create])), [null], 'the next push is committed');
  }

  test('reports why its pack was refused', async () => {
    const pushing = await startPushing();
    pushing.objects.refusal = { refused: 'pack-fsck-failed', detail: 'tree holds .git' };
    const outcome = await pushing.push([create]);
    assert.deepEqual(outcome, { refused: { code: 'pack-fsck-failed', detail: 'tree holds .git' } });
    pushing.objects.refusal = null;
    await leftNothing(pushing, 0);
  });

  for (const point of ['push-pack-received', 'push-layer-stored'] as const) {
    test(`at ${point} leaves nothing`, async () => {
      const pushing = await startPushing();
      pushing.onFailpoint = (reached) => {
        if (reached !== point) return;
        pushing.onFailpoint = () => undefined;
        throw new Error('killed');
      };
      await assert.rejects(pushing.push([create]), /killed/);
      await leftNothing(pushing, 0);
    });
  }

  test('leaves nothing if its layer cannot be stored', async () => {
    const pushing = await startPushing();
    pushing.onPut = () => {
      pushing.onPut = () => undefined;
      throw new Error('disk full');
    };
    await assert.rejects(pushing.push([create]), /disk full/);
    await leftNothing(pushing, 0);
  });

  test('leaves its layer if its append threw, since the log may still commit what was sent', async () => {
    const pushing = await startPushing();
    pushing.log.on.append = () => {
      throw new Error('outage');
    };
    await assert.rejects(pushing.push([create]), /outage/);
    await leftNothing(pushing, 1);
  });

  test('leaves nothing if its client disconnects, at any point before the append', async () => {
    for (const [point, layers] of [
      ['push-pack-received', 0],
      ['push-layer-stored', 1],
    ] as const) {
      const pushing = await startPushing();
      const client = new AbortController();
      pushing.onFailpoint = async (reached) => {
        if (reached !== point) return;
        pushing.onFailpoint = () => undefined;
        client.abort(new Error('gone'));
        // The append loses a race, so that the signal is checked again.
        if (point === 'push-layer-stored')
          pushing.log.on.append = async () => {
            pushing.log.on.append = undefined;
            await rival(pushing);
          };
      };
      await assert.rejects(pushing.push([create], { signal: client.signal }), /gone/);
      assert.equal((await pushing.refs())[main], undefined);
      assert.equal(pushing.objects.open, 0);
      assert.equal((await pushing.layerKeys()).length, layers, 'none, or that of the other push');
    }
  });

  test('leaves nothing if its body ends early', async () => {
    const pushing = await startPushing();
    const broken = async function* (): AsyncGenerator<Uint8Array> {
      yield new Uint8Array(1);
      throw new Error('connection reset');
    };
    await assert.rejects(pushing.push([create], { pack: broken() }), /connection reset/);
    await leftNothing(pushing, 0);
  });

  test('is refused if its layer was stored too long ago, and accepted at the last moment', async () => {
    const late = await startPushing();
    late.onPut = () => {
      late.onPut = () => undefined;
      late.node.clock.advance(PUSH_COMMIT_SPAN_MS + 1);
    };
    assert.equal(await codes(late.push([create])), 'push-took-too-long');
    await leftNothing(late, 0);
    const justInTime = await startPushing();
    justInTime.onPut = () => justInTime.node.clock.advance(PUSH_COMMIT_SPAN_MS);
    assert.deepEqual(await codes(justInTime.push([create])), [null]);
  });

  test('is refused if its machine slept after the layer was stored, while the monotonic clock stopped too', async () => {
    const slept = await startPushing();
    slept.onFailpoint = (point) => {
      if (point === 'push-layer-stored') {
        slept.onFailpoint = () => undefined;
        slept.node.clock.set(plusMs(slept.node.clock.now(), PUSH_COMMIT_SPAN_MS + 1));
      }
    };
    assert.equal(await codes(slept.push([create])), 'push-took-too-long');
    await leftNothing(slept, 0);
  });

  for (const [what, wait] of [
    ['waited for too long', ({ node: { clock } }) => clock.advance(PUSH_COMMIT_SPAN_MS + 1)],
    [
      'waited while its machine slept',
      ({ node: { clock } }) => clock.set(plusMs(clock.now(), PUSH_COMMIT_SPAN_MS + 1)),
    ],
  ] as const satisfies readonly (readonly [string, (pushing: Pushing) => void])[]) {
    test(`is refused if its append ${what} before it was sent`, async () => {
      const held = await startPushing();
      held.log.on.append = () => {
        held.log.on.append = undefined;
        wait(held);
      };
      assert.equal(await codes(held.push([create])), 'push-took-too-long');
      await leftNothing(held, 0);
    });
  }

  test('is refused if its parts and its token took too long after its layer was stored', async () => {
    const late = await startPushing();
    const guarding = async () => {
      late.node.clock.advance(PUSH_COMMIT_SPAN_MS + 1);
      return { guards: [] };
    };
    assert.equal(await codes(late.push([create], { guarding })), 'push-took-too-long');
    await leftNothing(late, 0);
  });
});

describe('A push that is interrupted at or after its append', () => {
  for (const point of ['push-appended', 'push-installed'] as const satisfies readonly FailpointName[]) {
    test(`at ${point} is committed completely`, async () => {
      const pushing = await startPushing();
      pushing.onFailpoint = (reached) => {
        if (reached === point) throw new Error('killed');
      };
      await assert.rejects(pushing.push([create]), /killed/);
      assert.deepEqual(await pushing.refs(), { [main]: A });
      assert.equal((await pushing.layerKeys()).length, 1);
      assert.equal(pushing.objects.open, 0);
    });
  }

  test("is an error for its client if the log's answer is lost, but is committed completely", async () => {
    const pushing = await startPushing();
    pushing.log.on.appended = () => {
      throw new Error('the answer was lost');
    };
    await assert.rejects(pushing.push([create]), /the answer was lost/);
    assert.deepEqual(await pushing.refs(), { [main]: A });
    assert.equal(pushing.objects.open, 0);
  });
});

describe('A push that loses a race', () => {
  test('for another ref still commits, with the layer that it stored once', async () => {
    const pushing = await startPushing();
    let races = 0;
    const race = async () => {
      pushing.log.on.append = undefined;
      races += 1;
      await rival(pushing, `rival${races}`);
      if (races < 10) pushing.log.on.append = race;
    };
    pushing.log.on.append = race;
    assert.deepEqual(await codes(pushing.push([create])), [null]);
    assert.equal(races, 10);
    assert.equal(Object.keys(await pushing.refs()).length, 11);
    const layers = await pushing.layerKeys();
    assert.equal(layers.length, 11);
    assert.deepEqual([...(await pushing.state()).layers].map(({ key }) => String(key)).sort(), layers.sort());
  });

  test('for its own ref is refused, and its quarantine is removed', async () => {
    const pushing = await startPushing();
    pushing.log.on.append = async () => {
      pushing.log.on.append = undefined;
      await pushing.push([{ ...create, after: B }]);
    };
    assert.deepEqual(await codes(pushing.push([create])), ['ref-exists']);
    assert.deepEqual(await pushing.refs(), { [main]: B });
    assert.deepEqual([pushing.objects.open, pushing.objects.discarded], [0, 1]);
  });

  test('does not choose a default branch if the winner chose one', async () => {
    const pushing = await startPushing();
    pushing.log.on.append = async () => {
      pushing.log.on.append = undefined;
      await rival(pushing);
    };
    await pushing.push([create]);
    assert.equal((await pushing.state()).defaultBranch, 'rival');
    assert.deepEqual(await pushing.eventTypes(), ['RefsUpdated', 'DefaultBranchChanged', 'RefsUpdated']);
  });

  test('to one of twenty others on one branch is refused, while pushes to branches of their own all commit', async () => {
    const pushing = await startPushing();
    const ids = Array.from({ length: 20 }, (_, n) => oid(`f${String(n).padStart(2, '0')}`));
    const same = await Promise.all(ids.map((after) => codes(pushing.push([{ ...create, after }]))));
    assert.equal(same.flat().filter((code) => code === null).length, 1);
    const own = await Promise.all(
      ids.map((after, n) => codes(pushing.push([{ ref: branch(`b${n}`), before: null, after }]))),
    );
    assert.deepEqual(
      own.flat(),
      Array.from({ length: 20 }, () => null),
    );
    assert.equal((await pushing.state()).refs.size, 21);
    assert.equal(pushing.objects.open, 0);
  });

  test('to the deletion of its repository is refused as if the repository did not exist', async () => {
    const pushing = await startPushing();
    pushing.log.on.append = async () => {
      pushing.log.on.append = undefined;
      await deleteRepository(pushing.node, { account: pushing.account, cause: CAUSE }, pushing.repository);
    };
    assert.equal(await codes(pushing.push([create])), 'repository-not-found');
    assert.deepEqual([await pushing.eventTypes(), pushing.objects.open], [['RepositoryClosed'], 0]);
  });
});

describe('A push that changes no ref', () => {
  test('is answered only after the log was read again', async () => {
    const pushing = await startPushing();
    await pushing.push([create]);
    pushing.onFailpoint = async (point) => {
      if (point !== 'push-pack-received') return;
      pushing.onFailpoint = () => undefined;
      await pushing.push([{ ref: main, before: A, after: B }]);
    };
    assert.deepEqual(await codes(pushing.push([{ ref: main, before: B, after: C }])), [null]);
    assert.deepEqual(await pushing.refs(), { [main]: C });
  });

  test('is refused if its repository is gone', async () => {
    const pushing = await startPushing();
    await pushing.push([create]);
    pushing.onFailpoint = async (point) => {
      if (point !== 'push-pack-received') return;
      await deleteRepository(pushing.node, { account: pushing.account, cause: CAUSE }, pushing.repository);
    };
    assert.equal(await codes(pushing.push([{ ref: main, before: B, after: C }])), 'repository-not-found');
  });
});

describe('The first push without main or master', () => {
  test(`chooses the default branch among the first ${DATED_BRANCHES_MAX} branches by their dates`, async () => {
    for (const [place, expected] of [
      [DATED_BRANCHES_MAX - 1, true],
      [DATED_BRANCHES_MAX, false],
    ] as const) {
      const pushing = await startPushing();
      pushing.objects.seconds.set(B, 1);
      const commands = Array.from({ length: DATED_BRANCHES_MAX + 1 }, (_, n) => {
        return { ref: branch(`b${String(n).padStart(5, '0')}`), before: null, after: n === place ? B : A };
      });
      const outcome = await pushing.push(commands);
      const newest = `b${String(place).padStart(5, '0')}`;
      assert.ok('results' in outcome);
      assert.equal(outcome.defaultBranch, expected ? newest : 'b00000');
    }
  });
});

describe('A push whose pack holds more than its refs reach', () => {
  test('keeps of its pack what they reach, and leaves the repository clean', async () => {
    const pushing = await startPushing();
    await pushing.push([create]);
    pushing.objects.leftOver = true;
    assert.deepEqual(await codes(pushing.push([{ ref: branch('more'), before: null, after: B }])), [null]);
    assert.deepEqual([pushing.objects.keptTips, (await pushing.state()).clean], [[[B]], true]);
  });
});

describe('A push that is refused in part', () => {
  test('keeps of its pack what the accepted refs reach', async () => {
    const pushing = await startPushing();
    await pushing.push([create]);
    const outcome = pushing.push([
      { ref: branch('fine'), before: null, after: B },
      { ref: main, before: C, after: D },
    ]);
    assert.deepEqual(await codes(outcome), [null, 'ref-moved']);
    assert.deepEqual(pushing.objects.keptTips, [[B]]);
    assert.deepEqual(await codes(pushing.push([{ ref: branch('odd'), before: null, after: C }], { refusedNames: 1 })), [
      null,
    ]);
    assert.deepEqual(pushing.objects.keptTips, [[B], [C]]);
  });

  test('keeps all of its pack if nothing is refused, and needs none of it if everything is', async () => {
    const pushing = await startPushing();
    await pushing.push([create]);
    await pushing.push([{ ref: main, before: C, after: D }]);
    assert.deepEqual(pushing.objects.keptTips, []);
  });

  test('keeps no more what a ref reaches that a lost race has refused', async () => {
    const pushing = await startPushing();
    await pushing.push([create]);
    pushing.onFailpoint = async (point) => {
      if (point !== 'push-layer-stored') return;
      pushing.onFailpoint = () => undefined;
      await pushing.push([{ ref: main, before: A, after: C }]);
    };
    const outcome = pushing.push([
      { ref: branch('fine'), before: null, after: B },
      { ref: main, before: A, after: D },
    ]);
    assert.deepEqual(await codes(outcome), [null, 'ref-moved']);
    assert.deepEqual(pushing.objects.keptTips, [[B]]);
  });

  test('accepts nothing later that it refused first, since its layer lacks the objects', async () => {
    const pushing = await startPushing();
    await pushing.push([create]);
    pushing.onFailpoint = async (point) => {
      if (point !== 'push-layer-stored') return;
      pushing.onFailpoint = () => undefined;
      await pushing.push([{ ref: main, before: A, after: C }]);
    };
    const outcome = await codes(
      pushing.push([
        { ref: branch('fine'), before: null, after: B },
        { ref: main, before: C, after: D },
      ]),
    );
    assert.deepEqual(outcome, [null, 'ref-moved']);
    assert.equal((await pushing.refs())[main], C);
  });
});
