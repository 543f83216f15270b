/** Entities in memory when a subscription fails, the log loses its tail, or snapshots are lost or wrong. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { LogPosition } from '../../../core/kernel/envelope.ts';
import { SNAPSHOT_INTERVAL_EVENTS } from '../../../core/kernel/limits.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import type { Snapshots } from '../../../core/ports/snapshots.ts';
import type { Complete } from '../../../core/runtime/read-entity.ts';
import { newId } from '../../support/events.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';
import { createMemorySnapshots } from '../../support/memory/snapshots.ts';
import { startNode } from '../../support/node.ts';
import { addInLog, tallies, tallyStream } from '../../support/tally.ts';
import { gate, settle, watchLog } from '../../support/watched-log.ts';

async function started(store: EventStore = createMemoryEventStore(), options: Parameters<typeof startNode>[1] = {}) {
  const log = watchLog(store);
  const { entities, faults } = await startNode(log, options);
  return {
    log,
    entities,
    sum: async (id: string) => (await entities.get(tallies, id)).state.sum,
    codes: () => faults.map(({ what }) => what),
  };
}

/** Returns what a failover leaves: another log, with only the first `kept` events of this one. */
async function withoutTail(log: EventStore, kept: number): Promise<EventStore> {
  const other = createMemoryEventStore();
  for (const event of await log.readAll(0n as LogPosition, kept)) {
    const { stream, revision, position: _position, ...own } = event;
    await other.append({ stream, expected: revision === 0 ? 'none' : revision - 1, events: [own] });
  }
  return other;
}

describe('A subscription that fails', () => {
  test('starts again, and no event is lost', async () => {
    const { log, entities, sum, codes } = await started();
    await addInLog(log, 'a', 1);
    await entities.barrier();
    await sum('a');
    log.on.deliver = () => {
      log.on.deliver = undefined;
      throw new Error('poison');
    };
    await addInLog(log, 'a', 2);
    await addInLog(log, 'a', 3);
    await entities.barrier();
    assert.equal(await sum('a'), 6);
    await addInLog(log, 'a', 4);
    await entities.barrier();
    assert.equal(await sum('a'), 10);
    assert.deepEqual(codes(), ['subscription']);
    assert.equal(log.counts.subscriptions, 2);
  });

  test('while an entity is read loses no event that it did not deliver', async () => {
    const { log, entities, sum } = await started();
    await addInLog(log, 'a', 1);
    await entities.barrier();
    const answer = gate();
    log.on.read = () => answer.passed;
    const reading = sum('a');
    await settle();
    log.on.read = undefined;
    log.on.deliver = () => {
      log.on.deliver = undefined;
      throw new Error('poison');
    };
    await addInLog(log, 'a', 2);
    await settle();
    await entities.barrier();
    answer.open();
    assert.equal(await reading, 3);
    assert.equal(await sum('a'), 3);
  });

  test('causes no busy loop while the log is down, and starts again with the first barrier after', async () => {
    const { log, entities, sum, codes } = await started();
    await addInLog(log, 'a', 1);
    await entities.barrier();
    await sum('a');
    log.on.head = () => {
      throw new Error('outage');
    };
    log.on.deliver = () => {
      throw new Error('poison');
    };
    await addInLog(log, 'a', 2);
    await settle();
    assert.deepEqual(codes(), ['subscription', 'subscription']);
    assert.equal(log.counts.subscriptions, 1);
    await assert.rejects(entities.barrier(), /outage/);
    log.on.head = undefined;
    log.on.deliver = undefined;
    await entities.barrier();
    assert.equal(await sum('a'), 3);
    assert.equal(log.counts.subscriptions, 2);
  });

  test('fails the waiting barriers if it cannot start again', async () => {
    const { log, entities } = await started();
    const delivery = gate();
    log.on.deliver = async () => {
      await delivery.passed;
      throw new Error('poison');
    };
    await addInLog(log, 'a', 1);
    const waiting = assert.rejects(entities.barrier(), /outage/);
    await settle();
    log.on.head = () => {
      throw new Error('outage');
    };
    delivery.open();
    await waiting;
  });

  test('resolves the waiting barriers as soon as it has started again', async () => {
    const { log, entities, sum } = await started();
    await addInLog(log, 'a', 1);
    await entities.barrier();
    await sum('a');
    const delivery = gate();
    log.on.deliver = async () => {
      await delivery.passed;
      log.on.deliver = undefined;
      throw new Error('poison');
    };
    await addInLog(log, 'a', 2);
    const waiting = entities.barrier();
    await settle();
    delivery.open();
    await waiting;
    assert.equal(await sum('a'), 3);
  });

  test('applies no late events after the next subscription has started', async () => {
    const { log, entities, sum } = await started();
    await addInLog(log, 'a', 1);
    await addInLog(log, 'a', 2);
    await entities.barrier();
    assert.equal(await sum('a'), 3);
    const late = gate();
    log.on.deliver = () => late.passed;
    await addInLog(log, 'a', 3);
    await settle();
    log.exchange(await withoutTail(log, 1));
    log.on.deliver = undefined;
    await entities.barrier();
    assert.equal(await sum('a'), 1);
    const applied = entities.appliedPosition();
    late.open();
    await settle();
    assert.equal(await sum('a'), 1);
    assert.equal(entities.appliedPosition(), applied);
    await addInLog(log, 'a', 5);
    await entities.barrier();
    assert.equal(await sum('a'), 6);
  });
});

describe('A log that lost its tail', () => {
  test('removes the lost events from the entities in memory', async () => {
    const { log, entities, sum, codes } = await started();
    await addInLog(log, 'a', 1);
    await addInLog(log, 'a', 2);
    await entities.barrier();
    assert.equal(await sum('a'), 3);
    log.exchange(await withoutTail(log, 1));
    await entities.barrier();
    assert.equal(await sum('a'), 1);
    assert.deepEqual(codes(), ['log-went-back']);
    await addInLog(log, 'a', 10);
    await entities.barrier();
    assert.equal(await sum('a'), 11);
  });

  test('removes the lost events from a read that is running', async () => {
    const { log, entities, sum } = await started();
    await addInLog(log, 'a', 1);
    await addInLog(log, 'a', 2);
    await entities.barrier();
    const answer = gate();
    log.on.read = () => answer.passed;
    const reading = sum('a');
    await settle();
    log.on.read = undefined;
    log.exchange(await withoutTail(log, 1));
    await entities.barrier();
    answer.open();
    assert.equal(await reading, 1);
    assert.equal(await sum('a'), 1);
  });

  test('does not fail a running read that waits for a lost event', async () => {
    const { log, entities, sum } = await started();
    await addInLog(log, 'a', 1);
    await entities.barrier();
    const answer = gate();
    log.on.read = () => answer.passed;
    const reading = sum('a');
    await settle();
    log.on.read = undefined;
    await addInLog(log, 'a', 2);
    await entities.barrier();
    log.exchange(await withoutTail(log, 1));
    await entities.barrier();
    answer.open();
    assert.equal(await reading, 1);
  });

  test('does not get a lost event back that was being completed', async () => {
    const completed = gate();
    let isBlocking = false;
    const { log, entities, sum } = await started(createMemoryEventStore(), {
      complete: async (event) => {
        if (isBlocking) await completed.passed;
        return event;
      },
    });
    await addInLog(log, 'a', 1);
    await addInLog(log, 'b', 1);
    await entities.barrier();
    await sum('a');
    isBlocking = true;
    await addInLog(log, 'a', 2);
    await settle();
    log.exchange(await withoutTail(log, 1));
    isBlocking = false;
    await entities.barrier();
    assert.equal(await sum('a'), 1);
    const applied = entities.appliedPosition();
    completed.open();
    await settle();
    assert.equal(await sum('a'), 1);
    assert.equal(entities.appliedPosition(), applied);
  });

  test('and grew again is detected by the next reload, because the last event has another id', async () => {
    const { log, entities, sum } = await started();
    await addInLog(log, 'a', 1);
    await addInLog(log, 'a', 2);
    await entities.barrier();
    assert.equal(await sum('a'), 3);
    const other = await withoutTail(log, 1);
    await addInLog(other, 'a', 10, 20);
    log.exchange(other);
    assert.equal((await entities.reload(tallies, 'a')).state.sum, 31);
    assert.equal(await sum('a'), 31);
  });

  test('completely leaves the entity without events', async () => {
    const { log, entities, sum } = await started();
    await addInLog(log, 'a', 1, 2);
    await sum('a');
    log.exchange(createMemoryEventStore());
    const { state, revision } = await entities.reload(tallies, 'a');
    assert.deepEqual([state.sum, revision], [0, 'none']);
    assert.equal(await sum('a'), 0);
  });
});

describe('A snapshot', () => {
  const ones = (count: number) => Array.from({ length: count }, () => 1);

  /** A log with `count` events in one stream, and a node that has the entity in memory while they are appended. */
  async function grown(count: number, snapshots: Snapshots) {
    const store = createMemoryEventStore();
    const node = await started(store, { snapshots });
    await addInLog(store, 'a', 1);
    await node.sum('a');
    for (let n = 1; n < count; n += 1) await addInLog(store, 'a', 1);
    await node.entities.barrier();
    await settle();
    return { store, node };
  }

  const saved = (snapshots: Snapshots, upTo?: number) => snapshots.latest(tallyStream('a'), 1, upTo);

  test('is saved at every thousandth event, not before, and another node reads on from it', async () => {
    const snapshots = createMemorySnapshots();
    const { store, node } = await grown(SNAPSHOT_INTERVAL_EVENTS - 1, snapshots);
    assert.equal(await saved(snapshots), null);
    await addInLog(store, 'a', 1);
    await node.entities.barrier();
    await settle();
    assert.equal((await saved(snapshots))?.revision, SNAPSHOT_INTERVAL_EVENTS - 1);
    await addInLog(store, 'a', 1);
    const other = await started(store, { snapshots });
    assert.equal(await other.sum('a'), SNAPSHOT_INTERVAL_EVENTS + 1);
    assert.equal(other.log.counts.reads, 1);
  });

  test('is saved by a node that had to read a thousand events, and gives the same entity', async () => {
    const snapshots = createMemorySnapshots();
    const store = createMemoryEventStore();
    await addInLog(store, 'a', ...ones(SNAPSHOT_INTERVAL_EVENTS));
    await addInLog(store, 'a', ...ones(5));
    const first = await started(store, { snapshots });
    const folded = await first.entities.get(tallies, 'a');
    await settle();
    assert.equal((await saved(snapshots))?.revision, SNAPSHOT_INTERVAL_EVENTS + 4);
    const second = await started(store, { snapshots });
    assert.deepEqual(await second.entities.get(tallies, 'a'), folded);
    await settle();
    assert.equal((await saved(snapshots))?.revision, SNAPSHOT_INTERVAL_EVENTS + 4, 'no new one after so few events');
  });

  test('is saved by a node that had to put together an event in parts, and the next node need not', async () => {
    const snapshots = createMemorySnapshots();
    const store = createMemoryEventStore();
    await addInLog(store, 'a', 1, 2);
    let putTogether = 0;
    const complete: Complete = async (event) => {
      if (event.revision !== 0) return event;
      putTogether += 1;
      return { ...event };
    };
    for (let node = 0; node < 2; node += 1) {
      assert.equal(await (await started(store, { snapshots, complete })).sum('a'), 3);
      await settle();
    }
    assert.equal((await saved(snapshots))?.revision, 1);
    assert.equal(putTogether, 1);
  });

  test('of a history that the log does not hold is ignored', async () => {
    const store = createMemoryEventStore();
    await addInLog(store, 'a', 1, 2);
    for (const revision of [1, 7]) {
      const snapshots = createMemorySnapshots();
      const state = { last_event_id: newId(), state: { sum: 999, count: 999 } };
      await snapshots.save({ stream: tallyStream('a'), revision, codeVersion: 1, state });
      const node = await started(store, { snapshots });
      assert.equal(await node.sum('a'), 3, `revision ${revision}`);
    }
  });

  test('of another form is ignored and reported', async () => {
    const store = createMemoryEventStore();
    await addInLog(store, 'a', 1, 2);
    for (const state of [
      null,
      'text',
      {},
      { last_event_id: 'no id', state: {} },
      { last_event_id: newId(), state: 1 },
    ]) {
      const snapshots = createMemorySnapshots();
      await snapshots.save({ stream: tallyStream('a'), revision: 1, codeVersion: 1, state });
      const node = await started(store, { snapshots });
      assert.equal(await node.sum('a'), 3);
      assert.deepEqual(node.codes(), ['snapshot']);
    }
  });

  test('that cannot be read or saved costs only time', async () => {
    const down: Snapshots = {
      latest: async () => {
        throw new Error('outage');
      },
      save: async () => {
        throw new Error('outage');
      },
    };
    const store = createMemoryEventStore();
    await addInLog(store, 'a', ...ones(SNAPSHOT_INTERVAL_EVENTS));
    const node = await started(store, { snapshots: down });
    assert.equal(await node.sum('a'), SNAPSHOT_INTERVAL_EVENTS);
    await settle();
    assert.deepEqual(node.codes(), ['snapshot', 'snapshot']);
  });
});
