/** Which requests an idempotency key stands for, and when it is taken. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { digest } from '../../../../adapters/node/digest.ts';
import { LOG_START, streamName } from '../../../../core/kernel/envelope.ts';
import {
  type AccessTokenId,
  type EventId,
  type PushId,
  plusMs,
  timestamp,
  type Uuid,
  uuid,
} from '../../../../core/kernel/ids.ts';
import type { KeyedPush } from '../../../../core/ports/activity.ts';
import type { ExchangedTokenPrincipal, Principal } from '../../../../core/use-cases/callers/principal.ts';
import {
  type KeyedRequest,
  lookUpKey,
  PUSH_KEY_SPAN_MS,
  type PushKeysContext,
} from '../../../../core/use-cases/pushing/push-keys.ts';
import { findRepositoryById } from '../../../../core/use-cases/repositories/repositories.ts';
import { createMemoryActivity } from '../../../support/memory/activity.ts';
import { startPushing } from '../../../support/pushing.ts';
import { branch, oid } from '../../../support/repository-history.ts';

const some = <Id extends Uuid>(n: number): Id => uuid<Id>(`0190f3e2-7c1a-7b4e-9a35-${String(n).padStart(12, '0')}`);
const NOW = timestamp('2026-11-21T10:00:00.000Z');

async function started() {
  const pushing = await startPushing();
  const { node, account } = pushing;
  const context: PushKeysContext = { ...node, readModels: createMemoryActivity({ events: pushing.log, digest }) };
  const person: Principal = {
    ...{ kind: 'session', account, username: 'ada', epoch: 0 },
    guard: { stream: streamName('account', account), revision: 0 },
  };
  const look = async (more: Partial<KeyedRequest> = {}, on: PushKeysContext = context) => {
    const repository = (await findRepositoryById(node, account, pushing.repository)) ?? assert.fail('no repository');
    const request = { repository, principal: person, operation: 'updateRefs', key: 'k', requestDigest: 'd1' };
    return lookUpKey(on, { ...request, position: LOG_START, ...more });
  };
  const idOf = async (more: Partial<KeyedRequest> = {}): Promise<PushId> => {
    const found = await look(more);
    return 'free' in found ? found.free.id : assert.fail('the key is not free');
  };
  return { ...pushing, context, person, look, idOf };
}

describe('An idempotency key', () => {
  test('is that of a caller and of an operation', async () => {
    const { idOf, account } = await started();
    const job = (rule: number, subjectRef: string, token: number): ExchangedTokenPrincipal => ({
      ...{ kind: 'exchanged-token', account, tokenId: some<AccessTokenId>(token), guards: [] },
      token: {
        ...{ status: 'exchanged', account, trustRule: { id: some(rule), epoch: token }, subjectRef },
        ...{ scope: 'ALL_REPO', repositoryIds: [], grants: ['ALL'], secretHash: '', tokenPrefix: '' },
        ...{ expiresAt: plusMs(NOW, token), createdAt: NOW },
      },
    });
    const own = await idOf();
    assert.equal(own[14], '5', 'a UUID of version 5');
    const principals = [job(1, 'a', 1), job(1, 'b', 1), job(2, 'a', 1)];
    const others = await Promise.all(principals.map((principal) => idOf({ principal })));
    const ids = [own, ...others, await idOf({ operation: 'createTag' }), await idOf({ key: 'other' })];
    assert.equal(new Set(ids).size, ids.length);
    assert.equal(await idOf({ requestDigest: 'd2' }), own, 'whatever is asked for');
    assert.equal(await idOf({ principal: job(1, 'a', 2) }), others[0], 'the next run of a job has another token');
  });

  test('is free again a day after each use', async () => {
    const { push, look, idOf, node } = await started();
    const [A, B] = [oid('a'), oid('b')];
    const ids: PushId[] = [];
    for (const [before, after] of [
      [null, A],
      [A, B],
      [B, A],
    ] as const) {
      const found = await look({ requestDigest: after });
      assert.ok('free' in found);
      ids.push(found.free.id);
      await push([{ ref: branch('main'), before, after }], { key: found.free });
      node.clock.advance(PUSH_KEY_SPAN_MS - 1);
      const used = await look({ requestDigest: after });
      assert.ok('used' in used && used.used.data.push_id === found.free.id);
      assert.deepEqual(await look({ requestDigest: 'other' }), { refused: { code: 'key-used-otherwise' } });
      node.clock.advance(1);
    }
    assert.equal(new Set([...ids, await idOf()]).size, 4);
  });

  test('that was used since its repository was read is in use', async () => {
    const { push, look, node, account, repository: id } = await started();
    const repository = (await findRepositoryById(node, account, id)) ?? assert.fail('no repository');
    const found = await look();
    assert.ok('free' in found);
    await push([{ ref: branch('main'), before: null, after: oid('a') }], { key: found.free });
    assert.deepEqual(await look({ repository }), { refused: { code: 'key-in-use' } });
    assert.ok('used' in (await look()));
  });

  test('is looked up again only where the log has gone on', async () => {
    const { look, context } = await started();
    const looks: bigint[] = [];
    let push: KeyedPush | null = null;
    const keyedPush: PushKeysContext['readModels']['keyedPush'] = async (_repository, _push, position) => {
      looks.push(position);
      return push;
    };
    const seen = await context.events.head();
    const found = await look({ position: seen }, { ...context, readModels: { keyedPush } });
    assert.ok('free' in found);
    const { isUsed } = found.free;
    const later = (seen + 2n) as typeof LOG_START;
    assert.deepEqual([await isUsed(LOG_START), await isUsed(seen), await isUsed(later)], [false, false, false]);
    assert.deepEqual(looks, [seen, later]);
    push = { revision: 0, eventId: some<EventId>(9), at: NOW, requestDigest: 'e'.repeat(64) };
    assert.deepEqual([await isUsed(later), await isUsed((later + 1n) as typeof LOG_START)], [false, true]);
  });

  test('is not taken while an older version is written', async () => {
    const { look, context } = await started();
    const written = (version: number) => ({ ...context, written: { versionOf: () => version } });
    assert.deepEqual(await look({}, written(3)), { refused: { code: 'keys-during-upgrade', waitSeconds: 60 } });
    assert.ok('free' in (await look({}, written(4))));
  });
});
