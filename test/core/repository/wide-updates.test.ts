/** Pushes of many refs: one event if it fits, or else parts, each smaller than an append may be. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'vitest';
import { digest } from '../../../adapters/node/digest.ts';
import { REF_COMPONENT_BYTES_MAX, refName } from '../../../core/git/ref-name.ts';
import { PUSH_OPTIONS_BYTES_MAX, PUSH_OPTIONS_MAX } from '../../../core/git/wire/command-list.ts';
import { readEvent } from '../../../core/kernel/decider.ts';
import { streamName } from '../../../core/kernel/envelope.ts';
import { canonicalJson } from '../../../core/kernel/json.ts';
import { APPEND_SIZE_BYTES_MAX, PUSH_COMMANDS_MAX, REF_NAME_BYTES_MAX } from '../../../core/kernel/limits.ts';
import { checkAppend } from '../../../core/ports/append-check.ts';
import { type RefsUpdated, repositoryEventKinds, type StoredRefUpdate } from '../../../core/repository/events.ts';
import { isNarrow, splitUpdates, updatesDigestText } from '../../../core/repository/wide-updates.ts';
import { withUpdatesInPlace } from '../../../core/use-cases/pushing/restore-wide-updates.ts';
import { newEvent } from '../../support/events.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';
import { layer, oid, pushed } from '../../support/repository-history.ts';

/** Returns the update that takes the most bytes beside its name. */
function widest(ref: string): StoredRefUpdate {
  const id = oid('abc');
  return { ref: refName(ref), before: id, after: id, type: 'commit', peeled: id, kind: 'fast-forward' };
}

/** Returns names of the greatest length, in characters that JSON escapes if it can. */
function longNames(count: number, filler: string): readonly string[] {
  return Array.from({ length: count }, (_, n) => {
    const component = filler.repeat(Math.floor((REF_COMPONENT_BYTES_MAX - 10) / Buffer.byteLength(filler)));
    let name = `refs/tags/${n}`;
    while (Buffer.byteLength(`${name}/${component}`) <= REF_NAME_BYTES_MAX) name += `/${component}`;
    return name;
  });
}

function sizeOf(data: RefsUpdated['data'] | ReturnType<typeof splitUpdates>[number]['data']): number {
  const branch = { default_branch: 'b'.repeat(REF_NAME_BYTES_MAX) };
  const events = [newEvent({ data }), newEvent({ data: branch })];
  return checkAppend({ stream: streamName('repository', randomUUID()), expected: 'none', events }).sizeBytes;
}

/** Much more than a push may bring: an append must still hold it. */
const options = Array.from({ length: PUSH_OPTIONS_MAX }, () => '"'.repeat(PUSH_OPTIONS_BYTES_MAX));
const fillers = ['x', '"', 'é', '\uff61', '\u{1f600}'];

describe('The updates of a push', () => {
  test('are in one event while it fits into an append together with its options', () => {
    for (const filler of fillers) {
      const all = longNames(300, filler).map(widest);
      for (const pushOptions of [[], ['o'.repeat(4_096)]]) {
        let count = 0;
        while (isNarrow(all.slice(0, count + 1), pushOptions)) count += 1;
        assert.ok(count > 50, `${count} names of ${filler}`);
        const { data } = pushed(all.slice(0, count), { layer: layer(1), push_options: pushOptions });
        assert.ok(sizeOf(data) < APPEND_SIZE_BYTES_MAX);
      }
    }
  });

  test('are one event for a usual push', () => {
    assert.equal(
      isNarrow(
        Array.from({ length: 2_000 }, (_, n) => widest(`refs/tags/v1.${n}`)),
        [],
      ),
      true,
    );
  });

  test('are in parts beside the most and the longest options', () => {
    assert.equal(isNarrow([widest('refs/heads/main')], options), false);
    const parts = { stream: `refUpdates-${randomUUID()}`, count: 1, updates: 1, sha256: 'a'.repeat(64) };
    assert.ok(sizeOf(pushed([], { parts, layer: layer(1), push_options: options }).data) < APPEND_SIZE_BYTES_MAX);
  });

  test('are split in order without loss, and each part fits into an append', () => {
    const lists = [
      Array.from({ length: 20_000 }, (_, n) => `refs/heads/topic/${n}`),
      Array.from({ length: PUSH_COMMANDS_MAX }, (_, n) => `refs/tags/${n}`),
      ...fillers.map((filler) => longNames(200, filler)),
    ];
    for (const names of lists) {
      const updates = names.map(widest);
      const parts = splitUpdates(updates);
      for (const { data } of parts) assert.ok(sizeOf(data) < APPEND_SIZE_BYTES_MAX);
      assert.deepEqual(
        parts.flatMap(({ data }) => data.updates),
        updates,
      );
    }
    assert.deepEqual(splitUpdates([]), []);
  });
});

describe('A wide push', () => {
  const updates = Array.from({ length: 20_000 }, (_, n) => widest(`refs/heads/topic/${n}`));

  async function stored(more: { readonly count?: number; readonly sha256?: string; readonly updates?: number } = {}) {
    const events = createMemoryEventStore();
    const stream = streamName('refUpdates', randomUUID());
    const parts = splitUpdates(updates);
    for (const [index, { type, data }] of parts.entries()) {
      const expected = index === 0 ? 'none' : index - 1;
      const result = await events.append({ stream, expected, events: [newEvent({ type, data })] });
      assert.equal(result.outcome, 'appended');
    }
    const sha256 = digest.sha256(updatesDigestText(updates));
    const named = { stream, count: parts.length, updates: updates.length, sha256, ...more };
    const repository = streamName('repository', randomUUID());
    const { type, data } = pushed([], { parts: named });
    await events.append({ stream: repository, expected: 'none', events: [newEvent({ type, version: 4, data })] });
    const [event] = await events.readStream(repository, { direction: 'forwards', limit: 1 });
    assert.ok(event !== undefined);
    return { events, event };
  }

  test('of 20,000 refs is read back from its parts', async () => {
    const { events, event } = await stored();
    const whole = await withUpdatesInPlace({ events, digest }, event);
    assert.deepEqual(
      readEvent(repositoryEventKinds, whole),
      pushed(updates, { parts: (event.data as RefsUpdated['data']).parts }),
    );
    assert.deepEqual({ ...whole, data: null }, { ...event, data: null });
    assert.equal(await withUpdatesInPlace({ events, digest }, whole), whole, 'it is put in place only once');
  });

  test('is read once for all who ask for it at one moment, and again after a failure', async () => {
    const { events, event } = await stored();
    let reads = 0;
    let fails = true;
    const counted: Pick<typeof events, 'readStream'> = {
      readStream: async (stream, options) => {
        reads += 1;
        if (fails) throw new Error('An outage');
        return events.readStream(stream, options);
      },
    };
    const context = { events: counted, digest };
    for (const outcome of await Promise.allSettled([1, 2].map(() => withUpdatesInPlace(context, event)))) {
      assert.equal(outcome.status, 'rejected');
    }
    assert.equal(reads, 1);
    fails = false;
    reads = 0;
    const wholes = await Promise.all([1, 2, 3].map(() => withUpdatesInPlace(context, event)));
    const { count } = (event.data as RefsUpdated['data']).parts ?? assert.fail('no parts');
    assert.equal(reads, count);
    const later = await withUpdatesInPlace(context, event);
    assert.equal(reads, count, 'while what was read is in use');
    for (const { data } of [...wholes, later]) assert.deepEqual((data as RefsUpdated['data']).updates, updates);
  });

  test('throws if its parts are not the ones that it names', async () => {
    for (const more of [
      { sha256: 'a'.repeat(64) },
      { count: 1 },
      { count: 1_000, updates: 20_001 },
      { updates: 19_999 },
    ]) {
      const { events, event } = await stored(more);
      await assert.rejects(withUpdatesInPlace({ events, digest }, event), /are not those/, canonicalJson(more));
    }
  });

  test('does not change if it names no parts', async () => {
    const { events, event } = await stored();
    for (const other of [
      { ...event, data: pushed([widest('refs/heads/main')]).data },
      { ...event, type: 'RepositoryClosed', data: {} },
    ]) {
      assert.equal(await withUpdatesInPlace({ events, digest }, other), other);
    }
  });
});
