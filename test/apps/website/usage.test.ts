/** The page of usage: every figure against its quota, and the days of the month. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { sizeText } from '../../../apps/website/layout/sizes.ts';
import { PAGE_BYTES_MAX } from '../../../apps/website/layout/weight.ts';
import { DEFAULT_PLANS } from '../../../core/account/plans.ts';
import { streamName } from '../../../core/kernel/envelope.ts';
import type { AccountId, EventId } from '../../../core/kernel/ids.ts';
import { CAUSE } from '../../support/node.ts';
import { createWebsiteFixture, type WebsiteFixture } from '../../support/website.ts';

describe('The page of usage', () => {
  let fixture: WebsiteFixture;

  beforeAll(async () => {
    const FREE = { ...DEFAULT_PLANS.FREE, repos: 4, storage_bytes: 0, transfer_bytes: 10 * 1024 };
    fixture = await createWebsiteFixture({ api: { plans: { ...DEFAULT_PLANS, FREE } } });
  });
  afterAll(() => fixture.close());

  const fetched = async (account: AccountId, minute: string, bytes: number): Promise<void> => {
    const { events, clock, ids } = fixture.context;
    await events.append({
      stream: streamName('transfer', `${account}-${ids.next().replaceAll('-', '')}-20261121`),
      expected: 'none',
      events: [
        {
          ...{ ...CAUSE, id: ids.next<EventId>(), type: 'TransferRecorded', version: 2, accountId: account },
          ...{ occurredAt: clock.now(), isRecord: false },
          data: { minute, sent_bytes: bytes, received_bytes: 0, by_reader: [] },
        },
      ],
    });
  };

  test('shows each figure against its quota', async () => {
    const ada = await fixture.api.account('ada', 'FREE');
    await fixture.api.repository(ada, 'tools');
    await fetched(ada, '2026-11-03T10:00:00.000Z', 7_000);
    const { status, html } = await (await fixture.signedIn(ada)).get('/usage');
    assert.equal(status, 200);
    assert.match(html, /<title>Usage · Strata<\/title>/);
    assert.match(
      html,
      /<h2>Repositories<\/h2><p><b>1<\/b> <span class="soft">of 4<\/span><\/p><meter [^>]*value="25">/,
    );
    assert.match(html, /<h2>Fetched this month<\/h2><p><b>6.8 KiB<\/b> <span class="soft">of 10 KiB<\/span>/);
    assert.match(html, /<h2>Storage<\/h2><p><b>0 B<\/b> <span class="soft">of 0 B<\/span><\/p><meter [^>]*value="0">/);
  });

  test('shows what is unlimited without a bar', async () => {
    const pro = await fixture.api.account('pro', 'PRO');
    const { html } = await (await fixture.signedIn(pro)).get('/usage');
    assert.match(html, /unlimited/);
    assert.doesNotMatch(html, /<meter/);
    assert.match(html, /Nothing was fetched or pushed this month yet/);
  });

  test('shows each day of this month as a bar and in a table, and no other month', async () => {
    const bob = await fixture.api.account('bob', 'FREE');
    await fetched(bob, '2026-10-31T23:59:00.000Z', 999);
    await fetched(bob, '2026-11-01T00:00:00.000Z', 2_048);
    await fetched(bob, '2026-11-20T12:00:00.000Z', 1_024);
    const { html } = await (await fixture.signedIn(bob)).get('/usage');
    assert.match(
      html,
      /<tr><td>2026-11-20<\/td><td class="number">1 KiB<\/td><td class="number">0 B<\/td><\/tr>\s*<tr><td>2026-11-01<\/td><td class="number">2 KiB<\/td>/,
    );
    assert.doesNotMatch(html, /2026-10-31/);
    assert.equal(html.match(/<rect class="sent"/g)?.length, 2);
    assert.doesNotMatch(html, / style=/);
    assert.ok(Buffer.byteLength(html) < 60_000);
  });

  test('includes what this node has sent and not written to the log yet, today', async () => {
    const cyd = await fixture.api.account('cyd', 'FREE');
    const reader = { kind: 'user', id: cyd } as const;
    const { transfer, ids } = fixture.context;
    transfer.add({ account: cyd, reader, repository: ids.next(), sentBytes: 3_072, address: '' });
    const { html } = await (await fixture.signedIn(cyd)).get('/usage');
    assert.match(html, /<tr><td>2026-11-21<\/td><td class="number">3 KiB<\/td>/);
  });

  test('shows what lies in each own bucket, which no quota counts, and escapes its name', async () => {
    const eve = await fixture.api.account('eve', 'PRO');
    const browser = await fixture.signedIn(eve);
    assert.doesNotMatch((await browser.get('/usage')).html, /In your own buckets/);
    const bucket = await fixture.api.bucket(eve);
    const token = await fixture.api.token(eve);
    const rename = await fixture.api.request('PUT', `/v1/storage-buckets/${bucket}`, token, {
      body: { name: '<b>own' },
    });
    assert.equal(rename.statusCode, 200);
    const verified = await fixture.api.request('POST', `/v1/storage-buckets/${bucket}/verify`, token);
    assert.equal(verified.json().status, 'VERIFIED');
    const body = { name: 'engine', storage_bucket_id: bucket };
    assert.equal((await fixture.api.request('POST', '/v1/repositories', token, { body })).statusCode, 201);
    const { html } = await browser.get('/usage');
    assert.match(html, /In your own buckets/);
    assert.match(
      html,
      new RegExp(
        `<td class="wrap"><a href="/storage-buckets/${bucket}">&#60;b&#62;own</a></td><td class="number">1</td>`,
      ),
    );
    const { byo_storage_bytes: own } = (await fixture.api.request('GET', '/v1/account/usage', token)).json();
    assert.deepEqual(own, { used: 0, quota: null, buckets: [{ storage_bucket_id: bucket, used: 0 }] });
  });

  test('says how much of the storage is deleted, here and over REST, and not where nothing is', async () => {
    const dan = await fixture.api.account('dan', 'FREE');
    const [browser, token] = [await fixture.signedIn(dan), await fixture.api.token(dan)];
    const repository = await fixture.api.repository(dan, 'engine');
    const tip = fixture.api.objects.commit({ tree: fixture.api.objects.tree({}), seconds: 1 });
    await fixture.api.push(repository, { 'refs/heads/main': tip }, 3_072);
    const usage = async () => (await fixture.api.request('GET', '/v1/account/usage', token)).json();
    const storage = { used: 3_072, quota: 0 };
    assert.doesNotMatch((await browser.get('/usage')).html, /of it deleted/);
    const { storage_bytes: before, deleted_storage_bytes: none } = await usage();
    assert.deepEqual([before, none], [storage, { used: 0, quota: null }]);
    assert.equal((await fixture.api.request('DELETE', '/v1/repos/dan/engine', token)).statusCode, 204);
    const { storage_bytes: after, deleted_storage_bytes: deleted } = await usage();
    assert.deepEqual([after, deleted], [storage, { used: 3_072, quota: null }]);
    assert.match(
      (await browser.get('/usage')).html,
      /<p class="soft">3 KiB of it deleted, until retention or <a href="\/settings\/deleted-repositories">purge<\/a>/,
    );
    const purge = `/v1/repositories/${repository.id}/purge`;
    assert.equal((await fixture.api.request('POST', purge, token)).statusCode, 202);
    const { storage_bytes: purged, deleted_storage_bytes: gone, waiting_storage_bytes: waiting } = await usage();
    assert.deepEqual([purged.used, gone.used], [0, 0]);
    assert.deepEqual(waiting, { used: 3_072, quota: 1_024 ** 3 });
    assert.match(
      (await browser.get('/usage')).html,
      /<h2>Waiting to leave storage<\/h2><p><b>3 KiB<\/b> <span class="soft">of 1 GiB<\/span>/,
    );
    assert.doesNotMatch((await browser.get('/usage')).html, /of it deleted/);
  });

  test('leads to the ledger of the month, whose entries add up to its totals, whatever the page', async () => {
    const fay = await fixture.api.account('fay', 'PRO');
    for (let n = 0; n < 55; n += 1) await fixture.api.repository(fay, `project-${n}`);
    await fixture.api.deletedRepository(fay);
    const browser = await fixture.signedIn(fay);
    const text = (html: string): string => html.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
    assert.match((await browser.get('/usage')).html, /href="\/usage\/ledger"/);
    const first = await browser.get('/usage/ledger');
    assert.equal(first.status, 200);
    assert.ok(Buffer.byteLength(first.html) < PAGE_BYTES_MAX);
    assert.match(text(first.html), /November 2026 .*Repositories 0 \+55 55 Storage 0 B 0 B 0 B/);
    const [, next = ''] = /rel="next" href="([^"]+after[^"]+)"/.exec(first.html) ?? [];
    const second = await browser.get(next.replaceAll(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code))));
    assert.match(text(second.html), /Repositories 0 \+55 55/);
    const deltas = [first, second].flatMap(({ html }) => text(html).match(/Repositories [+−]1 /g) ?? []);
    assert.deepEqual([deltas.length, deltas.filter((one) => one.includes('−')).length], [57, 1]);
    const [, event = ''] = /href="(\/history\/[0-9a-f-]{36})"/.exec(second.html) ?? [];
    assert.match(text((await browser.follow(await browser.get(event))).html), /Created the repository project-/);
    assert.match(text((await browser.get('/usage/ledger?month=2026-10')).html), /Nothing changed a figure/);
  });

  // The attack: addresses that no page of the ledger leads to.
  test('has no ledger for what is no month and no place', async () => {
    const browser = await fixture.signedIn(await fixture.api.account('gus', 'PRO'));
    for (const query of [
      'month=2026-13',
      'month=x',
      'after=1',
      'month=2026-11&after=~~',
      'month=2026-11%00',
      'month=9999-12',
    ]) {
      assert.equal((await browser.get(`/usage/ledger?${query}`)).status, 404, query);
    }
    assert.equal((await browser.get('/usage/ledger?month=0001-01')).status, 200);
  });

  test('is for who is signed in, and shows only the own account', async () => {
    assert.equal((await fixture.browser().get('/usage')).location, '/sign-in?next=%2Fusage');
  });
});

test('byte counts are short, and in the binary units of the quotas', () => {
  const texts = [0, 1, 1_023, 1_024, 1_536, 102_400, 1_048_000, 1_048_576, 5 * 1024 ** 3, 2_000 * 1024 ** 4].map(
    sizeText,
  );
  const expected = ['0 B', '1 B', '1023 B', '1 KiB', '1.5 KiB', '100 KiB', '1023 KiB', '1 MiB', '5 GiB', '2000 TiB'];
  assert.deepEqual(texts, expected);
});
