/**
 * Verifies the layers of one account in their stores: that each is there with its size, or that it has its bytes.
 *
 * Invariants: a layer that an event let go since, or whose absence a restored log explains, is no fault. A bucket of a
 * user that cannot be used is shown to its owner, is no fault, and is not asked for the repository's other layers. The
 * platform's store that cannot be used is an outage. Bytes are read in parts, so that no transfer is held open.
 */
import { MIB } from '../../kernel/byte-units.ts';
import type { Digest } from '../../kernel/digest.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { EventStore } from '../../ports/event-store.ts';
import { type LayerStore, LayerStoreError } from '../../ports/layer-store.ts';
import type { LayerStores } from '../../ports/layer-stores.ts';
import type { RecordedLayer } from '../../repository/events.ts';
import { type LayerKey, layerKey } from '../../repository/layer.ts';
import type { KnownRepository } from '../repositories/known-repositories.ts';
import { tellingChanges } from './changed.ts';
import { compareLayer, type LayerFault } from './check-layer.ts';
import { createExplanations } from './explain-missing-layer.ts';
import { expiredSince } from './later-expiry.ts';
import { isInBucket, namedLayers, repositoriesInStores } from './named-layers.ts';
import type { Pace } from './pace.ts';
import { pacedStreams } from './paced-streams.ts';

export interface LayersContext {
  readonly events: Pick<EventStore, 'readStream'>;
  readonly layers: LayerStores;
  readonly digest: Pick<Digest, 'startSha256'>;
}

/** Looks at a layer in its store. Rejects with a `LayerStoreError` if the store cannot be used. */
export type Look = (
  context: LayersContext,
  store: LayerStore,
  layer: RecordedLayer,
  pace: Pace,
) => Promise<LayerFault | null>;

export const sizeOf: Look = async (_context, store, layer, pace) => {
  const { head } = await pace.run(async () => ({ head: await store.head(layerKey(layer.key)), sizeBytes: 0 }));
  if (head === null) return { kind: 'missing', detail: 'is not there' };
  if (head.sizeBytes === layer.size_bytes) return null;
  return { kind: 'damaged', detail: `holds ${head.sizeBytes} bytes instead of ${layer.size_bytes}` };
};

export const bytesOf: Look = async (context, store, layer, pace) => {
  const fault = await sizeOf(context, store, layer, pace);
  if (fault !== null) return fault;
  const get = async (key: LayerKey) => partsOf(store, key, layer.size_bytes, pace);
  return compareLayer(context.digest, { get }, layer);
};

/** What one call reads of a layer. */
const PART_BYTES = 4 * MIB;

async function* partsOf(
  store: LayerStore,
  key: LayerKey,
  sizeBytes: number,
  pace: Pace,
): AsyncGenerator<Uint8Array, void, undefined> {
  for (let start = 0; start < sizeBytes; start += PART_BYTES) {
    const end = Math.min(start + PART_BYTES, sizeBytes);
    const { chunks } = await pace.run(async () => {
      return { chunks: await Array.fromAsync(await store.get(key, { start, end })), sizeBytes: end - start };
    });
    yield* chunks;
  }
}

export interface Which {
  readonly look: Look;
  /** Only layers with a larger key; null for all. */
  readonly after: LayerKey | null;
}

export interface LayerReports {
  readonly fault: (text: string) => void;
  /** Called behind each layer. After false no more are looked at. */
  readonly passed: (key: LayerKey) => Promise<boolean>;
}

/** Returns false if `passed` did. */
export async function verifyLayers(
  context: LayersContext,
  account: AccountId,
  which: Which,
  pace: Pace,
  reports: LayerReports,
): Promise<boolean> {
  const paced = { ...context, events: pacedStreams(context.events, pace) };
  const explanations = createExplanations(context.layers.platform);
  let repositories: readonly KnownRepository[] = [];
  await tellingChanges(reports.fault, async () => {
    repositories = await repositoriesInStores(paced.events, account);
  });
  let goesOn = true;
  for (const repository of repositories) {
    if (isBefore(repository, which.after)) continue;
    await tellingChanges(reports.fault, async () => {
      goesOn = await verifyRepository(paced, { repository, explanations }, which, pace, reports);
    });
    if (!goesOn) return false;
  }
  return true;
}

/** Whether each of its layers has a smaller key. */
function isBefore({ id }: KnownRepository, after: LayerKey | null): boolean {
  const folder = `repositories/${id}/`;
  return after !== null && !after.startsWith(folder) && folder < after;
}

interface Verified {
  readonly repository: KnownRepository;
  readonly explanations: ReturnType<typeof createExplanations>;
}

async function verifyRepository(
  context: LayersContext,
  { repository, explanations }: Verified,
  { look, after }: Which,
  pace: Pace,
  { fault, passed }: LayerReports,
): Promise<boolean> {
  const { events, layers } = context;
  const { id, place } = repository;
  const store = layers.of(place, 'maintenance');
  const { stream, revision, layers: named } = await namedLayers(events, repository);
  const check = async (layer: RecordedLayer): Promise<void> => {
    const found = await look(context, store, layer, pace);
    if (found === null || (await expiredSince(events, stream, revision + 1)).has(layer.id)) return;
    const missing = { id: layer.id, account: place.account, repository: id, store, revision };
    const isExplained = found.kind === 'missing' && (await explanations.of(missing)) !== null;
    if (!isExplained) fault(`${stream} names the layer ${layer.key}, which ${found.detail}`);
  };
  for (const layer of named) {
    if (after !== null && layer.key <= after) continue;
    try {
      await check(layer);
    } catch (error) {
      if (isInBucket(repository) && error instanceof LayerStoreError) return true;
      throw error;
    }
    if (!(await passed(layerKey(layer.key)))) return false;
  }
  return true;
}
