/** Entities in memory: after a barrier, while they are read, and when the cache is full. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { LOG_START } from '../../../core/kernel/envelope.ts';
import { newEvent } from '../../support/events.ts';
import { startNode } from '../../support/node.ts';
import { addInLog, appendInLog, BYTES_PER_EVENT, tallies, tallyStream } from '../../support/tally.ts';
import { gate, settle, watchLog } from '../../support/watched-log.ts';

async function started(options: Parameters<typeof startNode>[1] = {}) {
  const log = watchLog();
  const { entities, faults } = await startNode(log, options);
  return {
    log,
    entities,
    faults,
    sum: async (id: string) => (await entities.get(tallies, id)).state.sum,
    codes: () => faults.map(({ what }) => what),
  };
}

describe('An entity', () => {
  test('is the fold of its stream, even if the stream is long', async () => {
    const { log, entities } = await started();
    for (let n = 0; n < 25; n += 1) await addInLog(log, 'a', ...Array.from({ length: 10 }, () => 1));
    const entity = await entities.get(tallies, 'a');
    assert.deepEqual(entity.state, { sum: 250, count: 250 });
    const [last] = await log.readStream(tallyStream('a'), { direction: 'backwards', limit: 1 });
    assert.deepEqual(
      [entity.revision, entity.position, entity.lastAt, entity.lastEventId],
      [249, last?.position, last?.occurredAt, last?.id],
    );
  });

  test('without events has the initial state, and takes no memory', async () => {
    const { entities } = await started();
    const { state, revision, position, lastAt, lastEventId } = await entities.get(tallies, 'a');
    assert.deepEqual(
      [state, revision, position, lastAt, lastEventId],
      [{ sum: 0, count: 0 }, 'none', LOG_START, null, null],
    );
    await entities.reload(tallies, 'a');
    assert.deepEqual(entities.residents(), { count: 0, sizeBytes: 0 });
  });

  test('that is in memory is there immediately, and one that is not when it was read', async () => {
    const { log, entities } = await started();
    await addInLog(log, 'a', 1);
    const reading = entities.get(tallies, 'a');
    assert.ok(reading instanceof Promise);
    assert.equal(entities.get(tallies, 'a') instanceof Promise, true);
    const read = await reading;
    assert.equal(entities.get(tallies, 'a'), read);
  });

  test('is read from the log once, even by many concurrent callers', async () => {
    const { log, sum } = await started();
    await addInLog(log, 'a', 1);
    const before = log.counts.reads;
    await Promise.all(Array.from({ length: 50 }, () => sum('a')));
    await sum('a');
    assert.equal(log.counts.reads - before, 1);
  });

  test('never has half of an append, even if one of the events takes long to complete', async () => {
    const between = gate();
    let completing = 0;
    const { log, entities, sum } = await started({
      complete: async (event) => {
        completing += 1;
        if (completing === 4) await between.passed;
        return event;
      },
    });
    await addInLog(log, 'a', 1);
    assert.equal(await sum('a'), 1);
    await addInLog(log, 'a', 10, 20, 30);
    while (completing < 4) await settle();
    assert.equal(await sum('a'), 1);
    between.open();
    await entities.barrier();
    assert.equal(await sum('a'), 61);
  });

  test('follows the log while it is in memory', async () => {
    const { log, sum } = await started();
    await addInLog(log, 'a', 1);
    assert.equal(await sum('a'), 1);
    const before = log.counts.reads;
    for (const n of [2, 3]) await addInLog(log, 'a', n);
    await settle();
    assert.equal(await sum('a'), 6);
    assert.equal(log.counts.reads - before, 2, "the test's own reads, none by the entities");
  });

  test('is read again after a failed read', async () => {
    const { log, sum } = await started();
    await addInLog(log, 'a', 1);
    log.on.read = () => {
      throw new Error('outage');
    };
    await assert.rejects(sum('a'), /outage/);
    log.on.read = undefined;
    assert.equal(await sum('a'), 1);
  });
});

describe('While an entity is read', () => {
  /**
   * Reads an entity; the log answers the read with its state before `change`, but only after `change` has run.
   */
  async function whileReading(change: (node: Awaited<ReturnType<typeof started>>) => Promise<void>) {
    const node = await started();
    await addInLog(node.log, 'a', 1);
    const answer = gate();
    node.log.on.read = () => answer.passed;
    const reading = node.sum('a');
    await settle();
    node.log.on.read = undefined;
    await change(node);
    answer.open();
    return { node, sum: await reading };
  }

  test('an event that the log delivers is in the result', async () => {
    const { node, sum } = await whileReading(async ({ log }) => {
      await addInLog(log, 'a', 2);
      await settle();
    });
    assert.equal(sum, 3);
    assert.equal(await node.sum('a'), 3);
  });

  test('a caller after a barrier shares the read and still gets all events before the barrier', async () => {
    const later: Promise<number>[] = [];
    await whileReading(async ({ log, entities, sum }) => {
      await addInLog(log, 'a', 2);
      await entities.barrier();
      later.push(sum('a'));
      await settle();
    });
    assert.deepEqual(await Promise.all(later), [3]);
  });

  test('an event that this node appends is in the result', async () => {
    const { sum } = await whileReading(async ({ log, entities }) => {
      log.on.deliver = () => new Promise(() => undefined);
      const events = [newEvent({ type: 'Added', data: { n: 2 } })];
      const result = await log.append({ stream: tallyStream('a'), expected: 0, events });
      assert.ok(result.outcome === 'appended');
      entities.observe(tallyStream('a'), 1, result.position, events);
    });
    assert.equal(sum, 3);
  });

  test('a later read that ends first is not overwritten by the earlier one', async () => {
    const { node, sum } = await whileReading(async ({ log, entities }) => {
      log.on.deliver = () => new Promise(() => undefined);
      await addInLog(log, 'a', 2);
      assert.equal((await entities.reload(tallies, 'a')).state.sum, 3);
    });
    assert.equal(await node.sum('a'), 3);
    assert.equal(sum, 3, 'and the earlier read returns the newer state');
  });

  test('a log that does not return an event it has delivered is an outage, not an old result', async () => {
    const node = await started();
    await addInLog(node.log, 'a', 1);
    const page = await node.log.readStream(tallyStream('a'), { direction: 'forwards', limit: 10 });
    const answer = gate();
    node.log.on.read = () => answer.passed;
    const reading = node.sum('a');
    await settle();
    // A replica that is behind: it keeps returning the old page.
    const lagging = { ...node.log, readStream: async () => page };
    await addInLog(lagging, 'a', 2);
    await settle();
    node.log.exchange(lagging);
    node.log.on.read = undefined;
    answer.open();
    await assert.rejects(reading, { code: 'log-unavailable' });
  });
});

describe('A barrier', () => {
  test('waits until this node has applied what others appended before the call', async () => {
    const { log, entities, sum } = await started();
    await addInLog(log, 'a', 1);
    await entities.barrier();
    assert.equal(await sum('a'), 1);
    const delivery = gate();
    log.on.deliver = () => delivery.passed;
    await addInLog(log, 'a', 2);
    let passed = false;
    const barrier = entities.barrier().then(() => {
      passed = true;
    });
    await settle();
    assert.equal(passed, false);
    assert.equal(await sum('a'), 1, 'without a barrier memory may be behind');
    delivery.open();
    await barrier;
    assert.equal(await sum('a'), 3);
  });

  test('waits for all of these events, even if they arrive in several batches', async () => {
    const { log, entities, sum } = await started();
    const deliveries = [gate(), gate()];
    let batch = 0;
    log.on.deliver = () => deliveries[batch++]?.passed;
    await addInLog(log, 'a', 1);
    await settle();
    await addInLog(log, 'a', 2);
    let passed = false;
    const barrier = entities.barrier().then(() => {
      passed = true;
    });
    await settle();
    deliveries[0]?.open();
    await settle();
    assert.equal(passed, false);
    deliveries[1]?.open();
    await barrier;
    assert.equal(await sum('a'), 3);
  });

  test('returns the position that it waited for, which this node has applied', async () => {
    const { log, entities } = await started();
    await addInLog(log, 'a', 1, 2, 3);
    const position = await entities.barrier();
    assert.equal(position, await log.head());
    assert.ok(entities.appliedPosition() >= position);
  });

  test('is shared: a thousand concurrent calls read the head at most twice', async () => {
    const { log, entities } = await started();
    const { heads } = log.counts;
    await Promise.all(Array.from({ length: 1_000 }, () => entities.barrier()));
    assert.ok(log.counts.heads - heads <= 2, `${log.counts.heads - heads} reads of the head`);
  });

  test('never uses a head that was read before the call', async () => {
    const { log, entities, sum } = await started();
    await addInLog(log, 'a', 1);
    await entities.barrier();
    await sum('a');
    const answer = gate();
    log.on.headTaken = () => answer.passed;
    const early = entities.barrier();
    await settle();
    const delivery = gate();
    log.on.deliver = () => delivery.passed;
    await addInLog(log, 'a', 2);
    let passed = false;
    const late = entities.barrier().then(() => {
      passed = true;
    });
    log.on.headTaken = undefined;
    answer.open();
    await early;
    await settle();
    assert.equal(passed, false);
    delivery.open();
    await late;
    assert.equal(await sum('a'), 3);
  });

  test('fails while the log is down, and succeeds after', async () => {
    const { log, entities } = await started();
    log.on.head = () => {
      throw new Error('outage');
    };
    await assert.rejects(entities.barrier(), /outage/);
    log.on.head = undefined;
    await entities.barrier();
  });

  test('fails immediately when the node closes, whether called before or after', async () => {
    const { log, entities } = await started();
    log.on.deliver = () => new Promise(() => undefined);
    await addInLog(log, 'a', 1);
    const waiting = assert.rejects(entities.barrier(), { code: 'log-unavailable' });
    await settle();
    void entities.close();
    await waiting;
    await assert.rejects(entities.barrier(), { code: 'log-unavailable' });
  });
});

describe('An event that this node appended', () => {
  async function ownAppend() {
    const node = await started();
    await addInLog(node.log, 'a', 1);
    await node.entities.barrier();
    await node.sum('a');
    const delivery = gate();
    node.log.on.deliver = () => delivery.passed;
    const events = [2, 3].map((n) => newEvent({ type: 'Added', data: { n } }));
    const result = await node.log.append({ stream: tallyStream('a'), expected: 0, events });
    assert.ok(result.outcome === 'appended');
    const observe = () => node.entities.observe(tallyStream('a'), 1, result.position, events);
    return { ...node, delivery, observe };
  }

  test('is in memory before the log delivers it, and is folded once', async () => {
    const { entities, sum, delivery, observe, codes } = await ownAppend();
    observe();
    assert.equal(await sum('a'), 6);
    delivery.open();
    await entities.barrier();
    assert.equal(await sum('a'), 6);
    assert.deepEqual([entities.residents().count, codes()], [1, []]);
  });

  test('is folded once if the log delivers it first', async () => {
    const { entities, sum, delivery, observe, codes } = await ownAppend();
    delivery.open();
    await entities.barrier();
    observe();
    assert.equal(await sum('a'), 6);
    assert.equal((await entities.get(tallies, 'a')).revision, 2);
    assert.deepEqual([entities.residents().count, codes()], [1, []]);
  });

  test('after a gap in revisions drops the entity, which is then read again', async () => {
    const { log, entities, sum, codes } = await started();
    await addInLog(log, 'a', 1);
    await entities.barrier();
    await sum('a');
    log.on.deliver = () => new Promise(() => undefined);
    await addInLog(log, 'a', 2);
    await addInLog(log, 'a', 3);
    entities.observe(tallyStream('a'), 2, await log.head(), [newEvent({ type: 'Added', data: { n: 3 } })]);
    assert.equal(entities.residents().count, 0);
    assert.deepEqual(codes(), []);
    assert.equal(await sum('a'), 6);
  });

  test('does not fail its writer when it cannot be folded', async () => {
    const { log, entities, sum, codes } = await started();
    await addInLog(log, 'a', 1);
    await sum('a');
    entities.observe(tallyStream('a'), 1, await log.head(), [newEvent({ type: 'Spoilt', data: {} })]);
    assert.deepEqual(codes(), ['entity']);
    assert.equal(entities.residents().count, 0);
  });
});

describe('A reload', () => {
  test('returns what the log has, even if it was not delivered yet', async () => {
    const { log, entities, sum } = await started();
    await addInLog(log, 'a', 1);
    await entities.barrier();
    await sum('a');
    log.on.deliver = () => new Promise(() => undefined);
    await addInLog(log, 'a', 2);
    assert.equal((await entities.reload(tallies, 'a')).state.sum, 3);
    assert.equal(await sum('a'), 3, 'and memory has it from then on');
  });

  test('continues from the entity in memory', async () => {
    const { log, entities } = await started();
    for (let n = 0; n < 5; n += 1) await addInLog(log, 'a', ...Array.from({ length: 100 }, () => 1));
    await entities.get(tallies, 'a');
    const before = log.counts.reads;
    assert.equal((await entities.reload(tallies, 'a')).state.sum, 500);
    assert.equal(log.counts.reads - before, 1);
  });

  test('that races with the delivery of the same events folds them once', async () => {
    const { log, entities, sum } = await started();
    await addInLog(log, 'a', 1);
    await entities.barrier();
    await sum('a');
    const answer = gate();
    log.on.read = () => answer.passed;
    await log.append({ stream: tallyStream('a'), expected: 0, events: [newEvent({ type: 'Added', data: { n: 2 } })] });
    const reloads = [entities.reload(tallies, 'a'), entities.reload(tallies, 'a')];
    await entities.barrier();
    answer.open();
    for (const { state } of await Promise.all(reloads)) assert.deepEqual(state, { sum: 3, count: 2 });
    assert.equal(await sum('a'), 3);
  });

  test('of an entity that was dropped in between returns the right state, and the cache size stays right', async () => {
    const { log, entities, sum } = await started({ cacheSizeBytesMax: 5_000 });
    await addInLog(log, 'a', 1);
    await sum('a');
    const each = entities.residents().sizeBytes;
    const answer = gate();
    log.on.read = () => answer.passed;
    await log.append({ stream: tallyStream('a'), expected: 0, events: [newEvent({ type: 'Added', data: { n: 2 } })] });
    const reload = entities.reload(tallies, 'a');
    await settle();
    log.on.read = undefined;
    for (const id of ['b', 'c']) {
      await addInLog(log, id, 1);
      await sum(id);
    }
    assert.equal(entities.residents().sizeBytes, 2 * each, 'a is gone');
    answer.open();
    assert.equal((await reload).state.sum, 3);
    assert.deepEqual(
      entities.residents(),
      { count: 2, sizeBytes: 2 * each + BYTES_PER_EVENT },
      'a with two events, and c',
    );
    assert.equal(await sum('a'), 3);
  });
});

describe('The memory of entities', () => {
  test('is bounded, and entities that were not requested again are dropped first', async () => {
    const { log, entities, sum } = await started({ cacheSizeBytesMax: 7_000 });
    for (const id of ['a', 'b', 'c', 'd']) await addInLog(log, id, 1);
    await entities.barrier();
    for (const id of ['a', 'b', 'c']) await sum(id);
    assert.deepEqual(entities.residents(), { count: 3, sizeBytes: 6_000 });
    await sum('a');
    await sum('d');
    assert.equal(entities.residents().count, 3);
    const { reads } = log.counts;
    for (const id of ['a', 'c', 'd']) await sum(id);
    assert.equal(log.counts.reads, reads, 'b was dropped');
    await sum('b');
    assert.equal(log.counts.reads, reads + 1);
  });

  test('keeps the newest entity, even if all others were requested again', async () => {
    const { log, entities, sum } = await started({ cacheSizeBytesMax: 7_000 });
    for (const id of ['a', 'b', 'c', 'd']) await addInLog(log, id, 1);
    await entities.barrier();
    for (const id of ['a', 'b', 'c', 'a', 'b', 'c', 'd']) await sum(id);
    assert.equal(entities.residents().count, 3);
    const { reads } = log.counts;
    for (const id of ['b', 'c', 'd']) await sum(id);
    assert.equal(log.counts.reads, reads, 'a was dropped');
  });

  test('stays bounded when entities grow by new events', async () => {
    const { log, entities, sum } = await started({ cacheSizeBytesMax: 7_000 });
    for (const id of ['a', 'b', 'c']) await addInLog(log, id, 1);
    for (const id of ['a', 'b', 'c']) await sum(id);
    for (let n = 0; n < 2; n += 1) await addInLog(log, 'c', 1);
    await entities.barrier();
    assert.deepEqual(entities.residents(), { count: 2, sizeBytes: 6_000 });
    assert.equal(await sum('c'), 3);
  });

  test('does not keep an entity that gets events but is not requested again', async () => {
    const { log, entities, sum } = await started({ cacheSizeBytesMax: 7_000 });
    for (const id of ['a', 'b', 'c']) await addInLog(log, id, 1);
    for (const id of ['a', 'b', 'c']) await sum(id);
    for (let n = 0; n < 2; n += 1) await addInLog(log, 'a', 1);
    await entities.barrier();
    assert.deepEqual(entities.residents(), { count: 2, sizeBytes: 4_000 });
    const { reads } = log.counts;
    for (const id of ['b', 'c']) await sum(id);
    assert.equal(log.counts.reads, reads, 'a was dropped');
  });

  test('holds one large entity beside the bound, which smaller ones do not evict while they come and go', async () => {
    const { log, entities, sum } = await started({ cacheSizeBytesMax: 4_000 });
    await addInLog(log, 'large', ...Array.from({ length: 10 }, () => 1));
    await sum('large');
    for (const id of ['a', 'b', 'c']) {
      await addInLog(log, id, 1);
      await sum(id);
    }
    assert.deepEqual(entities.residents(), { count: 3, sizeBytes: 11_000 + 4_000 });
    const { reads } = log.counts;
    assert.equal(await sum('large'), 10);
    assert.equal(log.counts.reads, reads);
    await addInLog(log, 'large', 1);
    await entities.barrier();
    const delivered = log.counts.reads;
    assert.equal(await sum('large'), 11, 'it follows the log');
    assert.equal(log.counts.reads, delivered);
  });

  test('holds the large entity that was requested last, and no second one', async () => {
    const { log, entities, sum } = await started({ cacheSizeBytesMax: 3_000 });
    for (const id of ['first', 'second']) await addInLog(log, id, ...Array.from({ length: 10 }, () => 1));
    await sum('first');
    await sum('second');
    assert.deepEqual(entities.residents(), { count: 1, sizeBytes: 11_000 });
    const { reads } = log.counts;
    await sum('second');
    assert.equal(log.counts.reads, reads);
  });

  test('holds an entity that grows large, and counts it once', async () => {
    const { log, entities, sum } = await started({ cacheSizeBytesMax: 7_000 });
    for (const id of ['a', 'b']) await addInLog(log, id, 1);
    for (const id of ['a', 'b']) await sum(id);
    for (let n = 0; n < 4; n += 1) await addInLog(log, 'b', 1);
    await entities.barrier();
    assert.deepEqual(entities.residents(), { count: 2, sizeBytes: 2_000 + 6_000 });
  });

  test('holds no stream that was not requested', async () => {
    const { log, entities } = await started();
    for (let n = 0; n < 20; n += 1) await addInLog(log, `tally${n}`, 1);
    await entities.barrier();
    assert.equal(entities.residents().count, 0);
  });
});

describe('An event that cannot be folded', () => {
  test('fails reads of its own stream with the reason, and no others', async () => {
    const { log, entities, sum, codes } = await started();
    await addInLog(log, 'a', 1);
    await addInLog(log, 'b', 1);
    await sum('a');
    await sum('b');
    await appendInLog(log, 'a', [{ type: 'Unheard', data: {} }]);
    await addInLog(log, 'b', 2);
    await entities.barrier();
    assert.equal(await sum('b'), 3);
    await assert.rejects(sum('a'), { code: 'unknown-event' });
    assert.deepEqual(codes(), ['entity']);
    assert.equal(log.counts.subscriptions, 1);
  });

  test('because its parts cannot be read drops the entity until they can', async () => {
    let broken = false;
    const { log, entities, sum, codes } = await started({
      complete: async (event) => {
        if (broken) throw new Error('outage');
        return event;
      },
    });
    await addInLog(log, 'a', 1);
    await sum('a');
    broken = true;
    await addInLog(log, 'a', 2);
    await entities.barrier();
    assert.deepEqual(codes(), ['entity']);
    await assert.rejects(sum('a'), /outage/);
    broken = false;
    assert.equal(await sum('a'), 3);
  });
});
