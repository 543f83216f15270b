/** Deliveries over REST: their list, pings and redelivery, as docs/interface.md, Deliveries, specifies them. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'vitest';
import type { AccountId, WebhookId } from '../../../core/kernel/ids.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';

interface Listed {
  readonly [member: string]: unknown;
  readonly id: string;
}

describe('webhook deliveries', () => {
  let fixture: ApiFixture;
  let owner: AccountId;
  let token: TestToken;
  let webhook: WebhookId;

  beforeEach(async () => {
    fixture = await createApiFixture();
    owner = await fixture.account('ada');
    token = await fixture.token(owner, { grants: ['API_WEBHOOKS'] });
    webhook = await fixture.webhook(owner);
  });
  afterEach(() => fixture.close());

  const list = (query = '') => fixture.request('GET', `/v1/webhooks/${webhook}/deliveries${query}`, token);
  const listed = async (query = ''): Promise<readonly Listed[]> => (await list(query)).json().deliveries;
  const post = (path: string) => fixture.request('POST', `/v1/webhooks/${webhook}/${path}`, token);

  test('are listed newest first, fifty by default, with all fields of docs/interface.md', async () => {
    assert.deepEqual(await listed(), []);
    const requested: string[] = [];
    for (let count = 0; count < 51; count += 1) requested.push((await post('ping')).json().delivery_id);
    assert.deepEqual(
      (await listed()).map(({ id }) => id),
      requested.toReversed().slice(0, 50),
    );
    assert.equal((await listed('?limit=100')).length, 51);
    const [newest] = await listed('?limit=1');
    const now = fixture.clock.now();
    assert.deepEqual(newest, {
      ...{ id: requested.at(-1), event_id: newest?.['event_id'], event: 'ping', status: 'PENDING', http_status: null },
      ...{ attempts: 0, error: null, response_body: null, created_at: now, last_attempt_at: null },
      ...{ next_attempt_at: now, attempt_log: [] },
    });
  });

  test('show their payload only on request', async () => {
    const { event_id: event } = (await post('ping')).json();
    const [without] = await listed('?include_payload=false');
    assert.ok(without !== undefined && !('payload' in without));
    const [shown] = await listed('?include_payload=true');
    assert.deepEqual(shown?.['payload'], {
      ...{ id: event, type: 'ping', created_at: fixture.clock.now() },
      webhook: { id: webhook, url: 'https://receiver.example/hook', events: ['push'], active: true },
      owner: { id: owner, username: 'ada' },
    });
    await fixture.context.deliveries.forgetAccount(owner);
    assert.equal((await listed('?include_payload=true'))[0]?.['payload'], null, 'no longer kept');
  });

  test('refuse limits out of bounds and invalid flags', async () => {
    for (const query of ['?limit=0', '?limit=101', '?limit=-1', '?limit=1.5', '?limit=x', '?include_payload=yes']) {
      const answer = await list(query);
      assert.equal(answer.statusCode, 422, query);
      assert.equal(answer.json().detail[0].loc[0], 'query');
    }
  });

  test('are redelivered with 202 and their ids; unknown ones, and those without a payload, are not found', async () => {
    const requested = (await post('ping')).json();
    const again = await post(`deliveries/${requested.delivery_id}/redeliver`);
    assert.equal(again.statusCode, 202);
    assert.deepEqual(again.json(), requested);
    const other = await post(`deliveries/${webhook}/redeliver`);
    assert.deepEqual([other.statusCode, other.json()], [404, { detail: 'Webhook delivery not found' }]);
    assert.equal((await post('deliveries/none/redeliver')).statusCode, 404);
    await fixture.context.deliveries.forgetAccount(owner);
    assert.equal((await post(`deliveries/${requested.delivery_id}/redeliver`)).statusCode, 404);
  });
});
