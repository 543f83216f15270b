/** The contract of `WaitingStorageReader` (core/ports/usage.ts), part of that of the read models. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { LOG_START, type LogPosition, streamName } from '../../core/kernel/envelope.ts';
import { type AccountId, plusMs, type RepositoryId, type StorageBucketId } from '../../core/kernel/ids.ts';
import type { ReadModelProgress } from '../../core/ports/read-models.ts';
import type { WaitingStorageReader } from '../../core/ports/usage.ts';
import type { RecordedLayer } from '../../core/repository/events.ts';
import type { Ending } from '../support/cleanup.ts';
import { type Appender, layer, newUuid } from '../support/read-models.ts';

const MINUTE_MS = 60_000;
const OWNER = { kind: 'user', id: newUuid() } as const;
const SERVICE = { kind: 'system', id: 'layer-compaction' } as const;
const NOTHING_REMOVED = { replaced: LOG_START, purged: LOG_START };

/** The events of one repository that take layers out of its list and let them go. */
class Taking {
  readonly #append: Appender;
  readonly #account: AccountId;
  readonly #repository: RepositoryId;
  #epoch = 0;

  constructor(append: Appender, account: AccountId, repository: RepositoryId) {
    this.#append = append;
    this.#account = account;
    this.#repository = repository;
  }

  async push(sizeBytes: number): Promise<RecordedLayer> {
    const pushed = layer(sizeBytes);
    await this.#append.push(this.#account, this.#repository, { layer: pushed });
    return pushed;
  }

  /** Replaces layers by one of a byte, as a merge, a drop or a purge does. */
  async compact(
    removed: readonly RecordedLayer[],
    by: 'service' | 'owner',
  ): Promise<{ readonly at: LogPosition; readonly added: RecordedLayer }> {
    const added = layer(1);
    this.#epoch += 1;
    const at = await this.#by(by, 'LayersCompacted', {
      ...{ revision: 0, removed: removed.map(({ id, size_bytes }) => ({ id, size_bytes })) },
      ...{ added: [{ ...added, holds: 'refs' }], shrink_epoch: this.#epoch, clean: true },
    });
    return { at, added };
  }

  letGo(
    layers: readonly RecordedLayer[],
    reason: 'purge' | 'retention' | 'erasure',
    { current = false, compactedAt = null as number | null } = {},
  ): Promise<LogPosition> {
    if (current) this.#epoch += 1;
    return this.#by(reason === 'purge' ? 'owner' : 'service', 'LayersExpired', {
      layers: layers.map(({ id, size_bytes }) => ({ id, size_bytes, current })),
      ...{ reason, compacted_at: compactedAt, shrink_epoch: this.#epoch },
    });
  }

  async #by(actor: 'service' | 'owner', type: string, data: Parameters<Appender['append']>[3]): Promise<LogPosition> {
    const before = this.#append.actor;
    this.#append.actor = actor === 'service' ? SERVICE : OWNER;
    const at = await this.#append.append(streamName('repository', this.#repository), this.#account, type, data);
    this.#append.actor = before;
    return at;
  }
}

type Reads = ReadModelProgress & WaitingStorageReader;
type Open = (context: Ending) => Promise<{ readonly append: Appender; readonly reads: Reads }>;

export function waitingStorageContract(open: Open): void {
  async function scene(context: Ending, bucket: string | null = null) {
    const { append, reads } = await open(context);
    const account = await append.account('ada');
    const id = await append.repository(account, 'project', { storage_bucket_id: bucket });
    const waiting = async (removed = NOTHING_REMOVED) => {
      await reads.caughtUp(append.last);
      return reads.waitingStorageBytes(account, removed);
    };
    const purges = async (quota: number | null, removed = NOTHING_REMOVED, repository = id) => {
      return reads.purgesOf({ account, repository, removed, quota, seen: append.last });
    };
    return { append, reads, account, id, taking: new Taking(append, account, id), waiting, purges };
  }

  test('count what compactions replaced until they have removed it', async (context) => {
    const { append, taking, waiting, purges } = await scene(context);
    const first = [await taking.push(100), await taking.push(20)];
    assert.equal(await waiting(), 0);
    const merged = await taking.compact(first, 'service');
    assert.equal(await waiting(), 120);
    const later = await taking.compact([merged.added, await taking.push(3)], 'service');
    assert.equal(await waiting(), 124);
    assert.equal(await waiting({ replaced: merged.at, purged: append.last }), 4, 'the first ones are removed');
    await taking.letGo(first, 'retention', { compactedAt: 2 });
    assert.equal(await waiting(), 124, 'the event comes before the first byte is removed');
    assert.equal(await waiting({ replaced: merged.at, purged: LOG_START }), 4);
    assert.equal(await waiting({ replaced: later.at, purged: LOG_START }), 0);
    assert.deepEqual(await purges(0), { letGoUntil: null, rewrittenAt: null }, 'no purge took them out');
  });

  test('count what a purge rewrote until it was removed', async (context) => {
    const { append, taking, waiting, purges } = await scene(context);
    const pushed = await taking.push(100);
    const at = append.now;
    await taking.compact([pushed], 'owner');
    const gone = await taking.letGo([pushed], 'purge', { compactedAt: 1 });
    assert.equal(await waiting(), 100);
    assert.deepEqual(await purges(100), { letGoUntil: null, rewrittenAt: at }, 'exactly the quota');
    assert.deepEqual(await purges(99), { letGoUntil: at, rewrittenAt: at });
    assert.deepEqual(await purges(null), { letGoUntil: null, rewrittenAt: at }, 'unlimited');
    assert.deepEqual(await purges(99, NOTHING_REMOVED, newUuid()), { letGoUntil: at, rewrittenAt: null });
    assert.equal(await waiting({ replaced: LOG_START, purged: gone }), 0);
    assert.deepEqual(await purges(0, { replaced: LOG_START, purged: gone }), { letGoUntil: null, rewrittenAt: at });
  });

  test('tell what purges took out from what the service did and a purge let go', async (context) => {
    const { append, taking, waiting, purges } = await scene(context);
    const [first, second] = [await taking.push(1_000), await taking.push(100)];
    const merged = await taking.compact([first], 'service');
    await taking.compact([merged.added, second], 'owner');
    assert.deepEqual(
      await purges(0),
      { letGoUntil: null, rewrittenAt: append.now },
      'the purge died: another frees it',
    );
    await taking.letGo([first], 'purge', { compactedAt: 2 });
    await taking.letGo([merged.added, second], 'purge', { compactedAt: 3 });
    assert.equal(await waiting(), 1_101);
    assert.equal((await purges(101)).letGoUntil, null);
    assert.equal((await purges(100)).letGoUntil, append.now);
  });

  test('say until when purges must have left for the others to fit', async (context) => {
    const { append, account, taking, purges } = await scene(context);
    const times = [append.now];
    for (const size of [50, 30, 20]) {
      const pushed = await taking.push(size);
      await taking.compact([pushed], 'owner');
      await taking.letGo([pushed], 'purge');
      append.now = plusMs(append.now, MINUTE_MS);
      times.push(append.now);
    }
    const until = async (quota: number) => (await purges(quota)).letGoUntil;
    assert.deepEqual(await Promise.all([100, 99, 50, 49, 20, 19].map(until)), [
      ...[null, times[0], times[0], times[1], times[1], times[2]],
    ]);
    assert.deepEqual((await purges(0)).rewrittenAt, times[2]);
    const other = await append.repository(account, 'deleted');
    const deleted = new Taking(append, account, other);
    await deleted.letGo([await deleted.push(1)], 'purge', { current: true });
    assert.equal(await until(20), times[2], 'also what the purge of a deleted repository took out');
    assert.equal((await purges(0, NOTHING_REMOVED, other)).rewrittenAt, null, 'which is no rewriting');
  });

  test('count deleted repositories that were purged, and neither what retention nor an erasure took', async (context) => {
    const { append, account, taking, waiting } = await scene(context);
    const pushed = [await taking.push(7), await taking.push(8)];
    const gone = await taking.letGo(pushed, 'purge', { current: true });
    assert.equal(await waiting(), 15);
    assert.equal(await waiting({ replaced: append.last, purged: LOG_START }), 15);
    assert.equal(await waiting({ replaced: LOG_START, purged: gone }), 0);
    for (const reason of ['retention', 'erasure'] as const) {
      const other = new Taking(append, account, await append.repository(account, reason));
      await other.letGo([await other.push(100)], reason, { current: true });
    }
    assert.equal(await waiting(), 15);
  });

  test('say what purges have still to remove from a bucket, and since when', async (context) => {
    const bucket = newUuid<StorageBucketId>();
    const { append, reads, account, taking } = await scene(context, bucket);
    const left = (removed = NOTHING_REMOVED, of = bucket) =>
      reads.purgedInBucket({ account, bucket: of, removed, seen: append.last });
    const [first, second] = [await taking.push(100), await taking.push(20)];
    const merged = await taking.compact([first], 'service');
    assert.deepEqual(await left(), { sizeBytes: 0, letGoUntil: null }, 'no purge let it go');
    await taking.letGo([first], 'purge', { compactedAt: 2 });
    append.now = plusMs(append.now, MINUTE_MS);
    const at = append.now;
    const gone = await taking.letGo([merged.added, second], 'purge', { current: true });
    assert.deepEqual(await left(), { sizeBytes: 121, letGoUntil: at });
    assert.deepEqual(await left({ replaced: merged.at, purged: LOG_START }), { sizeBytes: 21, letGoUntil: at });
    assert.deepEqual(await left({ replaced: LOG_START, purged: gone }), { sizeBytes: 0, letGoUntil: null });
    assert.deepEqual(await left(NOTHING_REMOVED, newUuid()), { sizeBytes: 0, letGoUntil: null });
  });

  test('count nothing in buckets of users, and know when a purge rewrote a repository there', async (context) => {
    const { append, taking, waiting, purges } = await scene(context, newUuid());
    const pushed = await taking.push(100);
    await taking.compact([pushed], 'owner');
    await taking.letGo([pushed], 'purge');
    assert.equal(await waiting(), 0);
    assert.deepEqual(await purges(0), { letGoUntil: null, rewrittenAt: append.now });
  });
}
