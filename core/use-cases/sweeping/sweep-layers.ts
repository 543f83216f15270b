/**
 * The policy that removes orphaned layers: stored for a push whose append never came (architecture, invariant 2).
 *
 * Must stay true: a layer goes only if it is older than a week by the store's clock and by this node's, while a push
 * may append for an hour at most, and the log itself, read to its stream's end after the layer was listed, names it
 * nowhere. On any doubt it stays: a stream that cannot be read or has no event at all (another database than the one
 * these layers belong to), a key of another form. Any number of nodes may sweep at once.
 */
import { type StreamName, streamName } from '../../kernel/envelope.ts';
import { type LayerId, parseUuid, plusMs, type RepositoryId } from '../../kernel/ids.ts';
import { type JsonObject, textsIn } from '../../kernel/json.ts';
import { ORPHANED_LAYER_SPAN_MS } from '../../kernel/limits.ts';
import type { Clock } from '../../ports/clock.ts';
import { type EventStore, EventStoreError } from '../../ports/event-store.ts';
import type { LayerStore, StoredLayer } from '../../ports/layer-store.ts';
import type { Log } from '../../ports/log.ts';

export interface LayerSweepContext {
  readonly events: Pick<EventStore, 'readStream'>;
  readonly layers: Pick<LayerStore, 'list' | 'delete' | 'now'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Log;
  /** Told of each layer removed, for the metrics. */
  readonly onSwept: (layer: StoredLayer) => void;
}

/** Old layers judged together, in memory at a time. */
const BATCH_LAYERS_MAX = 50_000;
/** Each event may be near the bound of an append. */
const PAGE_EVENTS_MAX = 100;
const LAYER_KEY = /^repositories\/([^/]+)\/layers\/([^/]+)\.tar$/;

/** What a layer's key says. */
interface OldLayer extends StoredLayer {
  readonly repository: RepositoryId;
  readonly id: LayerId;
}

/** Of one repository, by layer. */
type OldLayers = Map<LayerId, OldLayer>;

/**
 * Looks once through the whole store. Rejects when the log or the store cannot be reached: what was not judged by
 * then stays until the next time. Ends early, without an error, once the signal is aborted.
 */
export async function sweepLayers(context: LayerSweepContext, signal: AbortSignal): Promise<void> {
  const { layers, clock } = context;
  const storeTime = await layers.now();
  const nodeTime = clock.now();
  const oldest = plusMs(storeTime < nodeTime ? storeTime : nodeTime, -ORPHANED_LAYER_SPAN_MS);
  let batch = new Map<RepositoryId, OldLayers>();
  let count = 0;
  for await (const stored of layers.list('repositories/')) {
    if (signal.aborted) return;
    const layer = stored.storedAt < oldest ? parseLayer(stored) : null;
    if (layer === null) continue;
    const ofRepository: OldLayers = batch.get(layer.repository) ?? new Map();
    batch.set(layer.repository, ofRepository.set(layer.id, layer));
    count += 1;
    if (count < BATCH_LAYERS_MAX) continue;
    await sweepBatch(context, batch, signal);
    batch = new Map();
    count = 0;
  }
  await sweepBatch(context, batch, signal);
}

/** Null for what is no push's layer, e.g. a manifest. */
function parseLayer(stored: StoredLayer): OldLayer | null {
  const [, repositoryText = '', idText = ''] = LAYER_KEY.exec(stored.key) ?? [];
  const repository = parseUuid<RepositoryId>(repositoryText);
  const id = parseUuid<LayerId>(idText);
  const canonical = repository === repositoryText && id === idText;
  return canonical && repository !== null && id !== null ? { ...stored, repository, id } : null;
}

async function sweepBatch(
  context: LayerSweepContext,
  batch: ReadonlyMap<RepositoryId, OldLayers>,
  signal: AbortSignal,
): Promise<void> {
  for (const [repository, old] of batch) {
    let orphans: OldLayers;
    try {
      orphans = await unnamed(context.events, streamName('repository', repository), old, signal);
    } catch (cause) {
      if (cause instanceof EventStoreError && cause.code === 'log-unavailable') throw cause;
      context.log.error({ err: cause, repository }, 'Orphaned layers were not looked for: the stream cannot be read');
      continue;
    }
    for (const layer of orphans.values()) {
      if (signal.aborted) return;
      await context.layers.delete(layer.key);
      const { id, sizeBytes, storedAt } = layer;
      context.log.info({ repository, layer: id, sizeBytes, storedAt }, 'Removed a layer that no event names');
      context.onSwept(layer);
    }
  }
}

/** Those of the layers that no event of the stream names; none of them when there is any doubt. */
async function unnamed(
  events: Pick<EventStore, 'readStream'>,
  stream: StreamName,
  layers: OldLayers,
  signal: AbortSignal,
): Promise<OldLayers> {
  const left = new Map(layers);
  for (let from = 0; left.size > 0; from += PAGE_EVENTS_MAX) {
    if (signal.aborted) return new Map();
    const page = await events.readStream(stream, { direction: 'forwards', from, limit: PAGE_EVENTS_MAX });
    // The log knows nothing of this repository: perhaps it is not the log that the layers belong to.
    if (from === 0 && page.length === 0) return new Map();
    for (const { data } of page) removeNamed(left, data);
    if (page.length < PAGE_EVENTS_MAX) break;
  }
  return left;
}

/** By any text in the data, so that events of types yet to come keep what they name, on older nodes too. */
function removeNamed(left: OldLayers, data: JsonObject): void {
  for (const text of textsIn(data)) {
    const named = parseUuid<LayerId>(LAYER_KEY.exec(text)?.[2] ?? text);
    if (named !== null) left.delete(named);
  }
}
