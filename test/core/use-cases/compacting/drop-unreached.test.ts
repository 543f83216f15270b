/** Compactions of a repository of the real git that drop what no ref has reached within the retention. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { RETENTION_MS_MIN } from '../../../../apps/server/settings.ts';
import { refName } from '../../../../core/git/ref-name.ts';
import { LOG_START, type LogPosition } from '../../../../core/kernel/envelope.ts';
import { type ObjectId, plusMs } from '../../../../core/kernel/ids.ts';
import { PENDING_DELIVERY_KEPT_MS, PUSH_COMMIT_SPAN_MS } from '../../../../core/kernel/limits.ts';
import type { EventStore } from '../../../../core/ports/event-store.ts';
import type { FailpointName } from '../../../../core/ports/failpoints.ts';
import type { LayerDrops } from '../../../../core/ports/layer-drops.ts';
import type { LayersCompacted } from '../../../../core/repository/events.ts';
import { compactLayers } from '../../../../core/use-cases/compacting/compact-layers.ts';
import {
  DROPPING_RACES_MAX,
  DROPPING_TIPS_MAX,
  dropUnreached,
} from '../../../../core/use-cases/compacting/drop-unreached.ts';
import { changeRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import { newWebhook } from '../../../support/accounts.ts';
import {
  contextOf,
  deletedBranch,
  found,
  NEVER,
  ofRepository,
  pushPack,
  RETENTION_MS,
  stateOf,
} from '../../../support/deleted-branch.ts';
import type { GitReading } from '../../../support/git-reading.ts';
import { CAUSE } from '../../../support/node.ts';
import { putUncheckedLayer } from '../../../support/unchecked-layer.ts';

/** The keys of the layers in the store, whether an event names them or not. */
async function storedLayers({ database }: GitReading): Promise<readonly string[]> {
  return (await Array.fromAsync(database.layers.list('repositories/'), ({ key }) => String(key))).sort();
}

async function lastCompaction(reading: GitReading): Promise<LayersCompacted['data']> {
  const { entity } = await reading.current();
  const events = await reading.node.events.readStream(entity.stream, { direction: 'backwards', limit: 100 });
  const last = events.find(({ type }) => type === 'LayersCompacted');
  return (last?.data ?? assert.fail('no compaction')) as LayersCompacted['data'];
}

describe('A compaction that drops', () => {
  test('removes what no ref has reached within the retention, and the size that counts falls', async (context) => {
    const { reading, main, gone, drop } = await deletedBranch(context);
    assert.deepEqual(await found(reading, [main, gone]), [true, true]);
    assert.equal(await drop(), 'dropped');
    assert.deepEqual(await found(reading, [main, gone]), [true, false]);
    const { layersSizeBytes, clean, uncleanSince, layers } = await stateOf(reading);
    assert.ok(layersSizeBytes < 10_000, `${layersSizeBytes} bytes`);
    assert.deepEqual([clean, uncleanSince, layers.length], [true, null, 1]);
    const { added, shrink_epoch } = await lastCompaction(reading);
    assert.deepEqual([added.map(({ holds }) => holds), shrink_epoch], [['refs'], 1]);
    assert.equal(await drop(), 'nothing');
    const stored = await Array.fromAsync(reading.database.layers.list(''));
    assert.equal(stored.length, 3, 'the replaced layers wait in storage');
    assert.deepEqual(reading.database.warnings, []);
  });

  test('is not due before the retention has passed', async (context) => {
    const { reading, gone, drop } = await deletedBranch(context);
    reading.node.clock.set(plusMs(reading.node.clock.now(), -1));
    assert.equal(await drop(), 'nothing');
    assert.deepEqual(await found(reading, [gone]), [true]);
  });

  test('waits until webhooks were notified of the pushes that it forgets, but not for more than a day', async (context) => {
    const { reading, gone, drop } = await deletedBranch(context);
    await newWebhook(reading.node, reading.account);
    const forgets = { retentionMs: RETENTION_MS_MIN, notifiedTo: async () => LOG_START };
    const { clock } = reading.node;
    clock.set(plusMs(clock.now(), RETENTION_MS_MIN - RETENTION_MS));
    assert.equal(await drop(forgets), 'waits');
    assert.deepEqual(await found(reading, [gone]), [true]);
    clock.advance(PENDING_DELIVERY_KEPT_MS - RETENTION_MS_MIN);
    assert.equal(await drop(forgets), 'waits');
    clock.advance(1);
    assert.equal(await drop(forgets), 'dropped');
    assert.deepEqual(await found(reading, [gone]), [false]);
  });

  test('waits for no webhook where the account has none', async (context) => {
    const { reading, drop } = await deletedBranch(context);
    reading.node.clock.set(plusMs(reading.node.clock.now(), RETENTION_MS_MIN - RETENTION_MS));
    const asked = async () => assert.fail('nobody need be asked how far the webhooks of others are');
    assert.equal(await drop({ retentionMs: RETENTION_MS_MIN, notifiedTo: asked }), 'dropped');
  });

  test('waits for pushes, and not for what else came after the last one', async (context) => {
    const { reading, drop } = await deletedBranch(context);
    await newWebhook(reading.node, reading.account);
    const { clock } = reading.node;
    clock.set(plusMs(clock.now(), RETENTION_MS_MIN - RETENTION_MS));
    const { position: pushed } = (await reading.current()).entity;
    const origin = { account: reading.account, cause: CAUSE };
    const { id } = await reading.current();
    await changeRepository(reading.node, origin, id, { defaultBranch: 'gone' });
    clock.advance(RETENTION_MS_MIN);
    const notified = (position: LogPosition) =>
      drop({ retentionMs: RETENTION_MS_MIN, notifiedTo: async () => position });
    assert.equal(await notified((pushed - 1n) as LogPosition), 'waits');
    assert.equal(await notified(pushed), 'dropped');
  });

  test('does not wait once webhooks were notified of them', async (context) => {
    const { reading, drop } = await deletedBranch(context);
    await newWebhook(reading.node, reading.account);
    const { position } = (await reading.current()).entity;
    const { clock } = reading.node;
    clock.set(plusMs(clock.now(), RETENTION_MS_MIN - RETENTION_MS));
    assert.equal(await drop({ retentionMs: RETENTION_MS_MIN, notifiedTo: async () => position }), 'dropped');
  });

  test('keeps, apart from the rest, what a ref reached within the retention, until that has passed too', async (context) => {
    const { reading, main, gone, drop } = await deletedBranch(context);
    const forced = reading.git.commit({ forced: randomBytes(500) }, { branch: 'forced', parents: [main] });
    await reading.push({ 'refs/heads/forced': forced });
    await reading.push({ 'refs/heads/forced': reading.git.commit({}, { branch: 'other', parents: [] }) });
    reading.node.clock.advance(RETENTION_MS - 1);
    assert.equal(await drop(), 'dropped');
    assert.deepEqual(await found(reading, [forced, gone]), [true, false]);
    assert.deepEqual(
      (await lastCompaction(reading)).added.map(({ holds }) => holds),
      ['refs', 'retention'],
    );
    assert.equal((await stateOf(reading)).clean, false);
    reading.node.clock.advance(RETENTION_MS - 1);
    assert.equal(await drop(), 'nothing', 'once within the retention, whatever is pushed');
    reading.node.clock.advance(1);
    assert.equal(await drop(), 'dropped');
    assert.deepEqual(await found(reading, [forced]), [false]);
    assert.equal((await stateOf(reading)).clean, true);
  });

  test('leaves no layer where no ref is left, and the next push begins again', async (context) => {
    const { reading, main, drop } = await deletedBranch(context);
    await reading.push({ 'refs/heads/main': null });
    reading.node.clock.advance(RETENTION_MS);
    assert.equal(await drop(), 'dropped');
    assert.deepEqual([(await stateOf(reading)).layers.length, (await stateOf(reading)).layersSizeBytes], [0, 0]);
    await reading.push({ 'refs/heads/main': main });
    assert.deepEqual(await found(reading, [main]), [true]);
  });

  test('is not stopped by objects that break rules of git fsck', async (context) => {
    const { reading, main, gone, drop } = await deletedBranch(context);
    const { git, database, node } = reading;
    const blob = git.object('blob', 'bad\n');
    // Entries out of order, a padded mode, and a commit without a proper author.
    const tree = git.tree([
      { mode: '0100644', name: 'b', id: blob },
      { mode: '100644', name: 'a', id: blob },
    ]);
    const bad = git.object('commit', `tree ${tree}\nparent ${main}\nauthor x <x> 1\ncommitter x <x@> 1 +00\n\nbad\n`);
    const layer = await putUncheckedLayer(database.layers, (await reading.current()).id, git.packOf([blob, tree, bad]));
    const { stream, revision, lastAt } = (await reading.current()).entity;
    const update = {
      ref: 'refs/heads/main',
      before: main,
      after: bad,
      type: 'commit',
      peeled: null,
      kind: 'fast-forward',
    };
    const { id, key, sizeBytes, sha256, pack } = layer;
    const data = {
      ...{ push_id: node.ids.next(), updates: [update], parts: null, push_options: [], refused: 0, received_bytes: 1 },
      ...{ layer: { id, key, size_bytes: sizeBytes, sha256, pack }, restored: null },
    };
    const envelope = {
      ...CAUSE,
      id: node.ids.next(),
      type: 'RefsUpdated',
      version: 2,
      accountId: reading.account,
      isRecord: true,
    };
    const event = { ...envelope, occurredAt: lastAt ?? assert.fail(), data };
    await node.events.append({ stream, expected: revision, events: [event] as never });
    assert.equal(await drop(), 'dropped');
    assert.deepEqual(await found(reading, [bad, tree, gone]), [true, true, false]);
  });

  test('commits nothing when its layers are so old that the sweep may remove them', async (context) => {
    const { reading, gone, drop } = await deletedBranch(context);
    const onFailpoint = async (): Promise<void> => reading.node.clock.advance(PUSH_COMMIT_SPAN_MS + 1);
    const before = await storedLayers(reading);
    assert.equal(await drop({ onFailpoint }), 'lost');
    assert.deepEqual(await storedLayers(reading), before);
    assert.deepEqual(await found(reading, [gone]), [true]);
  });
});

describe('The tips that a dropping compaction keeps', () => {
  for (const [count, outcome] of [
    [DROPPING_TIPS_MAX, 'kept'],
    [DROPPING_TIPS_MAX + 1, 'nothing'],
  ] as const) {
    test(`are bounded: ${count} of them, ${outcome}`, async (context) => {
      const { reading } = await deletedBranch(context);
      const { events } = reading.node;
      const update = (n: number) => ({
        ...{ ref: `refs/heads/b${n}`, before: n.toString(16).padStart(40, '0'), after: '0'.repeat(40) },
        ...{ type: null, peeled: null, kind: 'delete' },
      });
      // Event and tips are made here: as many pushes would take minutes.
      const wide: EventStore = {
        ...events,
        readStream: async (stream, options) => {
          const page = await events.readStream(stream, options);
          if (options.direction === 'forwards') return page;
          const updates = Array.from({ length: count }, (_, n) => update(n + 1));
          const occurredAt = reading.node.clock.now();
          return page.map((event, at) => (at > 0 ? event : { ...event, occurredAt, data: { ...event.data, updates } }));
        },
      };
      const given: number[] = [];
      const objects: LayerDrops = {
        keep: async (_objects, { left }) => {
          given.push(left.length);
          throw new Error('kept');
        },
      };
      const dropping = { ...contextOf(reading, { events: wide }), objects };
      const ended = await dropUnreached(dropping, await ofRepository(reading), NEVER).catch((error: unknown) => {
        assert.ok(error instanceof Error);
        return error.message;
      });
      assert.deepEqual([ended, given], [outcome, outcome === 'kept' ? [count] : []]);
    });
  }
});

describe('A push that races with a dropping compaction', () => {
  test('cannot break a branch by a thin pack on a tree that is being dropped', async (context) => {
    const { reading, main, gone, drop } = await deletedBranch(context);
    // The attack: the new commit is made of the dropped commit's folder, which the pack leaves out.
    const evil = reading.git.commit({ evil: 'evil\n' }, { branch: 'evil', parents: [gone] });
    const pack = reading.git.pack([evil, `^${gone}`], { thin: true });
    const commands = [{ ref: 'refs/heads/main', before: main, after: evil }];
    const outcome = await pushPack(reading, commands, pack, async () => assert.equal(await drop(), 'dropped'));
    assert.ok(
      'refused' in outcome && ['pack-not-connected', 'pack-broken'].includes(outcome.refused.code),
      JSON.stringify(outcome),
    );
    assert.equal((await stateOf(reading)).refs.get(refName('refs/heads/main'))?.id, main);
    // Nor does the next one pass, on a node that knew the dropped objects.
    const again = await pushPack(reading, commands, pack);
    assert.ok('refused' in again, JSON.stringify(again));
    assert.deepEqual(await found(reading, [main, gone, evil]), [true, false, false]);
  });

  test('cannot bring a ref to a commit that is being dropped', async (context) => {
    const { reading, gone, drop } = await deletedBranch(context);
    const commands = [{ ref: 'refs/heads/back', before: null, after: gone }];
    const outcome = await pushPack(reading, commands, reading.git.pack([]), async () => {
      assert.equal(await drop(), 'dropped');
    });
    assert.deepEqual('results' in outcome ? outcome.results.map(({ code }) => code) : outcome, ['object-missing']);
    assert.deepEqual(await found(reading, [gone]), [false]);
  });

  test('keeps what it needs of the objects about to be dropped, if it commits first', async (context) => {
    const { reading, main, gone, drop } = await deletedBranch(context);
    const evil = reading.git.commit({ evil: 'evil\n' }, { branch: 'evil', parents: [gone] });
    const pack = reading.git.pack([evil, `^${gone}`], { thin: true });
    const racing = async (point: FailpointName): Promise<void> => {
      if (point !== 'dropping-layers-stored') return;
      const outcome = await pushPack(reading, [{ ref: 'refs/heads/main', before: main, after: evil }], pack);
      assert.ok('results' in outcome, JSON.stringify(outcome));
    };
    assert.equal(await drop({ onFailpoint: racing }), 'dropped');
    assert.deepEqual(await found(reading, [main, gone, evil]), [true, true, true]);
    const { added } = await lastCompaction(reading);
    assert.deepEqual(
      [added.map(({ holds }) => holds), (await stateOf(reading)).layers.length],
      [['refs', 'retention'], 3],
    );
  });

  test('keeps nothing for objects that came with a refused command, which are not stored', async (context) => {
    const { reading, main, gone, drop } = await deletedBranch(context);
    const good = reading.git.commit({ good: 'good\n' });
    const unreached = reading.git.commit({ evil: 'evil\n' }, { branch: 'evil', parents: [gone] });
    const commands = [
      { ref: 'refs/heads/main', before: main, after: good },
      { ref: 'refs/heads/refused', before: main, after: unreached },
    ];
    const pack = reading.git.pack([good, unreached, `^${gone}`], { thin: true });
    const racing = async (point: FailpointName): Promise<void> => {
      if (point === 'dropping-layers-stored') await pushPack(reading, commands, pack);
    };
    assert.equal(await drop({ onFailpoint: racing }), 'dropped');
    assert.deepEqual(await found(reading, [good, unreached, gone]), [true, false, false]);
    assert.equal((await stateOf(reading)).clean, false, 'older versions stored such objects');
  });

  test('keeps the tip that a ref had for a moment in between', async (context) => {
    const { reading, gone, drop } = await deletedBranch(context);
    const racing = async (point: FailpointName): Promise<void> => {
      if (point !== 'dropping-layers-stored') return;
      await pushPack(reading, [{ ref: 'refs/heads/back', before: null, after: gone }], reading.git.pack([]));
      await reading.push({ 'refs/heads/back': null });
    };
    assert.equal(await drop({ onFailpoint: racing }), 'dropped');
    assert.deepEqual(await found(reading, [gone]), [true]);
    assert.equal((await stateOf(reading)).clean, false);
  });

  test('does not keep the compaction from committing, nor the repository from being clean', async (context) => {
    const { reading, gone, drop } = await deletedBranch(context);
    const pushed: ObjectId[] = [];
    const events = racedBy(reading, 5, async (n) => {
      pushed.push(reading.git.commit({ [`file-${n}`]: randomBytes(300) }));
      await reading.push({ 'refs/heads/main': pushed.at(-1) ?? assert.fail() });
    });
    assert.equal(await drop({ events }), 'dropped');
    assert.deepEqual(await found(reading, [...pushed, gone]), [...pushed.map(() => true), false]);
    assert.deepEqual([(await stateOf(reading)).clean, (await stateOf(reading)).layers.length], [true, 6]);
  });

  for (const [races, outcome] of [
    [DROPPING_RACES_MAX - 1, 'dropped'],
    [DROPPING_RACES_MAX, 'lost'],
  ] as const) {
    test(`is one of ${races} that are faster: ${outcome}`, async (context) => {
      const { reading, drop } = await deletedBranch(context);
      const { id } = await reading.current();
      const events = racedBy(reading, races, async (n) => {
        const branch = n % 2 === 0 ? 'even' : 'odd';
        await changeRepository(reading.node, { account: reading.account, cause: CAUSE }, id, { defaultBranch: branch });
      });
      const before = (await storedLayers(reading)).length;
      assert.equal(await drop({ events }), outcome);
      assert.equal((await storedLayers(reading)).length, outcome === 'dropped' ? before + 1 : before);
    });
  }
});

/** The log, in which something else is appended right before each of the first appends. */
function racedBy({ node: { events } }: GitReading, races: number, append: (n: number) => Promise<void>): EventStore {
  let left = races;
  return {
    ...events,
    append: async (request) => {
      if (left > 0) {
        left -= 1;
        await append(left);
      }
      return events.append(request);
    },
  };
}

describe('Several compactions', () => {
  test('that drop one commits, and the other adds nothing', async (context) => {
    const { reading, main, drop } = await deletedBranch(context);
    const onFailpoint = async (point: FailpointName): Promise<void> => {
      if (point === 'dropping-layers-stored') assert.equal(await drop(), 'dropped');
    };
    assert.equal(await drop({ onFailpoint }), 'lost');
    assert.equal((await stateOf(reading)).shrinkEpoch, 1);
    assert.deepEqual(await found(reading, [main]), [true]);
  });

  test('one that drops commits nothing after one that merged its layers', async (context) => {
    const { reading, main, gone, drop } = await deletedBranch(context);
    const merge = async () =>
      compactLayers(
        { ...contextOf(reading, {}), objects: reading.database.database },
        await ofRepository(reading),
        NEVER,
      );
    for (let n = 0; n < 4; n += 1) {
      await reading.push({ 'refs/heads/main': reading.git.commit({ [`n-${n}`]: randomBytes(200) }) });
    }
    const onFailpoint = async (point: FailpointName): Promise<void> => {
      if (point === 'dropping-layers-stored') assert.equal(await merge(), 'compacted');
    };
    assert.equal(await drop({ onFailpoint }), 'lost');
    assert.deepEqual(await found(reading, [main, gone]), [true, true]);
    assert.equal(await drop(), 'dropped');
    assert.deepEqual(await found(reading, [main, gone]), [true, false]);
  });

  for (const point of ['dropping-layers-stored', 'dropping-appended'] satisfies FailpointName[]) {
    test(`one that dies at ${point} leaves the repository whole, and no file`, async (context) => {
      const { reading, main, gone, drop } = await deletedBranch(context);
      const onFailpoint = async (at: FailpointName): Promise<void> => {
        if (at === point) throw new Error('killed');
      };
      await assert.rejects(drop({ onFailpoint }), /killed/);
      const appended = point === 'dropping-appended';
      assert.deepEqual(await found(reading, [main, gone]), [true, !appended]);
      assert.equal(await drop(), appended ? 'nothing' : 'dropped');
      assert.deepEqual(await found(reading, [main, gone]), [true, false]);
      await reading.database.database.settled();
      const incoming = join(reading.database.directory, 'incoming');
      const entries = await readdir(incoming, { recursive: true, withFileTypes: true });
      assert.deepEqual(
        entries.filter((entry) => entry.isFile()).map(({ name }) => name),
        [],
      );
    });
  }
});
