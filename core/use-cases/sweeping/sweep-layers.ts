/**
 * The policy that removes orphaned layers, whose push never committed (docs/architecture.md, invariant 2), and layers
 * that expired while their store could not remove them.
 *
 * Invariants: a layer is removed only if both conditions hold. It is older than a week by the store's clock and by
 * this node's clock (for a command of an operator: than the time in which an append may come), while a push has at most
 * an hour to append. And no event of its repository's stream names it, or a `LayersExpired` does, read to the end after
 * the layer was listed. In any doubt the layer stays: if the stream cannot be read, if the log does not know the
 * repository (the database may not be the one these layers belong to), or if the key has another form. Any number of
 * nodes may sweep at the same time.
 */
import { readEvent } from '../../kernel/decider.ts';
import { type RecordedEvent, streamName } from '../../kernel/envelope.ts';
import { type AccountId, type LayerId, parseUuid, plusMs, type RepositoryId, uuid } from '../../kernel/ids.ts';
import { type JsonObject, textsIn } from '../../kernel/json.ts';
import { ORPHANED_LAYER_SPAN_MS } from '../../kernel/limits.ts';
import type { Clock } from '../../ports/clock.ts';
import { type EventStore, EventStoreError } from '../../ports/event-store.ts';
import type { LayerStore } from '../../ports/layer-store.ts';
import type { Log } from '../../ports/log.ts';
import { type RepositoryEvent, repositoryEventKinds } from '../../repository/events.ts';
import type { StoredLayer } from '../../repository/layer.ts';

export interface LayerSweepContext {
  readonly events: Pick<EventStore, 'readStream'>;
  readonly layers: Pick<LayerStore, 'list' | 'delete' | 'now'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Log;
  /** Called for each removed layer, for the metrics. */
  readonly onSwept: (layer: StoredLayer) => void;
  /**
   * Whether the bucket of a user that is swept holds this repository; others are left alone. Layers that expired are
   * removed there as well, since their expiry does not wait for a bucket. Absent: the platform's store.
   */
  readonly isInBucket?: (repository: RepositoryId) => boolean;
  /**
   * Returns the account of a repository that has no event of its own yet, since nothing was pushed to it; null if
   * nobody knows it. Absent: nobody does.
   */
  readonly ownerOf?: (repository: RepositoryId) => Promise<AccountId | null>;
  /** How old a layer must be. Absent: seven days. */
  readonly spanMs?: number;
}

/** A stored layer that no event names, or that expired. */
export interface UnnamedLayer extends StoredLayer {
  readonly repository: RepositoryId;
  readonly id: LayerId;
  /** Whose repository it belongs to; null if the log does not know the repository: then it stays. */
  readonly account: AccountId | null;
}

/** The number of old layers that are held in memory and checked together. Internal: the rest is in further batches. */
const BATCH_LAYERS_MAX = 50_000;
/**
 * A small page, because each event may be almost as large as an append may be. Internal: the rest is read in further
 * pages.
 */
const PAGE_EVENTS_MAX = 100;

const LAYER_KEY = /^repositories\/([^/]+)\/layers\/([^/]+)\.tar$/;

/** A stored layer with the ids in its key. */
interface OldLayer extends StoredLayer {
  readonly repository: RepositoryId;
  readonly id: LayerId;
}

/** The old layers of one repository. */
type OldLayers = Map<LayerId, OldLayer>;

/**
 * Reads the whole store once. Rejects if the log or the store cannot be reached; layers that were not checked by then
 * stay until the next sweep. Resolves early when the signal is aborted.
 */
export async function sweepLayers(context: LayerSweepContext, signal: AbortSignal): Promise<void> {
  for await (const layer of unnamedLayers(context, signal)) {
    const { account, repository, id, key, sizeBytes, storedAt } = layer;
    if (account === null) continue;
    await context.layers.delete(key);
    context.log.info(
      { account, repository, layer: id, sizeBytes, storedAt },
      'Removed a layer that no event names, or that expired',
    );
    context.onSwept(layer);
  }
}

export type UnnamedLayersContext = Omit<LayerSweepContext, 'layers' | 'onSwept'> & {
  readonly layers: Pick<LayerStore, 'list' | 'now'>;
};

/** Returns the layers of the store that no event names, or that expired, and that are old enough. */
export async function* unnamedLayers(
  context: UnnamedLayersContext,
  signal: AbortSignal,
): AsyncGenerator<UnnamedLayer, void, undefined> {
  const { layers, clock, isInBucket = () => true, spanMs = ORPHANED_LAYER_SPAN_MS } = context;
  const storeTime = await layers.now();
  const nodeTime = clock.now();
  const oldest = plusMs(storeTime < nodeTime ? storeTime : nodeTime, -spanMs);
  let batch = new Map<RepositoryId, OldLayers>();
  let count = 0;
  for await (const stored of layers.list('repositories/')) {
    if (signal.aborted) return;
    const layer = stored.storedAt < oldest ? parseLayer(stored) : null;
    if (layer === null || !isInBucket(layer.repository)) continue;
    const ofRepository: OldLayers = batch.get(layer.repository) ?? new Map();
    batch.set(layer.repository, ofRepository.set(layer.id, layer));
    count += 1;
    if (count < BATCH_LAYERS_MAX) continue;
    yield* unnamedIn(context, batch, signal);
    batch = new Map();
    count = 0;
  }
  yield* unnamedIn(context, batch, signal);
}

/** Returns null for an object that is not a push's layer, such as a manifest. */
function parseLayer(stored: StoredLayer): OldLayer | null {
  const [, repositoryText = '', idText = ''] = LAYER_KEY.exec(stored.key) ?? [];
  const repository = parseUuid<RepositoryId>(repositoryText);
  const id = parseUuid<LayerId>(idText);
  const canonical = repository === repositoryText && id === idText;
  return canonical && repository !== null && id !== null ? { ...stored, repository, id } : null;
}

async function* unnamedIn(
  context: UnnamedLayersContext,
  batch: ReadonlyMap<RepositoryId, OldLayers>,
  signal: AbortSignal,
): AsyncGenerator<UnnamedLayer, void, undefined> {
  for (const [repository, old] of batch) {
    let unnamed: Unnamed;
    try {
      unnamed = await withoutName(context, repository, old, signal);
    } catch (cause) {
      if (cause instanceof EventStoreError && cause.code === 'log-unavailable') throw cause;
      context.log.error({ err: cause, repository }, 'Orphaned layers were not searched for: the stream cannot be read');
      continue;
    }
    for (const layer of unnamed.layers.values()) {
      if (signal.aborted) return;
      yield { ...layer, account: unnamed.account };
    }
  }
}

interface Unnamed {
  readonly account: AccountId | null;
  readonly layers: OldLayers;
}

const NONE: Unnamed = { account: null, layers: new Map() };

/** Returns the layers that no event of the stream names, or that expired. */
async function withoutName(
  { events, isInBucket, ownerOf = async () => null }: UnnamedLayersContext,
  repository: RepositoryId,
  layers: OldLayers,
  signal: AbortSignal,
): Promise<Unnamed> {
  const stream = streamName('repository', repository);
  const left = new Map(layers);
  const expired: OldLayers = new Map();
  let account: AccountId | null = null;
  for (let from = 0; left.size > 0 || isInBucket !== undefined; ) {
    if (signal.aborted) return NONE;
    const page = await events.readStream(stream, { direction: 'forwards', from, limit: PAGE_EVENTS_MAX });
    // A log without an event of this repository may not be the log that the layers belong to, unless it knows its
    // owner.
    if (from === 0) account = page[0] === undefined ? await ownerOf(repository) : page[0].accountId;
    for (const recorded of page) {
      for (const id of isInBucket === undefined ? [] : expiredIn(recorded)) {
        const layer = layers.get(id);
        if (layer !== undefined) expired.set(id, layer);
      }
      removeNamed(left, recorded.data);
    }
    if (page.length < PAGE_EVENTS_MAX) break;
    from += page.length;
  }
  return { account, layers: new Map([...left, ...expired]) };
}

/** Returns the layers whose bytes the event lets go, which no later event brings back. */
function expiredIn(recorded: RecordedEvent): readonly LayerId[] {
  if (recorded.type !== 'LayersExpired') return [];
  const event = readEvent<RepositoryEvent>(repositoryEventKinds, recorded);
  return event.type === 'LayersExpired' ? event.data.layers.map(({ id }) => uuid<LayerId>(id)) : [];
}

/**
 * Drops the layers that any text in the data names. So an older node keeps a layer that an event of a type it does not
 * know names.
 */
function removeNamed(left: OldLayers, data: JsonObject): void {
  for (const text of textsIn(data)) {
    const named = parseUuid<LayerId>(LAYER_KEY.exec(text)?.[2] ?? text);
    if (named !== null) left.delete(named);
  }
}
