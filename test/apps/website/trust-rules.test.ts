/** The pages of trust rules: what they show, which forms they take, and what a tried token is told. */
import assert from 'node:assert/strict';
import { beforeAll, beforeEach, describe, test } from 'vitest';
import { TOKEN_TRIALS_PER_MINUTE_MAX } from '../../../apps/website/trust/trial.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import { TRUST_RULES_MAX } from '../../../core/kernel/limits.ts';
import { cleanUp, suiteEnding } from '../../support/cleanup.ts';
import { createIssuerNetwork, startIssuer, type TestIssuer } from '../../support/identity-issuer.ts';
import { type Browser, createWebsiteFixture, type WebsiteFixture } from '../../support/website.ts';

const HOSTILE = '"><script>alert(1)</script>';

describe('The pages of trust rules', () => {
  const ending = suiteEnding();
  const network = createIssuerNetwork();
  let fixture: WebsiteFixture;
  let issuer: TestIssuer;
  let account: AccountId;
  let browser: Browser;
  let number = 0;

  beforeAll(async () => {
    fixture = await createWebsiteFixture({ api: { outgoing: network.outgoing } });
    cleanUp(ending, () => fixture.close());
  });
  beforeEach(async (context) => {
    number += 1;
    account = await fixture.api.account(`person-${number}`);
    browser = await fixture.signedIn(account);
    const audience = `${fixture.context.addresses().webUrl}/person-${number}`;
    issuer = await startIssuer(context, network, { clock: fixture.api.clock, audience });
  });

  const RULE = {
    ...{ name: 'main', subject: 'repo:acme/*', claims: 'ref = refs/heads/main\n\nenv=a=b ' },
    ...{ permissions: 'chosen', grants: ['GIT_HTTP_WRITE'], scope: 'ALL_REPO', repository_names: '' },
  };
  const create = (fields = {}) => browser.submit('/oidc-trust/create', { ...RULE, issuer: issuer.url, ...fields });
  const made = async (fields = {}): Promise<string> => {
    const { location, html } = await create(fields);
    assert.ok(location !== null, html);
    return location;
  };
  const trial = (token: string) => browser.submit('/oidc-trust/try', { token });

  test('say at first what a rule is, which audience it needs, and where the examples are', async () => {
    const { status, html } = await browser.get('/oidc-trust');
    assert.equal(status, 200);
    assert.match(html, /No trust rules yet/);
    assert.ok(html.includes(`${fixture.context.addresses().webUrl}/person-${number}</code>`));
    assert.match(html, /href="\/docs\/ci"/);
    assert.match((await browser.get('/docs/ci')).html, new RegExp(`audience&#61;.*/person-${number} `));
  });

  test('create, change and delete a rule', async () => {
    const path = await made();
    const shown = await browser.follow(await browser.get(path));
    for (const text of ['main', 'repo:acme/*', 'refs/heads/main', 'a&#61;b', 'Push, clone and fetch', 'never used']) {
      assert.ok(shown.html.includes(text), text);
    }
    assert.match(shown.html, /No refused exchanges/);
    const edit = await browser.get(`${path}/edit`);
    assert.ok(edit.html.includes('env &#61; a&#61;b\nref &#61; refs/heads/main</textarea>'), edit.html);
    assert.match(edit.html, /value="GIT_HTTP_WRITE" checked/);
    const changed = { ...RULE, issuer: issuer.url, name: 'renamed', claims: '', permissions: 'all' };
    assert.equal((await browser.submit(`${path}/edit`, changed)).location, path);
    const list = await browser.get('/oidc-trust');
    assert.match(list.html, /renamed/);
    assert.match(list.html, /Everything/);
    assert.match(
      (await browser.get(`${path}/delete`)).html,
      /the tokens that it has given out end now\. This cannot be undone\./,
    );
    assert.equal((await browser.submit(`${path}/delete`)).location, '/oidc-trust');
    for (const gone of [path, `${path}/edit`, `${path}/delete`, '/oidc-trust/no-id']) {
      assert.equal((await browser.get(gone)).status, 404, gone);
    }
  });

  // The attack: a field appended to a form, or a text that is markup.
  test('keep what was entered, and say beside the field what was wrong', async () => {
    for (const [fields, field, words] of [
      [{ name: '' }, 'name', /1 to 100 characters/],
      [{ issuer: 'http://issuer.example' }, 'issuer', /https/],
      [{ issuer: 'https://issuer.example?a' }, 'issuer', /without a query/],
      [{ subject: '' }, 'subject', /1 to 500/],
      [{ claims: 'no pattern' }, 'claims', /such as/],
      [{ claims: 'a=1\na=2' }, 'claims', /twice/],
      [{ claims: 'aud = x' }, 'claims', /judges itself/],
      [{ grants: [] }, 'permissions', /at least one permission/],
      [{ grants: ['ALL'] }, 'permissions', /./],
      [{ scope: 'SELECTED_REPO' }, 'repository_ids', /at least one repository/],
      [{ name: ['a', 'b'] }, 'form', /page did not send/],
    ] as const) {
      const { status, html } = await create(fields);
      assert.equal(status, 422, JSON.stringify(fields));
      const [, summary = ''] = /id="errors">(.*?)<\/div>/s.exec(html) ?? [];
      assert.match(summary, words, JSON.stringify(fields));
      if (field !== 'form') assert.match(html, new RegExp(`href="#${field}"`), field);
    }
    const { html } = await create({ name: HOSTILE, subject: HOSTILE, claims: HOSTILE });
    assert.ok(!html.includes('<script>alert'));
    const path = await made({ name: HOSTILE, subject: HOSTILE, claims: `${HOSTILE} = ${HOSTILE}` });
    for (const page of ['/oidc-trust', path, `${path}/edit`, `${path}/delete`]) {
      assert.ok(!(await browser.get(page)).html.includes('<script>alert'), page);
    }
  });

  test('say together what is wrong, at creation and at a change', async () => {
    const wrong = { name: '', subject: '', grants: [], scope: 'SELECTED_REPO' };
    const path = await made();
    const faultsOf = ({ html }: { readonly html: string }) =>
      [...html.matchAll(/<p><a href="#(\w+)">/g)].map(([, field]) => field);
    const all = ['issuer', 'subject', 'claims', 'name', 'permissions', 'repository_ids'];
    const sent = { ...wrong, issuer: 'http://issuer.example', claims: 'aud = x' };
    assert.deepEqual(faultsOf(await create(sent)), all);
    assert.deepEqual(new Set(faultsOf(await create({ ...sent, claims: 'no pattern' }))), new Set(all));
    const changed = await browser.submit(`${path}/edit`, { ...RULE, issuer: issuer.url, ...wrong });
    assert.deepEqual(faultsOf(changed), ['subject', 'name', 'permissions', 'repository_ids']);
  });

  test('stop offering a rule beyond the limit', async () => {
    for (let n = 0; n < TRUST_RULES_MAX; n += 1) await made({ subject: 'x'.repeat(500), name: 'n'.repeat(100) });
    const { html } = await browser.get('/oidc-trust');
    assert.doesNotMatch(html, /href="\/oidc-trust\/create"/);
    assert.ok(Buffer.byteLength(html) < 60_000);
    assert.match((await create()).html, /An account has at most 20 trust rules\./);
  });

  test('show which exchanges a rule refused, with what the token had', async () => {
    const path = await made({ claims: '' });
    const token = await issuer.token({ sub: `repo:evil/${HOSTILE}` });
    await fixture.api.request('POST', '/v1/oidc/token', null, { body: { id_token: token } });
    const { html } = await browser.get(path);
    assert.match(html, /The claim sub does not match/);
    assert.match(html, /repo:evil/);
    assert.ok(!html.includes('<script>alert'));
  });

  test('say of a subject of GitHub that it differs from the rule by the ids behind its names alone', async () => {
    const path = await made({ subject: 'repo:octocat/my-repo:ref:refs/heads/main', claims: '' });
    const token = await issuer.token({ sub: 'repo:octocat@123456/my-repo@456789:ref:refs/heads/main' });
    const words = /differs only by numbers behind the names.*repository_owner_id/;
    assert.match((await trial(token)).html, words);
    await fixture.api.request('POST', '/v1/oidc/token', null, { body: { id_token: token } });
    assert.match((await browser.get(path)).html, words);
    const owner = await fixture.api.token(account);
    const listed = await fixture.api.request(
      'GET',
      `/v1${path.replace('/oidc-trust', '/oidc/trust-rules')}/refusals`,
      owner,
    );
    assert.match(listed.json().refusals[0].message, words);
    const other = await trial(await issuer.token({ sub: 'repo:evil@123456/my-repo@456789:ref:refs/heads/main' }));
    assert.doesNotMatch(other.html, words);
  });

  test('tell of a tried token which rule lets it in and why others do not, and exchange nothing', async () => {
    const other = await made({ name: 'other', subject: 'repo:other/*', claims: '' });
    const path = await made({ claims: '' });
    const token = await issuer.token();
    const before = await fixture.context.events.head();
    for (let n = 0; n < 2; n += 1) {
      const { html, status } = await trial(token);
      assert.equal(status, 200);
      assert.match(html, new RegExp(`The rule <a href="${path}">main</a> lets this token in`));
      assert.match(html, new RegExp(`<a href="${other}">other</a>.*claim sub.*repo:other/\\*.*repo:acme/site`));
      assert.ok(!html.includes(token.slice(0, 40)), 'the token is not shown again');
    }
    assert.equal(await fixture.context.events.head(), before);
    assert.match((await browser.get(path)).html, /No refused exchanges/, 'a trial is no refusal');
    await fixture.api.request('POST', '/v1/oidc/token', null, { body: { id_token: token } });
    assert.match((await trial(token)).html, /was exchanged before/);
    const refused = await trial(await issuer.token({ sub: 'repo:evil/x' }));
    assert.match(refused.html, /No rule lets this token in/);
    assert.ok(!fixture.api.logged.join().includes(token.slice(0, 40)));
  });

  // The attack: a token of somebody else's job is tried, to learn about that account's rules.
  test('tell of a token of another account, or of no rule, nothing but that', async () => {
    await made();
    const audience = `${fixture.context.addresses().webUrl}/person-${number - 1}`;
    for (const [claims, words] of [
      [{ aud: audience }, /audience \(aud\) of the token must be exactly/],
      [{ aud: 'https://elsewhere.example' }, /audience \(aud\) of the token must be exactly/],
      [{ iss: 'https://elsewhere.example' }, /No rule of yours names the issuer/],
    ] as const) {
      const { status, html } = await trial(await issuer.token(claims));
      assert.equal(status, 422);
      assert.match(html, words);
    }
    assert.match((await trial('not a token')).html, /no signed JSON Web Token/);
    assert.match((await trial(' ')).html, /Paste a token/);
  });

  // The attack: a session that makes the service fetch and verify without end.
  test('try at most 20 tokens a minute', async () => {
    for (let n = 0; n < TOKEN_TRIALS_PER_MINUTE_MAX; n += 1) assert.equal((await trial('x')).status, 422);
    const { status, headers, html } = await trial('x');
    assert.equal(status, 429);
    assert.match(String(headers['retry-after']), /^\d+$/);
    assert.match(html, /Too many attempts/);
  });

  test('are only for who is signed in, and for the own rules', async () => {
    const path = await made();
    const stranger = await fixture.browser().get('/oidc-trust');
    assert.match(stranger.location ?? '', /^\/sign-in/);
    const other = await fixture.signedIn(await fixture.api.account(`other-${number}`));
    for (const page of [path, `${path}/edit`, `${path}/delete`])
      assert.equal((await other.get(page)).status, 404, page);
    assert.equal((await other.submit(`${path}/delete`, {}, '/oidc-trust/create')).status, 404);
    assert.equal((await browser.get(path)).status, 200);
  });
});
