/** The documentation on the website: open to everybody, readable without scripts, and never behind the API. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { z } from 'zod';
import { makeOpenApiDocument } from '../../../../apps/api/document.ts';
import { createCommandLineFinder } from '../../../../apps/server/command-line-package.ts';
import { readOpenApi } from '../../../../apps/website/docs/open-api.ts';
import { PAGE_BYTES_MAX } from '../../../../apps/website/layout/weight.ts';
import { ROOT } from '../../../architecture/source-tree.ts';
import { tempDir } from '../../../support/temp-dir.ts';
import { createWebsiteFixture, type WebsiteFixture } from '../../../support/website.ts';

const PAGES = [
  ...['/docs', '/docs/git', '/docs/tokens', '/docs/device-login', '/docs/ci', '/docs/webhooks', '/docs/undo'],
  ...['/docs/time-travel', '/docs/audit', '/docs/buckets', '/docs/cli', '/docs/api'],
];
const DOCUMENT = z.object({ paths: z.record(z.string(), z.record(z.string(), z.object({ operationId: z.string() }))) });

describe('The documentation', () => {
  let fixture: WebsiteFixture;
  const subjects: string[] = [];

  beforeAll(async () => {
    fixture = await createWebsiteFixture();
    const { html } = await fixture.browser().get('/docs/api');
    subjects.push(...new Set([...html.matchAll(/"(\/docs\/api\/[a-z0-9-]+)"/g)].map(([, path = '']) => path)));
  });
  afterAll(() => fixture.close());

  test('is there for who is not signed in, on small pages that a browser without scripts shows', async () => {
    for (const path of [...PAGES, ...subjects]) {
      const page = await fixture.browser().get(path);
      assert.equal(page.status, 200, path);
      assert.ok(Buffer.byteLength(page.html) < PAGE_BYTES_MAX, `${path} has ${Buffer.byteLength(page.html)} bytes`);
      assert.equal(page.html.match(/<h1>/g)?.length, 1, path);
      assert.doesNotMatch(page.html, /<script(?! type="module" src="\/assets\/)/, path);
    }
  });

  test('says the addresses of this service, and the name of who is signed in', async () => {
    const { webUrl } = fixture.context.addresses();
    const stranger = await fixture.browser().get('/docs');
    assert.ok(stranger.html.includes(`git remote add origin ${webUrl}/r/ada/hello.git`));
    const person = await fixture.signedIn(await fixture.api.account('grace'));
    assert.ok((await person.get('/docs')).html.includes(`git remote add origin ${webUrl}/r/grace/hello.git`));
  });

  test('says how long what was deleted can be brought back, as this service keeps it', async () => {
    const undo = await fixture.browser().get('/docs/undo');
    assert.match(undo.html, /<td>a repository that was deleted<\/td>.*<td>30 days<\/td>/);
    assert.match((await fixture.browser().get('/docs/time-travel')).html, /kept for at least 30 days/);
  });

  test('says how to get the command line where no package of it was made', async () => {
    const page = await fixture.browser().get('/docs/cli');
    assert.match(page.html, /This service offers no package/);
    assert.match(page.html, /npm run client:pack/);
    assert.equal((await fixture.browser().get('/docs/cli/strata-cli-0.1.0.tgz')).status, 404);
  });

  test('has a section for every operation of the OpenAPI document, and its fields', async () => {
    const { paths } = DOCUMENT.parse(await makeOpenApiDocument('1.0.0'));
    const shown = await Promise.all(subjects.map(async (path) => (await fixture.browser().get(path)).html));
    const all = shown.join('');
    const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
    assert.ok(operations.length > 20);
    for (const { operationId } of operations) assert.ok(all.includes(` id="${operationId}"`), operationId);
    for (const field of [
      'repository_ids',
      'deliveries[].attempt_log[].http_status',
      'commits[].author.name',
      'entries[].mode',
    ]) {
      assert.ok(all.includes(`<code>${field}</code>`), field);
    }
  });

  test('leads only to pages that there are', async () => {
    const person = await fixture.signedIn(await fixture.api.account('kay'));
    const paths = new Set<string>();
    for (const path of PAGES) {
      const { html } = await person.get(path);
      for (const [, target = ''] of html.matchAll(/ href="(\/[^"#]*)/g)) paths.add(target);
    }
    for (const path of paths) {
      if (path.startsWith('/v1/openapi')) continue;
      assert.notEqual((await person.get(path)).status, 404, path);
    }
  });

  test('names commands that the command line has', async () => {
    const manual = await readFile(path.join(ROOT, 'docs/cli.md'), 'utf8');
    const known = new Set([...manual.matchAll(/^##+ (strata .*)$/gm)].map(([, name = '']) => name));
    const single = new Set([...manual.matchAll(/^### strata (\S+)$/gm)].map(([, name = '']) => name));
    const named: string[] = [];
    for (const page of PAGES) {
      const { html } = await fixture.browser().get(page);
      for (const [, first = '', second] of html.matchAll(/(?:>|\n)strata ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?/g)) {
        if (first === 'help') continue;
        named.push(single.has(first) || second === undefined ? `strata ${first}` : `strata ${first} ${second}`);
      }
    }
    assert.ok(named.length > 10);
    for (const command of named) assert.ok(known.has(command), command);
  });

  test('answers 404 for a subject that the API does not have', async () => {
    const page = await fixture.browser().get('/docs/api/nothing');
    assert.equal(page.status, 404);
  });
});

describe('The command line that was packed', () => {
  test('is offered with its checksum, and sent as it is', async (context) => {
    const folder = await tempDir(context);
    const offering = await createWebsiteFixture({ context: { findCommandLine: createCommandLineFinder(folder) } });
    context.onTestFinished(() => offering.close());
    const browser = offering.browser();
    assert.match((await browser.get('/docs/cli')).html, /offers no package/, 'nothing was packed yet');
    const bytes = Buffer.from('the bytes of a package');
    await writeFile(path.join(folder, '.strata-cli-0.1.0.tgz.4711'), 'half of it');
    await writeFile(path.join(folder, 'strata-cli-0.1.0.tgz'), bytes);
    const { html } = await browser.get('/docs/cli');
    const { webUrl } = offering.context.addresses();
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    assert.ok(html.includes(`curl -fsSO ${webUrl}/docs/cli/strata-cli-0.1.0.tgz`));
    assert.ok(html.includes(sha256));
    const sent = await browser.get('/docs/cli/strata-cli-0.1.0.tgz');
    assert.deepEqual([sent.status, sent.bytes], [200, bytes]);
    // The attack: a name that leads out of the folder.
    for (const name of ['..%2Fpackage.json', 'package.json', 'strata-cli-0.1.1.tgz', '.strata-cli-0.1.0.tgz.4711']) {
      assert.equal((await browser.get(`/docs/cli/${name}`)).status, 404, name);
    }
    await writeFile(path.join(folder, 'strata-cli-0.2.0.tgz'), 'a later one');
    await utimes(path.join(folder, 'strata-cli-0.2.0.tgz'), new Date(), new Date(Date.now() + 5_000));
    assert.match((await browser.get('/docs/cli')).html, /strata-cli-0\.2\.0\.tgz/);
    assert.equal((await browser.get('/docs/cli/strata-cli-0.1.0.tgz')).status, 404);
  });
});

describe('The reference of the API', () => {
  test('is made of the document that the API serves', async () => {
    const fixture = await createWebsiteFixture();
    try {
      const answer = await fixture.api.app.inject('/v1/openapi.json');
      const { servers: _, ...served } = answer.json<Record<string, unknown>>();
      assert.deepEqual(JSON.parse(JSON.stringify(await makeOpenApiDocument('0.0.0'))), served);
    } finally {
      await fixture.close();
    }
  });

  test('refuses a document with a rule that its pages would not show', async () => {
    const document = JSON.stringify(await makeOpenApiDocument('1.0.0'));
    const changed: object = JSON.parse(document.replace('"maxLength"', '"multipleOf"')) as object;
    assert.throws(() => readOpenApi(changed), /multipleOf/);
  });
});
