/** What git makes for a browser: what it costs, who has to wait, and what is left open. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { AccountId, ObjectId } from '../../../../core/kernel/ids.ts';
import { ARCHIVES_AT_ONCE_OF_ACCOUNT_MAX, REQUEST_POINTS } from '../../../../core/kernel/limits.ts';
import { eventually } from '../../../support/processes.ts';
import { type Browser, createWebsiteFixture, type WebsiteFixture } from '../../../support/website.ts';

const { signal } = new AbortController();

describe('A download', () => {
  let fixture: WebsiteFixture;
  let ada: AccountId;
  let browser: Browser;
  let tip: ObjectId;

  beforeAll(async () => {
    fixture = await createWebsiteFixture();
    const { objects } = fixture.api;
    ada = await fixture.account('ada');
    browser = await fixture.signedIn(ada);
    const repository = await fixture.api.repository(ada, 'files', 'main');
    const folder = objects.tree({ inner: ['100644', objects.blob('in')] });
    const tree = objects.tree({ file: ['100644', objects.blob('x')], folder: ['040000', folder] });
    const first = objects.commit({ tree: objects.tree({}), seconds: 1 });
    const second = objects.commit({ tree, seconds: 2, parents: [first] });
    tip = objects.commit({ tree, seconds: 3, parents: [second, first] });
    await fixture.api.push(repository, {
      'refs/heads/main': second,
      'refs/heads/merged': tip,
      'refs/tags/blob': objects.blob('x'),
    });
  });
  afterAll(() => fixture.close());

  const SHARE = Array.from({ length: ARCHIVES_AT_ONCE_OF_ACCOUNT_MAX }, () => null);
  const enter = () => fixture.context.archives.enter(ada, signal);
  /** Resolves when the account has all its places: an answer is read a moment before its place is left. */
  const allFree = () =>
    eventually('the places of the account are free', async () => {
      const places = await Promise.all(SHARE.map(enter));
      for (const place of places) if ('leave' in place) place.leave();
      return places.every((place) => 'leave' in place);
    });
  const pointsLeft = (): number => {
    const counts = fixture.context.callers.counts.find(({ name }) => name === 'person-points');
    assert.ok(counts !== undefined);
    return counts.left(ada);
  };

  test('is an archive of all files, or of one folder, and has the name of both', async () => {
    const zip = await browser.get('/ada/files/archive/main.zip');
    assert.deepEqual([zip.status, zip.headers['content-type']], [200, 'application/zip']);
    assert.match(zip.headers['content-disposition'] ?? '', /filename="files-main\.zip"/);
    assert.match(zip.html, /^zip of [0-9a-f]{40} in files-main\/$/);
    const folder = await browser.get('/ada/files/archive/refs/heads/main.tar.gz?path=folder');
    assert.match(folder.headers['content-disposition'] ?? '', /filename="files-refs-heads-main-folder\.tar\.gz"/);
    for (const [address, status] of [
      ['main.zip?path=file', 404],
      ['main.zip?path=nowhere', 404],
      ['main.zip?path=%2e%2e', 404],
      ['blob.zip', 422],
      ['nowhere.zip', 404],
      ['main', 404],
      ['.zip', 404],
    ] as const) {
      assert.equal((await browser.get(`/ada/files/archive/${address}`)).status, status, address);
    }
    await allFree();
    assert.equal(fixture.api.objects.openReaders(), 0);
  });

  test('waits for its turn as one over the API, and the page says when to try again', async () => {
    const places = await Promise.all(SHARE.map(enter));
    const refused = await browser.get('/ada/files/archive/main.zip');
    assert.deepEqual([refused.status, refused.headers['retry-after']], [429, '5']);
    assert.match(refused.html, /An account has at most 2 archives at the same time/);
    for (const place of places) if ('leave' in place) place.leave();
    assert.equal((await browser.get('/ada/files/archive/main.zip')).status, 200);
  });

  test('is not made for who asks for the headers alone', async () => {
    await allFree();
    for (const target of ['archive/main.zip', `commit/${tip}.diff`, 'raw/main/file']) {
      const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
      const { host } = new URL(fixture.context.addresses().webUrl);
      const answer = await fixture.site.inject({
        method: 'HEAD',
        url: `/ada/files/${target}`,
        headers: { host, cookie },
      });
      assert.deepEqual([answer.statusCode, answer.rawPayload.length], [200, 0], target);
    }
    await allFree();
    assert.equal(fixture.api.objects.openReaders(), 0);
  });

  test('costs what one over the API does', async () => {
    for (const target of ['archive/main.zip', `commit/${tip}.diff`]) {
      const before = pointsLeft();
      assert.equal((await browser.get(`/ada/files/${target}`)).status, 200);
      // A minute that ends in between begins the count again.
      if (pointsLeft() < before) assert.equal(before - pointsLeft(), REQUEST_POINTS.costly, target);
    }
  });

  test('of a commit as text runs nothing in a browser, and a merge has no patch', async () => {
    const diff = await browser.get(`/ada/files/commit/${tip}.diff`);
    assert.equal(diff.html, `diff of ${tip}`);
    assert.equal(diff.headers['x-content-type-options'], 'nosniff');
    assert.match(diff.headers['content-security-policy'] ?? '', /sandbox/);
    const patch = await browser.get(`/ada/files/commit/${tip}.patch`);
    assert.equal(patch.status, 422);
    assert.match(patch.html, /This commit has no patch/);
    assert.equal(fixture.api.objects.openReaders(), 0);
  });
});
