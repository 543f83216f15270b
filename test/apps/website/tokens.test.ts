/** The pages of access tokens: what a person makes, sees, changes and revokes there, and what a hostile form gets. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { TOKEN_FORM_BYTES_MAX } from '../../../apps/website/tokens/routes.ts';
import { accessTokens } from '../../../core/access-token/evolve.ts';
import type { AccessTokenId, AccountId } from '../../../core/kernel/ids.ts';
import { plusMs } from '../../../core/kernel/ids.ts';
import { TOKEN_NAME_LENGTH_MAX } from '../../../core/kernel/limits.ts';
import { csrfTokenOf } from '../../support/form-browser.ts';
import { type Browser, createWebsiteFixture, type Page, type WebsiteFixture } from '../../support/website.ts';

const DAY_MS = 24 * 60 * 60_000;
const CHOICE = { name: 'laptop', permissions: 'all', scope: 'ALL_REPO', expiry: 'never', expiry_time: '' };

describe('The pages of access tokens', () => {
  let fixture: WebsiteFixture;
  let ada: AccountId;
  let browser: Browser;

  beforeEach(async () => {
    fixture = await createWebsiteFixture();
    ada = await fixture.api.account('ada');
    browser = await fixture.signedIn(ada);
  });
  afterEach(() => fixture.close());

  async function formId(): Promise<string> {
    const { html } = await browser.get('/access-tokens/create');
    return /name="form_id" value="([^"]+)"/.exec(html)?.[1] ?? '';
  }
  async function make(fields: Readonly<Record<string, string | readonly string[]>> = {}): Promise<Page> {
    return browser.submit('/access-tokens/create', { form_id: await formId(), ...CHOICE, ...fields });
  }
  const secretOf = ({ html }: Page): string => /<code[^>]*>(strata_\w+)<\/code>/.exec(html)?.[1] ?? '';
  async function tokens() {
    const list = await fixture.context.readModels.accessTokens(ada, fixture.context.clock.now());
    return list.map(({ id: _id, createdAt: _createdAt, tokenPrefix: _prefix, ...token }) => token);
  }
  const stateOf = async (id: AccessTokenId) => (await fixture.context.entities.reload(accessTokens, id)).state;

  test('make a token that may do everything unless the person chooses less', async () => {
    const { html } = await browser.get('/access-tokens/create');
    assert.match(html, /name="permissions" value="all" checked/);
    assert.match(html, /name="scope" value="ALL_REPO" checked/);
    const made = await make();
    assert.equal(made.status, 200);
    assert.equal(made.headers['cache-control'], 'no-store');
    const used = await fixture.api.request('GET', '/v1/access-tokens', { id: '' as never, secret: secretOf(made) });
    assert.equal(used.statusCode, 200);
    const whole = { name: 'laptop', scope: 'ALL_REPO', grants: ['ALL'], repositoryIds: [], expiresAt: null };
    assert.deepEqual(await tokens(), [whole]);
  });

  test('make a token of the chosen permissions, repositories and expiry', async () => {
    const engine = await fixture.api.repository(ada, 'engine');
    await fixture.api.repository(ada, 'other');
    const made = await make({
      permissions: 'chosen',
      grants: ['GIT_HTTP_READ', 'API_COMMITS_READ'],
      scope: 'SELECTED_REPO',
      repository_ids: [engine.id],
      expiry: '30',
    });
    assert.match(made.html, /Clone and fetch · Read branches, commits and files/);
    const [token] = await tokens();
    assert.deepEqual(token, {
      name: 'laptop',
      scope: 'SELECTED_REPO',
      grants: ['GIT_HTTP_READ', 'API_COMMITS_READ'],
      repositoryIds: [engine.id],
      expiresAt: plusMs(fixture.context.clock.now(), 30 * DAY_MS),
    });
    assert.match((await browser.get('/access-tokens')).html, /<td data-label="Repositories">engine<\/td>/);
  });

  test('leave out boxes of a group that is not chosen, which the page hides', async () => {
    const engine = await fixture.api.repository(ada, 'engine');
    await make({ grants: ['GIT_HTTP_READ'], repository_ids: [engine.id] });
    assert.deepEqual(
      (await tokens()).map(({ grants, scope }) => [grants, scope]),
      [[['ALL'], 'ALL_REPO']],
    );
  });

  test('let a token expire at a chosen time, in UTC', async () => {
    await make({ expiry: 'time', expiry_time: '2026-12-24T18:30' });
    await make({ expiry: 'time', expiry_time: '2026-12-24T18:30:05' });
    const expiries = (await tokens()).map(({ expiresAt }) => String(expiresAt)).toSorted((a, b) => (a < b ? -1 : 1));
    assert.deepEqual(expiries, ['2026-12-24T18:30:00.000Z', '2026-12-24T18:30:05.000Z']);
  });

  test('show the secret once: loading the answer again shows none and makes no second token', async () => {
    // A reload sends the same form again, with the same token and the same id.
    const opened = await browser.get('/access-tokens/create');
    const id = /name="form_id" value="([^"]+)"/.exec(opened.html)?.[1] ?? '';
    const send = () =>
      browser.post(
        '/access-tokens/create',
        { _csrf: csrfTokenOf(opened), form_id: id, ...CHOICE },
        { origin: 'http://localhost:8080', 'sec-fetch-site': 'same-origin' },
      );
    const first = await send();
    assert.match(secretOf(first), /^strata_/);
    const again = await send();
    assert.deepEqual([again.status, secretOf(again)], [409, '']);
    assert.equal((await tokens()).length, 1);
    const pages = await Promise.all(['/access-tokens', '/access-tokens/create'].map((path) => browser.get(path)));
    for (const { html } of pages) assert.ok(!html.includes(secretOf(first)));
  });

  test('keep what was entered, and say what is wrong beside its field and above the form', async () => {
    const wrong = [
      [{ name: '' }, 'name'],
      [{ name: 'n'.repeat(TOKEN_NAME_LENGTH_MAX + 1) }, 'name'],
      [{ permissions: 'chosen' }, 'permissions'],
      [{ permissions: '' }, 'permissions'],
      [{ scope: 'SELECTED_REPO' }, 'repository_ids'],
      [{ scope: '' }, 'scope'],
      [{ expiry: 'time', expiry_time: 'soon' }, 'expiry'],
      [{ expiry: 'time', expiry_time: '2020-01-01T00:00' }, 'expiry'],
      [{ expiry: '' }, 'expiry'],
      [{ expiry: 'keep' }, 'expiry'],
    ] as const;
    for (const [fields, field] of wrong) {
      const refused = await make({ name: 'a <b> name', ...fields });
      assert.equal(refused.status, 422, JSON.stringify(fields));
      assert.match(
        refused.html,
        new RegExp(`role="alert" id="errors"><p><a href="#${field}">`),
        JSON.stringify(fields),
      );
      if (!('name' in fields)) assert.match(refused.html, /value="a &#60;b&#62; name"/);
    }
    const choices = { permissions: 'chosen', scope: 'SELECTED_REPO', expiry: 'time', expiry_time: '' };
    const all = await make({ name: '', ...choices });
    assert.deepEqual(
      [...all.html.matchAll(/<p><a href="#(\w+)">/g)].map(([, field]) => field),
      ['name', 'permissions', 'repository_ids', 'expiry'],
    );
    assert.deepEqual(await tokens(), []);
    const taken = await make({ name: 'n'.repeat(TOKEN_NAME_LENGTH_MAX) });
    assert.equal(taken.status, 200);
  });

  test('take a form of the size of all names that a token lists, and no larger one', async () => {
    const opened = await browser.get('/access-tokens/create');
    const fields = { _csrf: csrfTokenOf(opened), form_id: await formId(), ...CHOICE, repository_names: '' };
    const headers = { origin: 'http://localhost:8080', 'sec-fetch-site': 'same-origin' };
    const rest = new URLSearchParams(fields).toString().length;
    const names = 'n'.repeat(TOKEN_FORM_BYTES_MAX - rest);
    const tooLarge = { ...fields, repository_names: `${names}n` };
    assert.equal((await browser.post('/access-tokens/create', tooLarge, headers)).status, 413);
    const largest = { ...fields, repository_names: names };
    assert.equal((await browser.post('/access-tokens/create', largest, headers)).status, 200);
  });

  test('change a token, and keep its secret and its expiry', async () => {
    const engine = await fixture.api.repository(ada, 'engine');
    const expiresAt = plusMs(fixture.context.clock.now(), DAY_MS);
    const { id, secret } = await fixture.api.token(ada, { grants: ['API_REPOS_READ'], expiresAt });
    const form = await browser.get(`/access-tokens/${id}`);
    assert.match(form.html, /value="API_REPOS_READ" checked/);
    assert.ok(!form.html.includes(secret));
    const fields = { ...CHOICE, name: 'renamed', permissions: 'chosen', grants: 'GIT_HTTP_READ', expiry: 'keep' };
    const changed = await browser.submit(`/access-tokens/${id}`, {
      ...fields,
      scope: 'SELECTED_REPO',
      repository_ids: engine.id,
    });
    assert.equal(changed.location, '/access-tokens');
    assert.match((await browser.follow(changed)).html, /The token is changed/);
    const [token] = await tokens();
    assert.deepEqual(token, {
      name: 'renamed',
      scope: 'SELECTED_REPO',
      grants: ['GIT_HTTP_READ'],
      repositoryIds: [engine.id],
      expiresAt,
    });
    const refused = await fixture.api.request('GET', '/v1/repositories', { id, secret });
    assert.equal(refused.statusCode, 403, 'what was taken away is gone immediately');
  });

  test('revoke a token after a second page asked', async () => {
    const { id, secret } = await fixture.api.token(ada, { name: 'old <laptop>' });
    const asked = await browser.get(`/access-tokens/${id}/revoke`);
    assert.match(asked.html, /Revoke old &#60;laptop&#62;/);
    assert.equal((await fixture.api.request('GET', '/v1/repositories', { id, secret })).statusCode, 200);
    const revoked = await browser.submit(`/access-tokens/${id}/revoke`);
    assert.match((await browser.follow(revoked)).html, /The token is revoked/);
    assert.equal((await fixture.api.request('GET', '/v1/repositories', { id, secret })).statusCode, 401);
    assert.equal((await browser.get(`/access-tokens/${id}/revoke`)).status, 404);
  });

  test('list tokens with their prefix, and stay small however many there are', async () => {
    for (let count = 0; count < 51; count += 1)
      await fixture.api.token(ada, { name: 'n'.repeat(TOKEN_NAME_LENGTH_MAX) });
    const first = await browser.get('/access-tokens');
    assert.equal(first.html.match(/<td class="wrap"><strong>/g)?.length, 50);
    assert.ok(first.html.length < 60_000, `${first.html.length} bytes`);
    const second = await browser.get('/access-tokens?page=2');
    assert.equal(second.html.match(/<td class="wrap"><strong>/g)?.length, 1);
    for (const odd of ['0', '3', 'x', '-1']) {
      assert.equal(
        (await browser.get(`/access-tokens?page=${odd}`)).html.match(/<td class="wrap"><strong>/g)?.length,
        50,
        odd,
      );
    }
  });

  test('take names of repositories where there are too many for boxes', async () => {
    for (let count = 0; count < 101; count += 1) await fixture.api.repository(ada, `repository-${count}`);
    const { html } = await browser.get('/access-tokens/create');
    assert.doesNotMatch(html, /name="repository_ids" value/);
    assert.ok(html.length < 60_000);
    const chosen = { scope: 'SELECTED_REPO', repository_names: 'Repository-7\r\n\r\n repository-100 ' };
    assert.equal((await make(chosen)).status, 200);
    assert.equal((await tokens())[0]?.repositoryIds.length, 2);
    const all = await fixture.api.token(ada);
    await fixture.api.request('PATCH', '/v1/repos/ada/repository-7', all, { body: { name: 'seven' } });
    const renamed = await make({ ...chosen, repository_names: 'repository-7\nSeven\nrepository-100' });
    assert.equal(renamed.status, 200, 'old names lead on');
    const counts = (await tokens()).map(({ repositoryIds }) => repositoryIds.length);
    assert.equal(counts.filter((count) => count === 2).length, 2);
    const unknown = await make({ ...chosen, repository_names: 'elsewhere' });
    assert.match(unknown.html, /You have no repository elsewhere/);
  });

  test('of the largest number of boxes stay below 60 KB', async () => {
    for (let count = 0; count < 100; count += 1) await fixture.api.repository(ada, `${'n'.repeat(90)}-${count}`);
    const { html } = await browser.get('/access-tokens/create');
    assert.equal(html.match(/name="repository_ids" value/g)?.length, 100);
    assert.ok(html.length < 60_000, `${html.length} bytes`);
  });

  test('widen no token of selected repositories by a forged field', async () => {
    // The attack: a script or an extension of the browser adds fields to a form that was meant to narrow a token.
    const engine = await fixture.api.repository(ada, 'engine');
    const strangers = await fixture.api.repository(await fixture.api.account('eve'), 'strangers');
    const narrow = { scope: 'SELECTED_REPO', grants: ['GIT_HTTP_READ'], repositoryIds: [engine.id] } as const;
    const { id } = await fixture.api.token(ada, narrow);
    const form = {
      ...CHOICE,
      expiry: 'keep',
      permissions: 'chosen',
      grants: 'GIT_HTTP_READ',
      scope: 'SELECTED_REPO',
      repository_ids: engine.id,
    };
    const forged: readonly (readonly [Readonly<Record<string, string | readonly string[]>>, number])[] = [
      [{ scope: ['SELECTED_REPO', 'ALL_REPO'] }, 422],
      [{ permissions: ['chosen', 'all'] }, 422],
      [{ expiry: ['keep', 'never'] }, 422],
      [{ grants: ['GIT_HTTP_READ', 'ALL'] }, 422],
      [{ grants: ['GIT_HTTP_READ', 'ADMIN'] }, 422],
      [{ repository_ids: [engine.id, strangers.id] }, 422],
      [{ repository_ids: [engine.id, '*'] }, 422],
      [{ repository_names: 'strangers' }, 422],
      [{ account: 'x', token_prefix: 'strata_0000', id: 'x', principal: 'ALL' }, 303],
    ];
    for (const [fields, status] of forged) {
      const answer = await browser.submit(`/access-tokens/${id}`, { ...form, ...fields });
      assert.equal(answer.status, status, JSON.stringify(fields));
      const state = await stateOf(id);
      assert.ok(state.status === 'active');
      const { scope, grants, repositoryIds } = state;
      assert.deepEqual({ scope, grants, repositoryIds }, narrow, JSON.stringify(fields));
    }
  });

  test("show, change and revoke nobody else's token", async () => {
    // The attack: a signed-in person sends the id of another account's token.
    const eve = await fixture.signedIn(await fixture.api.account('eve'));
    const { id } = await fixture.api.token(ada, { name: 'private' });
    for (const path of [`/access-tokens/${id}`, `/access-tokens/${id}/revoke`, '/access-tokens/x']) {
      const shown = await eve.get(path);
      assert.equal(shown.status, 404, path);
      assert.ok(!shown.html.includes('private'));
      assert.equal((await eve.submit(path, { ...CHOICE, expiry: 'keep' }, '/access-tokens/create')).status, 404, path);
    }
    assert.equal((await stateOf(id)).status, 'active');
  });

  test('do nothing without the token of the form, for another site, or for who is signed out', async () => {
    // The attack: another site sends the form from the person's browser, or guesses that no token is checked.
    const { id } = await fixture.api.token(ada);
    const paths = ['/access-tokens/create', `/access-tokens/${id}`, `/access-tokens/${id}/revoke`];
    const fields = { ...CHOICE, form_id: await formId(), expiry: 'never' };
    const token = csrfTokenOf(await browser.get('/access-tokens/create'));
    for (const path of paths) {
      assert.equal((await browser.post(path, fields)).status, 403, path);
      const elsewhere = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
      assert.equal((await browser.post(path, { ...fields, _csrf: token }, elsewhere)).status, 403, path);
      assert.equal((await fixture.browser().get(path)).location, `/sign-in?next=${encodeURIComponent(path)}`);
    }
    assert.equal((await tokens()).length, 1);
    assert.equal((await stateOf(id)).status, 'active');
  });
});
