/** What a page does wrong in the background is seen, although nothing on the page shows it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'vitest';
import { assertAccessible, startBrowser } from '../support/browser.ts';
import { cleanUp, suiteEnding } from '../support/cleanup.ts';
import { needs } from '../support/optional-suites.ts';

const BAD_PAGE = `<!doctype html><html lang="en"><title>Bad</title><main><h1>Bad</h1>
<p style="color: red"><font color="#cccccc">pale</font></p><input><script>document.title = 'run'</script>
<img src="https://elsewhere.invalid/pixel.png" alt=""><script src="/missing.js"></script>
<script src="/throws.js"></script></main></html>`;

describe('The browser of the tests', needs('chromium'), () => {
  const ending = suiteEnding();

  test('notes what breaks the policy, throws, is missing or comes from elsewhere, and what is not accessible', async () => {
    const server = createServer((request, response) => {
      response.setHeader('Content-Security-Policy', "default-src 'self'; img-src *");
      if (request.url === '/') response.setHeader('Content-Type', 'text/html').end(BAD_PAGE);
      else if (request.url === '/throws.js') response.end("throw new Error('from a script')");
      else response.writeHead(404).end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    cleanUp(ending, () => server.close());
    const { port } = server.address() as AddressInfo;
    const browser = await startBrowser(ending);
    // The visitor of this test may do wrong, so its end must not fail the test.
    const { page, context, faults } = await browser.visit(
      { onTestFinished: () => undefined },
      `http://127.0.0.1:${port}`,
    );
    cleanUp(ending, () => context.close());
    await page.goto('/');
    await assert.rejects(assertAccessible(page), (error: Error) => {
      for (const rule of ['color-contrast', 'label']) assert.match(error.message, new RegExp(`'${rule}'`));
      return true;
    });
    const found = faults.join('\n');
    for (const fault of [/Content Security Policy/, /inline style/i, /inline script/i, /^404: .*missing\.js/m]) {
      assert.match(found, fault);
    }
    assert.match(found, /^script: from a script$/m);
    assert.match(found, /^another origin: https:\/\/elsewhere\.invalid\/pixel\.png$/m);
  });
});
