/** The history of the account: its events and filters, an event with its proof, the record, and the export. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { digest } from '../../../adapters/node/digest.ts';
import { ENTRY_TYPES } from '../../../apps/website/history/words.ts';
import { PAGE_BYTES_MAX } from '../../../apps/website/layout/weight.ts';
import { base64OfHex } from '../../../core/audit/base64.ts';
import { leafHash } from '../../../core/audit/tree.ts';
import { EVENT_CATALOGUE } from '../../../core/catalogue.ts';
import type { RecordedEvent } from '../../../core/kernel/envelope.ts';
import type { AccountId, ObjectId } from '../../../core/kernel/ids.ts';
import { LOG_EXPORTS_OF_ACCOUNT_MAX } from '../../../core/kernel/limits.ts';
import { LayerStoreError } from '../../../core/ports/layer-store.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { type Browser, createWebsiteFixture, type WebsiteFixture } from '../../support/website.ts';

const plain = (html: string): string =>
  html
    .replace(/<[^>]*>/g, ' ')
    .replaceAll(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)))
    .replace(/\s+/g, ' ');

/** The first entries are of the account and of its name and address. */
const [MADE, PUSH] = [5, 6];

describe('The history', () => {
  let fixture: WebsiteFixture;
  let account: AccountId;
  let browser: Browser;
  let repository: FoundRepository;
  let tip: ObjectId;

  beforeEach(async () => {
    fixture = await createWebsiteFixture();
    account = await fixture.api.account('ada');
    browser = await fixture.signedIn(account);
    repository = await fixture.api.repository(account, 'engine', 'main');
    const { objects } = fixture.api;
    tip = objects.commit({ tree: objects.tree({}), seconds: 1 });
    await fixture.api.push(repository, { 'refs/heads/main': tip });
  });
  afterEach(() => fixture.close());

  const sequences = (html: string): number[] =>
    [...html.matchAll(/href="\/history\/(\d+)"/g)].map(([, n]) => Number(n));

  test('lists events newest first, with who, what and the number of each', async () => {
    const { status, html } = await browser.get('/history');
    assert.equal(status, 200);
    assert.match(html, /<title>History · Strata<\/title>/);
    assert.deepEqual(sequences(html), [PUSH, MADE, 4, 3, 2, 1, 0]);
    assert.match(plain(html), /Pushed to main of engine .*RefsUpdated .*#6 .*Created the repository engine .*#5/);
    assert.match((await browser.get('/ada')).html, /href="\/history"/);
  });

  test('has words for every record event, and for no other', () => {
    const records = Object.values(EVENT_CATALOGUE).flatMap((kinds) =>
      Object.entries(kinds).flatMap(([type, { record }]) => (record ? [type] : [])),
    );
    const known = ENTRY_TYPES.flatMap(({ types }) => types.map(([type]) => type));
    assert.deepEqual(known.toSorted(), [...new Set(records)].toSorted());
  });

  test('keeps every filter on its way to older events, and ends at the first one', async () => {
    for (let n = 0; n < 60; n += 1) await fixture.api.repository(account, `more-${n}`);
    const seen: number[] = [];
    let next = '/history?type=RepositoryCreated&since=2026-01-01';
    for (let pages = 0; next !== '' && pages < 10; pages += 1) {
      const { status, html } = await browser.get(next);
      assert.equal(status, 200, next);
      assert.ok(Buffer.byteLength(html) < PAGE_BYTES_MAX);
      seen.push(...sequences(html));
      const [, older = ''] = /rel="next" href="([^"]+)"/.exec(html) ?? [];
      next = older.replaceAll(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)));
      if (next !== '') assert.match(next, /type=RepositoryCreated&since=2026-01-01&before=\d+/);
    }
    assert.equal(seen.length, 61);
    assert.deepEqual(
      seen,
      seen.toSorted((a, b) => b - a),
    );
    assert.equal(seen.at(-1), MADE);
  });

  test('selects by repository, by who, and by time', async () => {
    const token = await fixture.api.token(account);
    await fixture.api.request('POST', '/v1/repositories', token, { body: { name: 'other' } });
    const found = async (query: string): Promise<number[]> => sequences((await browser.get(`/history?${query}`)).html);
    assert.deepEqual(await found('repository=engine'), [PUSH, MADE]);
    assert.deepEqual(await found(`repository=${repository.id}`), [PUSH, MADE]);
    assert.deepEqual(await found('repository=ada/engine&type=RefsUpdated'), [PUSH]);
    assert.deepEqual(await found(`by=${token.id}`), [PUSH + 2]);
    await fixture.api.request('PATCH', '/v1/repos/ada/engine', token, { body: { name: 'motor' } });
    for (const name of ['motor', 'ENGINE']) assert.deepEqual(await found(`repository=${name}`), [PUSH + 3, PUSH, MADE]);
    assert.deepEqual(await found('until=2026-01-01'), []);
    assert.deepEqual((await found('since=2026-01-01T00:00')).length, PUSH + 4);
    assert.match(
      (await browser.get(`/history?by=${token.id}`)).html,
      new RegExp(`/access-tokens/${token.id}/activity`),
    );
  });

  test('says beside the field which filter cannot be read, and shows nothing for it', async () => {
    const { status, html } = await browser.get('/history?type=RefUpdated&repository=nowhere&since=yesterday');
    assert.equal(status, 422);
    assert.deepEqual(sequences(html), []);
    assert.match(html, /id="type-error">No event has this type/);
    assert.match(html, /id="repository-error">You have no repository of this name/);
    assert.match(html, /id="since-error">Write a time/);
    assert.match(html, /name="since" type="text" value="yesterday"/);
  });

  // The attack: a text that the database refuses.
  test('asks the database for no text with a zero in it', async () => {
    const { status, html } = await browser.get('/history?request=%00&by=a%00b');
    assert.deepEqual([status, sequences(html)], [200, []]);
    assert.match(html, /name="request"[^>]* value="\ufffd"/);
    assert.match(html, /<option value="a\ufffdb" selected/);
  });

  // The attack: a text of the address or of an event that is markup, and one that reorders what is beside it.
  test('shows what others wrote as text', async () => {
    const token = await fixture.api.token(account, { name: '<b>\u202eevil' });
    await fixture.api.request('POST', '/v1/repositories', token, { body: { name: 'other' } });
    for (const path of [
      `/history?type=${encodeURIComponent('"><script>')}&by=<i>`,
      '/history',
      '/history/3',
      '/history/4',
    ]) {
      const { html } = await browser.get(path);
      assert.doesNotMatch(html, /<b>|<i>|<script>|\u202e/, path);
    }
    assert.match(plain((await browser.get('/history/8')).html), /with the token <b>⟨U\+202E⟩evil/);
  });

  test('shows an event with the text that its leaf is the hash of, and its proof', async () => {
    const { status, html } = await browser.get(`/history/${PUSH}`);
    assert.equal(status, 200);
    const [, shown = ''] = /<pre class="payload part" tabindex="0">([^<]*)<\/pre>/.exec(html) ?? [];
    const text = shown.replaceAll(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)));
    const leaf = base64OfHex(leafHash(digest, text));
    assert.ok(plain(html).includes(leaf), 'the leaf is of the text that is shown');
    assert.match(plain(html), /Leaf index 6 Tree size 7 Root/);
    assert.match(plain(html), /No signed checkpoint has this entry yet/);
    await browser.submit('/history/checkpoint', {}, '/history');
    assert.match(plain((await browser.get(`/history/${PUSH}`)).html), /the one of the last signed checkpoint/);
    const [, id = ''] = /<dt>Event<\/dt><dd><code>([^<]+)/.exec(html) ?? [];
    const led = await browser.get(`/history/${id}`);
    assert.deepEqual([led.status, led.location], [303, '/history/6'], 'one page has one address');
  });

  // The attack: somebody changes an event in the database, after its leaf became part of the tree.
  test('says of an event that it is not the one that its leaf was made of', async () => {
    const forge = (event: RecordedEvent): RecordedEvent =>
      event.type === 'RepositoryCreated' ? { ...event, data: { ...event.data, description: 'forged' } } : event;
    const forged = await createWebsiteFixture({
      api: {
        wrapEvents: (events) => ({
          ...events,
          readStream: async (...args) => (await events.readStream(...args)).map(forge),
        }),
      },
    });
    try {
      const owner = await forged.api.account('bob');
      await forged.api.repository(owner, 'engine');
      const visitor = await forged.signedIn(owner);
      assert.match(plain((await visitor.get('/history/5')).html), /the log was changed/);
      assert.doesNotMatch(plain((await visitor.get('/history/2')).html), /the log was changed/);
    } finally {
      await forged.close();
    }
  });

  test('shows an event of any length on a page of ordinary length', async () => {
    const updates = Object.fromEntries(Array.from({ length: 400 }, (_, n) => [`refs/heads/"'&<-${n}`, tip]));
    await fixture.api.push(repository, updates);
    const { html } = await browser.get('/history/7');
    assert.ok(Buffer.byteLength(html) < PAGE_BYTES_MAX, String(Buffer.byteLength(html)));
    assert.match(plain(html), /The first part of [\d,]+ characters: the export has the whole/);
  });

  test('has no event of another account, and none that there is not', async () => {
    const eve = await fixture.api.account('eve');
    const hers = await fixture.signedIn(eve);
    const [, id = ''] = /<dt>Event<\/dt><dd><code>([^<]+)/.exec((await browser.get(`/history/${PUSH}`)).html) ?? [];
    for (const entry of [id, '6', 'nothing', '-1', '999999999999', '01890000-0000-7000-8000-000000000000']) {
      assert.equal((await hers.get(`/history/${entry}`)).status, 404, entry);
    }
    assert.deepEqual(sequences((await hers.get(`/history?repository=${repository.id}`)).html), []);
    assert.equal((await fixture.browser().get('/history')).location, '/sign-in?next=%2Fhistory');
  });

  test('says how the log stands to its last checkpoint, and signs one when asked', async () => {
    assert.match(plain((await browser.get('/history')).html), /not signed yet .*The log has 7 entries/);
    const signed = await browser.submit('/history/checkpoint', {}, '/history');
    assert.equal(signed.location, '/history');
    const fresh = plain((await browser.follow(signed)).html);
    assert.match(
      fresh,
      /The checkpoint of 7 entries is signed\..*consistent.*Entries 7 Root \S{43}=.*nothing was added since/,
    );
    await fixture.api.repository(account, 'late');
    const later = plain((await browser.get('/history')).html);
    assert.match(later, /The log continues it, with 1 entry more/);
    assert.match(later, /strata audit verify strata-ada\.ndjson --keys strata-log-keys --checkpoint 7\.txt/);
  });

  test('is shown without the record while the store of checkpoints does not answer', async () => {
    const down = await createWebsiteFixture({
      context: {
        checkpoints: {
          ...fixture.context.checkpoints,
          recordOf: async () => Promise.reject(new LayerStoreError('layer-store-unavailable', 'down')),
        },
      },
    });
    try {
      const visitor = await down.signedIn(await down.api.account('bob'));
      const { status, html } = await visitor.get('/history');
      assert.equal(status, 200);
      assert.deepEqual(sequences(html), [4, 3, 2, 1, 0]);
      assert.match(plain(html), /The store of checkpoints does not answer now/);
      assert.equal((await visitor.get('/history/0')).status, 200);
    } finally {
      await down.close();
    }
  });

  test('is exported as the API exports it, whole or of the times of the filter', async () => {
    const whole = await browser.submit('/history/export', {}, '/history');
    assert.equal(whole.status, 200);
    assert.equal(whole.headers['content-type'], 'application/x-ndjson');
    assert.equal(whole.headers['content-disposition'], 'attachment; filename="strata-ada.ndjson"');
    const lines = whole.html.trimEnd().split('\n');
    assert.equal(lines.length, 8);
    assert.match(lines.at(-1) ?? '', /^\{"checkpoint":/);
    const form = (await browser.get('/history?since=2026-11-01&until=2026-11-02')).html;
    assert.match(form, /name="since" value="2026-11-01T00:00:00.000Z"/);
    assert.match(form, /Export these times/);
    const slice = await browser.submit('/history/export', { since: '2099-01-01T00:00:00.000Z' }, '/history');
    const [guard = '', ending = '', ...others] = slice.html.trimEnd().split('\n');
    assert.deepEqual(others, []);
    assert.match(guard, /^\{"entry":.*,"guard":true,"leaf":/);
    assert.match(ending, /^\{"checkpoint":.*"form":2,"from":6,"guards":\{"before":1,"behind":0\},"left":/);
  });

  // The attack: pages of another site, or many windows, begin exports that nobody reads.
  test('is exported by its own form alone, and as often at the same time as by the API', async () => {
    assert.equal((await browser.get('/history/export')).status, 405);
    assert.equal((await browser.post('/history/export', {})).status, 403);
    assert.equal((await browser.post('/history/checkpoint', {})).status, 403);
    const held = Array.from({ length: LOG_EXPORTS_OF_ACCOUNT_MAX }, () => fixture.context.exportSlots.take(account));
    const refused = await browser.submit('/history/export', {}, '/history');
    assert.equal(refused.status, 429);
    for (const release of held) release?.();
    for (let n = 0; n <= LOG_EXPORTS_OF_ACCOUNT_MAX; n += 1) {
      assert.equal((await browser.submit('/history/export', {}, '/history')).status, 200, 'slots are freed');
    }
  });

  test('of a token shows what it was allowed and what it did, also after it was revoked', async () => {
    const token = await fixture.api.token(account, { name: 'deploy' });
    await fixture.api.request('PUT', `/v1/access-tokens/${token.id}`, token, {
      body: { expires_at: '2099-01-01T00:00:00.000Z' },
    });
    const path = `/access-tokens/${token.id}/activity`;
    assert.ok((await browser.get('/access-tokens')).html.includes(`href="${path}"`));
    const shown = plain((await browser.get(path)).html);
    assert.match(shown, /What deploy did .*Everything All Never Event .*Everything All in 72 years Event/);
    assert.match(shown, /Nothing was done with it/);
    await browser.submit(`/access-tokens/${token.id}/revoke`, {}, `/access-tokens/${token.id}/revoke`);
    const { status, html } = await browser.get(path);
    assert.equal(status, 200);
    assert.match(plain(html), /What a token did .*just now revoked Everything/);
    const eve = await fixture.signedIn(await fixture.api.account('eve'));
    assert.equal((await eve.get(path)).status, 404);
    for (const wrong of ['/access-tokens/x/activity', `${path}?after=x`, `${path}?after=1~2~3`]) {
      assert.equal((await browser.get(wrong)).status, 404, wrong);
    }
  });

  test('of a token counts its reads by minute and repository, over pages', async () => {
    const token = await fixture.api.token(account);
    const reader = { kind: 'token', id: token.id } as const;
    for (let n = 0; n < 30; n += 1) {
      const { id } = await fixture.api.repository(account, `read-${n}`);
      fixture.context.transfer.add({ account, reader, repository: id, sentBytes: 7, address: '' });
    }
    await fixture.context.transfer.flush();
    const path = `/access-tokens/${token.id}/activity`;
    const first = (await browser.get(path)).html;
    const [, next = ''] = /rel="next" href="([^"]+)"/.exec(first) ?? [];
    const second = (await browser.get(next.replaceAll(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)))))
      .html;
    const read = [first, second].flatMap((html) => plain(html).match(/read-\d+ 1 0/g) ?? []);
    assert.equal(new Set(read).size, 30);
    assert.match(second, /rel="first"/);
    assert.doesNotMatch(second, /rel="next"/);
  });
});
