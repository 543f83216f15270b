/** A repository of the real git that a drop is due of, and pushes into it that pack for themselves. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { TestContext } from 'vitest';
import { DEFAULT_PLANS } from '../../core/account/plans.ts';
import { refName } from '../../core/git/ref-name.ts';
import type { ObjectId } from '../../core/kernel/ids.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { FailpointName } from '../../core/ports/failpoints.ts';
import { type DroppingContext, dropUnreached } from '../../core/use-cases/compacting/drop-unreached.ts';
import { type PushOutcome, pushRefs } from '../../core/use-cases/pushing/push-refs.ts';
import { committedObjects } from '../../core/use-cases/reading/committed-objects.ts';
import { type GitReading, startGitReading } from './git-reading.ts';
import { layersIn } from './layers-in.ts';
import { CAUSE } from './node.ts';
import { once, testDatabase } from './object-database.ts';

export const NEVER = new AbortController().signal;
export const RETENTION_MS = 30 * 24 * 60 * 60_000;

interface Fixture {
  readonly reading: GitReading;
  readonly main: ObjectId;
  /** The tip of a branch that was deleted, longer ago than the retention. */
  readonly gone: ObjectId;
  drop(parts?: Parts): Promise<string>;
}

interface Parts {
  readonly onFailpoint?: (point: FailpointName) => Promise<void>;
  readonly events?: EventStore;
  readonly notifiedTo?: DroppingContext['notifiedTo'];
  readonly retentionMs?: number;
}

/** A repository with a branch, and with what a branch had that was deleted a retention ago. */
export async function deletedBranch(context: TestContext): Promise<Fixture> {
  const reading = await startGitReading();
  context.onTestFinished(() => reading.close());
  const { git, node } = reading;
  const main = git.commit({ readme: randomBytes(500), 'folder/file': randomBytes(500) });
  await reading.push({ 'refs/heads/main': main });
  const gone = git.commit({ large: randomBytes(50_000), 'folder/gone': 'gone\n' }, { branch: 'gone', parents: [main] });
  await reading.push({ 'refs/heads/gone': gone });
  await reading.push({ 'refs/heads/gone': null });
  node.clock.advance(RETENTION_MS);
  const drop: Fixture['drop'] = async (parts = {}) =>
    dropUnreached(contextOf(reading, parts), await ofRepository(reading), NEVER);
  return { reading, main, gone, drop };
}

export async function ofRepository(reading: GitReading) {
  return { account: reading.account, repository: (await reading.current()).id };
}

export function contextOf({ node, database }: GitReading, { onFailpoint, events, ...more }: Parts): DroppingContext {
  const parts = {
    layers: layersIn(database.layers),
    objects: database.database,
    failpoint: onFailpoint ?? (async () => undefined),
  };
  return {
    ...node,
    ...parts,
    events: events ?? node.events,
    retentionMs: RETENTION_MS,
    notifiedTo: async () => null,
    ...more,
  };
}

export async function stateOf(reading: GitReading) {
  return (await reading.current()).entity.state;
}

/** Which of the ids a node with an empty cache finds. */
export async function found(reading: GitReading, ids: readonly ObjectId[]): Promise<readonly boolean[]> {
  const cold = await testDatabase({ layers: reading.database.layers });
  try {
    const repository = await reading.current();
    const { entity } = repository;
    const reader = await cold.database.open(committedObjects(repository, entity));
    const infos = await reader.lookup(ids);
    const tips = [...entity.state.refs.entries()].map(([, { id }]) => id);
    assert.equal((await reader.reachable(tips, tips, 'all')).size, new Set(tips).size);
    reader.close();
    return infos.map((info) => info !== null);
  } finally {
    await cold.close();
  }
}

/** Pushes as a client that packs for itself. `onPoint` runs at a failpoint, by default after the check of the pack. */
export async function pushPack(
  reading: GitReading,
  commands: readonly { readonly ref: string; readonly before: ObjectId | null; readonly after: ObjectId }[],
  pack: Buffer,
  onPoint: () => Promise<void> = async () => undefined,
  at: FailpointName = 'push-pack-received',
): Promise<PushOutcome> {
  const { node, database } = reading;
  const context = {
    ...{ ...node, layers: layersIn(database.layers), objects: database.database, onLayer: () => undefined },
    usage: { usageOf: async () => ({ storageBytes: 0, transferBytes: 0, ingressBytes: 0 }) },
    failpoint: async (point: FailpointName) => {
      if (point === at) await onPoint();
    },
  };
  return pushRefs(context, {
    ...{ repository: await reading.current(), quotas: DEFAULT_PLANS.PRO, cause: CAUSE, refusedNames: 0, atomic: false },
    ...{ guarding: async () => ({ guards: [] }), pushOptions: [], receivedBytes: () => 500, signal: NEVER },
    door: 'git',
    commands: commands.map((command) => ({ ...command, ref: refName(command.ref) })),
    pack: once(pack),
  });
}
