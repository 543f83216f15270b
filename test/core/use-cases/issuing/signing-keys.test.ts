/** The signing keys of several nodes over months, and the tokens that they sign. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { uuids } from '../../../../adapters/node/ids.ts';
import { plusMs, timestamp } from '../../../../core/kernel/ids.ts';
import { type SigningKeys, SigningKeysError } from '../../../../core/ports/signing-keys.ts';
import { createIdentityIssuer } from '../../../../core/use-cases/issuing/identity-issuer.ts';
import {
  SIGNING_KEYS_LEAD_MS,
  SIGNING_KEYS_OVERLAP_MS,
  SIGNING_KEYS_SPAN_MS,
} from '../../../../core/use-cases/issuing/key-schedule.ts';
import {
  rotateSigningKeys,
  SIGNING_KEY_SETS_MAX,
  SIGNING_KEYS_SHORT_LEAD_MS,
} from '../../../../core/use-cases/issuing/rotate-signing-keys.ts';
import { createKeyRing, SIGNING_KEYS_READ_INTERVAL_MS } from '../../../../core/use-cases/issuing/signing-key-ring.ts';
import { createCountingSigning, createMemorySigningKeys } from '../../../support/memory/signing-keys.ts';

function createService() {
  let now = timestamp('2026-11-21T10:00:00.700Z');
  let ms = 0;
  const clock = { now: () => now, monotonicMs: () => ms, nextTurn: async () => undefined };
  const memory = createMemorySigningKeys();
  const signing = createCountingSigning();
  const faults: string[] = [];
  const asked = { lists: 0 };
  let fault: Error | null = null;
  const store: SigningKeys = {
    ...memory,
    list: async () => {
      asked.lists += 1;
      if (fault !== null) throw fault;
      return memory.list();
    },
  };
  const node = () =>
    createIdentityIssuer({
      issuer: () => 'https://git.example.org',
      keys: createKeyRing({ store, signing, clock, onFault: (what) => faults.push(what) }),
      signing,
      clock,
      ids: uuids,
    });
  return {
    node,
    store,
    signing,
    clock,
    faults,
    asked,
    pass: (spanMs: number) => {
      now = plusMs(now, spanMs);
      ms += spanMs;
    },
    fail: (error: Error | null) => {
      fault = error;
    },
  };
}

type Node = ReturnType<ReturnType<typeof createService>['node']>;
const REQUEST = { audience: 'sts.amazonaws.com', subject: 'account:1' };
const keyOf = async (node: Node) => (await node.issue(REQUEST)).split(' ', 1)[0] ?? '';
const published = async (node: Node) => (await node.publicKeys()).map(({ kid }) => kid ?? '');

describe('Identity tokens', () => {
  test('name issuer, audience, subject, an id of their own, and five minutes from now on', async () => {
    const node = createService().node();
    const claims = async () => JSON.parse((await node.issue(REQUEST)).replace(/^\S+ /, ''));
    const [one, two] = [await claims(), await claims()];
    const iat = Date.parse('2026-11-21T10:00:00Z') / 1_000;
    const { jti, ...rest } = one;
    assert.deepEqual(rest, {
      ...{ iss: 'https://git.example.org', aud: 'sts.amazonaws.com', sub: 'account:1' },
      ...{ iat, nbf: iat - 60, exp: iat + 300 },
    });
    assert.notEqual(jti, two.jti);
  });

  test('are signed with RSA, and with the elliptic curve for who asks for it', async () => {
    const node = createService().node();
    assert.equal(await keyOf(node), 'RS256-1');
    assert.match(await node.issue({ ...REQUEST, algorithm: 'ES256' }), /^ES256-1 /);
  });
});

describe('The signing keys of a service', () => {
  test('are made once, though 5 nodes need their first at the same moment', async () => {
    const service = createService();
    const nodes = Array.from({ length: 5 }, () => service.node());
    const keys = await Promise.all(nodes.map(keyOf));
    assert.equal(new Set(keys).size, 1);
    for (const node of nodes) assert.ok((await published(node)).includes(keys[0] ?? ''));
    assert.equal((await service.store.list()).length, 1);
  });

  test('are always among the published ones on every node, through a year of hours and a rotation', async () => {
    const service = createService();
    const [one, two] = [service.node(), service.node()];
    const used = new Set<string>();
    let copy = await published(one);
    for (let hour = 0; hour < 365 * 24; hour += 1) {
      // Node two signs, node one has published; the checker's copy is five minutes old.
      const key = await keyOf(two);
      used.add(key);
      assert.ok(copy.includes(key), `${key} after ${hour} hours`);
      if (hour === 100) assert.ok('added' in (await rotateSigningKeys(service, { revoke: false })));
      service.pass(55 * 60_000);
      copy = await published(one);
      assert.ok(copy.length <= 4);
      service.pass(5 * 60_000);
    }
    // The first, the operator's after four days, and one every 90 days after that.
    assert.equal(used.size, 6);
  });

  // The attack: a flood of requests for the public keys, which need no token.
  test('are read once a minute, whatever is asked', async () => {
    const service = createService();
    const node = service.node();
    await node.publicKeys();
    const { lists } = service.asked;
    await Promise.all(Array.from({ length: 1_000 }, () => node.publicKeys()));
    assert.equal(service.asked.lists, lists);
    service.pass(SIGNING_KEYS_READ_INTERVAL_MS - 1);
    await node.publicKeys();
    assert.equal(service.asked.lists, lists);
    service.pass(1);
    await Promise.all(Array.from({ length: 1_000 }, () => node.publicKeys()));
    assert.equal(service.asked.lists, lists + 1);
  });

  test('stay in use while their store is down, which is asked once a minute', async () => {
    const service = createService();
    const node = service.node();
    const outage = new SigningKeysError('signing-keys-unavailable', 'down');
    service.fail(outage);
    await assert.rejects(node.publicKeys(), outage);
    service.fail(null);
    const before = await published(node);
    service.fail(outage);
    service.pass(SIGNING_KEYS_READ_INTERVAL_MS);
    const { lists } = service.asked;
    for (let n = 0; n < 10; n += 1) assert.deepEqual(await published(node), before);
    assert.equal(service.asked.lists, lists + 1);
    assert.deepEqual(service.faults, ['signing-keys']);
  });

  test('are destroyed once their last token has ended everywhere', async () => {
    const service = createService();
    const node = service.node();
    await keyOf(node);
    service.pass(SIGNING_KEYS_SPAN_MS - SIGNING_KEYS_LEAD_MS);
    assert.equal(await keyOf(node), 'RS256-1');
    assert.equal((await service.store.list()).length, 2);
    service.pass(SIGNING_KEYS_LEAD_MS);
    assert.equal(await keyOf(node), 'RS256-2');
    service.pass(SIGNING_KEYS_OVERLAP_MS);
    await keyOf(node);
    assert.deepEqual(
      (await service.store.list()).map(({ generation }) => generation),
      [2],
    );
  });
});

describe('A rotation of signing keys', () => {
  test('lets the new set sign as soon as every permitted copy of the public keys can hold it', async () => {
    const service = createService();
    const node = service.node();
    await keyOf(node);
    assert.ok('added' in (await rotateSigningKeys(service, { revoke: false })));
    service.pass(SIGNING_KEYS_READ_INTERVAL_MS);
    assert.equal((await published(node)).length, 4);
    assert.equal(await keyOf(node), 'RS256-1');
    service.pass(SIGNING_KEYS_SHORT_LEAD_MS - SIGNING_KEYS_READ_INTERVAL_MS);
    assert.equal(await keyOf(node), 'RS256-2');
  });

  // The attack: somebody has copied a private key and signs for every account.
  test('with revoke destroys every older set immediately, and each node follows within a minute', async () => {
    const service = createService();
    const node = service.node();
    await keyOf(node);
    await rotateSigningKeys(service, { revoke: false });
    const rotated = await rotateSigningKeys(service, { revoke: true });
    assert.ok('added' in rotated && rotated.revoked === 2);
    assert.equal((await service.store.list()).length, 1);
    service.pass(SIGNING_KEYS_READ_INTERVAL_MS);
    assert.equal(await keyOf(node), 'RS256-3');
    assert.deepEqual(await published(node), ['RS256-3', 'ES256-3']);
  });

  test('is refused while as many sets are public as the limit allows, unless it revokes them', async () => {
    const service = createService();
    const rotate = (revoke: boolean) => rotateSigningKeys(service, { revoke });
    for (let n = 1; n <= SIGNING_KEY_SETS_MAX; n += 1) assert.ok('added' in (await rotate(false)), String(n));
    assert.deepEqual(await rotate(false), { failed: 'too-many-sets' });
    assert.ok('added' in (await rotate(true)));
    assert.ok('added' in (await rotate(false)));
  });

  test('that loses a race adds nothing and destroys nothing', async () => {
    const service = createService();
    await rotateSigningKeys(service, { revoke: false });
    const both = await Promise.all([1, 2].map(() => rotateSigningKeys(service, { revoke: true })));
    assert.equal(both.filter((one) => 'failed' in one && one.failed === 'raced').length, 1);
    assert.equal((await service.store.list()).length, 1);
  });
});
