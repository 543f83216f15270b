/** Which routes go on when an account has used up its changes of the month. */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { ROUTES } from '../../../apps/api/routes.ts';
import { DEFAULT_PLANS } from '../../../core/account/plans.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { cleanUp, suiteEnding } from '../../support/cleanup.ts';
import { createIssuerNetwork, startIssuer } from '../../support/identity-issuer.ts';

/**
 * Beside those that only read: they remove for good, or append nothing to the account's record. Changes of refs are
 * judged by their bodies, which are empty here.
 */
const GO_ON = [
  'updateRefs',
  'createTag',
  'writeCommit',
  'deleteStorageBucket',
  'purgeRepository',
  'deleteRepository',
  'deleteAccessToken',
  'deleteWebhook',
  'deleteTrustRule',
  'pingWebhook',
  'redeliverWebhookDelivery',
];

describe('An account that has used up its changes of the month', () => {
  const ending = suiteEnding();
  const network = createIssuerNetwork();
  let fixture: ApiFixture;
  let ada: AccountId;
  let token: TestToken;

  beforeAll(async () => {
    const plans = { ...DEFAULT_PLANS, FREE: { ...DEFAULT_PLANS.FREE, changes_per_month: 0 } };
    fixture = await createApiFixture({ plans, outgoing: network.outgoing });
    cleanUp(ending, () => fixture.close());
    ada = await fixture.account('ada', 'FREE');
    token = await fixture.token(ada);
    await fixture.repository(ada, 'made');
  });

  test('is refused what appends to its record, by every route, until the next month, and nothing else', async () => {
    const went: string[] = [];
    for (const { kind, method, operationId, path } of ROUTES) {
      if (kind === 'public' || method === 'GET') continue;
      const names: Readonly<Record<string, string>> = {
        '{username}': 'ada',
        '{name}': operationId === 'deleteRepository' ? 'absent' : 'made',
      };
      const url = path.replaceAll(/\{\w+\}/g, (name) => names[name] ?? '0190f3e2-7c1a-7b4e-9a35-00000000000a');
      const answer = await fixture.request(method, url, token, { body: {} });
      if (answer.statusCode !== 429) {
        went.push(operationId);
        continue;
      }
      assert.match(answer.json().detail, /\(changes_per_month of its plan\): try again in 10 days/, operationId);
      assert.equal(answer.headers['retry-after'], String((9 * 24 + 14) * 3_600), operationId);
    }
    assert.deepEqual(went.sort(), GO_ON.toSorted());
    for (const url of ['/v1/account/usage', '/v1/repositories', '/v1/account/events', '/v1/webhooks']) {
      assert.equal((await fixture.request('GET', url, token)).statusCode, 200, url);
    }
    const { changes } = (await fixture.request('GET', '/v1/account/usage', token)).json();
    assert.deepEqual(changes, { used: 0, quota: 0 });
  });

  test('gets no token for an identity token, and the answer says why', async (context) => {
    const issuer = await startIssuer(context, network, {
      clock: fixture.clock,
      audience: 'http://localhost:8080/ada',
    });
    await fixture.trustRule(ada, { issuer: issuer.url, subject: 'repo:acme/*' });
    const exchange = async () =>
      fixture.request('POST', '/v1/oidc/token', null, { body: { id_token: await issuer.token() } });
    const refused = await exchange();
    assert.equal(refused.statusCode, 429, refused.body);
    assert.match(refused.json().detail, /changes_per_month/);
    assert.ok(Number(refused.headers['retry-after']) > 0);
  });
});
