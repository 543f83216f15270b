/** The page of a repository that says who could read it, and who did. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { html } from '../../../../apps/website/layout/html.ts';
import { PAGE_BYTES_MAX } from '../../../../apps/website/layout/weight.ts';
import {
  ACCESS_ADDRESSES_MAX,
  accessRow,
  SUBJECTS_BYTES_MAX,
  subjectRowsOfPage,
} from '../../../../apps/website/repositories/access.ts';
import { timestamp } from '../../../../core/kernel/ids.ts';
import { vaultRef } from '../../../../core/kernel/vault-ref.ts';
import { createWebsiteFixture, type WebsiteFixture } from '../../../support/website.ts';

const plain = (html: string): string =>
  html
    .replace(/<[^>]*>/g, ' ')
    .replaceAll(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)))
    .replace(/\s+/g, ' ');

describe('The access of a repository', () => {
  let fixture: WebsiteFixture;

  beforeAll(async () => {
    fixture = await createWebsiteFixture();
  });
  afterAll(() => fixture.close());

  test('is who could read it as of a moment, and who did, and the activity leads there', async () => {
    const { api } = fixture;
    const account = await api.account('ada');
    const browser = await fixture.signedIn(account);
    const before = api.clock.now();
    api.clock.advance(60_000);
    const repository = await api.repository(account, 'engine');
    const token = await api.token(account, { name: 'laptop', grants: ['GIT_HTTP_READ'] });
    const reader = { kind: 'token', id: token.id } as const;
    api.context.transfer.add({ account, reader, repository: repository.id, sentBytes: 5, address: '' });
    await api.context.transfer.flush();
    assert.match((await browser.get('/ada/engine/activity')).html, /href="\/ada\/engine\/access"/);
    const { status, html } = await browser.get('/ada/engine/access');
    assert.equal(status, 200);
    assert.match(html, /<title>Access · ada\/engine · Strata<\/title>/);
    assert.match(plain(html), /The owner ada Everything All Event .*The token laptop Clone and fetch All Event/);
    assert.match(plain(html), /the token laptop 1 0 0/);
    const [, event = ''] = /href="(\/history\/[0-9a-f-]{36})"/.exec(html) ?? [];
    assert.match(plain((await browser.follow(await browser.get(event))).html), /Created the account/);
    const earlier = await browser.get(`/ada/engine/access?at=${before}`);
    assert.equal(earlier.status, 422);
    assert.match(plain(earlier.html), /The repository did not exist at this moment/);
    const none = await browser.get('/ada/engine/access?until=2001-01-01');
    assert.match(plain(none.html), /Nobody read or wrote it in this time/);
  });

  test('says what is wrong with a time beside its field, and keeps what was written', async () => {
    const account = await fixture.api.account('bob');
    const browser = await fixture.signedIn(account);
    await fixture.api.repository(account, 'engine');
    const { status, html } = await browser.get('/bob/engine/access?at=yesterday&since=%3Cb%3E');
    assert.equal(status, 422);
    assert.match(html, /name="at" type="text" value="yesterday"/);
    assert.doesNotMatch(html, /<b>/);
    assert.equal((await browser.get('/bob/engine/access?at=9999-01-01')).status, 422);
    assert.equal((await browser.get('/bob/nothing/access')).status, 404);
    const stranger = await fixture.signedIn(await fixture.api.account('eve'));
    assert.equal((await stranger.get('/bob/engine/access')).status, 404);
  });

  // The attack: an account with very many tokens of long names.
  test('stays a page of bounded weight, and counts the tokens that it does not show', async () => {
    const account = await fixture.api.account('mallory');
    const browser = await fixture.signedIn(account);
    await fixture.api.repository(account, 'engine');
    const count = SUBJECTS_BYTES_MAX / 100;
    for (let n = 0; n < count; n += 1) await fixture.api.token(account, { name: `${n} ${'&'.repeat(40)}` });
    const { html } = await browser.get('/mallory/engine/access');
    assert.ok(Buffer.byteLength(html) <= PAGE_BYTES_MAX);
    const shown = html.match(/The token/g)?.length ?? 0;
    const [, others] = /And (\d+) others, which the API lists/.exec(plain(html)) ?? [];
    assert.equal(shown + Number(others), count);
  });

  test('leaves rows of a bounded weight to a page', () => {
    const rows = [html`${'x'.repeat(SUBJECTS_BYTES_MAX - 1)}`, html`x`];
    assert.equal(subjectRowsOfPage(rows).length, 2);
    assert.equal(subjectRowsOfPage([...rows, html`x`]).length, 2);
  });

  test('names as many addresses of a row as the limit, and counts the others', () => {
    const rowOf = (count: number): string => {
      const addresses = Array.from({ length: count }, (_, n) => {
        const disclosure = { nonce: 'a', value: `192.0.2.${n}` };
        return [vaultRef(n.toString(16).padStart(64, '0')), disclosure] as const;
      });
      const minute = timestamp('2026-11-21T10:00:00.000Z');
      const access = { minute, wholeDay: false, kind: 'user', id: 'x', reads: 1, pushes: 0, restores: 0 } as const;
      return accessRow(minute, { ...access, addresses: new Map(addresses) }, { tokens: new Map() }).markup();
    };
    assert.match(rowOf(ACCESS_ADDRESSES_MAX), /192\.0\.2\.0, 192\.0\.2\.1, 192\.0\.2\.2<\/td>/);
    assert.match(rowOf(ACCESS_ADDRESSES_MAX + 1), /192\.0\.2\.2 and 1 more/);
  });
});
