/** Webhooks over REST, as docs/interface.md, Webhooks, specifies them. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { accounts } from '../../../core/account/evolve.ts';
import { type AccountId, plusMs, type RepositoryId } from '../../../core/kernel/ids.ts';
import { canonicalJson } from '../../../core/kernel/json.ts';
import { WEBHOOKS_MAX } from '../../../core/kernel/limits.ts';
import { WEBHOOK_SECRET_OVERLAP_MS } from '../../../core/use-cases/webhooks/webhooks.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';

describe('webhooks', () => {
  let fixture: ApiFixture;
  let owner: AccountId;
  let token: TestToken;

  beforeEach(async () => {
    fixture = await createApiFixture();
    owner = await fixture.account('ada');
    token = await fixture.token(owner, { grants: ['API_WEBHOOKS'] });
  });
  afterEach(() => fixture.close());

  const create = (body: object) => fixture.request('POST', '/v1/webhooks', token, { body });
  const get = (id: string) => fixture.request('GET', `/v1/webhooks/${id}`, token);
  const list = () => fixture.request('GET', '/v1/webhooks', token);
  const put = (id: string, body: object) => fixture.request('PUT', `/v1/webhooks/${id}`, token, { body });
  const GOOD = { url: 'https://receiver.example/hook?key=1', events: ['push', 'ping'] };

  async function stateOf(id: string) {
    const { state } = await fixture.context.entities.reload(accounts, owner);
    assert.ok(state.status === 'open');
    return [...state.webhooks.values()].find((webhook) => webhook.id === id);
  }

  test('are created active, with a secret that only the answer shows', async () => {
    const answer = await create(GOOD);
    assert.equal(answer.statusCode, 201);
    assert.equal(answer.headers['cache-control'], 'no-store');
    const { secret, ...webhook } = answer.json();
    assert.match(secret, /^whsec_[0-9A-Za-z]{40}$/);
    assert.match(webhook.id, /^[0-9a-f-]{36}$/);
    const now = fixture.clock.now();
    const everything = { scope: 'ALL_REPO', repository_ids: [] };
    assert.deepEqual(webhook, {
      ...{ id: webhook.id, ...GOOD, active: true, ...everything },
      ...{ created_at: now, updated_at: now },
    });
    assert.deepEqual((await get(webhook.id)).json(), webhook);
    assert.deepEqual((await list()).json(), { webhooks: [webhook] });
    assert.notEqual((await create(GOOD)).json().secret, secret);
    assert.equal((await create({ ...GOOD, active: false })).json().active, false);
    const urls = (await list()).json().webhooks.map(({ url }: { url: string }) => url);
    assert.deepEqual(urls, [GOOD.url, GOOD.url, GOOD.url], 'one URL may have several');
  });

  test('refuse a secret from the client, and keep each event once', async () => {
    const refused = await create({ ...GOOD, secret: 'mine' });
    assert.deepEqual([refused.statusCode, refused.json().detail[0].loc], [422, ['body', 'secret']]);
    assert.deepEqual((await create({ ...GOOD, events: ['ping', 'push', 'ping'] })).json().events, ['ping', 'push']);
  });

  test('report every missing and every invalid field together', async () => {
    assert.deepEqual(
      (await create({})).json().detail,
      ['url', 'events'].map((field) => ({ loc: ['body', field], msg: 'Field required', type: 'missing' })),
    );
    for (const [wrong, loc] of [
      [{ url: 5 }, ['url']],
      [{ events: [] }, ['events']],
      [{ events: ['push', 'repository'] }, ['events', 1]],
      [{ events: ['*'] }, ['events', 0]],
      [{ events: 'push' }, ['events']],
      [{ active: 'yes' }, ['active']],
      [{ active: null }, ['active']],
    ] as const) {
      const answer = await create({ ...GOOD, ...wrong });
      assert.equal(answer.statusCode, 422, JSON.stringify(wrong));
      assert.deepEqual(answer.json().detail[0].loc, ['body', ...loc]);
    }
    assert.deepEqual((await list()).json(), { webhooks: [] });
  });

  test('refuse a URL that outgoing requests refuse, with the field and the reason', async () => {
    const { id } = (await create(GOOD)).json();
    for (const [url, words] of [
      ['receiver.example', /not a URL/],
      ['http://receiver.example/', /https/],
      ['https://user:canary-password@receiver.example/', /username/],
      ['https://127.0.0.1/', /public/],
      ['https://2130706433/', /public/],
      ['https://[::ffff:169.254.169.254]/', /public/],
      ['https://to-10-0-0-1.example/', /public/],
      ['https://localhost:9443/', /this service|public/],
      ['https://GIT.example.org:444/', /this service/],
      [`https://receiver.example/${'x'.repeat(2_048)}`, /2048/],
    ] as const) {
      for (const answer of [await create({ ...GOOD, url }), await put(id, { url })]) {
        assert.equal(answer.statusCode, 422, url);
        const [fault] = answer.json().detail;
        assert.deepEqual(fault.loc, ['body', 'url']);
        assert.equal(fault.type, 'webhook-url-refused');
        assert.match(fault.msg, words, url);
        assert.ok(!answer.body.includes('canary'));
      }
    }
    assert.equal((await get(id)).json().url, GOOD.url);
  });

  test('are at most twenty in an account, even if thirty are created at the same time', async () => {
    const answers = await Promise.all(Array.from({ length: 30 }, () => create(GOOD)));
    const statuses = answers.map(({ statusCode }) => statusCode);
    assert.equal(statuses.filter((status) => status === 201).length, WEBHOOKS_MAX);
    for (const answer of answers.filter(({ statusCode }) => statusCode !== 201)) {
      assert.equal(answer.statusCode, 422);
      assert.deepEqual(answer.json(), { detail: 'An account has at most 20 webhooks' });
    }
    const { webhooks } = (await list()).json();
    assert.equal(webhooks.length, WEBHOOKS_MAX);
    assert.equal((await create(GOOD)).statusCode, 422, 'the 21st later on, too');
    assert.equal((await fixture.request('DELETE', `/v1/webhooks/${webhooks[7].id}`, token)).statusCode, 204);
    assert.equal((await create(GOOD)).statusCode, 201);
    const bob = await fixture.token(await fixture.account('bob'));
    assert.equal((await fixture.request('POST', '/v1/webhooks', bob, { body: GOOD })).statusCode, 201);
  });

  test('change only the fields sent, and keep their secret while the URL is unchanged', async () => {
    const { secret: _, ...created } = (await create(GOOD)).json();
    const before = await stateOf(created.id);
    fixture.clock.advance(5_000);
    const changed = await put(created.id, { active: false });
    assert.equal(changed.statusCode, 200);
    assert.deepEqual(changed.json(), { ...created, active: false, updated_at: fixture.clock.now() });
    const events = await put(created.id, { events: ['delete'], url: GOOD.url });
    assert.deepEqual(events.json(), { ...changed.json(), events: ['delete'] });
    assert.deepEqual((await get(created.id)).json(), events.json());
    fixture.clock.advance(5_000);
    const nothing = await put(created.id, { events: ['delete'], active: false, url: GOOD.url });
    assert.deepEqual(nothing.json(), events.json(), 'what is so already is no change');
    const after = await stateOf(created.id);
    assert.equal(after?.secretRef, before?.secretRef);
    assert.equal((await put(created.id, { events: [] })).statusCode, 422);
  });

  test('get a new secret with a new URL, and lose the previous ones', async () => {
    const created = (await create(GOOD)).json();
    await fixture.request('POST', `/v1/webhooks/${created.id}/secret`, token);
    const before = await stateOf(created.id);
    assert.ok(before?.previousSecret != null);
    const changed = (await put(created.id, { url: 'https://another.example/', active: false })).json();
    assert.match(changed.secret, /^whsec_[0-9A-Za-z]{40}$/);
    assert.notEqual(changed.secret, created.secret);
    assert.equal(changed.url, 'https://another.example/');
    assert.equal(changed.active, false);
    const after = await stateOf(created.id);
    assert.equal(after?.previousSecret, null);
    const { vault } = fixture.context;
    assert.ok(after !== undefined);
    assert.equal(await vault.get(owner, 'webhook-secret', after.secretRef), changed.secret);
    for (const ref of [before.secretRef, before.previousSecret.ref]) {
      assert.equal(await vault.get(owner, 'webhook-secret', ref), null);
    }
    assert.equal(await vault.get(owner, 'webhook-url', before.urlRef), null);
  });

  test('get a new secret on request, while the previous one is valid for a day', async () => {
    const created = (await create(GOOD)).json();
    const rotated = await fixture.request('POST', `/v1/webhooks/${created.id}/secret`, token);
    assert.equal(rotated.statusCode, 200);
    const { secret, ...webhook } = rotated.json();
    assert.notEqual(secret, created.secret);
    const { secret: _, ...shown } = created;
    assert.deepEqual(webhook, { ...shown, updated_at: fixture.clock.now() });
    const first = await stateOf(created.id);
    const { vault } = fixture.context;
    assert.ok(first?.previousSecret != null);
    assert.equal(await vault.get(owner, 'webhook-secret', first.secretRef), secret);
    assert.equal(await vault.get(owner, 'webhook-secret', first.previousSecret.ref), created.secret);
    assert.equal(first.previousSecret.validUntil, plusMs(fixture.clock.now(), WEBHOOK_SECRET_OVERLAP_MS));
    await fixture.request('POST', `/v1/webhooks/${created.id}/secret`, token);
    const second = await stateOf(created.id);
    assert.equal(second?.previousSecret?.ref, first.secretRef, 'only the one before');
    assert.equal(await vault.get(owner, 'webhook-secret', first.previousSecret.ref), null);
  });

  test('are gone after deletion, and so are their vault records', async () => {
    const { id } = (await create(GOOD)).json();
    const state = await stateOf(id);
    const deleted = await fixture.request('DELETE', `/v1/webhooks/${id}`, token);
    assert.equal(deleted.statusCode, 204);
    assert.equal(deleted.body, '');
    for (const answer of [
      await get(id),
      await put(id, { active: false }),
      await fixture.request('DELETE', `/v1/webhooks/${id}`, token),
    ]) {
      assert.equal(answer.statusCode, 404);
      assert.deepEqual(answer.json(), { detail: 'Webhook not found' });
    }
    assert.equal((await get('no-id')).statusCode, 404);
    assert.ok(state !== undefined);
    assert.equal(await fixture.context.vault.get(owner, 'webhook-url', state.urlRef), null);
    assert.equal(await fixture.context.vault.get(owner, 'webhook-secret', state.secretRef), null);
  });

  // The attack: a token for one repository reads, redirects or silences the webhooks of all others.
  test('of a token for selected repositories cover only these, and the token sees no other webhook', async () => {
    const [tools, other] = [await fixture.repository(owner, 'tools'), await fixture.repository(owner, 'other')];
    const selected = (...repositoryIds: readonly RepositoryId[]) =>
      fixture.token(owner, { grants: ['API_WEBHOOKS'], scope: 'SELECTED_REPO', repositoryIds });
    const narrow = await selected(tools.id);
    const { secret: _, ...mine } = (await fixture.request('POST', '/v1/webhooks', narrow, { body: GOOD })).json();
    assert.deepEqual([mine.scope, mine.repository_ids], ['SELECTED_REPO', [tools.id]]);
    const { secret: __, ...both } = (
      await fixture.request('POST', '/v1/webhooks', await selected(other.id, tools.id), { body: GOOD })
    ).json();
    const everything = (await create(GOOD)).json();
    assert.deepEqual((await fixture.request('GET', '/v1/webhooks', narrow)).json(), { webhooks: [mine] });
    assert.deepEqual((await fixture.request('GET', '/v1/webhooks', await selected(tools.id, other.id))).json(), {
      webhooks: [mine, both],
    });
    assert.equal((await list()).json().webhooks.length, 3, 'a token for all sees all');
    for (const { id } of [both, everything]) {
      for (const [method, path, body] of [
        ['GET', '', undefined],
        ['PUT', '', { active: false }],
        ['PUT', '', { url: 'https://mallory.example/' }],
        ['POST', '/secret', undefined],
        ['POST', '/ping', undefined],
        ['GET', '/deliveries', undefined],
        ['POST', `/deliveries/${id}/redeliver`, undefined],
        ['DELETE', '', undefined],
      ] as const) {
        const options = body === undefined ? {} : { body };
        const answer = await fixture.request(method, `/v1/webhooks/${id}${path}`, narrow, options);
        assert.equal(answer.statusCode, 404, `${method} ${path}`);
        assert.deepEqual(answer.json(), { detail: 'Webhook not found' });
      }
      assert.equal((await get(id)).json().active, true);
    }
    const changed = await fixture.request('PUT', `/v1/webhooks/${mine.id}`, narrow, { body: { active: false } });
    assert.deepEqual([changed.statusCode, changed.json().scope], [200, 'SELECTED_REPO']);
    assert.equal((await fixture.request('POST', `/v1/webhooks/${mine.id}/ping`, narrow)).statusCode, 202);
  });

  test('keep their repositories whatever happens to the token that created them', async () => {
    const tools = await fixture.repository(owner, 'tools');
    const narrow = await fixture.token(owner, { scope: 'SELECTED_REPO', repositoryIds: [tools.id] });
    const { id } = (await fixture.request('POST', '/v1/webhooks', narrow, { body: GOOD })).json();
    const all = await fixture.token(owner);
    const widened = { scope: 'ALL_REPO', repository_ids: [] };
    assert.equal(
      (await fixture.request('PUT', `/v1/access-tokens/${narrow.id}`, all, { body: widened })).statusCode,
      200,
    );
    assert.deepEqual((await get(id)).json().repository_ids, [tools.id]);
  });

  test('leave no URL or secret in events, logs or refusals', async () => {
    const secrets: string[] = [];
    const canary = 'canary7f3Kq9';
    const created = (await create({ ...GOOD, url: `https://receiver.example/${canary}` })).json();
    secrets.push(created.secret);
    secrets.push((await put(created.id, { url: `https://another.example/${canary}` })).json().secret);
    secrets.push((await fixture.request('POST', `/v1/webhooks/${created.id}/secret`, token)).json().secret);
    await create({ ...GOOD, url: `https://127.0.0.1/${canary}` });
    await fixture.request('DELETE', `/v1/webhooks/${created.id}`, token);
    const stream = await fixture.context.events.readStream(
      (await fixture.context.entities.get(accounts, owner)).stream,
      {
        direction: 'forwards',
        limit: 100,
      },
    );
    const written = [
      ...stream.map(({ type, data }) => `${type} ${canonicalJson(data)}`),
      ...fixture.logged,
      JSON.stringify(fixture.finished),
    ];
    assert.ok(written.some((line) => line.startsWith('WebhookSecretRotated')));
    for (const word of [canary, 'receiver.example', 'another.example', ...secrets]) {
      assert.ok(!written.some((line) => line.includes(word)), word);
    }
  });
});
