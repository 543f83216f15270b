/** Who gets an archive, and what holds a place among those that are made at the same time. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test, vi } from 'vitest';
import { ARCHIVE_WAIT_MS } from '../../../apps/front-door/archive-lane.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import { ARCHIVES_AT_ONCE_MAX, ARCHIVES_AT_ONCE_OF_ACCOUNT_MAX } from '../../../core/kernel/limits.ts';
import type { ArchivePlace } from '../../../core/use-cases/reading/read-archive.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { eventually } from '../../support/processes.ts';

describe('Archives', () => {
  let fixture: ApiFixture;
  let account: AccountId;
  let token: TestToken;
  const { signal } = new AbortController();
  const SHARE = Array.from({ length: ARCHIVES_AT_ONCE_OF_ACCOUNT_MAX }, () => null);

  beforeAll(async () => {
    fixture = await createApiFixture();
    account = await fixture.account('ada');
    token = await fixture.token(account);
    const { objects } = fixture;
    const commit = objects.commit({ tree: objects.tree({ file: ['100644', objects.blob('x')] }), seconds: 1 });
    await fixture.push(await fixture.repository(account, 'code'), { 'refs/heads/master': commit });
    await fixture.repository(account, 'empty');
  });
  afterAll(() => fixture.close());

  const get = (target: string, headers: Readonly<Record<string, string>> = {}, method: 'GET' | 'HEAD' = 'GET') =>
    fixture.request(method, `/v1/repos/ada/${target}`, token, { headers });

  async function take(names: readonly AccountId[]): Promise<readonly ArchivePlace[]> {
    const places = await Promise.all(names.map((name) => fixture.context.archives.enter(name, signal)));
    return places.map((place) => {
      assert.ok('leave' in place);
      return place;
    });
  }

  /** Resolves when the account has all its places: an answer is read a moment before its place is left. */
  const allFree = () =>
    eventually('the places of the account are free', async () => {
      const places = await Promise.all(SHARE.map(() => fixture.context.archives.enter(account, signal)));
      for (const place of places) if ('leave' in place) place.leave();
      return places.every((place) => 'leave' in place);
    });

  test('beyond those that an account may have at the same time are refused with the time to try again', async () => {
    const places = await take(SHARE.map(() => account));
    const refused = await get('code/archive/master.zip');
    assert.deepEqual([refused.statusCode, refused.headers['retry-after']], [429, '5']);
    assert.deepEqual(refused.json(), {
      detail: 'An account has at most 2 archives at the same time: wait until one is read',
    });
    places[0]?.leave();
    assert.equal((await get('code/archive/master.zip')).statusCode, 200);
    for (const place of places) place.leave();
  });

  test('beyond those that a node makes at the same time are refused with the time to try again', async () => {
    await allFree();
    const places = await take(
      Array.from({ length: ARCHIVES_AT_ONCE_MAX }, (_, index) => `other-${index}` as AccountId),
    );
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    const waiting = get('code/archive/master.tar.gz');
    for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
    vi.advanceTimersByTime(ARCHIVE_WAIT_MS);
    vi.useRealTimers();
    const refused = await waiting;
    assert.deepEqual([refused.statusCode, refused.headers['retry-after']], [503, '5']);
    assert.deepEqual(refused.json(), { detail: 'The service makes too many archives now, try again' });
    for (const place of places) place.leave();
  });

  test('leave their place however their answer ends', async () => {
    const etag = String((await get('code/archive/master.zip')).headers['etag']);
    const answers: readonly (readonly [number, () => ReturnType<typeof get>])[] = [
      [200, () => get('code/archive/master.zip')],
      [200, () => get('code/archive/master.zip', {}, 'HEAD')],
      [304, () => get('code/archive/master.zip', { 'if-none-match': etag })],
      [404, () => get('code/archive/nowhere.zip')],
      [404, () => get('empty/archive/master.zip')],
    ];
    for (const [status, ask] of answers) {
      await allFree();
      assert.equal((await ask()).statusCode, status);
    }
    await allFree();
  });
});
