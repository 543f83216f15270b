/** The contract of core/ports/snapshots.ts, run on every adapter. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { SNAPSHOT_INTERVAL_EVENTS } from '../../core/kernel/limits.ts';
import type { Snapshots } from '../../core/ports/snapshots.ts';
import { newStream } from '../support/events.ts';

export interface OpenSnapshots {
  readonly snapshots: Snapshots;
  close(): Promise<void>;
}

/** Declares the suite; `open` is called once. */
export function snapshotsContract(adapter: string, open: () => Promise<OpenSnapshots>): void {
  describe(`snapshots on ${adapter}`, () => {
    let snapshots: Snapshots;
    let close: () => Promise<void>;
    beforeAll(async () => {
      ({ snapshots, close } = await open());
    });
    afterAll(() => close());

    test('are absent until one is saved', async () => {
      assert.equal(await snapshots.latest(newStream(), 1), null);
    });

    test('return the newest, in whatever order they were saved', async () => {
      const stream = newStream();
      for (const revision of [999, 2_999, 1_999]) {
        await snapshots.save({ stream, revision, codeVersion: 1, state: { revision, text: '\0ü' } });
      }
      const state = { revision: 2_999, text: '\0ü' };
      assert.deepEqual(await snapshots.latest(stream, 1), { stream, revision: 2_999, codeVersion: 1, state });
      assert.equal(await snapshots.latest(newStream(), 1), null);
    });

    test('return the newest at or before a revision', async () => {
      const stream = newStream();
      for (const revision of [999, 1_999]) await snapshots.save({ stream, revision, codeVersion: 1, state: revision });
      assert.equal((await snapshots.latest(stream, 1, 1_999))?.revision, 1_999);
      assert.equal((await snapshots.latest(stream, 1, 1_998))?.revision, 999);
      assert.equal(await snapshots.latest(stream, 1, 998), null);
    });

    test('are fewer the older they are, and reads of past states start not far behind', async () => {
      const stream = newStream();
      const lastOf = (index: number) => (index + 1) * SNAPSHOT_INTERVAL_EVENTS - 1;
      for (let index = 0; index < 60; index += 1) {
        await snapshots.save({ stream, revision: lastOf(index), codeVersion: 1, state: index });
      }
      const found = new Set<number>();
      for (let index = 0; index < 60; index += 1) {
        found.add((await snapshots.latest(stream, 1, lastOf(index)))?.revision ?? -1);
      }
      assert.ok(found.size < 30, `${found.size} are kept`);
      for (const index of [59, 58, 57, 56]) assert.ok(found.has(lastOf(index)), `${index}`);
      assert.ok(found.has(lastOf(0)));
    });

    test('ignore those of another code version', async () => {
      const stream = newStream();
      await snapshots.save({ stream, revision: 1_999, codeVersion: 1, state: 'old' });
      assert.equal(await snapshots.latest(stream, 2), null);
      await snapshots.save({ stream, revision: 999, codeVersion: 2, state: 'new' });
      assert.equal((await snapshots.latest(stream, 2))?.state, 'new');
    });

    test('give their parts back, in order', async () => {
      const stream = newStream();
      const parts = Array.from({ length: 50 }, (_, number) => [number, 'a\nline\0']);
      await snapshots.save({ stream, revision: 999, codeVersion: 1, state: { 'a\n': 1 }, parts });
      const read = await snapshots.latest(stream, 1);
      assert.deepEqual(read?.state, { 'a\n': 1 });
      assert.deepEqual(await Array.fromAsync(read?.parts ?? []), parts);
    });

    test('can be saved twice', async () => {
      const snapshot = { stream: newStream(), revision: 999, codeVersion: 1, state: [1, { a: null }] };
      await Promise.all([snapshots.save(snapshot), snapshots.save(snapshot)]);
      assert.deepEqual(await snapshots.latest(snapshot.stream, 1), snapshot);
    });
  });
}
