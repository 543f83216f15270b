/** The pages that undo: restorations, deleted repositories and purges. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'vitest';
import type { AccountId, ObjectId } from '../../../../core/kernel/ids.ts';
import type { FoundRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import { type Browser, createWebsiteFixture, type WebsiteFixture } from '../../../support/website.ts';

const DELETED = '/settings/deleted-repositories';

describe('The pages that undo', () => {
  let fixture: WebsiteFixture;
  let account: AccountId;
  let browser: Browser;
  let repository: FoundRepository;
  let tips: ObjectId[];

  beforeEach(async () => {
    fixture = await createWebsiteFixture();
    account = await fixture.api.account('ada');
    browser = await fixture.signedIn(account);
    repository = await fixture.api.repository(account, 'engine', 'main');
    const { objects } = fixture.api;
    const tree = objects.tree({});
    tips = [1, 2].map((seconds) => objects.commit({ tree, seconds }));
    await fixture.api.push(repository, { 'refs/heads/main': tips[0] as ObjectId });
    await fixture.api.push(repository, {
      'refs/heads/main': tips[1] as ObjectId,
      'refs/heads/later': tips[0] as ObjectId,
    });
  });
  afterEach(() => fixture.close());

  const visible = (html: string): string => html.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');

  /** The first restoration that the activity offers. */
  async function offered(): Promise<{ readonly address: string; readonly fields: Record<string, string> }> {
    const { html } = await browser.get('/ada/engine/activity');
    const [, found = ''] = /href="(\/ada\/engine\/restore\?[^"]+)"/.exec(html) ?? [];
    const address = found.replaceAll(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)));
    const page = await browser.get(address);
    assert.equal(page.status, 200, address);
    const fields = [...page.html.matchAll(/<input type="hidden" name="(before|ref|seen)" value="([^"]*)">/g)];
    return { address, fields: Object.fromEntries(fields.map(([, name = '', value = '']) => [name, value])) };
  }

  test('show what a restoration would change, and do that', async () => {
    const { address, fields } = await offered();
    assert.equal(fields['ref'], 'refs/heads/later');
    const text = visible((await browser.get(address)).html);
    assert.match(text, /Only refs\/heads\/later is set back/);
    assert.match(text, /refs\/heads\/later Is deleted [0-9a-f]{7} –/);
    assert.doesNotMatch(text, /refs\/heads\/main/);
    const all = await browser.get(address.replace(/&ref=.*/, ''));
    assert.match(visible(all.html), /refs\/heads\/main Moves back/);
    const done = await browser.submit('/ada/engine/restore', { ...fields, ref: '' }, address);
    assert.equal(done.location, '/ada/engine/activity');
    assert.match(visible((await browser.follow(done)).html), /2 refs restored\. Undo .*Restored the branch/);
  });

  const decoded = (html: string): string =>
    html.replaceAll(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)));

  test('restore to the moment that a page shows, after a page that says what would change', async () => {
    const activity = decoded((await browser.get('/ada/engine/activity')).html);
    const addresses = [...activity.matchAll(/href="(\/ada\/engine\?at=[^"]+)"/g)].map(([, found = '']) => found);
    const band = await browser.get(addresses.at(-1) ?? '');
    assert.match(
      visible(band.html),
      /Nothing newer is shown\. Clone it What changed since Restore to here Back to now/,
    );
    const [, address = ''] = /href="([^"]+)">Restore to here/.exec(decoded(band.html)) ?? [];
    const page = await browser.get(address);
    assert.equal(page.status, 200, address);
    const text = visible(page.html);
    assert.match(text, /Restore to this event All branches and tags are set back/);
    assert.match(text, /refs\/heads\/main Moves back .*refs\/heads\/later Is deleted/);
    const sent = [...page.html.matchAll(/<input type="hidden" name="(at|ref|seen)" value="([^"]*)">/g)];
    const fields = Object.fromEntries(sent.map(([, name = '', value = '']) => [name, value]));
    assert.equal((await browser.submit('/ada/engine/restore', { ...fields, seen: '0' }, address)).status, 409);
    const done = await browser.submit('/ada/engine/restore', fields, address);
    assert.equal(done.location, '/ada/engine/activity');
    assert.match(visible((await browser.follow(done)).html), /2 refs restored/);
  });

  test('restore to a time, and say so of one that has not come or is before the repository', async () => {
    const now = fixture.context.clock.now();
    const text = visible((await browser.get(`/ada/engine/restore?at=${encodeURIComponent(now)}`)).html);
    assert.match(text, /Restore to 21 November 2026, \d\d:\d\d:\d\d UTC .*Nothing changes/);
    assert.equal((await browser.get('/ada/engine/restore?at=2999-01-01T00:00:00Z')).status, 422);
    assert.equal((await browser.get('/ada/engine/restore?at=2001-01-01T00:00:00Z')).status, 409);
    assert.equal((await browser.get('/ada/engine/restore?at=yesterday')).status, 404);
    assert.equal((await browser.get('/ada/engine/restore?at=01890000-0000-7000-8000-000000000000')).status, 404);
  });

  // The attack: somebody pushes between the page and its confirmation, so that an owner overwrites what they never saw.
  test('show the new plan if a push came between the page and its confirmation', async () => {
    const { address, fields } = await offered();
    await fixture.api.push(repository, { 'refs/heads/later': tips[1] as ObjectId });
    const again = await browser.submit('/ada/engine/restore', fields, address);
    assert.equal(again.status, 409);
    assert.match(visible(again.html), /changed since this page was opened/);
    for (const seen of ['', 'x', '99999999999999999999']) {
      assert.equal((await browser.submit('/ada/engine/restore', { ...fields, seen }, address)).status, 409, seen);
    }
    assert.match(visible((await browser.get('/ada/engine/branches')).html), /later/);
  });

  // The attack: a page of another site sends the owner's browser a form; another person opens the pages.
  test('take no form of another site, and are out of reach for others', async () => {
    const { address, fields } = await offered();
    const paths = [
      '/ada/engine/restore',
      '/ada/engine/purge',
      `${DELETED}/${repository.id}/restore`,
      `${DELETED}/${repository.id}/purge`,
    ];
    for (const path of paths) {
      assert.equal((await browser.post(path, { ...fields, confirmation: 'engine' })).status, 403, path);
    }
    const eve = await fixture.signedIn(await fixture.api.account('eve'));
    for (const path of [address, '/ada/engine/purge', `${DELETED}/${repository.id}/purge`]) {
      assert.equal((await eve.get(path)).status, 404, path);
    }
    for (const path of paths) {
      assert.equal((await eve.submit(path, { ...fields, confirmation: 'engine' }, DELETED)).status, 404, path);
    }
    assert.equal((await browser.get('/ada/engine/restore?before=nothing')).status, 404);
    assert.equal((await browser.get('/ada/engine/restore?before=01890000-0000-7000-8000-000000000000')).status, 404);
  });

  const undoOn = (html: string): string => decoded(/<a href="([^"]*)">Undo<\/a>/.exec(html)?.[1] ?? '');

  test('offer the undoing in the notice after a restoration and after a deletion', async () => {
    const { address, fields } = await offered();
    const restored = await browser.follow(await browser.submit('/ada/engine/restore', fields, address));
    const plan = visible((await browser.get(undoOn(restored.html))).html);
    assert.match(plan, /Only refs\/heads\/later is set back/);
    assert.match(plan, /refs\/heads\/later Comes back/);
    const removal = { confirmation: 'engine' };
    assert.match(visible((await browser.get('/ada/engine/settings')).html), /You can undo this for 30 days/);
    const deleted = await browser.submit('/ada/engine/delete', removal, '/ada/engine/settings');
    const undo = undoOn((await browser.follow(deleted)).html);
    assert.equal(undo, `${DELETED}#deleted-${repository.id}`);
    assert.match((await browser.get(DELETED)).html, new RegExp(`id="deleted-${repository.id}"`));
  });

  test('list deleted repositories and give them back, under another name if theirs is taken', async () => {
    assert.match((await browser.get('/ada')).html, new RegExp(DELETED));
    assert.match(visible((await browser.get(DELETED)).html), /No repository was deleted lately/);
    await browser.submit('/ada/engine/delete', { confirmation: 'engine' }, '/ada/engine/settings');
    assert.match(visible((await browser.get(DELETED)).html), /engine .* Deleted .* kept until 2026-12-21/);
    await fixture.api.repository(account, 'engine');
    const taken = await browser.submit(`${DELETED}/${repository.id}/restore`, {}, DELETED);
    assert.equal(taken.status, 422);
    assert.match(visible(taken.html), /exists already\. Another name/);
    const back = await browser.submit(`${DELETED}/${repository.id}/restore`, { name: 'engine-2' }, DELETED);
    assert.equal(back.location, '/ada/engine-2');
    assert.match(visible((await browser.get('/ada/engine-2/activity')).html), /Created the branch later/);
  });

  test('purge a deleted repository once its name is typed', async () => {
    await browser.submit('/ada/engine/delete', { confirmation: 'engine' }, '/ada/engine/settings');
    const path = `${DELETED}/${repository.id}/purge`;
    assert.match(visible((await browser.get(path)).html), /It frees .* cannot be undone/);
    assert.equal((await browser.submit(path, { confirmation: 'engines' })).status, 422);
    const done = await browser.submit(path, { confirmation: 'engine' });
    assert.equal(done.location, DELETED);
  });

  test('offer the purge of a living repository in its settings', async () => {
    await fixture.api.repository(account, 'clean');
    assert.match((await browser.get('/ada/clean/settings')).html, /href="\/ada\/clean\/purge"/);
    const done = await browser.submit('/ada/clean/purge', { confirmation: 'clean' });
    assert.equal(done.location, '/ada/clean/settings');
    assert.match(visible((await browser.follow(done)).html), /nothing to purge/);
  });
});
