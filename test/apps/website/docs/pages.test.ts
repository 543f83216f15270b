/** The documentation on the website: open to everybody, readable without scripts, and never behind the API. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { z } from 'zod';
import { makeOpenApiDocument } from '../../../../apps/api/document.ts';
import { readOpenApi } from '../../../../apps/website/docs/open-api.ts';
import { PAGE_BYTES_MAX } from '../../../../apps/website/layout/weight.ts';
import { createWebsiteFixture, type WebsiteFixture } from '../../../support/website.ts';

const PAGES = ['/docs', '/docs/git', '/docs/tokens', '/docs/device-login', '/docs/ci', '/docs/webhooks', '/docs/api'];
const DOCUMENT = z.object({ paths: z.record(z.string(), z.record(z.string(), z.object({ operationId: z.string() }))) });

describe('The documentation', () => {
  let fixture: WebsiteFixture;
  const subjects: string[] = [];

  beforeAll(async () => {
    fixture = await createWebsiteFixture();
    const { html } = await fixture.browser().get('/docs/api');
    subjects.push(...new Set([...html.matchAll(/"(\/docs\/api\/[a-z-]+)"/g)].map(([, path = '']) => path)));
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

  test('answers 404 for a subject that the API does not have', async () => {
    const page = await fixture.browser().get('/docs/api/nothing');
    assert.equal(page.status, 404);
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
