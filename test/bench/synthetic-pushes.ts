/**
 * Pushes without clients: layers and events as real pushes of small commits leave them, and the compactions that a
 * service makes of them. For repositories of as many pushes that real ones would take hours, and their days months.
 *
 * Invariants: the service has no server of its own, so that the figures are of this process alone. The
 * service's own policies ask for compactions, and its own steps carry them out, when they are due by a clock that moves
 * with the pushes: those of a day come within minutes, and the rest of the day is quiet.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pino } from 'pino';
import { layerContent } from '../../adapters/git/layers/layer-tar.ts';
import { createGitObjectDatabase, type GitObjectDatabase } from '../../adapters/git/object-database.ts';
import { createFilePages } from '../../adapters/git/packs/file-pages.ts';
import { createPostgresPolicyMarks } from '../../adapters/postgres/delivery-store.ts';
import { composeFoundation, type Foundation } from '../../apps/server/foundation.ts';
import { openLayerStorage } from '../../apps/server/layer-storage/stores.ts';
import { readSettings } from '../../apps/server/settings.ts';
import { refName } from '../../core/git/ref-name.ts';
import { type LayerId, msBetween, plusMs, uuid } from '../../core/kernel/ids.ts';
import { canonicalJson } from '../../core/kernel/json.ts';
import type { Background } from '../../core/ports/background.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { Failpoint } from '../../core/ports/failpoints.ts';
import type { LayerStore } from '../../core/ports/layer-store.ts';
import type { RefsUpdated } from '../../core/repository/events.ts';
import { repositories } from '../../core/repository/evolve.ts';
import type { Layer } from '../../core/repository/layer.ts';
import { layerKeyOf, recordedLayer } from '../../core/repository/layers.ts';
import type { OpenRepository } from '../../core/repository/state.ts';
import { nextRevision } from '../../core/runtime/entity.ts';
import { envelop } from '../../core/runtime/execute.ts';
import { systemCause } from '../../core/runtime/system-cause.ts';
import { createCompactionRequests } from '../../core/use-cases/compacting/request-compactions.ts';
import { type FoundRepository, findRepository } from '../../core/use-cases/repositories/repositories.ts';
import { askForDrops } from '../../core/use-cases/sweeping/request-drop-compactions.ts';
import { createCompactionSteps } from '../../workflows/layer-compaction/steps.ts';
import { layersIn } from '../support/layers-in.ts';
import { treeCpuSeconds } from './processes.ts';
import type { Scene } from './scene.ts';
import type { SmallCommit, SmallCommits } from './small-commits.ts';

/** Pushes of one append; a real push is an append of its own. An engine looks for rows about as often. */
const BATCH = 16;
const PUSH_INTERVAL_MS = 100;
export const PUSHES_PER_DAY = 100;
/** Each push at this distance is forced. */
export const FORCED_PUSH_EVERY = 100;
const DAY_MS = 24 * 60 * 60_000;
const ZERO_ID = '0'.repeat(40);

export interface SyntheticPushes {
  /** Pushes this many commits to `main`, and lets the last day pass. */
  push(commits: SmallCommits, count: number): Promise<void>;
  state(): Promise<OpenRepository>;
  close(): Promise<void>;
}

export interface CompactionTotals {
  compactions: number;
  /** How many of them dropped what no ref had reached within the retention: each wrote all that it kept. */
  drops: number;
  /** The bytes of all layers that pushes brought, and that compactions wrote. */
  pushedBytes: number;
  rewrittenBytes: number;
  /** Processor time of this process and of git, in the steps and in the policy that asks for drops. */
  cpuSeconds: number;
}

interface Parts {
  readonly foundation: Foundation;
  readonly layers: LayerStore;
  readonly objects: GitObjectDatabase;
  readonly folder: string;
  readonly clock: MovedClock;
  readonly totals: CompactionTotals;
  readonly retentionMs: number;
}

/** A clock that begins at the present and is moved on. */
type MovedClock = Clock & { advance(ms: number): void };

function createMovedClock(real: Clock): MovedClock {
  let ahead = 0;
  const start = real.now();
  return {
    ...real,
    now: () => plusMs(start, ahead),
    monotonicMs: () => ahead,
    advance: (ms) => {
      ahead += ms;
    },
  };
}

export function noCompactions(): CompactionTotals {
  return { compactions: 0, drops: 0, pushedBytes: 0, rewrittenBytes: 0, cpuSeconds: 0 };
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
  const layers = await openLayerStorage(settings.layerStore, log);
  const folder = path.join(scene.ground.folder, 'synthetic');
  await mkdir(folder, { recursive: true });
  const directory = path.join(folder, 'cache');
  const objects = await createGitObjectDatabase({
    directory,
    layers: layersIn(layers),
    cacheBytesMax: settings.cacheBytesMax,
    log,
  });
  const clock = createMovedClock(foundation.context.clock);
  const { retentionMs } = settings;
  const parts: Parts = { foundation, layers, objects, folder, clock, totals, retentionMs };
  const current = async (): Promise<FoundRepository> => {
    await foundation.context.entities.barrier();
    const found = await findRepository(foundation.context, at.username, at.name);
    if (found === null) throw new TypeError(`There is no repository ${at.name}`);
    return found;
  };
  const last = (await current()).entity.lastAt;
  if (last !== null) clock.advance(Math.max(0, msBetween(clock.now(), last)));
  const service = openCompactions(parts);
  return {
    async push(commits, count) {
      for (let pushed = 0; pushed < count; ) {
        const size = Math.min(BATCH, count - pushed);
        const made = Array.from({ length: size }, (_, n) =>
          (pushed + n) % FORCED_PUSH_EVERY === FORCED_PUSH_EVERY - 1 ? commits.instead() : commits.next(),
        );
        await pushTogether(parts, await current(), made, service);
        pushed += size;
        await service.carryOut(0);
        if (Math.floor(pushed / PUSHES_PER_DAY) > Math.floor((pushed - size) / PUSHES_PER_DAY))
          await service.quietDay();
      }
      await service.quietDay();
    },
    state: async () => (await current()).entity.state,
    async close() {
      await objects.close();
      await foundation.close();
    },
  };
}

async function pushTogether(
  parts: Parts,
  repository: FoundRepository,
  commits: readonly SmallCommit[],
  { ask }: Compactions,
): Promise<void> {
  const { clock, totals } = parts;
  const stored = await Promise.all(commits.map((commit) => storeLayer(parts, repository, commit)));
  for (const { sizeBytes } of stored) totals.pushedBytes += sizeBytes;
  await append(parts, repository, commits, stored);
  for (const n of commits.keys()) {
    clock.advance(PUSH_INTERVAL_MS);
    await ask(repository, repository.entity.state.layers.length + n + 1);
  }
}

interface Compactions {
  /** After a push that left this many layers. */
  ask(repository: FoundRepository, layers: number): Promise<void>;
  /** Carries out the compactions that are due now, or so much later, which they wait for. */
  carryOut(withinMs: number): Promise<void>;
  /** The rest of a day, with the policy that asks for drops at its end. */
  quietDay(): Promise<void>;
}

/** What a service does behind pushes, at this clock. */
function openCompactions({ foundation, layers, objects, clock, totals, retentionMs }: Parts): Compactions {
  const { compactions } = foundation.context;
  const counting: LayerStore = {
    ...layers,
    put: (key, body, sizeBytes) => {
      totals.rewrittenBytes += sizeBytes;
      return layers.put(key, body, sizeBytes);
    },
  };
  const failpoint: Failpoint = async (name) => {
    if (name === 'compaction-appended' || name === 'dropping-appended') totals.compactions += 1;
    if (name === 'dropping-appended') totals.drops += 1;
  };
  const log = pino({ level: 'warn' }, process.stderr);
  const context = {
    ...foundation.context,
    clock,
    failpoint,
    layers: layersIn(counting),
    objects,
    log,
    retentionMs,
    notifiedTo: async () => null,
  };
  const { compact } = createCompactionSteps(context);
  const never = new AbortController().signal;
  let asking: Promise<void> = Promise.resolve();
  const background: Background = {
    run: (_, work) => {
      asking = work();
    },
  };
  const ask = createCompactionRequests({ compactions, background, clock });
  const marks = createPostgresPolicyMarks(foundation.pool);
  const counted = async (work: () => Promise<void>): Promise<void> => {
    const before = treeCpuSeconds(process.pid);
    await work();
    totals.cpuSeconds += treeCpuSeconds(process.pid) - before;
  };
  const carryOut = async (withinMs: number): Promise<void> => {
    for (const until = plusMs(clock.now(), withinMs); ; ) {
      const [row] = await compactions.earliest(1);
      if (row === undefined || row.dueAt > until) return;
      clock.advance(Math.max(0, msBetween(clock.now(), row.dueAt)));
      await counted(() => compact(row, never));
    }
  };
  return {
    ask: ({ accountId: account, id: repository }, count) => {
      ask({ account, repository, layers: count });
      return asking;
    },
    carryOut,
    async quietDay() {
      const end = plusMs(clock.now(), DAY_MS);
      await carryOut(DAY_MS / 2);
      clock.advance(Math.max(0, msBetween(clock.now(), end)));
      await counted(() => askForDrops({ ...context, marks }, never));
      await carryOut(0);
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
  return { id, key, sizeBytes: content.sizeBytes, sha256: content.sha256(), pack: packName };
}

async function append(
  { foundation: { context }, clock }: Parts,
  { accountId, entity }: FoundRepository,
  commits: readonly SmallCommit[],
  layers: readonly Layer[],
): Promise<void> {
  let tip: string | null = entity.state.refs.get(refName('refs/heads/main'))?.id ?? null;
  const pushes = commits.map(({ id, parent }, index): RefsUpdated => {
    const layer = layers[index];
    if (layer === undefined) throw new RangeError('A commit without a layer');
    const moved = { ref: 'refs/heads/main', before: tip ?? ZERO_ID, after: id, peeled: null };
    const kind = tip === parent ? 'fast-forward' : 'force-push';
    const update = { ...moved, type: 'commit', kind: tip === null ? 'create' : kind } as const;
    tip = id;
    return {
      type: 'RefsUpdated',
      data: {
        push_id: randomUUID(),
        updates: [update],
        ...{ parts: null, layer: recordedLayer(layer), push_options: [], refused: 0, received_bytes: 1_000 },
        ...{ once_reached: true, restored: null, door: 'git', request_digest: null },
        ...{ rules: null, certificate_ref: null, undone: null },
      },
    };
  });
  const about = { account: accountId, cause: systemCause(context.ids, 'bench') };
  const events = envelop({ ...context, clock }, repositories, pushes, { ...about, lastAt: entity.lastAt });
  const { stream, revision: expected } = entity;
  const result = await context.events.append({ stream, expected, events });
  if (result.outcome === 'conflict') throw new TypeError(`Somebody else writes ${stream}`);
  context.entities.observe(stream, nextRevision(expected), result.position, events);
}
