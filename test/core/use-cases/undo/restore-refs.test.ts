/** Restorations in a repository of the real git, of which compactions dropped objects. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, type TestContext, test } from 'vitest';
import { digest } from '../../../../adapters/node/digest.ts';
import type { ObjectId } from '../../../../core/kernel/ids.ts';
import { APPEND_SIZE_BYTES_MAX } from '../../../../core/kernel/limits.ts';
import { repositories } from '../../../../core/repository/evolve.ts';
import { createPastEntities } from '../../../../core/runtime/past-entities.ts';
import type { RestorePoint } from '../../../../core/use-cases/as-of/resolve-moment.ts';
import { dropUnreached } from '../../../../core/use-cases/compacting/drop-unreached.ts';
import { withUpdatesInPlace } from '../../../../core/use-cases/pushing/restore-wide-updates.ts';
import { type RestoreContext, restoreRefs } from '../../../../core/use-cases/undo/restore-refs.ts';
import { type GitReading, startGitReading } from '../../../support/git-reading.ts';
import { layersIn } from '../../../support/layers-in.ts';
import { createMemoryAccountLog } from '../../../support/memory/account-log.ts';
import { createMemorySnapshots } from '../../../support/memory/snapshots.ts';
import { CAUSE, startNode } from '../../../support/node.ts';

const NEVER = new AbortController().signal;
const RETENTION_MS = 30 * 24 * 60 * 60_000;

async function reading(context: TestContext): Promise<GitReading> {
  const started = await startGitReading();
  context.onTestFinished(() => started.close());
  return started;
}

function contextOf({ node, database }: GitReading): RestoreContext {
  const { events, entities } = node;
  const complete = (event: Parameters<typeof withUpdatesInPlace>[1]) => withUpdatesInPlace({ events, digest }, event);
  return {
    ...node,
    digest,
    readModels: createMemoryAccountLog({ events, digest }),
    past: createPastEntities({ events, entities, complete, snapshots: createMemorySnapshots(), onFault: () => {} }),
    objects: database.database,
    failpoint: async () => undefined,
    retentionMs: RETENTION_MS,
  };
}

async function restore(of: GitReading, to: RestorePoint, refs: readonly string[] | null = null) {
  const repository = await of.current();
  const origin = { account: of.account, cause: CAUSE, door: 'website' } as const;
  return restoreRefs(contextOf(of), origin, { repository, to, refs, seen: null, signal: NEVER });
}

async function drop(of: GitReading): Promise<string> {
  const { node, database } = of;
  const parts = {
    layers: layersIn(database.layers),
    objects: database.database,
    failpoint: async () => undefined,
    notifiedTo: async () => null,
  };
  const repository = await of.current();
  return dropUnreached(
    { ...node, ...parts, retentionMs: RETENTION_MS },
    { account: of.account, repository: repository.id },
    NEVER,
  );
}

async function lastEvent(of: GitReading) {
  const { entity } = await of.current();
  const [last] = await of.node.events.readStream(entity.stream, { direction: 'backwards', limit: 1 });
  return last ?? assert.fail('no event');
}

async function tips(of: GitReading): Promise<Readonly<Record<string, ObjectId>>> {
  const { entity } = await of.current();
  return Object.fromEntries([...entity.state.refs.entries()].map(([name, { id }]) => [name, id]));
}

describe('A restoration', () => {
  test('gets back what a compaction kept for the retention, with all that it reaches', async (context) => {
    const at = await reading(context);
    const main = at.git.commit({ file: 'main\n' });
    const old = at.git.commit({ old: randomBytes(500) }, { branch: 'old' });
    await at.push({ 'refs/heads/main': main, 'refs/heads/old': old });
    await at.push({ 'refs/heads/old': null });
    const forced = at.git.commit({ forced: randomBytes(500) }, { branch: 'forced' });
    at.node.clock.advance(RETENTION_MS);
    await at.push({ 'refs/heads/forced': forced });
    const { id: before } = await lastEvent(at);
    await at.push({ 'refs/heads/forced': main });
    assert.equal(await drop(at), 'dropped');
    const restored = await restore(at, { event: before });
    assert.ok(!('refused' in restored), JSON.stringify(restored));
    assert.deepEqual(await tips(at), { 'refs/heads/main': main, 'refs/heads/forced': forced });
    at.node.clock.advance(RETENTION_MS);
    assert.equal(await drop(at), 'dropped', 'a later compaction keeps what the restored ref reaches');
    assert.equal(await drop(at), 'nothing');
    await at.push({ 'refs/heads/again': forced });
  });

  test('to what has passed retention is refused, and names the compaction that dropped it', async (context) => {
    const at = await reading(context);
    const main = at.git.commit({ file: 'main\n' });
    const gone = at.git.commit({ gone: randomBytes(500) }, { branch: 'gone' });
    await at.push({ 'refs/heads/main': main, 'refs/heads/gone': gone });
    const { id: first } = await lastEvent(at);
    await at.push({ 'refs/heads/gone': null });
    at.node.clock.advance(RETENTION_MS);
    assert.equal(await drop(at), 'dropped');
    const { id: dropped } = await lastEvent(at);
    const other = at.git.commit({ other: randomBytes(500) }, { branch: 'other' });
    await at.push({ 'refs/heads/other': other });
    await at.push({ 'refs/heads/other': null });
    at.node.clock.advance(RETENTION_MS);
    assert.equal(await drop(at), 'dropped');
    const { id: droppedOther } = await lastEvent(at);
    assert.deepEqual(await restore(at, { event: first }), { refused: { code: 'objects-expired', event: dropped } });
    const { entity } = await at.current();
    const events = await at.node.events.readStream(entity.stream, { direction: 'forwards', limit: 100 });
    const pushedOther = events.findLast(({ type }) => type === 'RefsUpdated') ?? assert.fail('no push');
    assert.deepEqual(await restore(at, { beforeEvent: pushedOther.id }), {
      refused: { code: 'objects-expired', event: droppedOther },
    });
    const rest = await restore(at, { event: first }, ['refs/heads/main']);
    assert.ok(!('refused' in rest), 'what is there still can be restored');
  });

  test('of more refs than fit into one event is stored in parts', async (context) => {
    const at = await reading(context);
    const main = at.git.commit({ file: 'main\n' });
    const long = 'x'.repeat(200);
    const count = Math.ceil(APPEND_SIZE_BYTES_MAX / 800);
    const names = Array.from({ length: count }, (_, index) => `refs/heads/${long}-${index}`);
    await at.push({ 'refs/heads/main': main });
    const { id: before } = await lastEvent(at);
    await at.push(Object.fromEntries(names.map((name) => [name, main])));
    const restored = await restore(at, { event: before });
    assert.ok(!('refused' in restored));
    assert.equal(restored.updates.length, count);
    const { data } = await lastEvent(at);
    assert.deepEqual([data['updates'], (data['parts'] as { updates: number }).updates], [[], count]);
    assert.deepEqual([data['restored'], data['door']], [{ event_id: before }, 'website']);
    const fresh = await startNode(at.node.events);
    context.onTestFinished(() => fresh.entities.close());
    const { state } = await fresh.entities.get(repositories, (await at.current()).id);
    assert.ok(state.status === 'open');
    assert.deepEqual(
      [...state.refs.entries()].map(([name]) => name),
      ['refs/heads/main'],
    );
  });
});
