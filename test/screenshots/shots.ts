/** What is shown: each page in the states empty, full, very long and wrong. */
import type { Page } from 'playwright-core';
import { LONG } from './long.ts';

/** Nobody, an account without anything, the demo's, and one whose names are as long as they may be. */
export type Who = 'stranger' | 'newcomer' | 'demo' | 'long';

export interface Shot {
  readonly name: string;
  readonly who: Who;
  readonly path: string;
  readonly prepare?: (page: Page) => Promise<void>;
}

const send = async (page: Page): Promise<void> => {
  // What browsers would stop themselves is sent as well.
  await page.evaluate('for (const form of document.forms) form.noValidate = true');
  await page.locator('main form button').first().click();
  await page.waitForLoadState();
};

function shots(who: Who, pages: Readonly<Record<string, string>>): readonly Shot[] {
  return Object.entries(pages).map(([name, path]) => ({ name, who, path }));
}

const repository = `/${LONG.username}/${LONG.repository}`;

export const SHOTS: readonly Shot[] = [
  ...shots('stranger', {
    landing: '/',
    'sign-up': '/sign-up',
    'sign-in': '/sign-in',
    docs: '/docs',
    'docs-git': '/docs/git',
    'docs-tokens': '/docs/tokens',
    'docs-device-login': '/docs/device-login',
    'docs-ci': '/docs/ci',
    'docs-webhooks': '/docs/webhooks',
    'docs-api': '/docs/api',
    'docs-api-webhooks': '/docs/api/webhooks',
    'not-found': '/no/such/page',
  }),
  { name: 'sign-up-wrong', who: 'stranger', path: '/sign-up', prepare: send },
  { name: 'sign-in-wrong', who: 'stranger', path: '/sign-in', prepare: send },
  ...shots('newcomer', {
    'repositories-empty': '/newcomer',
    'tokens-empty': '/access-tokens',
    'webhooks-empty': '/webhooks',
    'second-factors-empty': '/mfa-tokens',
    'usage-empty': '/usage',
  }),
  ...shots('demo', {
    repositories: '/ada',
    'repository-new': '/new',
    repository: '/ada/lantern',
    tree: '/ada/lantern/tree/main/src',
    blob: '/ada/lantern/blob/main/src/sunrise.ts',
    'blob-image': '/ada/lantern/blob/main/guide/mark.svg',
    commits: '/ada/lantern/commits',
    branches: '/ada/lantern/branches',
    tags: '/ada/lantern/tags',
    activity: '/ada/lantern/activity',
    'repository-settings': '/ada/lantern/settings',
    handbook: '/ada/handbook',
    tokens: '/access-tokens',
    'token-new': '/access-tokens/create',
    webhooks: '/webhooks',
    'oidc-trust': '/oidc-trust',
    'oidc-trust-create': '/oidc-trust/create',
    'oidc-trust-try': '/oidc-trust/try',
    usage: '/usage',
    settings: '/settings',
    'settings-password': '/settings/password',
    'settings-email': '/settings/email',
    'settings-delete': '/settings/delete',
    'second-factors': '/mfa-tokens',
    'path-missing': '/ada/lantern/blob/main/no/such/file.ts',
  }),
  {
    name: 'commit',
    who: 'demo',
    path: '/ada/lantern/commits',
    prepare: async (page) => {
      await page.getByRole('link', { name: 'Merge add-schedule' }).first().click();
      await page.waitForLoadState();
    },
  },
  { name: 'repository-new-wrong', who: 'demo', path: '/new', prepare: send },
  { name: 'token-new-wrong', who: 'demo', path: '/access-tokens/create', prepare: send },
  ...shots('long', {
    'repositories-long': `/${LONG.username}`,
    'repository-long': repository,
    'blob-long': `${repository}/blob/main/${LONG.file}`,
    'commits-long': `${repository}/commits`,
    'branches-long': `${repository}/branches`,
    'tags-long': `${repository}/tags`,
    'activity-long': `${repository}/activity`,
    'repository-settings-long': `${repository}/settings`,
    'repository-empty': `/${LONG.username}/empty`,
    'tokens-long': '/access-tokens',
  }),
];
