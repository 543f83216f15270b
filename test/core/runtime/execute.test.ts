/** Load, decide, append: lost races, decisions on old state, guards. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { accept, type EventKinds, NEW_RECORD_V1 } from '../../../core/kernel/decider.ts';
import { type AccountId, timestamp, uuid } from '../../../core/kernel/ids.ts';
import { execute, type Guarding, RACES_MAX } from '../../../core/runtime/execute.ts';
import { newEvent } from '../../support/events.ts';
import { CAUSE, startNode } from '../../support/node.ts';
import { add, addInLog, addUpTo, appendInLog, type TallyEvent, tallies, tallyStream } from '../../support/tally.ts';
import { watchLog } from '../../support/watched-log.ts';

const account: AccountId = uuid('0190f3e2-7c1a-7b4e-9a35-00000000000a');

async function started() {
  const log = watchLog();
  const node = await startNode(log);
  /** Executes a decision; returns the sum after it, or the code of the refusal. */
  const run = async (decide: ReturnType<typeof add>, guarding?: Guarding) => {
    const about = { account, cause: CAUSE, ...(guarding === undefined ? {} : { guarding }) };
    const executed = await execute(node, tallies, 'a', about, decide);
    return 'refused' in executed ? executed.refused.code : executed.entity.state.sum;
  };
  const stored = async () => log.readStream(tallyStream('a'), { direction: 'forwards', limit: 1_000 });
  /** Makes the state in memory old: it has only the first event, and receives no more. */
  const stale = async (first: number, ...later: readonly number[]) => {
    await addInLog(log, 'a', first);
    await node.entities.barrier();
    await node.entities.get(tallies, 'a');
    log.on.deliver = () => new Promise(() => undefined);
    for (const n of later) await addInLog(log, 'a', n);
  };
  return { log, node, run, stored, stale };
}

describe('A decision', () => {
  test('is appended in an envelope with actor, time and cause, in the current version', async () => {
    const { run, stored, node } = await started();
    assert.equal(await run(add(5)), 5);
    const [event] = await stored();
    assert.deepEqual(
      { ...event, id: null },
      {
        ...{ id: null, stream: tallyStream('a'), revision: 0, position: 1n, type: 'Added', version: 1 },
        ...{ appendIndex: 0, appendCount: 1, isRecord: true },
        ...{ accountId: account, occurredAt: node.clock.now(), data: { n: 5 }, ...CAUSE },
      },
    );
  });

  test('is appended in an older version, and read back, while the newest one is not written yet', async () => {
    const { log, node, stored } = await started();
    const kinds: EventKinds<TallyEvent> = {
      ...tallies.kinds,
      Added: {
        version: 3,
        record: true,
        upcasters: [({ text }) => ({ n: Number(text) / 2 }), ({ n }) => ({ n: Number(n) * 2 })],
        downcasters: [({ n }) => ({ n: Number(n) / 2 }), ({ n }) => ({ text: String(Number(n) * 2) })],
      },
    };
    const newer = { ...tallies, kinds };
    let writtenMax = 1;
    const written = { versionOf: (type: string) => (type === 'Added' ? writtenMax : 0) };
    const run = () => execute({ ...node, written }, newer, 'a', { account, cause: CAUSE }, add(6));
    for (writtenMax = 1; writtenMax <= 4; writtenMax += 1) {
      const executed = await run();
      assert.ok('entity' in executed);
      assert.equal(executed.entity.state.sum, 6 * writtenMax);
    }
    assert.deepEqual(
      (await stored()).map(({ version, data }) => ({ version, data })),
      [
        { version: 1, data: { text: '6' } },
        { version: 2, data: { n: 3 } },
        { version: 3, data: { n: 6 } },
        { version: 3, data: { n: 6 } },
      ],
    );
    writtenMax = 0;
    await assert.rejects(run(), /Added is not written in version 0 any more/);
    assert.equal(log.counts.appends, 4);
  });

  test('with an event of a new type is refused whole while a program may run that does not know it', async () => {
    const { log, node } = await started();
    const newer = { ...tallies, kinds: { ...tallies.kinds, Added: NEW_RECORD_V1 } };
    let version = 0;
    const written = { versionOf: (type: string) => (type === 'Added' ? version : 1) };
    const run = async (decide: ReturnType<typeof add>) => {
      const executed = await execute({ ...node, written }, newer, 'a', { account, cause: CAUSE }, decide);
      return 'refused' in executed ? executed.refused.code : executed.entity.state.sum;
    };
    const both: readonly TallyEvent[] = [
      { type: 'Spoilt', data: {} },
      { type: 'Added', data: { n: 1 } },
    ];
    assert.equal(await run(add(5)), 'upgrade-not-finished');
    assert.equal(await run(() => ({ events: both })), 'upgrade-not-finished');
    assert.equal(await run(addUpTo(1, 2)), 'email-taken', 'what is refused for another reason says that one');
    assert.equal(await run(() => accept<TallyEvent>()), 0);
    assert.equal(log.counts.appends, 0);
    version = 1;
    assert.equal(await run(add(5)), 5);
  });

  test('is in memory immediately, and returns the state right after it', async () => {
    const { log, node, run } = await started();
    await run(add(1));
    await node.entities.get(tallies, 'a');
    log.on.deliver = () => new Promise(() => undefined);
    // Another node appends between this append and its answer.
    log.on.appended = async () => {
      log.on.appended = undefined;
      await addInLog(log, 'a', 100);
    };
    assert.equal(await run(add(2)), 3);
    assert.equal((await node.entities.get(tallies, 'a')).state.sum, 3);
    assert.equal(log.counts.reads, 3, 'two loads and the read of the test, none after an append');
  });

  test('of several events is one append', async () => {
    const { log, run, stored } = await started();
    const both: readonly TallyEvent[] = [
      { type: 'Added', data: { n: 1 } },
      { type: 'Added', data: { n: 2 } },
    ];
    assert.equal(await run(() => ({ events: both })), 3);
    assert.equal(log.counts.appends, 1);
    assert.equal((await stored()).length, 2);
  });

  test('is never earlier than the event before it, even if the clock goes back', async () => {
    const { node, run, stored } = await started();
    await run(add(1));
    node.clock.set(timestamp('2020-01-01T00:00:00.000Z'));
    await run(add(2));
    const [first, second] = await stored();
    assert.equal(second?.occurredAt, first?.occurredAt);
  });

  test('whose outcome is unknown throws', async () => {
    const { log, run } = await started();
    log.on.appended = () => {
      throw new Error('the answer was lost');
    };
    await assert.rejects(run(add(1)), /the answer was lost/);
  });
});

describe('A lost race', () => {
  test('is decided again from the new state', async () => {
    const { run, stale, stored } = await started();
    await stale(1, 2, 3);
    assert.equal(await run(add(10)), 16);
    assert.equal((await stored()).length, 4);
  });

  test('may end in a refusal', async () => {
    const { run, stale } = await started();
    await stale(1, 2, 3);
    assert.equal(await run(addUpTo(10, 5)), 'email-taken');
  });

  test('among many concurrent callers leaves each decision appended once', async () => {
    const { run, stored } = await started();
    const results = await Promise.all(Array.from({ length: 30 }, () => run(addUpTo(20, 1))));
    assert.equal(results.filter((result) => result === 'email-taken').length, 10);
    assert.deepEqual(
      results.filter((result) => typeof result === 'number').sort((a, b) => a - b),
      Array.from({ length: 20 }, (_, n) => n + 1),
    );
    assert.equal((await stored()).length, 20);
  });

  test('is the last of as many in a row as the limit; with one fewer, the decision is appended', async () => {
    for (const races of [RACES_MAX - 1, RACES_MAX]) {
      const { log, run } = await started();
      let left = races;
      const win: typeof log.on.append = async (request) => {
        if (request.events[0]?.requestId !== CAUSE.requestId || left === 0) return;
        left -= 1;
        log.on.append = undefined;
        await appendInLog(log, 'a', [{ type: 'Added', data: { n: 1 } }]);
        log.on.append = win;
      };
      log.on.append = win;
      if (races < RACES_MAX) assert.equal(await run(add(1)), races + 1);
      else await assert.rejects(run(add(1)), /100 lost races on tally-a/);
    }
  });
});

describe('The state in memory', () => {
  test('does not refuse a decision before the log is read', async () => {
    const { run, stale } = await started();
    await stale(20, -15);
    assert.equal(await run(addUpTo(10, 1)), 6);
  });

  test('does not make a decision without events final before the log is read', async () => {
    const { run, stale, stored } = await started();
    await stale(1, 5);
    const becomeOne = ({ sum }: { readonly sum: number }) =>
      sum === 1 ? accept<TallyEvent>() : accept<TallyEvent>({ type: 'Added', data: { n: 1 - sum } });
    assert.equal(await run(becomeOne), 1);
    assert.equal((await stored()).length, 3);
  });

  test('decides if it is what the log has', async () => {
    const { log, run, stored } = await started();
    await addInLog(log, 'a', 3);
    assert.equal(await run(() => accept<TallyEvent>()), 3);
    assert.equal(await run(addUpTo(2, 1)), 'email-taken');
    assert.equal((await stored()).length, 1);
  });
});

describe('A guard', () => {
  const guardOn = (id: string, revision: number) => ({ stream: tallyStream(id), revision });

  test('that holds lets the append commit, and is made again after a lost race', async () => {
    const { log, run } = await started();
    await addInLog(log, 'guard', 1, 1);
    let calls = 0;
    const guarding: Guarding = async () => ({ guards: [guardOn('guard', calls++)] });
    assert.equal(await run(add(1), guarding), 1);
    assert.equal(calls, 2, 'revision 0 lost, revision 1 held');
  });

  test('that no longer holds refuses, and nothing is appended', async () => {
    const { log, run, stored } = await started();
    await addInLog(log, 'guard', 1);
    let first = true;
    const guarding: Guarding = async () => {
      if (!first) return { refused: { code: 'token-no-longer-valid' } };
      first = false;
      // The guarded stream changes between this call and the append.
      log.on.append = async () => {
        log.on.append = undefined;
        await log.append({ stream: tallyStream('guard'), expected: 0, events: [newEvent()] });
      };
      return { guards: [guardOn('guard', 0)] };
    };
    assert.equal(await run(add(1), guarding), 'token-no-longer-valid');
    assert.equal((await stored()).length, 0);
  });

  test('on the stream that is appended to is checked at the expected revision', async () => {
    const { log, run } = await started();
    await addInLog(log, 'a', 1);
    const guarding: Guarding = async () => ({ guards: [guardOn('a', 0)] });
    assert.equal(await run(add(1), guarding), 2);
  });
});
