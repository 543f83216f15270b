/**
 * A service whose clock a test moves: a node that answers git and the API, and a worker beside it, which does
 * immediately what a real one does at intervals.
 *
 * Invariants: everything but the clock is what a server runs: PostgreSQL, layers in a folder, git, and the service's
 * own parts. The store's clock moves with the service's. A fault that the service survived fails the test at its end.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import path from 'node:path';
import { pino } from 'pino';
import { createGitObjectDatabase } from '../../../adapters/git/object-database.ts';
import { systemClock } from '../../../adapters/node/clock.ts';
import { createPostgresPolicyMarks } from '../../../adapters/postgres/delivery-store.ts';
import { createPostgresVaultReferences } from '../../../adapters/postgres/vault-references.ts';
import { composeAccountStates } from '../../../apps/server/account-states.ts';
import { composeCheckpoints } from '../../../apps/server/auditing.ts';
import { type ComposedServer, composeServer } from '../../../apps/server/compose.ts';
import { composeFoundation, type FoundationContext } from '../../../apps/server/foundation.ts';
import { openLayerStorage } from '../../../apps/server/layer-storage/stores.ts';
import { composePastEntities } from '../../../apps/server/past-entities.ts';
import { composeProjections } from '../../../apps/server/projections.ts';
import { composeRetention } from '../../../apps/server/retention.ts';
import { readSettings, type Settings } from '../../../apps/server/settings.ts';
import { plusMs, type Timestamp } from '../../../core/kernel/ids.ts';
import type { LayerStore } from '../../../core/ports/layer-store.ts';
import type { StepAction, WaitingRows } from '../../../core/ports/workflows.ts';
import type { LayerKey, StoredLayer } from '../../../core/repository/layer.ts';
import { signDaily } from '../../../core/use-cases/auditing/sign-logs-daily.ts';
import { eraseDueAccounts } from '../../../core/use-cases/erasing/erase-due-accounts.ts';
import { requestManifests } from '../../../core/use-cases/manifests/request-manifests.ts';
import { recordUsage } from '../../../core/use-cases/metering/record-usage.ts';
import { createDeletionFinisher } from '../../../core/use-cases/repositories/finish-deletions.ts';
import { sweepLayers } from '../../../core/use-cases/sweeping/sweep-layers.ts';
import { sweepVault } from '../../../core/use-cases/sweeping/sweep-vault.ts';
import { createCompactionSteps } from '../../../workflows/layer-compaction/steps.ts';
import { createManifestSteps } from '../../../workflows/manifest-writing/steps.ts';
import { cleanUp, type Ending } from '../../support/cleanup.ts';
import { freePort } from '../../support/free-port.ts';
import { layersIn } from '../../support/layers-in.ts';
import { sharedParts } from '../../support/strata-on-postgres.ts';
import { tempDir } from '../../support/temp-dir.ts';

const NEVER = new AbortController().signal;
/** Small, so that nodes read layers again that they had before. */
const CACHE_BYTES = 8 * 1024 * 1024;
const ERROR_LEVEL = 50;

export interface YearService {
  readonly url: string;
  readonly env: Readonly<Record<string, string>>;
  readonly layersDir: string;
  readonly context: FoundationContext;
  readonly retentionMs: number;
  /** How far the clock is ahead of the machine's. */
  aheadMs(): number;
  now(): Timestamp;
  advance(ms: number): void;
  /** Does all the work that is due. */
  work(): Promise<void>;
  /** Starts the node again, with an empty cache: what it had summed in memory goes to the log. */
  restart(): Promise<void>;
  /** Fails if the service survived a fault, or answered with one. */
  assertFaultless(): void;
}

/** Moves the clock that is passed to the core, in this process. */
function moveClock(ending: Ending) {
  const { now } = systemClock;
  let aheadMs = 0;
  Object.assign(systemClock, { now: () => plusMs(now(), aheadMs) });
  cleanUp(ending, () => Object.assign(systemClock, { now }));
  return {
    aheadMs: () => aheadMs,
    advance(ms: number): void {
      aheadMs += ms;
    },
  };
}

export async function startYearService(ending: Ending): Promise<YearService> {
  const shared = await sharedParts(ending, 'postgres');
  const clock = moveClock(ending);
  const port = await freePort();
  const env = {
    ...shared.env,
    STRATA_PORT: String(port),
    STRATA_CACHE_BYTES_MAX: String(CACHE_BYTES),
    STRATA_DATA_DIR: await tempDir(ending),
  };
  const faults: unknown[] = [];
  const onFault = (what: string, cause: unknown): void => void faults.push({ what, cause });
  const log = pino({ level: 'info' }, { write: (line: string) => noteFault(line, faults) });
  const worker = await startWorker(ending, readSettings(env, '/'), { log, onFault });
  let node: ComposedServer | null = null;
  const folder = await tempDir(ending);
  let starts = 0;
  const start = async (): Promise<void> => {
    starts += 1;
    const dataDir = path.join(folder, `node-${starts}`);
    const settings = readSettings({ ...env, STRATA_DATA_DIR: dataDir, STRATA_ROLES: 'git,api' }, '/');
    node = await composeServer(settings, log);
    node.http.listen(port, settings.host);
    await once(node.http, 'listening');
  };
  const stop = async (): Promise<void> => {
    await node?.stop();
    node = null;
  };
  await start();
  cleanUp(ending, stop);
  return {
    url: `http://localhost:${port}`,
    env: { ...env, PATH: process.env['PATH'] ?? '' },
    layersDir: shared.layersDir,
    context: worker.context,
    retentionMs: worker.retentionMs,
    ...clock,
    now: () => systemClock.now(),
    work: worker.work,
    restart: async () => {
      await stop();
      await start();
    },
    assertFaultless: () => assert.deepEqual(faults, []),
  };
}

/** A line that says that something failed, or that a request was answered with a fault. */
function noteFault(line: string, faults: unknown[]): void {
  const { level, status } = JSON.parse(line) as { readonly level: number; readonly status?: number };
  if (level >= ERROR_LEVEL || (status ?? 0) >= 500) faults.push(line);
}

interface Reporting {
  readonly log: pino.Logger;
  readonly onFault: (what: string, cause: unknown) => void;
}

/** The store as it would be if its clock moved too: what was stored since the last listing was stored at that time. */
function withMovedClock(store: LayerStore): LayerStore {
  const storedAt = new Map<LayerKey, Timestamp>();
  const moved = (stored: StoredLayer): StoredLayer => {
    const at = storedAt.get(stored.key) ?? systemClock.now();
    storedAt.set(stored.key, at);
    return { ...stored, storedAt: at };
  };
  return {
    ...store,
    head: async (key) => {
      const stored = await store.head(key);
      return stored === null ? null : moved(stored);
    },
    async *list(prefix) {
      for await (const stored of store.list(prefix)) yield moved(stored);
    },
    now: async () => systemClock.now(),
  };
}

async function startWorker(ending: Ending, settings: Settings, { log, onFault }: Reporting) {
  const foundation = await composeFoundation(settings, log, {
    ...{ besideServer: true, entitiesSizeBytesMax: 64 * 1024 * 1024, onFault },
  });
  cleanUp(ending, () => foundation.close());
  const { context, pool } = foundation;
  const { retentionMs } = settings;
  const platform = withMovedClock(await openLayerStorage(settings.layerStore, log));
  const layers = layersIn(platform);
  const directory = path.join(await tempDir(ending), 'cache');
  const objects = await createGitObjectDatabase({ directory, layers, cacheBytesMax: CACHE_BYTES, log });
  cleanUp(ending, () => objects.close());
  const projections = composeProjections(foundation, objects, log);
  cleanUp(ending, () => projections.close());
  await projections.runner.start({ lead: true });
  const { readModels } = projections;
  const marks = createPostgresPolicyMarks(pool);
  const daily = { readModels, checkpoints: composeCheckpoints(settings, foundation, layers, readModels) };
  const states = composeAccountStates(foundation, readModels, onFault);
  const compacting = { ...context, layers, objects, log, retentionMs, notifiedTo: async () => null };
  const { compact } = createCompactionSteps(compacting);
  const { write } = createManifestSteps({
    ...context,
    layers,
    past: composePastEntities(foundation, onFault),
    log,
    retentionMs,
  });
  const finishDeletions = createDeletionFinisher({ ...context, readModels });
  const sweeps = composeRetention({ foundation, layers, retentionMs, log, onPruned: () => undefined, onFault });
  const erasing = { ...context, platformStore: platform, marks, log };
  const sweeping = { ...erasing, references: createPostgresVaultReferences(pool), onSwept: () => undefined };
  const work = async (): Promise<void> => {
    await finishDeletions();
    await requestManifests({ ...context, marks }, NEVER);
    await carryOut(context.manifests, write);
    await sweeps.askForDrops(NEVER);
    await carryOut(context.compactions, compact);
    await recordUsage({ ...context, marks }, NEVER);
    await signDaily({ ...daily, store: platform, log }, NEVER);
    await states.accountStates.keepSnapshots(NEVER);
    await sweeps.expireLayers(NEVER);
    await sweeps.expireDeleted(NEVER);
    await sweeps.removePurged(NEVER);
    await sweeps.prune(NEVER);
    await eraseDueAccounts(erasing, NEVER);
    await sweepVault(sweeping, NEVER);
    await sweepLayers({ ...context, layers: platform, log, onSwept: () => undefined }, NEVER);
  };
  return { context, retentionMs, work };
}

/** Carries out the steps that are due now, each once. */
async function carryOut(rows: WaitingRows, step: StepAction): Promise<void> {
  const now = systemClock.now();
  for (const due of await rows.earliest(1_000)) if (due.dueAt <= now) await step(due, NEVER);
}
