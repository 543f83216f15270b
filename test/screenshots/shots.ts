/** What is shown: each page in the states empty, full, very long and wrong. */
import type { Page } from 'playwright-core';
import { DEMO } from '../demo/fill.ts';
import { LONG } from './long.ts';
import type { Who } from './people.ts';

export interface Shot {
  readonly name: string;
  readonly who: Who;
  readonly path: string;
  readonly prepare?: Prepare;
}

type Prepare = (page: Page) => Promise<void>;

/**
 * Sends the last form of the page, or the one that holds the field. What browsers would stop themselves is sent as
 * well.
 */
const send =
  (fields: Readonly<Record<string, string>> = {}): Prepare =>
  async (page) => {
    await page.evaluate('for (const form of document.forms) form.noValidate = true');
    for (const [name, text] of Object.entries(fields)) await page.locator(`main [name=${name}]`).fill(text);
    const [first] = Object.keys(fields);
    const form = first === undefined ? page.locator('main form').first() : formOf(page, first);
    await form.locator('button:not([type=button])').first().click();
    await page.waitForLoadState();
  };

function formOf(page: Page, field: string) {
  return page.locator('main form').filter({ has: page.locator(`[name=${field}]`) });
}

/** Follows the links with these texts, one after the other. */
const follow =
  (...texts: readonly (string | RegExp)[]): Prepare =>
  async (page) => {
    for (const name of texts) {
      await page.getByRole('main').getByRole('link', { name }).first().click();
      await page.waitForLoadState();
    }
  };

/** Opens the webhook with this path, and its oldest delivery of this status: the one with the most attempts. */
const delivery =
  (webhook: string, status: string): Prepare =>
  async (page) => {
    await follow(new RegExp(`/${webhook}$`))(page);
    await page.getByRole('row').filter({ hasText: status }).last().getByRole('link').first().click();
    await page.waitForLoadState();
  };

const askForDevice: Prepare = async (page) => {
  const answer = await page.request.post('/v1/auth/sessions', { data: { hostname: 'build-07.example.org' } });
  const body: unknown = await answer.json();
  if (typeof body !== 'object' || body === null || !('verification_url' in body)) throw new Error('No device login');
  await page.goto(String(body.verification_url));
};

/** At most one passkey can be pending: the second time its page is opened instead. */
const pendingPasskey: Prepare = async (page) => {
  const add = page.getByRole('link', { name: 'Add a passkey' });
  if ((await add.count()) === 0) return follow('Security key')(page);
  await add.click();
  await send({ name: 'Security key', current_password: DEMO.password })(page);
};

/** Guesses a password until no more guesses are taken. */
const guess: Prepare = async (page) => {
  for (let tries = 0; tries < 12 && !(await page.getByText('Too many').isVisible()); tries += 1) {
    await send({ login: 'nobody', password: 'not this one' })(page);
  }
};

const pickMoment: Prepare = async (page) => {
  await page.locator('.bar .pop > summary').click();
  await page.locator('.menu .moments').waitFor();
};

const pick: Prepare = async (page) => {
  await page.locator('.body .pop > summary').first().click();
};

/** Signs a checkpoint, unless the picture before this one did. */
const signed: Prepare = async (page) => {
  const button = page.getByRole('button', { name: 'Sign a checkpoint now' });
  if ((await button.count()) === 0) return;
  await button.click();
  await page.waitForLoadState();
  await page.goto('/history');
};

/** Opens the restoration to before the oldest change. */
const restoreOldest: Prepare = async (page) => {
  await page.getByRole('link', { name: 'Go back to before this' }).last().click();
  await page.waitForLoadState();
};

/** Opens the repository as it was at first, and from there the restoration. */
const restoreToHere: Prepare = async (page) => {
  await page
    .getByRole('link', { name: /Browse at this point/ })
    .last()
    .click();
  await page.waitForLoadState();
  await follow('Restore to here')(page);
};

const restoreAll: Prepare = async (page) => {
  await restoreOldest(page);
  await follow('All branches and tags instead')(page);
};

const wrong = { current_password: 'not this one' } as const;

function shots(who: Who, pages: Readonly<Record<string, string | readonly [string, Prepare]>>): readonly Shot[] {
  return Object.entries(pages).map(([name, page]) => {
    if (typeof page === 'string') return { name, who, path: page };
    return { name, who, path: page[0], prepare: page[1] };
  });
}

const repository = `/${LONG.username}/${LONG.repository}`;

export const SHOTS: readonly Shot[] = [
  ...shots('stranger', {
    landing: '/',
    'sign-up': '/sign-up',
    'sign-up-wrong': ['/sign-up', send()],
    'sign-in': '/sign-in',
    'sign-in-wrong': ['/sign-in', send()],
    'forgotten-password': '/forgotten-password',
    docs: '/docs',
    'docs-git': '/docs/git',
    'docs-tokens': '/docs/tokens',
    'docs-device-login': '/docs/device-login',
    'docs-ci': '/docs/ci',
    'docs-webhooks': '/docs/webhooks',
    'docs-undo': '/docs/undo',
    'docs-time-travel': '/docs/time-travel',
    'docs-audit': '/docs/audit',
    'docs-buckets': '/docs/buckets',
    'docs-cli': '/docs/cli',
    'docs-api': '/docs/api',
    'docs-api-webhooks': '/docs/api/webhooks',
    'not-found': '/no/such/page',
    'method-not-allowed': '/sign-out',
  }),
  ...shots('newcomer', {
    'repositories-empty': '/newcomer',
    'tokens-empty': '/access-tokens',
    'webhooks-empty': '/webhooks',
    'buckets-empty': '/storage-buckets',
    'oidc-trust-empty': '/oidc-trust',
    'second-factors-empty': '/mfa-tokens',
    'usage-empty': '/usage',
    'ledger-empty': '/usage/ledger',
    'account-history-empty': '/history',
    'deleted-repositories-empty': '/settings/deleted-repositories',
  }),
  ...shots('demo', {
    repositories: '/ada',
    'repositories-none-found': '/ada?q=nothing-like-this',
    'repository-new': '/new',
    'repository-new-wrong': ['/new', send()],
    repository: '/ada/lantern',
    'repository-picker': ['/ada/lantern', pick],
    tree: '/ada/lantern/tree/main/src',
    blob: '/ada/lantern/blob/main/src/sunrise.ts',
    'blob-image': '/ada/lantern/blob/main/guide/mark.svg',
    'blob-readme': '/ada/lantern/blob/main/README.md',
    commits: '/ada/lantern/commits',
    'commits-search': '/ada/lantern/commits/main?text=add',
    history: '/ada/lantern/commits/main/src/index.ts',
    blame: '/ada/lantern/blame/main/src/index.ts',
    files: '/ada/lantern/files?ref=main&q=sun',
    'files-none': '/ada/lantern/files?ref=main&q=nothing-like-this',
    search: '/ada/lantern/search?ref=main&q=sunrise',
    'search-empty': '/ada/lantern/search',
    'search-wrong': '/ada/lantern/search?ref=main&q=%28&regex=yes',
    commit: ['/ada/lantern/commits', follow('Merge add-schedule')],
    compare: '/ada/lantern/compare/main...moonlight',
    'commit-side-by-side': ['/ada/lantern/commits', follow('Merge add-schedule', 'Side by side')],
    'blob-source': '/ada/lantern/blob/main/README.md?view=source',
    'compare-empty': '/ada/lantern/compare',
    branches: '/ada/lantern/branches',
    tags: '/ada/lantern/tags',
    activity: '/ada/lantern/activity',
    moments: '/ada/lantern/moments',
    'moments-picker': ['/ada/lantern', pickMoment],
    changes: '/ada/lantern/changes',
    'changes-since': ['/ada/lantern/activity', follow(/Browse at this point/, 'What changed since')],
    access: '/ada/lantern/access',
    'access-wrong': '/ada/lantern/access?at=yesterday&until=2001-01-01',
    'as-of': ['/ada/lantern/activity', follow(/Browse at this point/)],
    'repository-settings': '/ada/lantern/settings',
    'repository-settings-wrong': ['/ada/lantern/settings', send({ default_branch: 'no..branch' })],
    'repository-delete-wrong': ['/ada/lantern/settings', send({ confirmation: 'lamp' })],
    handbook: '/ada/handbook',
    'path-missing': '/ada/lantern/blob/main/no/such/file.ts',
    tokens: '/access-tokens',
    'token-new': '/access-tokens/create',
    'token-new-wrong': ['/access-tokens/create', send()],
    'token-edit': ['/access-tokens', follow('Edit build server')],
    'token-revoke': ['/access-tokens', follow('Revoke build server')],
    'device-grant': ['/ada', askForDevice],
    'device-grant-gone': '/access-tokens/create?auth_session_id=0192f0c1-2345-7000-8000-000000000000',
    webhooks: '/webhooks',
    'webhook-new': '/webhooks/create',
    'webhook-new-wrong': ['/webhooks/create', send({ url: 'http://example.org' })],
    webhook: ['/webhooks', follow(/\/hooks$/)],
    'webhook-failing': ['/webhooks', follow(/\/build$/)],
    'webhook-edit': ['/webhooks', follow(/\/hooks$/, 'Edit')],
    'webhook-rotate': ['/webhooks', follow(/\/hooks$/, 'Rotate secret')],
    'webhook-delete': ['/webhooks', follow(/\/hooks$/, 'Delete')],
    'delivery-successful': ['/webhooks', delivery('hooks', 'delivered')],
    'delivery-failed': ['/webhooks', delivery('build', 'failed')],
    'delivery-pending': ['/webhooks', delivery('chat', 'pending')],
    buckets: '/storage-buckets',
    'bucket-kinds': '/storage-buckets/create',
    'bucket-new': '/storage-buckets/create/minio',
    'bucket-new-wrong': ['/storage-buckets/create/minio', send({ name: 'Attic', endpoint_url: 'minio.example' })],
    bucket: ['/storage-buckets', follow('Archive')],
    'bucket-failed': ['/storage-buckets', follow('Attic')],
    'bucket-edit': ['/storage-buckets', follow('Archive', 'Edit')],
    'bucket-delete': ['/storage-buckets', follow('Archive', 'Delete…')],
    'bucket-setup': '/storage-buckets/setup',
    'bucket-errors': '/storage-buckets/errors',
    'oidc-trust': '/oidc-trust',
    'oidc-trust-create': '/oidc-trust/create',
    'oidc-trust-create-wrong': ['/oidc-trust/create', send({ claims: 'environment' })],
    'oidc-trust-rule': ['/oidc-trust', follow('Lantern releases')],
    'oidc-trust-edit': ['/oidc-trust', follow('Lantern releases', 'Edit')],
    'oidc-trust-delete': ['/oidc-trust', follow('Lantern releases', 'Delete…')],
    'oidc-trust-try': '/oidc-trust/try',
    'oidc-trust-try-wrong': ['/oidc-trust/try', send({ token: 'eyJ.not.a-token' })],
    usage: '/usage',
    ledger: '/usage/ledger',
    'ledger-none': '/usage/ledger?month=2001-01',
    'token-activity': ['/access-tokens', follow('Activity of build server')],
    'token-activity-unused': ['/access-tokens', follow('Activity of backup')],
    'account-history': ['/history', signed],
    'account-history-filtered': '/history?repository=lantern&type=RefsUpdated&since=2020-01-01',
    'account-history-none': '/history?until=2001-01-01',
    'account-history-wrong': '/history?repository=nothing&since=yesterday',
    'sign-ins': '/history/sign-ins',
    event: ['/history?type=RefsUpdated', follow(/^Event #/)],
    'event-opened': ['/history?type=WebhookCreated', follow(/^Event #/)],
    restore: ['/ada/lantern/activity', follow('Go back to before this')],
    'restore-to-here': ['/ada/lantern/activity', restoreToHere],
    'restore-all': ['/ada/lantern/activity', restoreAll],
    'restore-too-early': '/ada/lantern/restore?at=2001-01-01T00:00:00Z',
    'deleted-repositories': '/settings/deleted-repositories',
    purge: '/ada/lantern/purge',
    'purge-wrong': ['/ada/lantern/purge', send({ confirmation: 'lamp' })],
    'purge-deleted': ['/settings/deleted-repositories', follow('Purge…')],
    settings: '/settings',
    'settings-password': '/settings/password',
    'settings-password-wrong': [
      '/settings/password',
      send({ ...wrong, new_password: 'short', new_password_again: 'other' }),
    ],
    'settings-email': '/settings/email',
    'settings-email-wrong': ['/settings/email', send({ ...wrong, email: 'nowhere' })],
    'settings-delete': '/settings/delete',
    'settings-delete-wrong': ['/settings/delete', send({ ...wrong, username: 'adam' })],
    'second-factors': '/mfa-tokens',
  }),
  ...shots('maker', {
    'token-created': ['/access-tokens/create', send({ name: 'laptop' })],
    'webhook-created': ['/webhooks/create', send({ url: 'https://localhost:9/hooks' })],
    'passkey-new': '/mfa-tokens/add/passkey',
    'passkey-pending': ['/mfa-tokens', pendingPasskey],
    'app-new': '/mfa-tokens/add/app',
    'app-key': ['/mfa-tokens/add/app', send({ name: 'Phone', current_password: DEMO.password })],
    'second-factors-pending': '/mfa-tokens',
    'app-pending': ['/mfa-tokens', follow('Phone')],
  }),
  ...shots('guarded', {
    'second-step': '/sign-in/verify-mfa',
    'second-step-wrong': ['/sign-in/verify-mfa', send({ code: '000000' })],
  }),
  ...shots('leaver', { 'account-closed': '/sign-in/reopen' }),
  ...shots('long', {
    'repositories-long': `/${LONG.username}`,
    'repository-long': repository,
    'blob-long': `${repository}/blob/main/${LONG.file}`,
    'tree-long': `${repository}/tree/main/${LONG.file.replace(/\/.*/, '')}`,
    'commits-long': `${repository}/commits`,
    'history-long': `${repository}/commits/main/${LONG.file}`,
    'blame-long': `${repository}/blame/main/${LONG.file}`,
    'commit-long': [repository, follow(/^[0-9a-f]{7}$/)],
    'compare-long': [`${repository}/branches`, follow(/ ahead/)],
    'branches-long': `${repository}/branches`,
    'tags-long': `${repository}/tags`,
    'activity-long': `${repository}/activity`,
    'access-long': `${repository}/access`,
    'repository-settings-long': `${repository}/settings`,
    'repository-empty': `/${LONG.username}/empty`,
    'tokens-long': '/access-tokens',
    'restore-long': [`${repository}/activity`, restoreOldest],
    'deleted-repositories-long': '/settings/deleted-repositories',
    'deleted-repositories-taken': ['/settings/deleted-repositories', send()],
    'purge-long': `${repository}/purge`,
    'account-history-long': '/history',
    'event-long': ['/history?type=RefsUpdated', follow(/^Event #/)],
    'ledger-long': '/usage/ledger',
    'token-activity-long': ['/access-tokens', follow(/^Activity of scenario$/)],
  }),
];

/** The last pictures: of a server that takes no sign-ups and has lost its layers. */
export const CLOSING_SHOTS: readonly Shot[] = [
  ...shots('stranger', { 'sign-up-closed': '/sign-up', 'sign-in-closed': '/sign-in' }),
  ...shots('demo', { 'server-fault': '/ada/lantern/raw/main/README.md' }),
  // Last, since the address of these guesses is that of everybody here.
  ...shots('stranger', { 'too-many-attempts': ['/sign-in', guess] }),
];

/** The pictures of the documentation. */
export const DOCS_SHOTS: Readonly<Record<'light' | 'dark', readonly string[]>> = {
  light: [
    ...['landing', 'repository', 'commit', 'activity', 'compare', 'branches'],
    ...['tokens', 'device-grant', 'webhook', 'delivery-failed', 'usage', 'settings'],
  ],
  dark: ['repository', 'commit'],
};
