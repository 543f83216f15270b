/** The documentation in a real browser: for every eye, at every width, and with scripts off. */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { assertAccessible, startBrowser, type TestBrowser } from '../support/browser.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { needs } from '../support/optional-suites.ts';
import type { Strata } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

const PAGES = [
  ...['/docs', '/docs/git', '/docs/tokens', '/docs/device-login', '/docs/ci', '/docs/webhooks', '/docs/undo'],
  ...['/docs/time-travel', '/docs/audit', '/docs/buckets', '/docs/cli', '/docs/api'],
];

describe('The documentation in a browser', needs('chromium'), () => {
  const ending = suiteEnding();
  let strata: Strata;
  let browser: TestBrowser;

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    browser = await startBrowser(ending);
  });

  test('is accessible on every page', async (context) => {
    const { page } = await browser.visit(context, strata.url);
    for (const path of [...PAGES, '/docs/api/webhooks', '/docs/api/code', '/no/such/page']) {
      await page.goto(path);
      await assertAccessible(page);
    }
  });

  test('is read with scripts off from the first page to the fields of an answer', async (context) => {
    const { page } = await browser.visit(context, strata.url, { scripts: false });
    await page.goto('/docs');
    await page.getByRole('navigation', { name: 'Documentation' }).getByRole('link', { name: 'API' }).click();
    await page.getByRole('link', { name: 'List repositories' }).click();
    const section = page.locator('#listRepositories');
    await section.getByText('Answer 200').click();
    assert.equal(await section.getByText('repositories[].clone_url').isVisible(), true);
  });

  test('offers to copy commands where a browser can', async (context) => {
    const visitor = await browser.visit(context, strata.url);
    await visitor.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const { page } = visitor;
    await page.goto('/docs/git');
    await page.getByRole('button', { name: 'Copy: Clone a repository' }).click();
    const copied = await page.evaluate('navigator.clipboard.readText()');
    assert.equal(copied, `git clone ${strata.url}/r/ada/hello.git`);
  });
});
