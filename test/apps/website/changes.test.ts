/** Which forms go on when an account has used up its changes of the month or of the hour. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { ACCOUNT_EVENTS_PER_HOUR_MAX, RECORDED_BODY_BYTES } from '../../../apps/front-door/callers.ts';
import type { Site } from '../../../apps/website/layout/room.ts';
import { ROOMS } from '../../../apps/website/rooms.ts';
import { DEFAULT_PLANS } from '../../../core/account/plans.ts';
import { streamName } from '../../../core/kernel/envelope.ts';
import type { Principal } from '../../../core/use-cases/callers/principal.ts';
import type { SitePage } from '../../support/form-browser.ts';
import { createWebsiteFixture, PASSWORD, type WebsiteFixture } from '../../support/website.ts';

/** Written from docs/interface.md, Changes. */
const GO_ON = [
  ...['/settings/password', '/settings/email', '/settings/delete'],
  ...['/settings/sessions/revoke-others', '/settings/sessions/:handle/revoke'],
  ...['/mfa-tokens/add/app', '/mfa-tokens/add/passkey'],
  ...['/mfa-tokens/:id/activate', '/mfa-tokens/:id/rename', '/mfa-tokens/:id/delete'],
  ...['/:username/:repository/delete', '/:username/:repository/purge', '/settings/deleted-repositories/:id/purge'],
  '/:username/:repository/delete-ref',
  ...['/access-tokens/:id/revoke', '/storage-buckets/:id/delete', '/webhooks/:id/delete', '/oidc-trust/:id/delete'],
  // They append nothing to the account's record.
  ...['/webhooks/:id/ping', '/webhooks/:id/deliveries/:delivery/redeliver', '/oidc-trust/try', '/history/export'],
  '/:username/:repository/preview',
];
/** Without a person, or before there is one. */
const PUBLIC = ['/sign-up', '/sign-in', '/sign-in/verify-mfa', '/sign-in/reopen', '/sign-out'];

describe('The website of an account that has used up its changes of the month', () => {
  let fixture: WebsiteFixture;

  beforeAll(async () => {
    const plans = { ...DEFAULT_PLANS, FREE: { ...DEFAULT_PLANS.FREE, changes_per_month: 0 } };
    fixture = await createWebsiteFixture({ api: { plans } });
  });
  afterAll(() => fixture.close());

  test('takes the forms that delete, revoke, purge, and keep the account its person’s, and refuses all others', () => {
    const [goOn, others, open]: [string[], string[], string[]] = [[], [], []];
    const site: Site = {
      context: fixture.context,
      page: () => undefined,
      publicPage: () => undefined,
      form: (path) => void others.push(path),
      formBeyondQuota: (path) => void goOn.push(path),
      publicForm: (path) => void open.push(path),
    };
    for (const { routes } of ROOMS) routes(site);
    assert.deepEqual(goOn.sort(), GO_ON.toSorted());
    assert.deepEqual(open.sort(), PUBLIC.toSorted());
    const removing = others.filter((path) => /(delete|revoke|purge|password|email)$/.test(path));
    assert.deepEqual(removing, []);
  });

  test('says which quota is used up and until when, and lets the person change the password', async () => {
    const ada = await fixture.api.account('ada', 'FREE');
    const browser = await fixture.signedIn(ada);
    const refused = await browser.submit('/new', { name: 'made', default_branch: '' });
    assert.equal(refused.status, 429);
    assert.match(refused.html, /This account has used up the changes of this month \(changes_per_month of its plan\)/);
    assert.match(refused.html, /Nothing was changed/);
    const wrong = { current_password: PASSWORD, new_password: 'one of them', new_password_again: 'another one' };
    assert.equal((await browser.submit('/settings/password', wrong)).status, 422, 'the form is judged');
    const usage = (await browser.get('/usage')).html;
    assert.match(usage, /<h2>Changes this month<\/h2><p><b>0<\/b> <span class="soft">of 0<\/span>/);
  });
});

describe('The website of an account that may make one more change this hour', () => {
  let fixture: WebsiteFixture;

  beforeAll(async () => {
    fixture = await createWebsiteFixture();
  });
  afterAll(() => fixture.close());

  const id = 'a'.repeat(40);
  const seen = { branch: 'gone', head: id, message: 'A change', text: 'a\n' };
  for (const [action, username, status, fields] of [
    ['delete-ref', 'ada', 404, { ref: 'refs/heads/gone', expected: id }],
    ['edit', 'ida', 409, { ...seen, path: 'file', blob: id }],
  ] as const) {
    test(`takes one form more that changes a ref: ${action}`, async () => {
      const ada = await fixture.api.account(username);
      await fixture.api.repository(ada, 'engine');
      const browser = await fixture.signedIn(ada);
      const guard = { stream: streamName('account', ada), revision: 0 };
      const person: Principal = { kind: 'session', account: ada, username, epoch: 0, guard };
      const made = ACCOUNT_EVENTS_PER_HOUR_MAX - 1;
      assert.equal(fixture.context.callers.recordBody(person, made * RECORDED_BODY_BYTES), null);
      const home = `/${username}/engine`;
      const send = (): Promise<SitePage> =>
        action === 'edit'
          ? browser.submitParts(`${home}/edit`, { fields }, `${home}/settings`)
          : browser.submit(`${home}/${action}`, fields, `${home}/settings`);
      assert.equal((await send()).status, status, 'the form is judged');
      assert.equal((await send()).status, 429);
    });
  }
});
