/**
 * Pushes without clients: layers and events as real pushes of small commits leave them, and the real compactions that
 * follow them. For repositories of so many pushes that real ones would take hours.
 *
 * Must stay true: the service has no server of its own meanwhile, so that the figures are of this process alone. A
 * compaction is made whenever a server would make one at once, and at the end as after a pause.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pino } from 'pino';
import { createGitObjectDatabase, type GitObjectDatabase } from '../../adapters/git/object-database.ts';
import { layerContent } from '../../adapters/git/cache/layer-tar.ts';
import { createFilePages } from '../../adapters/git/packs/file-pages.ts';
import { composeFoundation, type Foundation } from '../../apps/server/foundation.ts';
import { openLayerStorage } from '../../apps/server/layer-storage.ts';
import { readSettings } from '../../apps/server/settings.ts';
import { canonicalJson } from '../../core/kernel/json.ts';
import { type LayerId, uuid } from '../../core/kernel/ids.ts';
import type { LayerStore } from '../../core/ports/layer-store.ts';
import type { Layer } from '../../core/ports/object-database.ts';
import { compactionWantedInMs } from '../../core/repository/compaction.ts';
import { repositories } from '../../core/repository/evolve.ts';
import type { RefsUpdated } from '../../core/repository/events.ts';
import { layerKeyOf, recordedLayer } from '../../core/repository/layers.ts';
import type { OpenRepository } from '../../core/repository/state.ts';
import { nextRevision } from '../../core/runtime/entity.ts';
import { envelop } from '../../core/runtime/execute.ts';
import { systemCause } from '../../core/runtime/system-cause.ts';
import { compactLayers } from '../../core/use-cases/compacting/compact-layers.ts';
import { type FoundRepository, findRepository } from '../../core/use-cases/accounts/repositories.ts';
import { layersIn } from '../support/layers-in.ts';
import { treeCpuSeconds } from './processes.ts';
import type { Scene } from './scene.ts';
import type { SmallCommit } from './small-commits.ts';

/** Pushes of one append; a real push is an append of its own. */
const BATCH = 16;
const ZERO_ID = '0'.repeat(40);

export interface SyntheticPushes {
  /** Pushes so many commits to `main`. */
  push(next: () => SmallCommit, count: number): Promise<void>;
  /** Compacts as a server does after a pause in the pushes. */
  rest(): Promise<void>;
  state(): Promise<OpenRepository>;
  close(): Promise<void>;
}

export interface CompactionTotals {
  compactions: number;
  /** Of all layers that pushes brought, and that compactions wrote. */
  pushedBytes: number;
  rewrittenBytes: number;
  /** Of this process and of git. */
  cpuSeconds: number;
}

interface Parts {
  readonly foundation: Foundation;
  readonly layers: LayerStore;
  readonly objects: GitObjectDatabase;
  readonly folder: string;
}

export function noCompactions(): CompactionTotals {
  return { compactions: 0, pushedBytes: 0, rewrittenBytes: 0, cpuSeconds: 0 };
}

/** Opens a repository of a service whose server is not running. Adds to the totals. */
export async function openSyntheticPushes(
  scene: Scene,
  at: { readonly username: string; readonly name: string },
  totals: CompactionTotals,
): Promise<SyntheticPushes> {
  const settings = readSettings(scene.env, process.cwd());
  const log = pino({ level: 'error' }, process.stderr);
  const foundation = await composeFoundation(settings, log, {
    besideServer: true,
    entitiesSizeBytesMax: 64 * 1024 * 1024,
    onFault: (what, cause) => log.error({ err: cause, what }, 'A fault'),
  });
  const layers = await openLayerStorage(settings, log);
  const folder = path.join(scene.ground.folder, 'synthetic');
  await mkdir(folder, { recursive: true });
  const directory = path.join(folder, 'cache');
  const objects = await createGitObjectDatabase({
    directory,
    layers: layersIn(layers),
    cacheBytesMax: settings.cacheBytesMax,
    log,
  });
  const parts: Parts = { foundation, layers, objects, folder };
  const current = async (): Promise<FoundRepository> => {
    await foundation.context.entities.barrier();
    const found = await findRepository(foundation.context, at.username, at.name);
    if (found === null) throw new TypeError(`There is no repository ${at.name}`);
    return found;
  };
  return {
    async push(next, count) {
      for (let left = count; left > 0; left -= BATCH) {
        const commits = Array.from({ length: Math.min(BATCH, left) }, next);
        const repository = await current();
        const stored = await Promise.all(commits.map((commit) => storeLayer(parts, repository, commit)));
        for (const { sizeBytes } of stored) totals.pushedBytes += sizeBytes;
        await append(parts, repository, commits, stored);
        const { state } = (await current()).entity;
        if (compactionWantedInMs(state.layers.length) === 0) await compact(parts, await current(), totals);
      }
    },
    rest: async () => compact(parts, await current(), totals),
    state: async () => (await current()).entity.state,
    async close() {
      await objects.close();
      await foundation.close();
    },
  };
}

async function storeLayer(
  { layers, folder }: Parts,
  { id: repository }: FoundRepository,
  { pack, packName, index, objectCount, id: tip }: SmallCommit,
): Promise<Layer> {
  const pages = createFilePages({ memoryBytesMax: 1024 * 1024 });
  const file = async (extension: string, bytes: Buffer) => {
    const at = path.join(folder, `${packName}.${extension}`);
    await writeFile(at, bytes);
    return pages.open(at);
  };
  const id = uuid<LayerId>(randomUUID());
  const about = { format: 1, layer_id: id, push_id: null, repository_id: repository, object_count: objectCount };
  const content = await layerContent(pages, {
    pack: packName,
    packFile: await file('pack', pack),
    idxFile: await file('idx', index),
    updates: `${tip} refs/heads/main\n`,
    description: `${canonicalJson(about)}\n`,
  });
  const key = layerKeyOf(repository, id);
  await layers.put(key, content.body(), content.sizeBytes);
  return { id, key, sizeBytes: content.sizeBytes, sha256: content.sha256, pack: packName };
}

async function append(
  { foundation: { context } }: Parts,
  { accountId, entity }: FoundRepository,
  commits: readonly SmallCommit[],
  layers: readonly Layer[],
): Promise<void> {
  const pushes = commits.map(({ id, parent }, index): RefsUpdated => {
    const layer = layers[index];
    if (layer === undefined) throw new RangeError('A commit without a layer');
    const moved = { ref: 'refs/heads/main', before: parent ?? ZERO_ID, after: id, peeled: null };
    return {
      type: 'RefsUpdated',
      data: {
        push_id: randomUUID(),
        updates: [{ ...moved, type: 'commit', kind: parent === null ? 'create' : 'fast-forward' }],
        ...{ parts: null, layer: recordedLayer(layer), push_options: [], refused: 0, received_bytes: 1_000 },
        restored: null,
      },
    };
  });
  const about = { account: accountId, cause: systemCause(context.ids, 'bench') };
  const events = envelop(context, repositories, pushes, { ...about, lastAt: entity.lastAt });
  const { stream, revision: expected } = entity;
  const result = await context.events.append({ stream, expected, events });
  if (result.outcome === 'conflict') throw new TypeError(`Somebody else writes ${stream}`);
  context.entities.observe(stream, nextRevision(expected), result.position, events);
}

async function compact(parts: Parts, { accountId, id }: FoundRepository, totals: CompactionTotals): Promise<void> {
  const { foundation, layers, objects } = parts;
  const counting: LayerStore = {
    ...layers,
    put: (key, body, sizeBytes) => {
      totals.rewrittenBytes += sizeBytes;
      return layers.put(key, body, sizeBytes);
    },
  };
  const context = { ...foundation.context, layers: layersIn(counting), objects };
  const never = new AbortController().signal;
  const before = treeCpuSeconds(process.pid);
  while ((await compactLayers(context, { account: accountId, repository: id }, never)) === 'compacted') {
    totals.compactions += 1;
  }
  totals.cpuSeconds += treeCpuSeconds(process.pid) - before;
}
