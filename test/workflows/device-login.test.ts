/** How a device login ends: the engine carries out its steps, on a clock that the test moves. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import { digest } from '../../adapters/node/digest.ts';
import { uuids } from '../../adapters/node/ids.ts';
import { spellDomain } from '../../adapters/node/spell-domain.ts';
import { newTokenSecret } from '../../adapters/node/token-secret.ts';
import { type Cause, streamName } from '../../core/kernel/envelope.ts';
import { plusMs } from '../../core/kernel/ids.ts';
import { DEVICE_SESSION_SPAN_MS } from '../../core/kernel/limits.ts';
import { NEWEST_FORMS } from '../../core/ports/running-processes.ts';
import { carriedOut, type Wait } from '../../core/ports/workflows.ts';
import { createEntities } from '../../core/runtime/entities.ts';
import { createAccount } from '../../core/use-cases/accounts/accounts.ts';
import { denyDeviceLogin, grantDeviceLogin, requestDeviceLogin } from '../../core/use-cases/tokens/device-login.ts';
import { findPolledSession, pollDeviceLogin } from '../../core/use-cases/tokens/device-login-token.ts';
import { DEVICE_TOKEN_SPAN_MS, deviceLogin } from '../../workflows/device-login/logic.ts';
import { createDeviceLoginSteps } from '../../workflows/device-login/steps.ts';
import { cleanUp } from '../support/cleanup.ts';
import { openEmbedded } from '../support/embedded-workflows.ts';
import { goldenEvents } from '../support/golden.ts';
import { createMemoryDeviceLoginRequests } from '../support/memory/device-login-requests.ts';
import { createMemorySnapshots } from '../support/memory/snapshots.ts';
import { createMemoryVault } from '../support/memory/vault.ts';
import { requestOlderDeviceLogin } from '../support/older-device-login.ts';
import { until } from '../support/read-models.ts';

const CAUSE: Cause = {
  actor: { kind: 'system', id: 'test' },
  requestId: 'test',
  sourceAddressRef: null,
  causationId: null,
};
const CHOICES = { name: 'laptop', scope: 'ALL_REPO', grants: ['ALL'], repositoryIds: [], expiresAt: null } as const;

const ASKED = { hostname: 'laptop', address: '203.0.113.7', userCode: 'WXYZ-1234', secret: 'secret' };

type Form = 'row' | 'older';

/** Opens a service with an account, a login that waits for its user, and a running engine. */
async function newLogin(context: TestContext, form: Form) {
  const opened = await openEmbedded(context);
  const { events, clock } = opened;
  const entities = createEntities({
    events,
    snapshots: createMemorySnapshots(),
    complete: async (event) => event,
    cacheSizeBytesMax: 1_000_000,
    onFault: (what, cause) => assert.fail(`${what}: ${String(cause)}`),
    gather: async () => undefined,
  });
  cleanUp(context, () => entities.close());
  const failpoint = async (): Promise<void> => undefined;
  const deviceRequests = createMemoryDeviceLoginRequests();
  const stores = { events, entities, vault: createMemoryVault(), deviceRequests };
  const base = { ...stores, clock, ids: uuids, written: NEWEST_FORMS, digest, failpoint, newTokenSecret };
  const passwords = { expectRoom: () => undefined, hash: async () => 'hash', verify: async () => false };
  const wanted = { username: 'ada', email: 'ada@example.org', password: 'a long password', plan: 'PRO' } as const;
  const account = await createAccount({ ...base, passwords, spellDomain }, CAUSE, wanted);
  assert.ok('id' in account);
  const begun =
    form === 'older'
      ? { id: await requestOlderDeviceLogin(base, CAUSE, ASKED) }
      : await requestDeviceLogin(base, { ...ASKED, network: '203.0.113.7' });
  assert.ok('id' in begun);
  const { id } = begun;
  await opened.start([carriedOut(deviceLogin, createDeviceLoginSteps(base))]);
  const origin = { account: account.id, cause: CAUSE };
  return {
    ...opened,
    grant: () => grantDeviceLogin(base, origin, id, CHOICES),
    deny: () => denyDeviceLogin(base, origin, id),
    poll: async () => {
      const session = await findPolledSession(base, id, 'secret');
      assert.ok(!('refused' in session));
      return pollDeviceLogin(base, async () => CAUSE, session);
    },
    types: async () => {
      const stream = streamName('deviceSession', id);
      const read = await events.readStream(stream, { direction: 'forwards', limit: 100 });
      return read.map(({ type }) => type.replace('DeviceLogin', '')).join(' ');
    },
  };
}

describe.for([
  ['', 'row', ''],
  [', requested by an older version,', 'older', 'Requested '],
] as const)('The end of a device login%s', ([, form, first]) => {
  for (const granted of form === 'older' ? [false, true] : [true]) {
    test(`comes at its expiry if no token was fetched, ${granted ? '' : 'not '}granted`, async (context) => {
      const login = await newLogin(context, form);
      if (granted) await login.grant();
      const before = granted ? `${first}Granted` : first.trim();
      await login.waitsUntil(plusMs(login.clock.now(), DEVICE_SESSION_SPAN_MS));
      login.clock.advance(DEVICE_SESSION_SPAN_MS - 1);
      assert.equal(await login.types(), before);
      login.clock.advance(1);
      await until(async () => (await login.types()) === `${before} Expired Closed`);
      await login.waitsForNothing();
    });
  }

  test('comes immediately after a denial', async (context) => {
    const login = await newLogin(context, form);
    await login.deny();
    await until(async () => (await login.types()) === `${first}Denied Closed`);
    await login.waitsForNothing();
  });

  test('waits after a claim, so that the polled node can create the token', async (context) => {
    const login = await newLogin(context, form);
    await login.grant();
    const polled = await login.poll();
    assert.ok(polled !== null && 'secret' in polled);
    await login.waitsUntil(plusMs(login.clock.now(), DEVICE_TOKEN_SPAN_MS));
    assert.equal(await login.types(), `${first}Granted Claimed`);
    login.clock.advance(DEVICE_TOKEN_SPAN_MS);
    await until(async () => (await login.types()) === `${first}Granted Claimed Closed`);
  });
});

test('a device login waits for the step that its golden events call for', () => {
  const waits = goldenEvents()
    .filter(({ category }) => category === deviceLogin.category)
    .map(({ event }): [string, string | undefined] => {
      const wait: Wait<'expire'> = { step: 'expire', dueAt: event.occurredAt, memory: {} };
      return [event.type, deviceLogin.next(wait, event)?.step];
    });
  assert.deepEqual(Object.fromEntries(waits), {
    DeviceLoginRequested: 'expire',
    DeviceLoginGranted: 'expire',
    DeviceLoginClaimed: 'close',
    DeviceLoginDenied: 'close',
    DeviceLoginExpired: 'close',
    DeviceLoginClosed: undefined,
  });
});

test('a device login whose stream begins with its grant waits for its expiry', () => {
  const golden = goldenEvents().find(({ file }) => file === 'deviceSession/DeviceLoginGranted.v2.json');
  assert.ok(golden !== undefined);
  const wait = deviceLogin.next(null, golden.event);
  assert.deepEqual([wait?.step, wait?.dueAt], ['expire', '2026-11-21T10:10:32.123Z']);
});
