/** When git is started for a push, with how much memory, and how much may arrive at the same time. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import {
  PUSHES_ARRIVING_ACCOUNT_BYTES_MAX,
  PUSHES_ARRIVING_BYTES_MAX,
  PUSHES_ARRIVING_FEW_BYTES,
  PUSHES_ARRIVING_KEPT_BYTES,
} from '../../../../adapters/git/object-database.ts';
import { createIncomingBytes, IncomingFullError } from '../../../../adapters/git/receiving/incoming-bytes.ts';
import {
  createPushMemory,
  PUSH_CPU_MS_MAX,
  PUSH_CPU_MS_PER_MIB,
  PUSH_CPU_SMALL_MS_MAX,
} from '../../../../adapters/git/receiving/push-memory.ts';
import { PUSH_MEMORY_BYTES_MAX } from '../../../../core/kernel/limits.ts';
import { filesBelow } from '../../../support/files-below.ts';
import { temporaryFolder, testRepository } from '../../../support/git.ts';
import { gitBelow, NO_PROC } from '../../../support/git-below.ts';
import { packOfLargeCommits, packOfZeros } from '../../../support/hostile-packs.ts';
import { type TestDatabase, testDatabase } from '../../../support/object-database.ts';
import { eventually } from '../../../support/processes.ts';
import { skippedFor } from '../../../support/skipped.ts';

const MIB = 1024 * 1024;
const folder = temporaryFolder('admission');
const repository = testRepository(join(folder.path, 'repository'));
let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase({
    incoming: { bytesMax: 6 * MIB, accountBytesMax: 6 * MIB, kept: { bytes: 0, accountBytesMax: 0 } },
  });
});
afterAll(async () => {
  await db.close();
  folder.remove();
});

/** A pack of this many bytes at least, with a commit. */
function packOf(bytes: number): Buffer {
  const noise = repository.object('blob', randomBytes(bytes));
  const tree = repository.tree([{ mode: '100644', name: 'noise', id: noise }]);
  const who = 'A <a@example.org> 1700000000 +0000';
  const commit = repository.object('commit', `tree ${tree}\nauthor ${who}\ncommitter ${who}\n\nx\n`);
  return repository.packOf([commit, tree, noise]);
}

/** Yields the start immediately, and the rest when it is told. */
function inTwo(pack: Uint8Array, startBytes: number, go: Promise<void>): AsyncIterable<Uint8Array> {
  return (async function* () {
    for (let at = 0; at < startBytes; at += 65_536) yield pack.subarray(at, Math.min(at + 65_536, startBytes));
    await go;
    yield pack.subarray(startBytes);
  })();
}

async function nothingLeft(): Promise<void> {
  assert.deepEqual(await filesBelow(join(db.directory, 'incoming')), []);
}

describe('a client that sends slowly', () => {
  test('has no process while it sends, and its pack is taken when it is whole', skippedFor(NO_PROC), async () => {
    const pack = packOf(900_000);
    const { promise: go, resolve } = Promise.withResolvers<void>();
    const receiving = db.receive(db.newObjects(), inTwo(pack, 500_000, go));
    await sleep(300);
    assert.deepEqual(gitBelow(process.pid), []);
    resolve();
    const received = await receiving;
    assert.ok(!('refused' in received));
    await received.discard();
    await nothingLeft();
  });

  test(
    'loses the process that it got while it was fast, and its pack is taken when it is whole',
    skippedFor(NO_PROC),
    async () => {
      const pack = packOf(4 * MIB);
      const { promise: go, resolve } = Promise.withResolvers<void>();
      const receiving = db.receive(db.newObjects(), inTwo(pack, 3 * MIB, go));
      await eventually('git has begun', () => gitBelow(process.pid).length === 1);
      await eventually('git waits no longer', () => gitBelow(process.pid).length === 0);
      resolve();
      const received = await receiving;
      assert.ok(!('refused' in received), JSON.stringify(received));
      await received.discard();
      await nothingLeft();
    },
  );

  test('that leaves then leaves nothing', async () => {
    const pack = packOf(900_000);
    const client = new AbortController();
    const { promise: go, reject } = Promise.withResolvers<void>();
    const receiving = db.receive(db.newObjects(), inTwo(pack, 500_000, go), { signal: client.signal });
    await sleep(100);
    client.abort(new Error('The client went away'));
    reject(new Error('aborted'));
    await assert.rejects(receiving, /The client went away/);
    await eventually('nothing is left', async () => (await filesBelow(join(db.directory, 'incoming'))).length === 0);
  });
});

describe('packs that arrive', () => {
  test('are refused when they would take more room than there is, and taken when there is room again', async () => {
    const pack = packOf(4 * MIB);
    const { promise: go, resolve } = Promise.withResolvers<void>();
    const first = db.receive(db.newObjects(), inTwo(pack, 3 * MIB, go));
    await sleep(200);
    const second = await db.receive(db.newObjects(), pack);
    assert.ok('refused' in second);
    assert.equal(second.refused, 'too-much-at-once');
    resolve();
    const received = await first;
    assert.ok(!('refused' in received), JSON.stringify(received));
    await received.discard();
    const third = await db.receive(db.newObjects(), pack);
    assert.ok(!('refused' in third));
    await third.discard();
    await nothingLeft();
  });

  test('are bounded for each account and for all, to the byte, and count until their push ends', () => {
    const incoming = createIncomingBytes({
      bytesMax: PUSHES_ARRIVING_BYTES_MAX,
      accountBytesMax: PUSHES_ARRIVING_ACCOUNT_BYTES_MAX,
      kept: { bytes: 0, accountBytesMax: 0 },
    });
    const [first, second, third] = [incoming.open('a'), incoming.open('b'), incoming.open('c')];
    first.add(PUSHES_ARRIVING_ACCOUNT_BYTES_MAX);
    assert.throws(() => incoming.open('a').add(1), IncomingFullError);
    second.add(PUSHES_ARRIVING_BYTES_MAX - PUSHES_ARRIVING_ACCOUNT_BYTES_MAX);
    assert.throws(() => third.add(1), IncomingFullError);
    first.release();
    first.release();
    third.add(PUSHES_ARRIVING_BYTES_MAX - PUSHES_ARRIVING_ACCOUNT_BYTES_MAX);
    assert.throws(() => incoming.open('d').add(1), IncomingFullError);
  });
});

describe('the room for packs that arrive', () => {
  // The attack: four packs just below 4 GiB, of two accounts, sent slowly, took all of it for hours.
  test('is not taken by two accounts: those with few bytes have the last of it', () => {
    const few = PUSHES_ARRIVING_FEW_BYTES;
    const incoming = createIncomingBytes({
      bytesMax: PUSHES_ARRIVING_BYTES_MAX,
      accountBytesMax: PUSHES_ARRIVING_ACCOUNT_BYTES_MAX,
      kept: { bytes: PUSHES_ARRIVING_KEPT_BYTES, accountBytesMax: few },
    });
    const [greedy, other] = [incoming.open('a'), incoming.open('b')];
    greedy.add(PUSHES_ARRIVING_ACCOUNT_BYTES_MAX);
    other.add(PUSHES_ARRIVING_BYTES_MAX - PUSHES_ARRIVING_ACCOUNT_BYTES_MAX - PUSHES_ARRIVING_KEPT_BYTES);
    assert.throws(() => other.add(1), IncomingFullError);
    const modest = Array.from({ length: PUSHES_ARRIVING_KEPT_BYTES / few }, (_, n) => incoming.open(`modest ${n}`));
    for (const push of modest) push.add(few);
    assert.throws(() => modest[0]?.add(1), IncomingFullError);
    assert.throws(() => incoming.open('g').add(1), IncomingFullError);
    modest[1]?.release();
    assert.throws(() => modest[0]?.add(1), IncomingFullError);
    incoming.open('g').add(few);
    greedy.release();
    other.add(1);
  });
});

describe('the memory of processes that check packs', () => {
  test('is left to others while a pack of 64 KB has all that one may have, and accounts take turns at that', async () => {
    for (const budget of [256 * MIB, PUSH_MEMORY_BYTES_MAX, 4_096 * MIB]) {
      const memory = createPushMemory(budget);
      const objects = 1_100;
      const hostile = await memory.largest(objects).slots.acquire('hostile');
      const others = ['a', 'b'].map((key) => memory.large(objects).slots.take(key));
      assert.ok(
        others.every((release) => release !== null),
        `${budget}`,
      );
      const order: string[] = [];
      const wait = async (key: string) => {
        const release = await memory.largest(objects).slots.acquire(key);
        order.push(key);
        release();
      };
      const waiting = [wait('hostile'), wait('hostile'), wait('c')];
      hostile();
      await Promise.all(waiting);
      assert.deepEqual(order, ['hostile', 'c', 'hostile']);
      for (const release of others) release?.();
    }
  });

  test('is never given out beyond the budget, and an account leaves some of it to others', () => {
    for (const budget of [256 * MIB, PUSH_MEMORY_BYTES_MAX, 4_096 * MIB]) {
      const memory = createPushMemory(budget);
      const takeAll = (keys: readonly string[], admission: 'small' | 'large') => {
        let bytes = 0;
        for (const key of keys) {
          const { slots, memoryBytesMax } = memory[admission](0);
          while (slots.take(key) !== null) bytes += memoryBytesMax;
        }
        return bytes;
      };
      const greedy = takeAll(['greedy'], 'small') + takeAll(['greedy'], 'large');
      assert.ok(greedy < budget * 0.75, `${greedy} of ${budget}`);
      assert.ok(memory.small(0).slots.take('modest') !== null);
      assert.ok(memory.large(0).slots.take('modest') !== null);
      const others = Array.from({ length: 200 }, (_, index) => `account ${index}`);
      const all = greedy + takeAll(others, 'small') + takeAll(others, 'large');
      assert.ok(all <= budget, `${all} of ${budget}`);
    }
  });

  test('is given for as much processor time as what was received is worth, and no more', () => {
    const memory = createPushMemory(PUSH_MEMORY_BYTES_MAX);
    assert.equal(memory.small(1).cpuMsMax(64 * 1024), PUSH_CPU_SMALL_MS_MAX + PUSH_CPU_MS_PER_MIB / 16);
    assert.equal(memory.large(1).cpuMsMax(0), PUSH_CPU_MS_MAX);
    assert.equal(memory.largest(1).cpuMsMax(1024 * MIB), PUSH_CPU_MS_MAX + 1024 * PUSH_CPU_MS_PER_MIB);
  });

  test(
    'is given back when a pack of 50 KB takes more processor time than it is worth',
    skippedFor(NO_PROC),
    async () => {
      const few = await testDatabase({ pushCpu: { smallMsMax: 500, msMax: 500, msPerMib: 500 } });
      try {
        const pack = packOfZeros(15 * MIB, 1_100);
        assert.ok(pack.length < 64 * 1024, `${pack.length} bytes`);
        const refused = await few.receive(few.newObjects(), pack);
        assert.ok('refused' in refused);
        assert.equal(refused.refused, 'pack-too-costly');
        assert.match(refused.detail, /^checking the pack took too much time; push fewer commits in one push/);
        assert.deepEqual(await filesBelow(join(few.directory, 'incoming')), []);
        const honest = await few.receive(few.newObjects(), packOf(2 * MIB));
        assert.ok(!('refused' in honest), JSON.stringify(honest));
        await honest.discard();
      } finally {
        await few.close();
      }
    },
  );

  test('holds a pack of some kilobytes that takes hundreds of megabytes, and others are taken in between', async () => {
    const { bytes } = packOfLargeCommits({ commits: 40, parents: 300_000 });
    assert.ok(bytes.length < 200_000, `${bytes.length}`);
    const hostile = db.receive(db.newObjects(), bytes);
    const pack = packOf(1_000);
    const ordinary = await db.receive(db.newObjects(), pack);
    assert.ok(!('refused' in ordinary));
    await ordinary.discard();
    const received = await hostile;
    assert.ok('refused' in received);
    assert.match(received.refused, /^pack-(too-costly|object-too-large)$/, received.detail);
    await nothingLeft();
  });
});
