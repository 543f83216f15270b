/** What can refuse or delay a push: its token, quotas, removed layers, and more refs than an event holds. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { PackRefusal } from '../../../../core/git/pack-refusal.ts';
import { LOG_START } from '../../../../core/kernel/envelope.ts';
import { type PushId, plusMs } from '../../../../core/kernel/ids.ts';
import { PACK_SIZE_BYTES_MAX } from '../../../../core/kernel/limits.ts';
import { vaultRef } from '../../../../core/kernel/vault-ref.ts';
import type { CommittedObjects } from '../../../../core/ports/object-database.ts';
import { repositories } from '../../../../core/repository/evolve.ts';
import type { Entities } from '../../../../core/runtime/entities.ts';
import { PACK_OBJECTS_MAX, type Push, pushRefs } from '../../../../core/use-cases/pushing/push-refs.ts';
import { findRepositoryById } from '../../../../core/use-cases/repositories/repositories.ts';
import { UNNAMED_VAULT_RECORD_SPAN_MS } from '../../../../core/use-cases/sweeping/sweep-vault.ts';
import { revokeAccessToken, updateAccessToken } from '../../../../core/use-cases/tokens/access-tokens.ts';
import { createMemoryVault } from '../../../support/memory/vault.ts';
import { CAUSE, startNode } from '../../../support/node.ts';
import { onePack, type Pushing, quotasOf, startPushing } from '../../../support/pushing.ts';
import { branch, oid } from '../../../support/repository-history.ts';

const [A, B, C] = [oid('a'), oid('b'), oid('c')];
const main = branch('main');
const create = { ref: main, before: null, after: A };

async function codes(outcome: ReturnType<Pushing['push']>): Promise<readonly (string | null)[] | string> {
  const settled = await outcome;
  return 'refused' in settled ? settled.refused.code : settled.results.map(({ code }) => code);
}

describe('The token of a push', () => {
  /** Runs when everything is checked and the append is about to begin. */
  async function meanwhile(change: (pushing: Pushing) => Promise<unknown>) {
    const pushing = await startPushing({ expiresAfterMs: 60_000 });
    pushing.log.on.append = async () => {
      pushing.log.on.append = undefined;
      await change(pushing);
    };
    return { pushing, codes: await codes(pushing.push([create])) };
  }
  const origin = ({ account }: Pushing) => ({ account, cause: CAUSE });

  test('prevents the commit if it is revoked before the append', async () => {
    const { pushing, codes: got } = await meanwhile((p) => revokeAccessToken(p.node, origin(p), p.tokenId));
    assert.equal(got, 'token-no-longer-valid');
    assert.deepEqual([await pushing.eventTypes(), pushing.objects.open], [[], 0]);
  });

  test('prevents the commit if it loses the grant before the append', async () => {
    const { pushing, codes: got } = await meanwhile((p) =>
      updateAccessToken(p.node, origin(p), p.tokenId, { grants: ['GIT_HTTP_READ'] }),
    );
    assert.equal(got, 'token-no-longer-valid');
    assert.deepEqual(await pushing.eventTypes(), []);
  });

  test('does not prevent the commit if it is only renamed', async () => {
    const { pushing, codes: got } = await meanwhile((p) =>
      updateAccessToken(p.node, origin(p), p.tokenId, { name: 'renamed' }),
    );
    assert.deepEqual(got, [null]);
    assert.equal((await pushing.layerKeys()).length, 1);
  });

  test('prevents the commit if it expires while the pack is checked', async () => {
    const pushing = await startPushing({ expiresAfterMs: 60_000 });
    pushing.onPut = () => pushing.node.clock.advance(60_000);
    assert.equal(await codes(pushing.push([create])), 'token-no-longer-valid');
    assert.deepEqual([await pushing.eventTypes(), pushing.objects.open], [[], 0]);
  });
});

describe('The source address of a push', () => {
  test('that was sent for longer than unnamed records stay in the vault is still there, and named by the event', async () => {
    const pushing = await startPushing();
    const { node, account } = pushing;
    const vault = createMemoryVault(() => node.clock.now());
    const put = () => vault.put(account, 'source-address', '192.0.2.1');
    const causeOf = async () => ({ ...CAUSE, sourceAddressRef: await put() });
    const cause = await causeOf();
    pushing.onFailpoint = async (point) => {
      if (point !== 'push-pack-received') return;
      node.clock.advance(UNNAMED_VAULT_RECORD_SPAN_MS + 1);
      const putBefore = plusMs(node.clock.now(), -UNNAMED_VAULT_RECORD_SPAN_MS);
      assert.equal((await vault.references.removeUnnamed(putBefore, 10)).length, 1);
    };
    assert.deepEqual(await codes(pushing.push([create], { cause, causeAgain: causeOf })), [null]);
    const { stream } = await node.entities.get(repositories, pushing.repository);
    const [pushed] = await pushing.log.readStream(stream, { direction: 'backwards', limit: 1 });
    const named = vaultRef(pushed?.sourceAddressRef ?? '');
    assert.equal(await vault.get(account, 'source-address', named), '192.0.2.1');
  });
});

describe('The quotas of an account', () => {
  test("limit the pack to the smaller remainder, and a larger pack is refused with that quota's code", async () => {
    for (const [storage, ingress, bytes, code] of [
      [10_000, 50_000, 9_000, 'storage-quota-reached'],
      [50_000, 10_000, 8_000, 'ingress-quota-reached'],
      [10_000, null, 9_000, 'storage-quota-reached'],
      [null, 10_000, 8_000, 'ingress-quota-reached'],
    ] as const) {
      const pushing = await startPushing();
      Object.assign(pushing.used, { storageBytes: 1_000, ingressBytes: 2_000 });
      pushing.objects.refusal = { refused: 'pack-too-large', detail: 'too large' };
      assert.equal(await codes(pushing.push([create], { quotas: quotasOf(storage, ingress) })), code);
      assert.equal(pushing.objects.received[0]?.packSizeBytesMax, bytes);
      assert.equal(pushing.objects.received[0]?.objectCountMax, PACK_OBJECTS_MAX);
    }
  });

  test("leave the product's own limit in force if they allow more, and a refusal names that limit", async () => {
    for (const quotas of [quotasOf(null, null), quotasOf(PACK_SIZE_BYTES_MAX, null)]) {
      const pushing = await startPushing();
      pushing.objects.refusal = { refused: 'pack-too-large', detail: 'too large' };
      assert.equal(await codes(pushing.push([create], { quotas })), 'pack-too-large');
      assert.equal(pushing.objects.received[0]?.packSizeBytesMax, PACK_SIZE_BYTES_MAX);
    }
  });

  test('refuse the push before its pack is read if they are used up', async () => {
    for (const [used, code] of [
      [{ storageBytes: 1_000 }, 'storage-quota-reached'],
      [{ storageBytes: 1_001 }, 'storage-quota-reached'],
      [{ ingressBytes: 1_000 }, 'ingress-quota-reached'],
    ] as const) {
      const pushing = await startPushing();
      Object.assign(pushing.used, used);
      assert.equal(await codes(pushing.push([create], { quotas: quotasOf(1_000, 1_000) })), code);
      assert.equal(pushing.objects.received.length, 0);
    }
  });

  test('are checked again at the commit: a layer that just fits is accepted, and one byte more is not', async () => {
    for (const [left, expected] of [
      [2_000, [null]],
      [1_999, 'storage-quota-reached'],
    ] as const) {
      const pushing = await startPushing();
      pushing.objects.layerSizeBytes = 2_000;
      assert.deepEqual(await codes(pushing.push([create], { quotas: quotasOf(left, null) })), expected);
      assert.equal((await pushing.layerKeys()).length, expected === 'storage-quota-reached' ? 0 : 1);
      assert.equal(pushing.objects.open, 0);
    }
    for (const [left, expected] of [
      [500, [null]],
      [499, 'ingress-quota-reached'],
    ] as const) {
      const pushing = await startPushing();
      assert.deepEqual(await codes(pushing.push([create], { quotas: quotasOf(null, left) })), expected);
    }
  });

  test('of storage do not count what lies in a bucket of the user, and those of ingress do', async () => {
    const pushing = await startPushing({ inBucket: true });
    Object.assign(pushing.used, { storageBytes: 10_000, ingressBytes: 0 });
    assert.deepEqual(await codes(pushing.push([create], { quotas: quotasOf(1, null) })), [null]);
    assert.equal(pushing.objects.received[0]?.packSizeBytesMax, PACK_SIZE_BYTES_MAX);
    const other = await startPushing({ inBucket: true });
    assert.equal(await codes(other.push([create], { quotas: quotasOf(1, 499) })), 'ingress-quota-reached');
  });

  test('refuse a push at the commit if another push used them up in between', async () => {
    const pushing = await startPushing();
    pushing.onFailpoint = (point) => {
      if (point === 'push-pack-received') pushing.used.storageBytes = 9_500;
    };
    assert.equal(await codes(pushing.push([create], { quotas: quotasOf(10_000, null) })), 'storage-quota-reached');
    assert.deepEqual([await pushing.eventTypes(), await pushing.layerKeys()], [[], []]);
  });

  test('never prevent a deletion', async () => {
    const pushing = await startPushing();
    await pushing.push([create]);
    Object.assign(pushing.used, { storageBytes: 2_000, ingressBytes: 2_000 });
    const quotas = quotasOf(1_000, 1_000);
    assert.deepEqual(await codes(pushing.push([{ ref: main, before: A, after: null }], { quotas })), [null]);
  });
});

describe('Layers that are removed while a push is checked', () => {
  /** A push after whose check the repository's shrink epoch rises. `recheck` returns the result for the pack. */
  async function shrinking(recheck: (objects: CommittedObjects) => Promise<PackRefusal | null>) {
    const pushing = await startPushing();
    await pushing.push([create]);
    pushing.objects.recheck = recheck;
    const found = await findRepositoryById(pushing.node, pushing.account, pushing.repository);
    assert.ok(found !== null);
    const { entities } = pushing.node;
    const shrunk: Entities = {
      barrier: () => entities.barrier(),
      known: () => entities.known(),
      get: (decider, id) => entities.get(decider, id),
      reload: async (decider, id) => {
        const entity = await entities.reload(decider, id);
        return decider.category === 'repository' ? { ...entity, state: { ...entity.state, shrinkEpoch: 1 } } : entity;
      },
      observe: (...given) => entities.observe(...given),
      appliedPosition: () => entities.appliedPosition(),
      residents: () => entities.residents(),
      start: () => entities.start(),
      close: () => entities.close(),
    };
    const push: Push = {
      repository: found,
      quotas: quotasOf(null, null),
      cause: CAUSE,
      guarding: async () => ({ guards: [] }),
      door: 'git',
      commands: [{ ref: main, before: A, after: B }],
      refusedNames: 0,
      atomic: false,
      pushOptions: [],
      pack: onePack(),
      receivedBytes: () => 500,
      signal: new AbortController().signal,
    };
    // The append loses a race to the event that removed the layers.
    pushing.log.on.append = async () => {
      pushing.log.on.append = undefined;
      assert.deepEqual(await codes(pushing.push([{ ref: branch('x'), before: null, after: C }])), [null]);
    };
    return { pushing, outcome: codes(pushRefs({ ...pushing.context, entities: shrunk }, push)) };
  }

  test('cause the pack to be checked again, against the remaining layers', async () => {
    const rechecked: CommittedObjects[] = [];
    const { pushing, outcome } = await shrinking(async (objects) => {
      rechecked.push(objects);
      return null;
    });
    assert.deepEqual(await outcome, [null]);
    assert.deepEqual(
      rechecked.map(({ shrinkEpoch }) => shrinkEpoch),
      [1],
    );
    assert.equal(
      rechecked[0]?.revision,
      ((await pushing.node.entities.get(repositories, pushing.repository)).revision as number) - 1,
    );
    assert.equal((await pushing.layerKeys()).length, 3, 'the layer was stored once');
  });

  test('cause what only they held to be left out of the pack, and the layer to be stored again', async () => {
    const { pushing, outcome } = await shrinking(async () => {
      pushing.objects.leftOver = true;
      return null;
    });
    assert.deepEqual(await outcome, [null]);
    assert.deepEqual(pushing.objects.keptTips, [[B]]);
    assert.equal((await pushing.layerKeys()).length, 3, 'what was stored first is removed');
    assert.equal([...(await pushing.state()).layers].at(-1)?.pack, '1'.padStart(40, '0'));
  });

  test('refuse a push whose pack depends on them', async () => {
    const { pushing, outcome } = await shrinking(async () => ({
      refused: 'pack-not-connected',
      detail: 'tree missing',
    }));
    assert.equal(await outcome, 'pack-not-connected');
    assert.equal((await pushing.refs())[main], A);
    assert.equal(pushing.objects.open, 0);
  });

  test('cause every tip to be read again, and one that was removed with them is refused', async () => {
    const { pushing, outcome } = await shrinking(async () => {
      pushing.objects.types.set(B, null);
      return null;
    });
    assert.deepEqual(await outcome, ['object-missing']);
    assert.equal((await pushing.refs())[main], A);
  });
});

describe('A push of 20,000 refs', () => {
  const commands = Array.from({ length: 20_000 }, (_, n) => ({ ref: branch(`topic/${n}`), before: null, after: A }));

  test('is one event that names its parts, and is the same on every node', async () => {
    const pushing = await startPushing();
    await pushing.push([{ ref: branch('first'), before: null, after: B }]);
    await pushing.push([{ ref: branch('first'), before: B, after: null }]);
    assert.equal((await codes(pushing.push(commands))).length, 20_000);
    assert.equal((await pushing.state()).refs.size, 20_000);
    assert.equal((await pushing.eventTypes()).filter((type) => type === 'RefsUpdated').length, 3);
    assert.deepEqual(pushing.node.faults, []);
    const other = await startNode(pushing.log);
    const { state } = await other.entities.get(repositories, pushing.repository);
    assert.ok(state.status === 'open');
    assert.deepEqual(new Map(state.refs.entries()), new Map((await pushing.state()).refs.entries()));
    assert.equal(state.refs.weight, (await pushing.state()).refs.weight);
  });

  test('appends its parts once, however many races it loses for other refs', async () => {
    const pushing = await startPushing();
    const streams = new Set<string>();
    let races = 0;
    pushing.log.on.append = async ({ stream }) => {
      if (stream.startsWith('refUpdates-')) streams.add(stream);
      if (!stream.startsWith('repository-') || races >= 3) return;
      races += 1;
      const { append } = pushing.log.on;
      pushing.log.on.append = undefined;
      await pushing.push([{ ref: branch(`rival${races}`), before: null, after: B }]);
      pushing.log.on.append = append;
    };
    await pushing.push(commands);
    assert.equal(races, 3);
    assert.equal(streams.size, 1);
    assert.equal((await pushing.state()).refs.size, 20_003);
  });

  test('names new parts if a lost race changes its updates', async () => {
    const pushing = await startPushing();
    pushing.log.on.append = async ({ stream }) => {
      if (!stream.startsWith('repository-')) return;
      pushing.log.on.append = undefined;
      await pushing.push([{ ref: branch('topic/7'), before: null, after: B }]);
    };
    const outcome = await codes(pushing.push(commands));
    assert.equal(outcome[7], 'ref-exists');
    assert.equal((await pushing.state()).refs.get(branch('topic/7'))?.id, B);
    const other = await startNode(pushing.log);
    const { state } = await other.entities.get(repositories, pushing.repository);
    assert.ok(state.status === 'open');
    assert.deepEqual([state.refs.size, state.refs.get(branch('topic/7'))?.id], [20_000, B]);
  });

  test('leaves nothing visible if it is interrupted at its parts', async () => {
    const pushing = await startPushing();
    pushing.onFailpoint = (point) => {
      if (point === 'push-parts-appended') throw new Error('killed');
    };
    await assert.rejects(pushing.push(commands), /killed/);
    assert.deepEqual([await pushing.eventTypes(), await pushing.refs(), pushing.objects.open], [[], {}, 0]);
  });

  describe('with a key', () => {
    async function died(more: readonly (typeof commands)[number][] = []) {
      const pushing = await startPushing();
      const key = { id: pushing.node.ids.next<PushId>(), requestDigest: 'e'.repeat(64), isUsed: async () => false };
      pushing.onFailpoint = (point) => {
        if (point === 'push-parts-appended') throw new Error('killed');
      };
      await assert.rejects(pushing.push([...commands, ...more], { key }), /killed/);
      pushing.onFailpoint = () => undefined;
      const streams = async (): Promise<readonly string[]> => {
        const all = await pushing.log.readAll(LOG_START, 1_000_000);
        return [...new Set(all.flatMap(({ stream }) => (stream.startsWith('refUpdates-') ? stream : [])))];
      };
      assert.deepEqual(await streams(), [`refUpdates-${key.id}`]);
      assert.equal((await codes(pushing.push(commands, { key }))).length, 20_000);
      const other = await startNode(pushing.log);
      const { state } = await other.entities.get(repositories, pushing.repository);
      assert.ok(state.status === 'open' && state.refs.size === 20_000);
      return streams();
    }

    test('takes the parts that a try which died has left, and appends no others', async () => {
      assert.equal((await died()).length, 1);
    });

    test('is not held up by other parts', async () => {
      const [first] = commands;
      assert.equal((await died(first === undefined ? [] : [{ ...first, ref: branch('more') }])).length, 2);
    });
  });
});
