/** The pages of webhooks: what they show, which forms they take, and what strangers and hostile receivers get. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { encodeUtf8 } from '../../../core/git/utf8.ts';
import { type AccountId, type EventId, uuid, type WebhookDeliveryId } from '../../../core/kernel/ids.ts';
import { OUTGOING_URL_LENGTH_MAX, WEBHOOKS_MAX } from '../../../core/kernel/limits.ts';
import { execute } from '../../../core/runtime/execute.ts';
import { WEBHOOK_ANSWER_BYTES_MAX } from '../../../core/use-cases/webhooks/attempt-delivery.ts';
import { WEBHOOK_HEALTH_DELIVERIES_MAX } from '../../../core/use-cases/webhooks/list-webhook-deliveries.ts';
import type { WebhookDeliveryCommand } from '../../../core/webhook-delivery/commands.ts';
import { decideWebhookDelivery } from '../../../core/webhook-delivery/decide.ts';
import { webhookDeliveries } from '../../../core/webhook-delivery/evolve.ts';
import { accepted } from '../../support/accounts.ts';
import { CAUSE } from '../../support/node.ts';
import { type Browser, createWebsiteFixture, type Page, type WebsiteFixture } from '../../support/website.ts';

const HOOK = { url: 'https://receiver.example/hook', events: ['push', 'create'], active: 'true', scope: 'ALL_REPO' };
const HOSTILE = '"><script>alert(1)</script>';

describe('The pages of webhooks', () => {
  let fixture: WebsiteFixture;
  let number = 0;

  beforeAll(async () => {
    fixture = await createWebsiteFixture();
  });
  afterAll(() => fixture.close());

  /** A person with an account of their own, signed in. */
  const person = async () => {
    number += 1;
    const account = await fixture.api.account(`person-${number}`);
    return { account, browser: await fixture.signedIn(account) };
  };
  const made = async (browser: Browser, fields = {}): Promise<{ readonly path: string; readonly page: Page }> => {
    const page = await browser.submit('/webhooks/create', { ...HOOK, ...fields });
    const [, path] = /href="(\/webhooks\/[0-9a-f-]{36})"/.exec(page.html) ?? [];
    assert.ok(path !== undefined, page.html);
    return { path, page };
  };
  /** Sends a ping and returns the path of its delivery. */
  const pinged = async (browser: Browser, path: string): Promise<string> => {
    const { location } = await browser.submit(`${path}/ping`, {}, path);
    assert.ok(location !== null);
    return location;
  };
  /** Makes an attempt at the delivery of this path, which the receiver answers. */
  const attempted = async (account: AccountId, path: string, status: number, body: string): Promise<void> => {
    const { context } = fixture;
    const id = uuid<WebhookDeliveryId>(path.slice(-36));
    const about = { account, cause: CAUSE };
    const decide = async (command: WebhookDeliveryCommand) =>
      accepted(await execute(context, webhookDeliveries, id, about, (state) => decideWebhookDelivery(state, command)));
    const startedAt = context.clock.now();
    const claimed = await decide({ type: 'ClaimAttempt', claimId: context.ids.next<EventId>(), now: startedAt });
    const { state } = claimed.entity;
    assert.ok(state.status === 'pending');
    const { series, attempts, eventId } = state;
    const number = attempts + 1;
    const answer = { delivery: id, series, attempt: number, account, eventId, body: encodeUtf8(body) };
    await context.deliveries.putAnswer({ ...answer, storedAt: startedAt });
    const result = { kind: 'answered', status, answerSha256: context.digest.sha256(body), detail: null } as const;
    await decide({ type: 'RecordAttempt', series, attempt: number, startedAt, durationMs: 41, result });
  };

  test('say at first what a webhook is, and how to make one', async () => {
    const { browser } = await person();
    const list = await browser.get('/webhooks');
    assert.equal(list.status, 200);
    assert.match(list.html, /<title>Webhooks · Strata<\/title>/);
    assert.match(list.html, /No webhooks yet/);
    assert.match(list.html, /href="\/webhooks\/create">New webhook/);
  });

  test('make a webhook, show its secret once and never again', async () => {
    const { browser } = await person();
    const { path, page } = await made(browser);
    const [secret] = /whsec_[0-9A-Za-z]+/.exec(page.html) ?? [];
    assert.ok(secret !== undefined);
    assert.equal(page.headers['cache-control'], 'no-store');
    for (const shown of ['/webhooks', path, `${path}/edit`, `${path}/secret`]) {
      assert.doesNotMatch((await browser.get(shown)).html, /whsec_/, shown);
    }
    const list = await browser.get('/webhooks');
    assert.match(list.html, /receiver\.example\/hook/);
    assert.match(list.html, /push, create/);
  });

  test('keep what was entered, and say beside the field and above the form what was wrong', async () => {
    const { browser } = await person();
    const cases: readonly (readonly [object, string, RegExp])[] = [
      [{ url: 'http://receiver.example/' }, 'url', /must start with https/],
      [{ url: 'https://127.0.0.1/' }, 'url', /public address/],
      [{ url: 'https://to-10-0-0-1.example/' }, 'url', /public address/],
      [{ url: 'https://me:secret@receiver.example/' }, 'url', /username or a password/],
      [{ url: 'not a URL' }, 'url', /not a URL/],
      [{ url: `https://receiver.example/${'x'.repeat(OUTGOING_URL_LENGTH_MAX)}` }, 'url', /at most/],
      [{ events: [] }, 'events', /at least one event/],
      [{ events: ['push', 'explode'] }, 'events', /./],
    ];
    for (const [fields, field, text] of cases) {
      const { status, html } = await browser.submit('/webhooks/create', { ...HOOK, ...fields });
      assert.equal(status, 422, JSON.stringify(fields));
      assert.match(html, new RegExp(`<a href="#${field}">[^<]*`), field);
      assert.match(/<a href="#\w+">([^<]*)/.exec(html)?.[1] ?? '', text);
      assert.match(html, new RegExp(`id="${field}-error"`));
    }
    const both = await browser.submit('/webhooks/create', { ...HOOK, url: 'http://receiver.example/', events: [] });
    assert.deepEqual(
      [...both.html.matchAll(/<p><a href="#(\w+)">/g)].map(([, field]) => field),
      ['url', 'events'],
    );
    const { html } = await browser.submit('/webhooks/create', { ...HOOK, url: HOSTILE });
    assert.ok(!html.includes('<script>alert'));
    assert.match(html, /value="&#34;&#62;&#60;script/);
    assert.match(html, /value="create" checked/);
    assert.match((await browser.get('/webhooks')).html, /No webhooks yet/);
  });

  test('choose the repositories of a new webhook, and name them', async () => {
    const { account, browser } = await person();
    const engine = await fixture.api.repository(account, 'engine');
    const other = await fixture.api.repository((await person()).account, 'strangers');
    const chosen = { scope: 'SELECTED_REPO', repository_ids: [engine.id] };
    for (const [fields, words] of [
      [{ scope: 'SELECTED_REPO' }, /Choose at least one repository/],
      [{ scope: '' }, /Choose which repositories/],
      [{ ...chosen, repository_ids: [engine.id, other.id] }, /Choose repositories from the list/],
      [{ ...chosen, repository_ids: [engine.id, '*'] }, /Choose repositories from the list/],
    ] as const) {
      const { status, html } = await browser.submit('/webhooks/create', { ...HOOK, ...fields });
      assert.equal(status, 422, JSON.stringify(fields));
      assert.match(/<a href="#repository_ids">([^<]*)/.exec(html)?.[1] ?? '', words);
    }
    const all = { ...chosen, repository_ids: [], url: 'http://receiver.example/', events: [] };
    const refused = await browser.submit('/webhooks/create', { ...HOOK, ...all });
    assert.deepEqual(
      [...refused.html.matchAll(/<p><a href="#(\w+)">/g)].map(([, field]) => field),
      ['url', 'events', 'repository_ids'],
    );
    const { path } = await made(browser, chosen);
    assert.match((await browser.get(path)).html, /push, create · engine · active/);
    assert.match((await browser.get('/webhooks')).html, /data-label="Repositories">engine</);
  });

  test('refuse the twenty-first webhook, and stop offering it', async () => {
    const { browser } = await person();
    for (let n = 0; n < WEBHOOKS_MAX; n += 1) await made(browser, { url: `https://receiver.example/${n}` });
    assert.doesNotMatch((await browser.get('/webhooks')).html, /href="\/webhooks\/create"/);
    const refused = await browser.submit('/webhooks/create', HOOK);
    assert.equal(refused.status, 422);
    assert.match(refused.html, /An account has at most 20 webhooks\./);
  });

  test('change events and state without a new secret, and the URL with one', async () => {
    const { browser } = await person();
    const { path } = await made(browser);
    const edit = await browser.get(`${path}/edit`);
    assert.match(edit.html, /value="https:\/\/receiver\.example\/hook"/);
    assert.match(edit.html, /value="push" checked/);
    assert.doesNotMatch(edit.html, /value="delete" checked/);
    const changed = await browser.submit(`${path}/edit`, { url: HOOK.url, events: ['delete'] });
    assert.equal(changed.location, path);
    const shown = await browser.follow(changed);
    assert.match(shown.html, /The webhook is changed\./);
    assert.match(shown.html, /<p>delete · all repositories · <b>inactive<\/b>/);
    const moved = await browser.submit(`${path}/edit`, { ...HOOK, url: 'https://other.example/' });
    assert.match(moved.html, /whsec_/);
    const wrong = await browser.submit(`${path}/edit`, { ...HOOK, url: 'http://other.example/' });
    assert.equal(wrong.status, 422);
  });

  test('make a new secret, and delete, only on a page that asks', async () => {
    const { browser } = await person();
    const { path } = await made(browser);
    const asked = await browser.get(`${path}/secret`);
    assert.match(asked.html, /also signs for 24 hours/);
    const rotated = await browser.submit(`${path}/secret`);
    assert.match(rotated.html, /whsec_/);
    assert.equal(rotated.headers['cache-control'], 'no-store');
    assert.match((await browser.get(`${path}/delete`)).html, /Delete webhook.*This cannot be undone\./s);
    assert.match((await browser.get(`${path}/secret`)).html, /This cannot be undone\./);
    const deleted = await browser.submit(`${path}/delete`);
    assert.equal(deleted.location, '/webhooks');
    assert.match((await browser.follow(deleted)).html, /The webhook is deleted\./);
    assert.equal((await browser.get(path)).status, 404);
  });

  test('show each delivery: its status, its attempts, what was sent and what came back', async () => {
    const { account, browser } = await person();
    const { path, page } = await made(browser);
    const [secret = ''] = /whsec_[0-9A-Za-z]+/.exec(page.html) ?? [];
    const delivery = await pinged(browser, path);
    const pending = await browser.get(delivery);
    assert.match(pending.html, />pending</);
    assert.match(pending.html, /No attempt yet/);
    assert.match(pending.html, /at once/);
    await attempted(account, delivery, 503, 'try later');
    const waiting = await browser.get(path);
    assert.match(waiting.html, /<b>503<\/b>at once, 41 ms/);
    assert.match(waiting.html, /after 512 s/);
    const pings = await browser.get(`${path}?status=PENDING&event=ping&repository=`);
    assert.match(pings.html, /<title>Webhook receiver\.example\/hook: pending, ping · /);
    assert.match(pings.html, /<b>503<\/b>/);
    for (const query of ['status=FAILED', 'event=push', 'repository=ada%2Fengine']) {
      assert.match((await browser.get(`${path}?${query}`)).html, /No delivery matches/, query);
    }
    const failed = await browser.get(delivery);
    assert.match(failed.html, /The receiver did not answer 2xx/);
    assert.match(failed.html, /try later/);
    assert.match(failed.html, /&#34;type&#34;: &#34;ping&#34;/);
    const payload = (await browser.get(`${delivery}/payload`)).html;
    const signature = createHmac('sha256', secret).update(payload).digest('hex');
    assert.match(failed.html, new RegExp(`X-Service-Signature</dt><dd><code>[^<]*${signature}</code>`));
    assert.match(failed.html, /1 of 8/);
    assert.doesNotMatch(failed.html, /Redeliver/, 'it is still being tried');
  });

  test('deliver again what has ended, and say why not if it cannot be', async () => {
    const { account, browser } = await person();
    const { path } = await made(browser);
    const delivery = await pinged(browser, path);
    await attempted(account, delivery, 204, '');
    assert.match((await browser.get(delivery)).html, />delivered</);
    assert.match((await browser.get('/webhooks')).html, /1 of 1 delivered/);
    const again = await browser.submit(`${delivery}/redeliver`, {}, delivery);
    assert.match((await browser.follow(again)).html, /The delivery is sent again\./);
    assert.match((await browser.get(delivery)).html, />pending</);
    await attempted(account, delivery, 200, 'ok');
    await fixture.context.deliveries.forgetAccount(account);
    const shown = await browser.get(delivery);
    assert.match(shown.html, /The payload is no longer kept/);
    assert.doesNotMatch(shown.html, /Redeliver/);
    assert.equal((await browser.get(`${delivery}/payload`)).status, 404);
    const refused = await browser.submit(`${delivery}/redeliver`, {}, path);
    assert.match((await browser.follow(refused)).html, /Webhook delivery not found\./);
  });

  test('count the health of the newest deliveries only', async () => {
    const { account, browser } = await person();
    const { path } = await made(browser);
    const first = await pinged(browser, path);
    for (let n = 0; n < 8; n += 1) await attempted(account, first, 500, '').catch(() => undefined);
    for (let n = 0; n < WEBHOOK_HEALTH_DELIVERIES_MAX - 1; n += 1) await pinged(browser, path);
    const total = WEBHOOK_HEALTH_DELIVERIES_MAX;
    assert.match((await browser.get('/webhooks')).html, new RegExp(`0 of ${total} delivered`));
    const last = await pinged(browser, path);
    await attempted(account, last, 200, '');
    const { html } = await browser.get('/webhooks');
    assert.match(html, new RegExp(`1 of ${total} delivered.*${total - 1} pending`));
  });

  test('stay below 60 KB, whatever a receiver answers and however many deliveries there are', async () => {
    const { account, browser } = await person();
    const { path } = await made(browser, { url: `https://receiver.example/${'x'.repeat(2_000)}` });
    let newest = '';
    for (let n = 0; n < 60; n += 1) newest = await pinged(browser, path);
    await attempted(account, newest, 500, '"'.repeat(WEBHOOK_ANSWER_BYTES_MAX));
    for (const shown of [path, newest, '/webhooks']) {
      const { html } = await browser.get(shown);
      assert.ok(Buffer.byteLength(html) < 60_000, `${shown}: ${Buffer.byteLength(html)}`);
    }
  });

  test('give the whole payload as an attachment that no browser runs', async () => {
    const { browser } = await person();
    const { path } = await made(browser);
    const delivery = await pinged(browser, path);
    const { status, headers, html } = await browser.get(`${delivery}/payload`);
    assert.equal(status, 200);
    assert.match(String(headers['content-disposition']), /^attachment; filename="[0-9a-f-]{36}\.json"$/);
    assert.equal(headers['content-type'], 'application/json; charset=utf-8');
    assert.equal(headers['x-content-type-options'], 'nosniff');
    assert.match(String(headers['content-security-policy']), /sandbox/);
    assert.equal((JSON.parse(html) as { readonly type: string }).type, 'ping');
  });
});

describe('An attacker', () => {
  let fixture: WebsiteFixture;
  let owner: AccountId;
  let path: string;
  let delivery: string;

  beforeAll(async () => {
    fixture = await createWebsiteFixture();
    owner = await fixture.api.account('ada');
    path = `/webhooks/${await fixture.api.webhook(owner)}`;
    const browser = await fixture.signedIn(owner);
    delivery = String((await browser.submit(`${path}/ping`, {}, path)).location);
  });
  afterAll(() => fixture.close());

  test("who guesses the address of another account's webhook gets the page of what does not exist", async () => {
    const mallory = await fixture.signedIn(await fixture.api.account('mallory'));
    const nowhere = `/webhooks/${fixture.context.ids.next()}`;
    for (const below of [
      '',
      '/edit',
      '/secret',
      '/delete',
      delivery.slice(path.length),
      `${delivery.slice(path.length)}/payload`,
    ]) {
      const theirs = await mallory.get(`${path}${below}`);
      const none = await mallory.get(`${nowhere}${below}`);
      assert.deepEqual([theirs.status, none.status], [404, 404], below);
      const plain = ({ html }: Page): string =>
        html.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '').replaceAll(/_csrf" value="[^"]*"/g, '');
      assert.equal(plain(theirs), plain(none), below);
    }
    for (const below of ['/edit', '/secret', '/delete', '/ping', `${delivery.slice(path.length)}/redeliver`]) {
      assert.equal((await mallory.submit(`${path}${below}`, HOOK, '/webhooks/create')).status, 404, below);
    }
  });

  test('who is a stranger is sent to the sign-in page from every page and form', async () => {
    const stranger = fixture.browser();
    for (const below of ['', '/edit', '/secret', '/delete']) {
      const { status, location } = await stranger.get(`${path}${below}`);
      assert.deepEqual([status, location?.startsWith('/sign-in?next=')], [303, true], below);
    }
    assert.equal((await stranger.get('/webhooks/create')).location, '/sign-in?next=%2Fwebhooks%2Fcreate');
  });

  test('who lures a signed-in person to a form of another site changes nothing', async () => {
    const browser = await fixture.signedIn(owner);
    for (const below of ['/delete', '/secret', '/ping', '/edit']) {
      const headers = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
      assert.equal((await browser.post(`${path}${below}`, HOOK, headers)).status, 403, below);
      assert.equal((await browser.post(`${path}${below}`, HOOK, {})).status, 403, `${below}, without a token`);
    }
    assert.equal((await browser.get(path)).status, 200);
  });

  test('who answers a delivery with markup has it shown as text', async () => {
    const browser = await fixture.signedIn(owner);
    const { context } = fixture;
    const id = uuid<WebhookDeliveryId>(delivery.slice(-36));
    const body = encodeUtf8(`${HOSTILE}\0\u202e`);
    const now = context.clock.now();
    const about = { account: owner, cause: CAUSE };
    const decide = (command: WebhookDeliveryCommand) =>
      execute(context, webhookDeliveries, id, about, (state) => decideWebhookDelivery(state, command));
    accepted(await decide({ type: 'ClaimAttempt', claimId: context.ids.next<EventId>(), now }));
    const answer = { delivery: id, series: 1, attempt: 1, account: owner, eventId: context.ids.next<EventId>(), body };
    await context.deliveries.putAnswer({ ...answer, storedAt: now });
    const answerSha256 = context.digest.sha256('x');
    const result = { kind: 'answered', status: 200, answerSha256, detail: 'answer-cut' } as const;
    accepted(await decide({ type: 'RecordAttempt', series: 1, attempt: 1, startedAt: now, durationMs: 1, result }));
    const { html } = await browser.get(delivery);
    assert.ok(!html.includes('<script>alert'));
    assert.match(html, /&#60;script&#62;alert/);
    assert.match(html, /Delivered; the answer broke off/);
  });
});
