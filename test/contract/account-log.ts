/** The contract of core/ports/account-log.ts, a part of that of the read models. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { digest } from '../../adapters/node/digest.ts';
import { entryHash, leafText } from '../../core/audit/entry.ts';
import { consistencyRanges, inclusionRanges, rangeHash, subtreesOf } from '../../core/audit/tree.ts';
import { LOG_START, streamName } from '../../core/kernel/envelope.ts';
import { type AccountId, plusMs } from '../../core/kernel/ids.ts';
import type { AccountLogReader, EntryFilter, EntryRange } from '../../core/ports/account-log.ts';
import { readPlaces } from '../../core/ports/event-store.ts';
import { updatesDigestText } from '../../core/repository/wide-updates.ts';
import type { Ending } from '../support/cleanup.ts';
import { rootOf } from '../support/memory/account-log.ts';
import { type Appender, layer, newUuid } from '../support/read-models.ts';

const ALL = { from: 0, to: Number.MAX_SAFE_INTEGER, limit: 1_000 };
const EVERY: EntryFilter = {
  ...{ type: null, stream: null, repositoryId: null, actorId: null, requestId: null, since: null, until: null },
};

type Open = (context: Ending) => Promise<{ readonly append: Appender; readonly reads: AccountLogReader }>;

export function accountLogContract(open: Open): void {
  test('number the record events of an account in log order, and no others', async (context) => {
    const { append, reads } = await open(context);
    const ada = await append.account('ada');
    const bob = await append.account('bob');
    const id = await append.repository(ada, 'project');
    await append.repository(bob, 'other');
    await append.push(ada, id, { layer: layer(10) });
    await reads.accountLogCaughtUp(append.last);
    const places = await reads.entryPlaces(ada, null, ALL);
    assert.deepEqual(
      places.map(({ sequence }) => sequence),
      places.map((_, index) => index),
    );
    const repository = streamName('repository', id);
    assert.deepEqual(
      places.map(({ stream }) => stream),
      [streamName('account', ada), streamName('account', ada), repository],
    );
    const last = places.at(-1);
    assert.ok(last !== undefined);
    const whole = { size: places.length, position: last.position, logTime: last.logTime };
    assert.deepEqual(await reads.logPrefix(ada, null), whole);
    assert.deepEqual(await reads.entryPlaceOf(ada, last.eventId), last);
    assert.equal(await reads.entryPlaceOf(bob, last.eventId), null, 'of another account');
    const nothing = { size: 0, position: LOG_START, logTime: null };
    assert.deepEqual(await reads.logPrefix(newUuid<AccountId>(), null), nothing);
  });

  test('select a prefix by log time, which never decreases', async (context) => {
    const { append, reads } = await open(context);
    const ada = await append.account('ada');
    const first = append.now;
    append.now = plusMs(first, 60_000);
    await append.repository(ada, 'late');
    append.now = plusMs(first, 30_000);
    await append.repository(ada, 'clock-set-back');
    await reads.accountLogCaughtUp(append.last);
    const sizeAt = async (ms: number) => (await reads.logPrefix(ada, plusMs(first, ms))).size;
    const sizes = await Promise.all([-1, 0, 59_999, 60_000].map(sizeAt));
    assert.deepEqual(sizes, [0, 1, 1, 3]);
  });

  test('find entries by type, stream, repository, actor, request and log time, in pages', async (context) => {
    const { append, reads } = await open(context);
    const ada = await append.account('ada');
    const first = append.now;
    const id = await append.repository(ada, 'project');
    append.now = plusMs(first, 1_000);
    const { requestId } = append;
    append.requestId = 'request-of-push';
    await append.push(ada, id, { layer: layer(10) });
    append.requestId = requestId;
    await append.repository(ada, 'second');
    await reads.accountLogCaughtUp(append.last);
    const found = async (filter: Partial<EntryFilter>, range: EntryRange = ALL) =>
      (await reads.entryPlaces(ada, { ...EVERY, ...filter }, range)).map(({ sequence }) => sequence);
    assert.deepEqual(await found({}), [0, 1, 2, 3]);
    assert.deepEqual(await found({}, { from: 1, to: 4, limit: 2 }), [1, 2]);
    assert.deepEqual(await found({}, { from: 1, to: 2, limit: 5 }), [1]);
    assert.deepEqual(await found({}, { from: 0, to: 4, limit: 2, newestFirst: true }), [3, 2]);
    assert.deepEqual(await found({ repositoryId: id }, { ...ALL, newestFirst: true }), [2, 1]);
    assert.deepEqual(await found({ type: 'RepositoryCreated' }), [1, 3]);
    assert.deepEqual(await found({ stream: streamName('repository', id) }), [2]);
    assert.deepEqual(await found({ repositoryId: id }), [1, 2], 'and what the account says of it');
    assert.deepEqual(await found({ repositoryId: id, type: 'RefsUpdated' }), [2]);
    assert.deepEqual(await found({ actorId: 'nobody' }), []);
    assert.deepEqual(await found({ requestId: 'request-of-push' }), [2]);
    assert.deepEqual(await found({ requestId: 'request-of-push', type: 'RepositoryCreated' }), []);
    assert.deepEqual(await found({ requestId: 'no-request' }), []);
    assert.deepEqual(await found({ since: append.now }), [2, 3]);
    assert.deepEqual(await found({ until: append.now }), [0, 1]);
  });

  test('hash the parts of a wide push as they are stored, and the push without them', async (context) => {
    const { append, reads } = await open(context);
    const ada = await append.account('ada');
    const id = await append.repository(ada, 'project');
    const none = '0'.repeat(40);
    const update = {
      ref: 'refs/heads/wide',
      before: none,
      after: '1'.repeat(40),
      type: 'commit',
      peeled: null,
      kind: 'create',
    } as const;
    const stream = streamName('refUpdates', newUuid());
    await append.append(stream, ada, 'RefUpdatesPart', { updates: [update] });
    const sha256 = digest.sha256(updatesDigestText([update]));
    await append.push(ada, id, { parts: { stream, count: 1, updates: 1, sha256 } });
    await reads.accountLogCaughtUp(append.last);
    const places = await reads.entryPlaces(ada, null, ALL);
    const [part, push] = (await readPlaces(append.store, places)).slice(-2);
    assert.ok(part?.stream === stream && push?.type === 'RefsUpdated');
    assert.deepEqual(push.data['updates'], []);
    assert.deepEqual(
      places.slice(-2).map(({ leaf, length }) => [leaf, length]),
      [part, push].map((event) => [entryHash(digest, event), leafText(event).length]),
    );
  });

  test('hash each subtree, root and proof as RFC 6962 defines them', async (context) => {
    const { append, reads } = await open(context);
    const ada = await append.account('ada');
    // Enough for subtrees above and below those that the model keeps, and for batches that begin inside a subtree.
    for (let n = 0; n < 70; n += 1) {
      await append.repository(ada, `project-${n}`);
      if (n % 9 === 0) await reads.accountLogCaughtUp(append.last);
    }
    await reads.accountLogCaughtUp(append.last);
    const leaves = (await reads.entryPlaces(ada, null, ALL)).map(({ leaf }) => leaf);
    const hashOf = async (begin: number, end: number) =>
      rangeHash(digest, await reads.treeHashes(ada, subtreesOf({ begin, end })));
    for (const size of [1, 2, 3, 15, 16, 17, 63, 64, 71]) {
      assert.equal(await hashOf(0, size), rootOf(digest, leaves.slice(0, size)), `root of ${size}`);
    }
    for (const { begin, end } of [...inclusionRanges(20, 71), ...consistencyRanges(37, 71)]) {
      assert.equal(await hashOf(begin, end), rootOf(digest, leaves.slice(begin, end)), `${begin} to ${end}`);
    }
    assert.deepEqual(await reads.treeHashes(ada, []), []);
    const bob = await append.account('bob');
    await reads.accountLogCaughtUp(append.last);
    const logs = [
      { account: ada, size: 71 },
      { account: bob, size: 1 },
    ].toSorted((a, b) => (a.account < b.account ? -1 : 1));
    assert.deepEqual(await reads.accountLogs(null, 10), logs);
    assert.deepEqual(await reads.accountLogs(logs[0]?.account ?? null, 10), logs.slice(1));
    assert.deepEqual(await reads.accountLogs(null, 1), logs.slice(0, 1));
    await assert.rejects(reads.treeHashes(ada, [{ level: 6, index: 1 }]), TypeError);
  });
}
