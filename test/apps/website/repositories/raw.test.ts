/** What reading files through pages costs: transfer that is counted, and objects that do not stay open. */
import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { DEFAULT_PLANS } from '../../../../core/account/plans.ts';
import { LOG_START } from '../../../../core/kernel/envelope.ts';
import type { AccountId } from '../../../../core/kernel/ids.ts';
import { CONTENTS_FILE_BYTES_MAX } from '../../../../core/kernel/limits.ts';
import { CONTENTS_BUFFERED_BYTES_MAX } from '../../../../core/use-cases/reading/read-contents.ts';
import { withoutChanges } from '../../../support/no-history.ts';
import { type Browser, createWebsiteFixture, type WebsiteFixture } from '../../../support/website.ts';

const TRANSFER_QUOTA_BYTES = CONTENTS_BUFFERED_BYTES_MAX + 2_000;

describe('The bytes of files', () => {
  let fixture: WebsiteFixture;
  let ada: AccountId;
  let browser: Browser;

  beforeAll(async () => {
    fixture = await createWebsiteFixture({
      api: {
        plans: { ...DEFAULT_PLANS, FREE: { ...DEFAULT_PLANS.FREE, transfer_bytes: TRANSFER_QUOTA_BYTES } },
        objects: ({ database }) => withoutChanges(database),
      },
    });
    const { objects } = fixture.api;
    ada = await fixture.api.account('ada', 'FREE');
    browser = await fixture.signedIn(ada);
    const repository = await fixture.api.repository(ada, 'files', 'main');
    const tree = objects.tree({
      small: ['100644', objects.blob('small')],
      shown: ['100644', objects.blob('s'.repeat(CONTENTS_BUFFERED_BYTES_MAX))],
      large: ['100644', objects.blob('l'.repeat(CONTENTS_BUFFERED_BYTES_MAX + 1))],
      limit: ['100644', objects.hugeBlob(CONTENTS_FILE_BYTES_MAX)],
      beyond: ['100644', objects.hugeBlob(CONTENTS_FILE_BYTES_MAX + 1)],
    });
    await fixture.api.push(repository, { 'refs/heads/main': objects.commit({ tree, seconds: 1 }) });
  });
  afterAll(() => fixture.close());

  test('are shown as text where they are one, and nothing stays open', async () => {
    const shown = await browser.get('/ada/files/blob/main/shown');
    assert.equal(shown.status, 200);
    assert.match(shown.html, /<a id="L1"/);
    for (const name of ['large', 'limit']) {
      const page = await browser.get(`/ada/files/blob/main/${name}`);
      assert.equal(page.status, 200);
      assert.match(page.html, /<a id="L1"/);
    }
    assert.equal((await browser.get('/ada/files/blob/main/beyond')).status, 403);
    assert.equal((await browser.get('/ada/files/raw/main/beyond')).status, 403);
    assert.equal((await browser.get('/ada/files/tree/main/large')).status, 303);
    assert.equal(fixture.api.objects.openReaders(), 0);
  });

  test('of a large file are read for one page of an account at a time', async () => {
    const release = await fixture.context.largeListings.acquire(ada);
    let isShown = false;
    const shown = browser.get('/ada/files/blob/main/large').then((page) => {
      isShown = true;
      return page;
    });
    await setTimeout(50);
    assert.equal(isShown, false);
    release();
    assert.equal((await shown).status, 200);
    assert.equal(fixture.api.objects.openReaders(), 0);
  });

  test('count as transfer of the person, until the quota is used up', async () => {
    assert.equal((await browser.get('/ada/files/raw/main/small')).html, 'small');
    assert.equal((await browser.get('/ada/files/raw/main/large')).html.length, CONTENTS_BUFFERED_BYTES_MAX + 1);
    // The stream closes just after its last byte was sent.
    await new Promise(setImmediate);
    assert.equal(fixture.api.objects.openReaders(), 0);
    await fixture.context.transfer.flush();
    const events = await fixture.context.events.readAll(LOG_START, 10_000);
    const [recorded] = events.filter(({ type }) => type === 'TransferRecorded');
    const sentBytes = 'small'.length + CONTENTS_BUFFERED_BYTES_MAX + 1;
    assert.equal(recorded?.data['sent_bytes'], sentBytes);
    const sums = recorded?.data['by_reader'] as readonly { readonly reader: object }[];
    assert.deepEqual(
      sums.map(({ reader }) => reader),
      [{ kind: 'user', id: ada }],
    );
    assert.equal((await browser.get('/ada/files/raw/main/large')).status, 200);
    await new Promise(setImmediate);
    const refused = await browser.get('/ada/files/raw/main/small');
    assert.equal(refused.status, 403);
    assert.match(refused.html, /quota of transfer/);
  });
});
