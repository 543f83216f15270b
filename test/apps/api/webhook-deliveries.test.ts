/** Deliveries over REST: their list, pings and redelivery, as docs/interface.md, Deliveries, specifies them. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { DEFAULT_PLANS } from '../../../core/account/plans.ts';
import type { AccountId, WebhookId } from '../../../core/kernel/ids.ts';
import { WEBHOOK_BUDGET_HOURS_MAX } from '../../../core/kernel/limits.ts';
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

  const open = async (options: Parameters<typeof createApiFixture>[0] = {}): Promise<void> => {
    fixture = await createApiFixture(options);
    owner = await fixture.account('ada');
    token = await fixture.token(owner, { grants: ['API_WEBHOOKS'] });
    webhook = await fixture.webhook(owner);
  };
  beforeEach(() => open());
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

  test('beyond the budget of the hour stay pending, and say so and until when; beyond a day of them none is taken', async () => {
    const bounded = { ...DEFAULT_PLANS.PRO, deliveries_per_hour: 2 };
    await fixture.close();
    await open({ plans: { ...DEFAULT_PLANS, PRO: bounded } });
    const first = (await post('ping')).json();
    for (let count = 0; count < 2; count += 1) assert.equal((await post('ping')).statusCode, 202);
    const hour = '2026-11-21T11:00:00.000Z';
    const error = `The account's deliveries of the hour (deliveries_per_hour of its plan) are used up: this one waits until ${hour}`;
    const shown = (await listed()).map((delivery) => [
      delivery['status'],
      delivery['error'],
      delivery['next_attempt_at'],
    ]);
    const now = fixture.clock.now();
    assert.deepEqual(shown, [
      ['PENDING', error, hour],
      ['PENDING', null, now],
      ['PENDING', null, now],
    ]);
    // Redelivery of what is under way takes nothing.
    assert.equal((await post(`deliveries/${first.delivery_id}/redeliver`)).statusCode, 202);
    for (let count = 3; count < 2 * WEBHOOK_BUDGET_HOURS_MAX; count += 1) {
      assert.equal((await post('ping')).statusCode, 202, String(count));
    }
    const refused = await post('ping');
    assert.deepEqual(
      [refused.statusCode, refused.json().detail],
      [422, "The account's deliveries of the next 24 hours are used up (see Usage, deliveries_per_hour)"],
    );
    fixture.clock.advance(60 * 60_000);
    assert.equal((await post('ping')).statusCode, 202, 'an hour later there is room again');
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
