/** The verification in the background: what it finds, and at which pace it goes on. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeEach, describe, test } from 'vitest';
import { digest } from '../../../../adapters/node/digest.ts';
import { accounts } from '../../../../core/account/evolve.ts';
import { categoryOf, LOG_START, type RecordedEvent } from '../../../../core/kernel/envelope.ts';
import type { AccountId } from '../../../../core/kernel/ids.ts';
import { singleChunk } from '../../../../core/kernel/single-chunk.ts';
import { type EventStore, EventStoreError } from '../../../../core/ports/event-store.ts';
import { LayerStoreError } from '../../../../core/ports/layer-store.ts';
import type { Layer } from '../../../../core/repository/layer.ts';
import { recordErasure } from '../../../../core/use-cases/erasing/erasure-records.ts';
import {
  createVerification,
  type VerificationContext,
  verifyOnce,
} from '../../../../core/use-cases/verifying/verify-in-background.ts';
import { newAccount } from '../../../support/accounts.ts';
import { type GitReading, startGitReading } from '../../../support/git-reading.ts';
import { layersIn } from '../../../support/layers-in.ts';
import { keepLog } from '../../../support/log.ts';
import { createMemoryAccountLog } from '../../../support/memory/account-log.ts';
import { createMemoryCheckpoints } from '../../../support/memory/log-keys.ts';
import { createMemoryWalks } from '../../../support/memory/verification-walks.ts';

const NEVER = new AbortController().signal;
const DAY_MS = 24 * 60 * 60_000;

/** The log as somebody has changed it; null takes the event out. */
function changed(events: EventStore, change: (event: RecordedEvent) => RecordedEvent | null): EventStore {
  const after = (page: readonly RecordedEvent[]) => page.flatMap((event) => change(event) ?? []);
  return {
    ...events,
    readAll: async (position, limit) => after(await events.readAll(position, limit)),
    readStream: async (stream, options) => after(await events.readStream(stream, options)),
  };
}

describe('The verification', () => {
  const started: GitReading[] = [];
  let reading: GitReading;
  let ada: AccountId;

  beforeEach(async () => {
    reading = await startGitReading();
    started.push(reading);
    ada = reading.account;
    await newAccount(reading.node, 'bob');
    for (const name of ['a', 'b']) {
      await reading.push({ 'refs/heads/main': reading.git.commit({ [name]: randomBytes(300) }) });
    }
  });
  afterAll(() => Promise.all(started.map((one) => one.close())));

  async function layers(): Promise<readonly Layer[]> {
    return [...(await reading.current()).entity.state.layers];
  }

  function start(events = reading.node.events) {
    const { node, database } = reading;
    const log = keepLog();
    const walks = createMemoryWalks();
    const counted = { faults: 0 };
    const paused: number[] = [];
    const { clock } = node;
    const readModels = createMemoryAccountLog({ events: node.events, digest });
    const store = database.layers;
    const context: VerificationContext & { readonly computedMs: () => number } = {
      ...{ ...node, events, readModels, walks, log, layers: layersIn(store) },
      checkpoints: createMemoryCheckpoints({ readModels, digest, clock, store }),
      computedMs: () => 0,
      pause: async (ms) => {
        paused.push(ms);
        clock.advance(ms);
      },
      onFault: () => void (counted.faults += 1),
    };
    return { context, clock, log, walks, counted, paused, once: () => verifyOnce(context, NEVER) };
  }

  /** What a whole round tells, which is one line and one count for each account. */
  async function told(events?: EventStore) {
    const { log, counted, once } = start(events);
    const found = await once();
    assert.deepEqual(
      log.lines.map(({ level, fields }) => [level, fields]),
      found.map((one) => ['error', one]),
    );
    assert.equal(counted.faults, found.length);
    return found;
  }

  async function isTold(events: EventStore | undefined, fault: RegExp): Promise<void> {
    const [one, ...more] = await told(events);
    assert.deepEqual([one?.account, more], [ada, []]);
    assert.match(one?.fault ?? '', fault);
  }

  const isPush = ({ type }: RecordedEvent): boolean => type === 'RefsUpdated';
  const bySomebodyElse = (event: RecordedEvent): RecordedEvent => ({
    ...event,
    actor: { kind: 'admin', id: 'somebody else' },
  });

  test('finds no fault in what is as it was written, and says since when all is verified', async () => {
    const { once, walks, context } = start();
    const before = context.clock.now();
    assert.deepEqual(await once(), []);
    for (const walk of ['week', 'month'] as const) assert.equal(walks.progress.get(walk)?.wholeSince, before);
  });

  test('tells one line and one count of an account, however many of its events were changed', async () => {
    const altered = changed(reading.node.events, (event) => (isPush(event) ? bySomebodyElse(event) : event));
    await isTold(altered, /^repository-.* revision \d+ \(event .*\) was changed after it was recorded$/);
  });

  test('finds an entry that was taken out, also the first and the last of its account', async () => {
    const { events } = reading.node;
    const isOfAda = ({ accountId, isRecord }: RecordedEvent) => accountId === ada && isRecord;
    const entries = (await events.readAll(LOG_START, 1_000)).filter(isOfAda);
    for (const entry of [entries[0], entries[2], entries.at(-1)]) {
      const without = changed(events, (event) => (event.id === entry?.id ? null : event));
      const found = await told(without);
      const [{ account, fault } = assert.fail('no fault')] = found;
      assert.deepEqual([found.length, account], [1, ada]);
      assert.match(fault, /is not in the log any more|lacks|follows/);
    }
  });

  test('finds an entry that was inserted', async () => {
    const twice = changed(reading.node.events, (event) => event);
    const inserted: EventStore = {
      ...twice,
      readAll: async (after, limit) => {
        const page = await twice.readAll(after, limit);
        return page.map((event) =>
          isPush(event) ? { ...event, id: event.id.replace(/^./, 'f') as typeof event.id } : event,
        );
      },
    };
    await isTold(inserted, /is not an entry that the log of account .* got: it was moved or inserted$/);
  });

  test('finds a row that holds no event any more, and goes on behind it', async () => {
    await reading.push({ 'refs/heads/main': reading.git.commit({ c: 'c' }) });
    const pushes = (await reading.node.events.readAll(LOG_START, 1_000)).filter(isPush);
    const [bad = assert.fail('no push'), later, last] = pushes;
    assert.ok(last !== undefined, 'the last entry of an account is looked at by itself');
    const altered = changed(reading.node.events, (event) => (event.id === later?.id ? bySomebodyElse(event) : event));
    const broken: EventStore = {
      ...altered,
      readAll: async (after, limit) => {
        const page = await altered.readAll(after, limit);
        if (page.every(({ id }) => id !== bad.id)) return page;
        throw new EventStoreError('event-unreadable', 'This row holds no event', { unreadableAt: bad.position });
      },
    };
    const [first, second, ...more] = await told(broken);
    assert.deepEqual(first, { account: null, fault: 'This row holds no event' });
    assert.deepEqual([second?.account, more], [ada, []]);
    assert.match(second?.fault ?? '', /was changed after it was recorded$/);
  });

  test('tells a stream that cannot be read, and goes on to its end', async () => {
    const { events } = reading.node;
    const broken: EventStore = {
      ...events,
      readStream: async (stream, options) => {
        if (categoryOf(stream) !== 'repository') return events.readStream(stream, options);
        throw new EventStoreError('event-unreadable', 'This row holds no event');
      },
    };
    const { walks, context } = start(broken);
    const [found, ...more] = await verifyOnce(context, NEVER);
    assert.deepEqual([found?.account, more], [ada, []]);
    assert.match(found?.fault ?? '', /This row holds no event$/);
    assert.equal(walks.progress.size, 2, 'both rounds are whole');
  });

  test('finds what the log loses after a page of it was read and before the cursor was saved', async () => {
    const { events } = reading.node;
    const isOfAda = ({ accountId, isRecord }: RecordedEvent) => accountId === ada && isRecord;
    const entries = (await events.readAll(LOG_START, 1_000)).filter(isOfAda);
    for (const [lost, isLast] of [
      [entries.at(-1), true],
      [entries.at(-3), false],
    ] as const) {
      let isRead = false;
      const losing = changed(events, (event) => (isRead && event.id === lost?.id ? null : event));
      const { context, clock, log } = start({
        ...losing,
        readAll: async (after, limit) => {
          const page = await losing.readAll(after, limit);
          isRead = true;
          return page;
        },
      });
      const verification = createVerification(context, 'this');
      await verification.run(NEVER);
      assert.equal(log.lines.length, isLast ? 1 : 0);
      clock.advance(5 * DAY_MS);
      await verification.run(NEVER);
      assert.match(JSON.stringify(log.lines.at(-1)?.fields), /is not in the log any more/);
    }
  });

  test('finds a checkpoint that the log contradicts, and one that somebody overwrote', async () => {
    const { node, database } = reading;
    const { layers: store } = database;
    const other = changed(node.events, bySomebodyElse);
    const readModels = createMemoryAccountLog({ events: other, digest });
    const checkpoints = createMemoryCheckpoints({ readModels, digest, clock: node.clock, store });
    await checkpoints.sign(ada, await node.events.head());
    await isTold(undefined, /^The log of account .* was signed with \d+ entries, and has another root at that size$/);
    const [signed = assert.fail('no checkpoint')] = await Array.fromAsync(store.list('checkpoints/'));
    await store.delete(signed.key);
    await store.put(signed.key, singleChunk(randomBytes(100)), 100);
    await isTold(undefined, /^The checkpoint of .* cannot be read$/);
  });

  test('finds a layer that is lost or has another size within the week, and one with other bytes within the month', async () => {
    const store = reading.database.layers;
    const [layer = assert.fail('no layer')] = await layers();
    await store.delete(layer.key);
    await isTold(undefined, /^repository-.* names the layer .*, which is not there$/);
    await store.put(layer.key, singleChunk(randomBytes(10)), 10);
    await isTold(undefined, /which holds 10 bytes instead of \d+$/);
    await store.delete(layer.key);
    await store.put(layer.key, singleChunk(randomBytes(layer.sizeBytes)), layer.sizeBytes);
    await isTold(undefined, /which has the SHA-256 [0-9a-f]{64} instead of [0-9a-f]{64}$/);
  });

  test('finds no fault in a lost layer of an account that was erased after the log was saved', async () => {
    const store = reading.database.layers;
    for (const { key } of await layers()) await store.delete(key);
    await recordErasure(store, ada);
    assert.deepEqual(await told(), []);
  });

  test('takes a store that is away for an outage, and a bucket that is away for a matter of its owner', async () => {
    const { events } = reading.node;
    const head = () => Promise.reject(new LayerStoreError('layer-store-unavailable', 'The store is away'));
    const away = { ...reading.database.layers, head };
    await assert.rejects(verifyOnce({ ...start().context, layers: layersIn(away) }, NEVER), /The store is away/);
    const inBucket: EventStore = {
      ...events,
      readStream: async (stream, options) => {
        const page = await events.readStream(stream, options);
        return page.map((event) => {
          if (event.type !== 'RepositoryCreated') return event;
          return { ...event, data: { ...event.data, storage_bucket_id: randomUUID() } };
        });
      },
    };
    const { context } = start(inBucket);
    const stores = { ...layersIn(reading.database.layers), of: () => away };
    assert.deepEqual(await verifyOnce({ ...context, layers: stores }, NEVER), []);
  });

  test('finds a vault record that is lost', async () => {
    const { vault, entities } = reading.node;
    const { state } = await entities.get(accounts, ada);
    await vault.delete(ada, 'emailRef' in state ? state.emailRef : assert.fail('no address'));
    await isTold(undefined, /^The vault lacks the email of account/);
  });

  test('goes on where another process ended', async () => {
    const { context, walks } = start();
    const { events } = reading.node;
    const reads = { first: 0, second: 0 };
    const countingReads = (which: keyof typeof reads): EventStore => ({
      ...events,
      readAll: (after, limit) => {
        reads[which] += 1;
        return events.readAll(after, limit);
      },
    });
    const ending = new AbortController();
    const save: typeof walks.save = async (walk, process, progress) => {
      ending.abort();
      return walks.save(walk, process, progress);
    };
    const first = { ...context, events: countingReads('first'), walks: { ...walks, save } };
    await createVerification(first, 'first').run(ending.signal);
    assert.equal(walks.progress.get('week')?.cursor, 'accounts');
    walks.holders.clear();
    await createVerification({ ...context, events: countingReads('second') }, 'second').run(NEVER);
    for (const walk of ['week', 'month'] as const) assert.equal(walks.progress.get(walk)?.cursor, null);
    assert.deepEqual(reads, { first: 1, second: 0 }, 'the log was read once');
  });

  test('says since when all is verified: since the start of the first round until one was whole', async () => {
    const { context } = start();
    const ending = new AbortController();
    const begun = context.clock.now();
    const first = createVerification({ ...context, computedMs: counter(), pause: async () => ending.abort() }, 'first');
    await first.run(ending.signal);
    assert.deepEqual([first.wholeSince('week'), first.wholeSince('month')], [begun, null]);
  });

  test('begins a round five days after the one before, and that of the bytes after 25 days', async () => {
    const { context, clock } = start();
    const verification = createVerification(context, 'this');
    const begun = async (days: number) => {
      clock.advance(Math.round(days * DAY_MS));
      await verification.run(NEVER);
      return [verification.wholeSince('week'), verification.wholeSince('month')];
    };
    const [week, month] = await begun(0);
    assert.deepEqual(await begun(4.9), [week, month]);
    const [second, still] = await begun(0.1);
    assert.deepEqual([second !== week, still], [true, month]);
    assert.equal((await begun(19.9))[1], month);
    assert.notEqual((await begun(0.1))[1], month);
  });

  test('takes turns, so that the bytes of layers keep nothing else from being verified', async () => {
    const { context, walks } = start();
    let computedMs = 0;
    const saved: string[] = [];
    const save: typeof walks.save = async (walk, process, progress) => {
      const at = `${walk} ${progress.cursor}`;
      if (saved.at(-1) !== at) saved.push(at);
      return walks.save(walk, process, progress);
    };
    const slow = {
      ...context,
      walks: { ...walks, save },
      computedMs: () => {
        computedMs += 1_000;
        return computedMs;
      },
    };
    await createVerification(slow, 'this').run(NEVER);
    const first = saved.slice(0, 6).map((at) => at.split(' ')[0]);
    assert.deepEqual(first, ['week', 'month', 'week', 'month', 'week', 'month']);
  });

  test('goes on with one round where the other one meets an outage, and tells no fault', async () => {
    const { events } = reading.node;
    const away = async (): Promise<never> => {
      throw new EventStoreError('log-unavailable', 'The log is away');
    };
    const { context, walks, log } = start({ ...events, readAll: away });
    await assert.rejects(createVerification(context, 'this').run(NEVER), /The log is away/);
    assert.equal(walks.progress.get('week'), undefined);
    assert.equal(walks.progress.get('month')?.cursor, null);
    const inPart = start({ ...changed(events, bySomebodyElse), readStream: away });
    await assert.rejects(createVerification(inPart.context, 'this').run(NEVER), /The log is away/);
    assert.deepEqual([log.lines, inPart.log.lines], [[], []]);
  });

  test('leaves a walk to the process that holds it', async () => {
    const { context, clock, walks, log } = start(changed(reading.node.events, () => null));
    for (const walk of ['week', 'month'] as const) walks.holders.set(walk, 'another');
    const verification = createVerification(context, 'this');
    await verification.run(NEVER);
    assert.deepEqual([walks.progress.size, log.lines, verification.wholeSince('week')], [0, [], null]);
    const whole = { begunAt: clock.now(), cursor: 'accounts', wholeSince: clock.now() };
    walks.progress.set('week', whole);
    await verification.run(NEVER);
    assert.equal(verification.wholeSince('week'), whole.wholeSince, 'every worker shows the age');
    assert.deepEqual([walks.progress.get('week'), log.lines], [whole, []]);
  });

  test('reads at most a megabyte of the layers a second', async () => {
    await reading.push({ 'refs/heads/main': reading.git.commit({ large: randomBytes(3_000_000) }) });
    const { context, paused } = start();
    await createVerification(context, 'this').run(NEVER);
    const pausedMs = paused.reduce((sum, ms) => sum + ms, 0);
    assert.ok(pausedMs > 3_000 && pausedMs < 4_000, String(pausedMs));
  });

  test('takes one hundredth of a core at most', async () => {
    const { context, paused } = start();
    let computedMs = 0;
    const computing = {
      ...context,
      computedMs: () => {
        computedMs += 5;
        return computedMs;
      },
    };
    const walking = createVerification(computing, 'this');
    await walking.run(NEVER);
    assert.ok(paused.length > 5);
    assert.deepEqual([...new Set(paused)], [500]);
  });
});

/** One more millisecond at each call. */
function counter(): () => number {
  let at = 0;
  return () => {
    at += 1;
    return at;
  };
}
