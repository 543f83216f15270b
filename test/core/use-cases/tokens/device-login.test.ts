/** Device login across its streams and the vault, with races and nodes that stop midway. */
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'vitest';
import { digest } from '../../../../adapters/node/digest.ts';
import { uuids } from '../../../../adapters/node/ids.ts';
import { spellDomain } from '../../../../adapters/node/spell-domain.ts';
import { newTokenSecret } from '../../../../adapters/node/token-secret.ts';
import { accessTokens } from '../../../../core/access-token/evolve.ts';
import type { DecidedRequest } from '../../../../core/device-session/events.ts';
import { deviceSessions } from '../../../../core/device-session/evolve.ts';
import { type Cause, categoryOf, entityIdOf, LOG_START, type RecordedEvent } from '../../../../core/kernel/envelope.ts';
import {
  type AccessTokenId,
  type AccountId,
  type DeviceSessionId,
  plusMs,
  type Timestamp,
} from '../../../../core/kernel/ids.ts';
import { DEVICE_SESSION_SPAN_MS } from '../../../../core/kernel/limits.ts';
import { vaultRef } from '../../../../core/kernel/vault-ref.ts';
import type { NewDeviceLoginRequest } from '../../../../core/ports/device-login-requests.ts';
import type { Failpoint, FailpointName } from '../../../../core/ports/failpoints.ts';
import { NEWEST_FORMS } from '../../../../core/ports/running-processes.ts';
import { createEntities } from '../../../../core/runtime/entities.ts';
import { createAccount } from '../../../../core/use-cases/accounts/accounts.ts';
import { eraseAccount } from '../../../../core/use-cases/erasing/erase-account.ts';
import { revokeAccessToken } from '../../../../core/use-cases/tokens/access-tokens.ts';
import {
  denyDeviceLogin,
  findPendingDeviceSessions,
  grantDeviceLogin,
  readPendingDeviceSession,
  requestDeviceLogin,
} from '../../../../core/use-cases/tokens/device-login.ts';
import {
  closeDeviceLogin,
  expireDeviceLogin,
  findPolledSession,
  pollDeviceLogin,
} from '../../../../core/use-cases/tokens/device-login-token.ts';
import { authenticate } from '../../../support/accounts.ts';
import { createMemoryBucketFindings } from '../../../support/memory/bucket-findings.ts';
import { createMemoryDeliveryStore } from '../../../support/memory/delivery-store.ts';
import { createMemoryDeviceLoginRequests } from '../../../support/memory/device-login-requests.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { createMemoryLayerStore } from '../../../support/memory/layer-store.ts';
import { createMemoryPasskeyChallenges } from '../../../support/memory/passkey-challenges.ts';
import { createMemoryRefusedExchanges } from '../../../support/memory/refused-exchanges.ts';
import { createMemorySessionStore } from '../../../support/memory/session-store.ts';
import { createMemorySnapshots } from '../../../support/memory/snapshots.ts';
import { createMemoryVault } from '../../../support/memory/vault.ts';
import { requestOlderDeviceLogin } from '../../../support/older-device-login.ts';
import { createTestClock } from '../../../support/test-clock.ts';

const CAUSE: Cause = {
  actor: { kind: 'system', id: 'test' },
  requestId: 'test',
  sourceAddressRef: null,
  causationId: null,
};
const CHOICES = { name: 'laptop', scope: 'ALL_REPO', grants: ['ALL'], repositoryIds: [], expiresAt: null } as const;
const SECRET = 'secret of the polls';

const ASKED = { hostname: 'laptop', address: '203.0.113.7', userCode: 'WXYZ-1234', secret: SECRET };

class Died extends Error {}

/** Stops a node at this point; it passes all others. */
function diesAt(point: FailpointName): Failpoint {
  return async (reached) => {
    if (reached === point) throw new Died(`at ${point}`);
  };
}

describe.for(['', ', requested by an older version'] as const)('A device login%s', (form) => {
  const isOlder = form !== '';
  const declare = (title: string, run: () => Promise<void>): void => test(title, run);
  const leaveOut = (): void => undefined;
  const testOfRows = isOlder ? leaveOut : declare;
  const testOfOlder = isOlder ? declare : leaveOut;
  const clock = createTestClock();
  let events: ReturnType<typeof createMemoryEventStore>;
  let vault: ReturnType<typeof createMemoryVault>;
  let deviceRequests: ReturnType<typeof createMemoryDeviceLoginRequests>;
  let one: Awaited<ReturnType<typeof newNode>>;
  let ada: AccountId;
  let id: DeviceSessionId;

  beforeEach(async () => {
    events = createMemoryEventStore();
    vault = createMemoryVault(() => clock.now());
    deviceRequests = createMemoryDeviceLoginRequests();
    one = await newNode();
    const passwords = { expectRoom: () => undefined, hash: async () => 'hash', verify: async () => false };
    const wanted = { username: 'ada', email: 'ada@example.org', password: 'a long password', plan: 'PRO' } as const;
    const account = await createAccount({ ...one, passwords, spellDomain }, CAUSE, wanted);
    assert.ok('id' in account);
    ada = account.id;
    if (isOlder) {
      id = await requestOlderDeviceLogin(one, CAUSE, ASKED);
    } else {
      const begun = await requestDeviceLogin(one, { ...ASKED, network: '203.0.113.7' });
      assert.ok('id' in begun);
      ({ id } = begun);
    }
  });

  /** Starts a node of the service on the shared log and vault. */
  async function newNode(failpoint: Failpoint = async () => undefined) {
    const entities = createEntities({
      events,
      snapshots: createMemorySnapshots(),
      complete: async (event) => event,
      cacheSizeBytesMax: 1_000_000,
      onFault: (what, cause) => assert.fail(`${what}: ${String(cause)}`),
      gather: async () => undefined,
    });
    await entities.start();
    const written = NEWEST_FORMS;
    return { events, entities, clock, ids: uuids, written, digest, vault, deviceRequests, failpoint, newTokenSecret };
  }

  const grant = (choices: Parameters<typeof grantDeviceLogin>[3] = CHOICES, node = one) =>
    grantDeviceLogin(node, { account: ada, cause: CAUSE }, id, choices);

  /** The same rows, with room for fewer pending ones. */
  const bounded = (pendingMax: number) => ({
    ...deviceRequests,
    add: (request: NewDeviceLoginRequest, { keptSince }: { readonly keptSince: Timestamp }) =>
      deviceRequests.add(request, { pendingMax, keptSince }),
  });

  async function poll(node: Awaited<ReturnType<typeof newNode>>) {
    await node.entities.barrier();
    const session = await findPolledSession(node, id, SECRET);
    return 'refused' in session ? session : pollDeviceLogin(node, async () => CAUSE, session);
  }

  async function logged(...categories: readonly string[]): Promise<readonly RecordedEvent[]> {
    const all = await events.readAll(LOG_START, 1_000);
    return all.filter(({ stream }) => categories.includes(categoryOf(stream)));
  }

  test('shows the requesting device only while it is pending', async () => {
    const shown = await readPendingDeviceSession(one, id);
    assert.ok('hostname' in shown);
    assert.deepEqual([shown.hostname, shown.address, shown.userCode], ['laptop', '203.0.113.7', 'WXYZ-1234']);
    assert.deepEqual([shown.requestedAt, shown.expiresAt], [clock.now(), plusMs(clock.now(), DEVICE_SESSION_SPAN_MS)]);
    await grant();
    assert.deepEqual(await readPendingDeviceSession(one, id), { refused: { code: 'device-session-decided' } });
  });

  test('is granted or denied only once', async () => {
    assert.ok(!('refused' in (await grant())));
    const again = await denyDeviceLogin(one, { account: ada, cause: CAUSE }, id);
    assert.deepEqual(again, { refused: { code: 'device-session-decided' } });
    assert.deepEqual(await grant(), { refused: { code: 'device-session-decided' } });
  });

  test('is granted only with settings that a new token may have', async () => {
    assert.deepEqual(await grant({ ...CHOICES, grants: [] }), { refused: { code: 'token-grants-empty' } });
    assert.deepEqual(await grant({ ...CHOICES, expiresAt: clock.now() }), {
      refused: { code: 'token-expiry-not-in-future' },
    });
    assert.ok(!('refused' in (await grant())));
  });

  test('gives the token to one of 20 polls that race on two nodes', async () => {
    const two = await newNode();
    await grant();
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => poll(n % 2 === 0 ? one : two)));
    const won = answers.flatMap((answer) => (answer !== null && 'secret' in answer ? [answer] : []));
    const [winner] = won;
    assert.ok(won.length === 1 && winner !== undefined);
    const lost = answers.filter((answer) => answer !== winner);
    assert.ok(lost.every((a) => a !== null && 'refused' in a && a.refused.code === 'device-login-claimed'));
    assert.equal((await authenticate(one, winner.secret))?.tokenId, winner.id);
    assert.equal((await logged('accessToken')).length, 1);
    await two.entities.close();
  });

  test('is finished once and closed by any node if the node of the claim stops', async () => {
    const dying = await newNode(diesAt('device-login-claimed'));
    await grant();
    await assert.rejects(poll(dying), Died);
    assert.equal((await logged('accessToken')).length, 0);
    assert.deepEqual(await poll(one), { refused: { code: 'device-login-claimed' } });
    const two = await newNode();
    await Promise.all([closeDeviceLogin(one, CAUSE, id), closeDeviceLogin(two, CAUSE, id)]);
    await closeDeviceLogin(one, CAUSE, id);
    const [created, ...more] = await logged('accessToken');
    assert.ok(created !== undefined && more.length === 0);
    const claimed = (await logged('deviceSession')).find(({ type }) => type === 'DeviceLoginClaimed');
    assert.equal(created.causationId, claimed?.id);
    assert.equal(claimed?.data['token_id'], entityIdOf(created.stream));
    const { state } = await one.entities.reload(deviceSessions, id);
    assert.deepEqual([state.status, 'after' in state && state.after], ['closed', 'claimed']);
    await Promise.all([two.entities.close(), dying.entities.close()]);
  });

  test("is finished even if the token's repository and expiry are gone since the claim", async () => {
    const dying = await newNode(diesAt('device-login-claimed'));
    await grant({ ...CHOICES, expiresAt: '2026-11-21T10:05:00.000Z' as never });
    await assert.rejects(poll(dying), Died);
    clock.advance(60 * 60_000);
    await closeDeviceLogin(one, CAUSE, id);
    assert.equal((await logged('accessToken')).length, 1);
    await dying.entities.close();
  });

  test('does not return the secret if another node finished the token and it was revoked since', async () => {
    const slow = await newNode(async (point) => {
      if (point !== 'device-login-claimed') return;
      await closeDeviceLogin(one, CAUSE, id);
      const [created] = await logged('accessToken');
      const token = created?.stream.slice('accessToken-'.length) as AccessTokenId;
      await revokeAccessToken(one, { account: ada, cause: CAUSE }, token);
    });
    await grant();
    assert.deepEqual(await poll(slow), { refused: { code: 'device-login-claimed' } });
    const [created] = await logged('accessToken');
    const { state } = await one.entities.reload(accessTokens, created?.stream.slice('accessToken-'.length) ?? '');
    assert.equal(state.status, 'revoked');
    await slow.entities.close();
  });

  test('expires at its time, and not if it was claimed or denied before', async () => {
    const before = (await logged('deviceSession')).length;
    await expireDeviceLogin(one, CAUSE, id);
    assert.equal((await logged('deviceSession')).length, before);
    clock.advance(DEVICE_SESSION_SPAN_MS);
    assert.deepEqual(await grant(), { refused: { code: 'device-session-expired' } });
    assert.deepEqual(await readPendingDeviceSession(one, id), { refused: { code: 'device-session-expired' } });
    await expireDeviceLogin(one, CAUSE, id);
    await expireDeviceLogin(one, CAUSE, id);
    assert.deepEqual(await poll(one), { refused: { code: 'device-session-expired' } });
    const { status } = (await one.entities.reload(deviceSessions, id)).state;
    assert.equal(status, isOlder ? 'expired' : 'absent', 'a login that nobody decided leaves no event');
    assert.equal((await logged('deviceSession')).length, isOlder ? 2 : 0);
  });

  test('that was granted and not claimed expires with an event', async () => {
    await grant();
    clock.advance(DEVICE_SESSION_SPAN_MS);
    await expireDeviceLogin(one, CAUSE, id);
    await expireDeviceLogin(one, CAUSE, id);
    assert.equal((await one.entities.reload(deviceSessions, id)).state.status, 'expired');
    assert.deepEqual(await poll(one), { refused: { code: 'device-session-expired' } });
  });

  test('is decided once when two nodes grant and deny it at the same time', async () => {
    const two = await newNode();
    const origin = { account: ada, cause: CAUSE };
    const nodes = Array.from({ length: 10 }, (_, n) => (n % 2 === 0 ? one : two));
    const decided = await Promise.all(
      nodes.map((node, n) => (n % 3 === 0 ? denyDeviceLogin(node, origin, id) : grant(CHOICES, node))),
    );
    const lost = decided.flatMap((answer) => ('refused' in answer ? [answer.refused.code] : []));
    assert.deepEqual(new Set(lost), new Set(['device-session-decided']));
    assert.equal(lost.length, nodes.length - 1);
    const decisions = (await logged('deviceSession')).filter(({ type }) => /Granted|Denied/.test(type));
    assert.equal(decisions.length, 1);
    await two.entities.close();
  });

  testOfRows('writes nothing into the log or the vault before its user decides', async () => {
    assert.deepEqual(await logged('deviceSession'), []);
    assert.equal(await vault.holds('hostname'), false);
    assert.deepEqual(await findPendingDeviceSessions(one, 'WXYZ-1234'), [id]);
    await grant();
    const [first] = await logged('deviceSession');
    assert.ok(first !== undefined);
    assert.deepEqual([first.type, first.version, first.accountId], ['DeviceLoginGranted', 2, ada]);
    const request = first.data['request'] as DecidedRequest;
    assert.equal(await vault.get(ada, 'hostname', vaultRef(request.hostname_ref)), 'laptop');
    assert.equal(await vault.get(ada, 'source-address', vaultRef(request.address_ref ?? '')), '203.0.113.7');
    const { requested_at: from, session_expires_at: until } = request;
    assert.deepEqual([from, until], [clock.now(), plusMs(clock.now(), DEVICE_SESSION_SPAN_MS)]);
    assert.deepEqual(await findPendingDeviceSessions(one, 'WXYZ-1234'), []);
  });

  testOfRows('writes nothing when it is granted with settings that no token may have', async () => {
    assert.ok('refused' in (await grant({ ...CHOICES, grants: [] })));
    assert.equal(await vault.holds('hostname'), false);
  });

  for (const point of ['device-login-held', 'device-login-described'] as const) {
    testOfRows(`still waits for its user if its node stops at ${point}`, async () => {
      const dying = await newNode(diesAt(point));
      await assert.rejects(grant(CHOICES, dying), Died);
      assert.deepEqual(await logged('deviceSession'), []);
      assert.equal(await poll(one), null);
      assert.deepEqual(await findPendingDeviceSessions(one, 'WXYZ-1234'), [id]);
      assert.ok(!('refused' in (await grant())));
      const polled = await poll(one);
      assert.ok(polled !== null && 'secret' in polled);
      await dying.entities.close();
    });
  }

  test('is granted if its node stops right after the decision', async () => {
    const dying = await newNode(diesAt('device-login-decided'));
    await assert.rejects(grant(CHOICES, dying), Died);
    await one.entities.barrier();
    assert.deepEqual(await grant(), { refused: { code: 'device-session-decided' } });
    const polled = await poll(one);
    assert.ok(polled !== null && 'secret' in polled);
    await dying.entities.close();
  });

  testOfRows('gives way to no other once its user has decided', async () => {
    await grant();
    await requestDeviceLogin({ ...one, deviceRequests: bounded(1) }, { ...ASKED, network: 'flood' });
    await requestDeviceLogin({ ...one, deviceRequests: bounded(1) }, { ...ASKED, network: 'flood' });
    const polled = await poll(one);
    assert.ok(polled !== null && 'secret' in polled);
  });

  testOfRows('is not granted if it gave way while its user decided', async () => {
    const hold = async (session: DeviceSessionId): Promise<boolean> => {
      await requestDeviceLogin({ ...one, deviceRequests: bounded(1) }, { ...ASKED, network: 'flood' });
      return deviceRequests.hold(session);
    };
    const late = { ...one, deviceRequests: { ...deviceRequests, hold } };
    assert.deepEqual(await grant(CHOICES, late), { refused: { code: 'device-session-not-found' } });
    assert.deepEqual(await logged('deviceSession'), []);
    assert.equal(await vault.holds('hostname'), false);
  });

  testOfRows('is unknown to its polls and its user once its row was removed', async () => {
    await deviceRequests.remove(id);
    assert.deepEqual(await poll(one), { refused: { code: 'device-session-not-found' } });
    assert.deepEqual(await grant(), { refused: { code: 'device-session-not-found' } });
    assert.deepEqual(await readPendingDeviceSession(one, id), { refused: { code: 'device-session-not-found' } });
  });

  testOfOlder('makes what the device said about itself unreadable when it is closed', async () => {
    const before = (await one.entities.reload(deviceSessions, id)).state;
    assert.ok(before.status === 'pending');
    const owner = id as string as AccountId;
    assert.equal(await vault.get(owner, 'hostname', before.hostnameRef), 'laptop');
    await closeDeviceLogin(one, CAUSE, id);
    assert.equal(await vault.get(owner, 'hostname', before.hostnameRef), 'laptop', 'it has not ended yet');
    await denyDeviceLogin(one, { account: ada, cause: CAUSE }, id);
    await closeDeviceLogin(one, CAUSE, id);
    assert.equal(await vault.get(owner, 'hostname', before.hostnameRef), null);
  });

  test('gives no token for an account that was erased since', async () => {
    await grant();
    const erasing = {
      ...one,
      spellDomain,
      refusedExchanges: createMemoryRefusedExchanges(),
      bucketFindings: createMemoryBucketFindings(),
      deliveries: createMemoryDeliveryStore(),
      platformStore: createMemoryLayerStore(),
      sessions: createMemorySessionStore(),
      challenges: createMemoryPasskeyChallenges(),
    };
    await eraseAccount(erasing, CAUSE, ada);
    assert.deepEqual(await poll(one), { refused: { code: 'device-session-expired' } });
    assert.equal((await logged('accessToken')).length, 0);
  });
});
