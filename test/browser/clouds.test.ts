/**
 * Storage buckets and CI trust in a real browser: an S3 server and an issuer of identity tokens on loopback. Each
 * journey is taken once with every page checked, and once with scripts off.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { OAuth2Issuer, OAuth2Service } from 'oauth2-mock-server';
import type { Page } from 'playwright-core';
import { beforeAll, describe, test } from 'vitest';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { createIssuerNetwork } from '../support/identity-issuer.ts';
import { signUp, WAYS } from '../support/journey.ts';
import { needs } from '../support/optional-suites.ts';
import { api, type Strata } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startS3Server } from '../support/versitygw.ts';

describe('In a browser', needs('chromium'), () => {
  const ending = suiteEnding();
  const issuer = new OAuth2Issuer();
  let origin: string;
  let strata: Strata;
  let browser: TestBrowser;

  beforeAll(async () => {
    const network = createIssuerNetwork();
    const authority = path.join(await tempDir(ending), 'authority.pem');
    await writeFile(authority, network.authority);
    const env = { NODE_EXTRA_CA_CERTS: authority, STRATA_ALLOW_PRIVATE_TARGETS: 'true' };
    strata = await startNode(ending, await sharedParts(ending), { ...env, STRATA_BYO_REQUIRES_PLAN: 'false' });
    await issuer.keys.generate('RS256');
    origin = await network.serve(ending, new OAuth2Service(issuer).requestHandler);
    issuer.url = origin;
    browser = await startBrowser(ending);
  });

  const press = (page: Page, name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click();
  const follow = (page: Page, name: string): Promise<void> =>
    page.getByRole('main').getByRole('link', { name, exact: true }).first().click();
  const fill = async (page: Page, fields: Readonly<Record<string, string>>): Promise<void> => {
    for (const [label, text] of Object.entries(fields)) await page.getByLabel(label, { exact: true }).fill(text);
  };

  const alerts = (page: Page): Promise<void> => page.getByRole('alert').waitFor();

  for (const { how, suffix, look, check } of WAYS) {
    test(`a storage bucket is made, fails by name, is changed and deleted, ${how}`, async (context) => {
      const { page } = await browser.visit(context, strata.url, look);
      await signUp(page, `ada-${suffix}`);
      await page.goto('/storage-buckets');
      await page.getByText('No storage buckets yet').waitFor();
      await check(page);
      await follow(page, 'Setup guide');
      await page.getByText('AssumeRoleWithWebIdentity').waitFor();
      await check(page);
      await follow(page, 'New bucket with a role');
      await check(page);
      await page.goto('/storage-buckets/create');
      await follow(page, 'MinIO');
      await fill(page, { Name: 'Attic', Bucket: 'attic', Endpoint: 'https://me:secret@minio.example' });
      await fill(page, { 'Id of the access key': 'AKIA1', 'Secret access key': 'a-secret-key' });
      await press(page, 'Create storage bucket');
      await alerts(page);
      assert.equal(await page.getByLabel('Bucket', { exact: true }).inputValue(), 'attic');
      assert.equal(await page.getByLabel('Secret access key').inputValue(), '', 'the secret is not shown again');
      await check(page);
      // A server that holds no buckets.
      await fill(page, { Endpoint: origin, 'Secret access key': 'a-secret-key' });
      await press(page, 'Create storage bucket');
      await page.getByText('Verify it before repositories use it').waitFor();
      await check(page);
      await press(page, 'Verify');
      await page
        .getByText(/Verification failed at the step/)
        .first()
        .waitFor();
      await page.getByText('failed', { exact: true }).waitFor();
      await check(page);
      await page.goto('/storage-buckets/errors');
      await page.getByText('verify', { exact: true }).waitFor();
      await check(page);
      await follow(page, 'Attic');
      await follow(page, 'Edit');
      await check(page);
      await fill(page, { Name: 'Loft' });
      await page.getByLabel('Use it for new repositories').check();
      await press(page, 'Save changes');
      await page.getByRole('heading', { name: 'Loft' }).waitFor();
      await page.goto('/storage-buckets');
      await check(page);
      await follow(page, 'Loft');
      await follow(page, 'Delete…');
      await check(page);
      await press(page, 'Delete storage bucket');
      await page.getByText('No storage buckets yet').waitFor();
    });

    test(`jobs are let in by a rule that is made, tried, changed and deleted, ${how}`, async (context) => {
      const { page } = await browser.visit(context, strata.url, look);
      const username = `bob-${suffix}`;
      await signUp(page, username);
      const audience = `${strata.url}/${username}`;
      const identityToken = (sub: string): Promise<string> => {
        const claims = { aud: audience, sub, jti: randomUUID() };
        return issuer.buildToken({ expiresIn: 300, scopesOrTransform: (_, payload) => Object.assign(payload, claims) });
      };
      await page.goto('/oidc-trust');
      await page.getByText('No trust rules yet').waitFor();
      await check(page);
      await follow(page, 'New trust rule');
      await fill(page, { Name: 'main', Issuer: 'http://issuer.example', Subject: 'repo:acme/*' });
      await press(page, 'Create rule');
      await alerts(page);
      assert.equal(await page.getByLabel('Subject', { exact: true }).inputValue(), 'repo:acme/*');
      await check(page);
      await fill(page, { Issuer: origin });
      await page.getByLabel('Only these:').first().check();
      await page.getByLabel('Push, clone and fetch').check();
      await press(page, 'Create rule');
      await page.getByText('The trust rule is created.').waitFor();
      await page.getByText('No refused exchanges').waitFor();
      await check(page);
      const rule = page.url();

      await follow(page, 'Try a token');
      await check(page);
      for (const [sub, told] of [
        ['repo:evil/site', 'No rule lets this token in.'],
        ['repo:acme/site', /The rule main lets this token in\./],
      ] as const) {
        await fill(page, { 'Identity token': await identityToken(sub) });
        await press(page, 'Try it');
        await page.getByText(told).waitFor();
        await check(page);
      }
      const exchange = async (sub: string): Promise<number> => {
        const answer = await api(strata, '', 'POST', '/v1/oidc/token', { id_token: await identityToken(sub) });
        return answer.status;
      };
      assert.equal(await exchange('repo:evil/site'), 401);
      assert.equal(await exchange('repo:acme/site'), 200);
      await page.goto(rule);
      await page.getByRole('cell', { name: 'repo:evil/site' }).waitFor();
      await check(page);

      await follow(page, 'Edit');
      await check(page);
      await fill(page, { Subject: 'repo:other/*' });
      await press(page, 'Save changes');
      assert.equal(await exchange('repo:acme/site'), 401);
      await page.goto('/oidc-trust');
      await check(page);
      await follow(page, 'main');
      await follow(page, 'Delete…');
      await check(page);
      await press(page, 'Delete rule');
      await page.getByText('No trust rules yet').waitFor();
    });
  }

  test('a bucket on an S3 server is verified', needs('versitygw'), async (context) => {
    const s3 = await startS3Server(context);
    const { page } = await browser.visit(context, strata.url);
    await signUp(page, 'cyd');
    await page.goto('/storage-buckets/create/minio');
    await fill(page, { Name: 'Home', Bucket: s3.bucket, 'Prefix (optional)': 'strata', Endpoint: s3.url });
    await fill(page, { Region: s3.region, 'Id of the access key': s3.accessKeyId });
    await fill(page, { 'Secret access key': s3.secretAccessKey });
    await press(page, 'Create storage bucket');
    await press(page, 'Verify');
    await page.getByText('The storage bucket is verified.').waitFor();
    await page.getByText('verified', { exact: true }).waitFor();
  });
});
