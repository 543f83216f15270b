/**
 * `strata-admin storage list` and `storage verify`: compares the stores of layers, the platform's and the buckets of
 * users, with the layers in events.
 *
 * Invariants: both change nothing. A bucket that cannot be read is reported, and holds up nothing else. Memory grows
 * with the number of repositories, and of one repository's layers. What seems wrong is looked at twice, since a server
 * may be running. The store is listed before the stream is read. So the layer of a push under way is reported as
 * unnamed only between its put and its append.
 */
import type { Logger } from 'pino';
import { readEvent } from '../../core/kernel/decider.ts';
import type { Digest } from '../../core/kernel/digest.ts';
import { type StreamName, streamName } from '../../core/kernel/envelope.ts';
import { parseUuid, plusMs, type RepositoryId, type Timestamp } from '../../core/kernel/ids.ts';
import { ORPHANED_LAYER_SPAN_MS, REPLACED_LAYERS_KEPT_MS_MIN } from '../../core/kernel/limits.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import { type LayerStore, LayerStoreError } from '../../core/ports/layer-store.ts';
import type { LayerStores } from '../../core/ports/layer-stores.ts';
import { type RecordedLayer, type RepositoryEvent, repositoryEventKinds } from '../../core/repository/events.ts';
import type { StoredLayer } from '../../core/repository/layer.ts';
import { layersStoredBy } from '../../core/repository/layers.ts';
import {
  type KnownRepositories,
  type KnownRepository,
  ownersAmong,
  readKnownRepositories,
  readRepositoriesOf,
} from '../../core/use-cases/repositories/known-repositories.ts';
import { leftIncoming } from '../../core/use-cases/sweeping/abandoned-uploads.ts';
import { checkLayer } from '../../core/use-cases/verifying/check-layer.ts';
import { expiredSince } from '../../core/use-cases/verifying/later-expiry.ts';
import { checkManifest, type NamedLayer } from './check-manifest.ts';

export interface StorageContext {
  readonly events: Pick<EventStore, 'readAll' | 'readStream'>;
  readonly layers: LayerStores;
  readonly digest: Digest;
  readonly log: Logger;
}

export interface ListedStorage {
  readonly id: string;
  /** `<username>/<name>`; null if no event names the repository. */
  readonly repository: string | null;
  readonly deleted: boolean;
  /** Null: platform storage. */
  readonly storage_bucket_id: string | null;
  /** Why the bucket could not be listed; null if it was. */
  readonly fault: string | null;
  readonly layers: number;
  readonly size_bytes: number;
}

/** Lists every repository, empty ones too, and every unknown id that the platform's store holds layers of. */
export async function listStorage({ events, layers }: StorageContext): Promise<readonly ListedStorage[]> {
  const known = await readKnownRepositories(events);
  const inBuckets = [...known.values()].filter(({ deleted, place }) => !deleted && place.storageBucketId !== null);
  const onPlatform = [...known.values()].filter(({ deleted, place }) => !deleted && place.storageBucketId === null);
  const sums = new Map(onPlatform.map(({ id }): [string, Sum] => [id, NOTHING]));
  await addSums(sums, layers.platform, 'repositories/');
  const listed = [...sums].map(([id, sum]): ListedStorage => {
    const parsed = parseUuid<RepositoryId>(id);
    const repository = parsed === null ? undefined : known.get(parsed);
    const { name = null, deleted = false } = repository ?? {};
    return { id, repository: name, deleted, storage_bucket_id: null, fault: null, ...sum };
  });
  for (const repository of inBuckets) listed.push(await listInBucket(layers, repository));
  return listed.sort((a, b) => byText(a.repository ?? a.id, b.repository ?? b.id) || byText(a.id, b.id));
}

type Sum = Pick<ListedStorage, 'layers' | 'size_bytes'>;
const NOTHING: Sum = { layers: 0, size_bytes: 0 };

/** Adds the layers below a prefix to the sums of their repositories. */
async function addSums(sums: Map<string, Sum>, layers: LayerStore, prefix: string): Promise<void> {
  for await (const { key, sizeBytes } of layers.list(prefix)) {
    const [, id = '', folder] = key.split('/');
    if (folder !== 'layers') continue;
    const sum = sums.get(id) ?? NOTHING;
    sums.set(id, { layers: sum.layers + 1, size_bytes: sum.size_bytes + sizeBytes });
  }
}

async function listInBucket(layers: LayerStores, { id, name, place }: KnownRepository): Promise<ListedStorage> {
  const about = { id, repository: name, deleted: false, storage_bucket_id: place.storageBucketId };
  const sums = new Map<string, Sum>();
  try {
    await addSums(sums, layers.of(place, 'maintenance'), `repositories/${id}/`);
    return { ...about, fault: null, ...(sums.get(id) ?? NOTHING) };
  } catch (error) {
    if (!(error instanceof LayerStoreError)) throw error;
    return { ...about, fault: error.code, ...NOTHING };
  }
}

function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export interface StorageFault {
  /**
   * `unknown`: it belongs to no repository of the log. `unreadable`: an event that cannot be read. `unreachable`: a
   * repository in a bucket that cannot be listed.
   */
  readonly kind: 'missing' | 'damaged' | 'unknown' | 'unreadable' | 'unreachable';
  readonly repository: string | null;
  /** The key of the layer or manifest, the stream's name, or the repository's id. */
  readonly what: string;
  readonly detail: string;
}

/** A stored layer that no event names: its push or compaction is under way, or died. It is no fault. */
export interface UnnamedLayer {
  readonly repository: string;
  readonly account: string;
  readonly key: string;
  readonly size_bytes: number;
  readonly stored_at: string;
  /** When the sweep may remove it. An event that names it before keeps it. */
  readonly removed_after: string;
}

export interface StorageReport {
  readonly repositories: number;
  /** The number of layers that events name and that were read. */
  readonly layers: number;
  readonly size_bytes: number;
  /** The first FAULTS_MAX faults; `fault_count` counts all. */
  readonly faults: readonly StorageFault[];
  readonly fault_count: number;
  /** The first UNNAMED_MAX of them; `unnamed_count` counts all. */
  readonly unnamed: readonly UnnamedLayer[];
  readonly unnamed_count: number;
  /** Stored layers that events let go and that have not left yet, the first UNNAMED_MAX of them. They are no fault. */
  readonly leaving: readonly UnnamedLayer[];
  readonly leaving_count: number;
  /** Half-written layers that processes left when they died, the first UNNAMED_MAX; null: the file does not say. */
  readonly incoming: readonly LeftIncomingFile[];
  readonly incoming_count: number;
}

export interface LeftIncomingFile {
  readonly repository: string | null;
  readonly account: string | null;
  readonly name: string;
  readonly size_bytes: number | null;
  /** When it was last written. */
  readonly at: string;
}

/** Layers, files and faults that a report lists. Internal: only the operator reads what it cuts. */
const UNNAMED_MAX = 1_000;
const FAULTS_MAX = 1_000;

const PROGRESS_LAYERS = 1_000;
const PROGRESS_BYTES = 1024 ** 3;
/** Small pages, since an event may be as large as the limit of an append. */
const PAGE_EVENTS = 100;

/** Reads every layer that events name and compares it with its event, for one repository or for all (null). */
export async function verifyStorage(context: StorageContext, only: KnownRepository | null): Promise<StorageReport> {
  const known = only === null ? await readKnownRepositories(context.events) : new Map([[only.id, only]]);
  const run = createRun(context.log);
  for (const repository of known.values()) await verifyRepository(context, repository, run);
  if (only === null) {
    await findUnknownFiles(context, known, run);
    await findIncoming(context, known, run);
  }
  return { repositories: known.size, ...run.report() };
}

type Run = ReturnType<typeof createRun>;

/** Collects the faults and sums of a verification, and logs its progress. */
function createRun(log: Logger) {
  const faults: StorageFault[] = [];
  const unnamed: UnnamedLayer[] = [];
  const leaving: UnnamedLayer[] = [];
  const incoming: LeftIncomingFile[] = [];
  const sums = { layers: 0, size_bytes: 0, fault_count: 0, unnamed_count: 0, leaving_count: 0, incoming_count: 0 };
  let reported = { ...sums };
  return {
    fault(fault: StorageFault): void {
      sums.fault_count += 1;
      if (faults.length < FAULTS_MAX) faults.push(fault);
    },
    unnamed(layer: UnnamedLayer): void {
      sums.unnamed_count += 1;
      if (unnamed.length < UNNAMED_MAX) unnamed.push(layer);
    },
    leaving(layer: UnnamedLayer): void {
      sums.leaving_count += 1;
      if (leaving.length < UNNAMED_MAX) leaving.push(layer);
    },
    incoming(file: LeftIncomingFile): void {
      sums.incoming_count += 1;
      if (incoming.length < UNNAMED_MAX) incoming.push(file);
    },
    read(sizeBytes: number): void {
      sums.layers += 1;
      sums.size_bytes += sizeBytes;
      const isLarge = sums.size_bytes - reported.size_bytes >= PROGRESS_BYTES;
      if (!isLarge && sums.layers - reported.layers < PROGRESS_LAYERS) return;
      reported = { ...sums };
      log.info({ layers: sums.layers, sizeBytes: sums.size_bytes, faults: sums.fault_count }, 'Verifying the storage');
    },
    report: () => ({ ...sums, faults, unnamed, leaving, incoming }),
  };
}

/** Looks again at what seems wrong, since layers, repositories and buckets come and go while a server runs. */
async function verifyRepository(context: StorageContext, repository: KnownRepository, run: Run): Promise<void> {
  const { name, place } = repository;
  const { faults, unnamed, leaving } = await lookAt(context, repository, (layer) => {
    run.read(layer.size_bytes);
    return true;
  });
  const listed = ({ key, sizeBytes, storedAt }: StoredLayer, removedAfter: Timestamp): UnnamedLayer => {
    const about = { repository: name, account: place.account, key, size_bytes: sizeBytes };
    return { ...about, stored_at: storedAt, removed_after: removedAfter };
  };
  for (const layer of unnamed) run.unnamed(listed(layer, plusMs(layer.storedAt, ORPHANED_LAYER_SPAN_MS)));
  for (const { layer, goneAt } of leaving) run.leaving(listed(layer, plusMs(goneAt, REPLACED_LAYERS_KEPT_MS_MIN)));
  if (faults.length === 0) return;
  const suspects = new Set(faults.map(({ what }) => what));
  const now = (await readRepositoriesOf(context.events, place.account)).get(repository.id) ?? repository;
  const again = await lookAt(context, { ...now, name }, ({ key }) => suspects.has(key));
  for (const fault of again.faults) run.fault({ ...fault, repository: name });
}

interface Look {
  readonly faults: readonly Omit<StorageFault, 'repository'>[];
  readonly unnamed: readonly StoredLayer[];
  readonly leaving: readonly { readonly layer: StoredLayer; readonly goneAt: Timestamp }[];
}

const NO_LAYERS = { unnamed: [], leaving: [] };

/** Reads those of the layers that events name which `isRead` chooses, and the newest manifest. */
async function lookAt(
  context: StorageContext,
  repository: KnownRepository,
  isRead: (layer: RecordedLayer) => boolean,
): Promise<Look> {
  const { id, place } = repository;
  const layers = context.layers.of(place, 'maintenance');
  const unnamed = await listedLayers(layers, repository);
  if (unnamed === null) return { faults: [], ...NO_LAYERS };
  if ('fault' in unnamed) return { faults: [{ kind: 'unreachable', what: id, detail: unnamed.fault }], ...NO_LAYERS };
  const { named, next, faults, goneAt } = await readNamed(context, streamName('repository', id));
  const manifestFault = await checkManifest(layers, id, unnamed, named);
  if (manifestFault !== null) faults.push(manifestFault);
  const leaving: Look['leaving'][number][] = [];
  for (const { layer, expiredAt } of named.values()) {
    const stored = unnamed.get(layer.key);
    unnamed.delete(layer.key);
    if (expiredAt !== null) {
      const since = goneAt.get(expiredAt);
      if (stored !== undefined && since !== undefined) leaving.push({ layer: stored, goneAt: since });
      continue;
    }
    const fault = isRead(layer) ? await checkLayer(context.digest, layers, layer) : null;
    if (fault === null) continue;
    const expired = await expiredSince(context.events, streamName('repository', id), next);
    if (!expired.has(layer.id)) faults.push({ ...fault, what: layer.key });
  }
  return { faults, unnamed: [...unnamed.values()], leaving };
}

interface NamedLayers {
  readonly named: ReadonlyMap<string, NamedLayer>;
  /** The first revision that was not read. */
  readonly next: number;
  readonly faults: Omit<StorageFault, 'repository'>[];
  /** When layers were let go, by the revision of the event. */
  readonly goneAt: ReadonlyMap<number, Timestamp>;
}

/** Reads from a repository's stream the layers that its events name, by id. */
async function readNamed({ events }: StorageContext, stream: StreamName): Promise<NamedLayers> {
  const named = new Map<string, NamedLayer>();
  const faults: Omit<StorageFault, 'repository'>[] = [];
  const goneAt = new Map<number, Timestamp>();
  for (let next = 0; ; ) {
    const page = await events.readStream(stream, { direction: 'forwards', from: next, limit: PAGE_EVENTS });
    for (const recorded of page) {
      const { revision } = recorded;
      if (recorded.type === 'LayersExpired') goneAt.set(revision, recorded.occurredAt);
      try {
        const event = readEvent<RepositoryEvent>(repositoryEventKinds, recorded);
        for (const layer of layersStoredBy(event)) named.set(layer.id, { layer, expiredAt: null });
        for (const { id: gone } of event.type === 'LayersExpired' ? event.data.layers : []) {
          const known = named.get(gone);
          if (known !== undefined) named.set(gone, { ...known, expiredAt: revision });
        }
      } catch (error) {
        const detail = error instanceof Error ? error.message : String(error);
        faults.push({ kind: 'unreadable', what: `${stream} revision ${revision}`, detail });
      }
    }
    next += page.length;
    if (page.length < PAGE_EVENTS) return { named, next, faults, goneAt };
  }
}

/**
 * Returns the layers in the store by key; a fault if they are in a bucket of a user that cannot be listed; null if the
 * repository was deleted and its bucket is gone or moved, which ends its restore.
 */
async function listedLayers(
  layers: LayerStore,
  { id, place, deleted, bucketMoved }: KnownRepository,
): Promise<Map<string, StoredLayer> | { readonly fault: string } | null> {
  if (bucketMoved) return null;
  const listed = new Map<string, StoredLayer>();
  try {
    for await (const stored of layers.list(`repositories/${id}/`)) listed.set(stored.key, stored);
    return listed;
  } catch (error) {
    if (place.storageBucketId === null || !(error instanceof LayerStoreError)) throw error;
    if (deleted && error.code === 'bucket-missing') return null;
    return { fault: `the bucket ${place.storageBucketId} cannot be listed: ${error.code}` };
  }
}

/** The folders of what is no layer: checkpoints of accounts' logs, and erasures (docs/audit.md). */
const ACCOUNT_FOLDERS: ReadonlySet<string> = new Set(['checkpoints', 'erasures']);

/**
 * Reports files in the platform's store that belong to no repository of the log. The store is listed before the log is
 * read again: a repository may have been created after the log was read.
 */
async function findUnknownFiles({ layers, events }: StorageContext, known: KnownRepositories, run: Run): Promise<void> {
  const unknown = new Set<string>();
  for await (const { folder, id } of filesOf(layers)) if (id === null || !known.has(id)) unknown.add(folder);
  if (unknown.size === 0) return;
  const later = await readKnownRepositories(events);
  for await (const { key, folder, id } of filesOf(layers)) {
    if (!unknown.has(folder) || (id !== null && later.has(id))) continue;
    const detail = 'belongs to no repository that the log knows';
    run.fault({ kind: 'unknown', repository: null, what: key, detail });
  }
}

async function findIncoming({ layers, events }: StorageContext, known: KnownRepositories, run: Run): Promise<void> {
  const { ownerOf } = ownersAmong(known);
  for await (const { name, repository, account, sizeBytes, at } of leftIncoming({
    layers: layers.platform,
    events,
    ownerOf,
  })) {
    const of = repository === null ? null : (known.get(repository)?.name ?? repository);
    run.incoming({ repository: of, account, name, size_bytes: sizeBytes, at });
  }
}

interface StoredFile {
  readonly key: string;
  /** Its first two folders. */
  readonly folder: string;
  /** Null: it is not in the folder of a repository. */
  readonly id: RepositoryId | null;
}

async function* filesOf(layers: LayerStores): AsyncGenerator<StoredFile, void, undefined> {
  for await (const { key } of layers.platform.list('')) {
    const [top = '', idText = ''] = key.split('/');
    if (ACCOUNT_FOLDERS.has(top)) continue;
    const id = top === 'repositories' ? parseUuid<RepositoryId>(idText) : null;
    yield { key, folder: `${top}/${idText}`, id };
  }
}
