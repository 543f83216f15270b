/** Pages that are made while they are sent. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { UNSENT_BOUNDS } from '../../../apps/front-door/unsent-budget.ts';
import { showPage } from '../../../apps/website/layout/answer.ts';
import { html, laterHtml } from '../../../apps/website/layout/html.ts';
import type { Room } from '../../../apps/website/layout/room.ts';
import { heldBytesOf, pageStream } from '../../../apps/website/page-stream.ts';
import { type Browser, createWebsiteFixture, type WebsiteFixture } from '../../support/website.ts';

/** Counts the pieces that were made. */
function longPage(pieces: number, heldBytes = 1) {
  const made = { count: 0 };
  const page = html`<p>${laterHtml({
    heldBytes,
    *make() {
      for (let at = 0; at < pieces; at += 1) {
        made.count += 1;
        yield html`<i>${'x'.repeat(1_000)}</i>`;
      }
    },
  })}</p>`;
  return { page, made };
}

describe('A page that is made while it is sent', () => {
  test('is its parts in their order, and is never whole', async () => {
    const { page } = longPage(2);
    const chunks = await pageStream(page).toArray();
    const piece = `<i>${'x'.repeat(1_000)}</i>`;
    assert.deepEqual(chunks.map(String), ['<p>', piece, piece, '</p>']);
    assert.throws(() => page.markup(), /made while it is sent/);
    assert.deepEqual([heldBytesOf(page), heldBytesOf(html`<p></p>`)], [1, null]);
  });

  test('is made no further than somebody reads', async () => {
    const { page, made } = longPage(1_000);
    const stream = pageStream(page);
    for await (const _ of stream) if (made.count === 3) break;
    await sleep(50);
    assert.ok(made.count < 10, `${made.count} pieces`);
    assert.ok(stream.destroyed);
  });
});

describe('The website', () => {
  let fixture: WebsiteFixture;
  let browser: Browser;
  const HELD = UNSENT_BOUNDS.accounts.account.bytesMax;
  const room: Room = {
    routes(site) {
      site.page('/long', async () => showPage(longPage(100).page));
      site.page('/heavy', async () => showPage(longPage(1, HELD).page));
      site.page('/heavier', async () => showPage(longPage(1, HELD + 1).page));
    },
  };

  beforeAll(async () => {
    fixture = await createWebsiteFixture({ rooms: [room] });
    browser = await fixture.signedIn(await fixture.account('ada'));
  });
  afterAll(() => fixture.close());

  test('sends such a page whole, with gzip to who accepts it', async () => {
    const plain = await browser.get('/long');
    assert.equal(plain.html.match(/<i>/g)?.length, 100);
    assert.equal(plain.headers['content-type'], 'text/html; charset=utf-8');
    const coded = await browser.get('/long', { 'accept-encoding': 'gzip' });
    assert.equal(coded.headers['content-encoding'], 'gzip');
    assert.equal(gunzipSync(coded.bytes).toString(), plain.html);
  });

  test('holds what the page is made from while it is sent, and refuses what has no room', async () => {
    assert.equal((await browser.get('/heavy')).status, 200);
    assert.equal((await browser.get('/heavier')).status, 429);
    assert.equal(fixture.context.unsentBudget.heldBytes(), 0);
  });
});
