/**
 * The website behind a proxy that hardens every answer. nginx's `add_header Referrer-Policy no-referrer always;` adds a
 * second header beside the service's own (nginx, Module ngx_http_headers_module), and browsers follow the last policy
 * that they know (W3C Referrer Policy, section 8.1). So they send forms with `Origin: null`.
 */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { cleanUp, suiteEnding } from '../support/cleanup.ts';
import { signIn, signUp } from '../support/journey.ts';
import { needs } from '../support/optional-suites.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

const STATUS_LINE = /^HTTP\/1\.1 \d{3} [^\r]*\r\n/;
const OWN_POLICY = /^referrer-policy: same-origin\r\n/im;

describe('Behind a proxy that adds no-referrer, a browser', needs('chromium'), () => {
  const ending = suiteEnding();
  let browser: TestBrowser;
  let origin: string;
  /** The Origin headers of the forms that arrived. */
  const sent = new Set<string>();

  beforeAll(async () => {
    const strata = await startNode(ending, await sharedParts(ending));
    const proxy = await startTcpProxy({ host: '127.0.0.1', port: Number(new URL(strata.url).port) });
    cleanUp(ending, () => proxy.close());
    proxy.onQuery = (data) => {
      const [, header] = /^POST [^]*?\r\norigin: ([^\r]*)\r\n/i.exec(data.toString('latin1')) ?? [];
      if (header !== undefined) sent.add(header);
      return data;
    };
    proxy.onAnswer = (data) => {
      const text = data.toString('latin1');
      if (!STATUS_LINE.test(text)) return data;
      return Buffer.from(text.replace(OWN_POLICY, '$&Referrer-Policy: no-referrer\r\n'), 'latin1');
    };
    origin = `http://localhost:${proxy.port}`;
    browser = await startBrowser(ending);
  });

  test('signs up, out and in again', async (context) => {
    const { page } = await browser.visit(context, origin);
    await signUp(page, 'ada');
    await page.getByRole('button', { name: 'Sign out' }).first().click();
    await signIn(page, 'ada', '/settings');
    await page.getByRole('heading', { name: 'Settings', level: 1 }).waitFor();
    assert.deepEqual([...sent], ['null']);
  });
});
