/**
 * The parts of the server that a request waits for, each with its span. A server without traces uses the bare parts.
 *
 * Invariants: a traced part does what the part does, and ends as the part ends. Only the platform's store is told of
 * the trace (layer-storage/s3.ts): a span of a user's bucket stays here, and a delivery to a user's URL has a trace of
 * its own, which its receiver is not told.
 */
import type { GitObjectDatabase } from '../../adapters/git/object-database.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { LayerStore } from '../../core/ports/layer-store.ts';
import type { LayerStores } from '../../core/ports/layer-stores.ts';
import type { ObjectReader } from '../../core/ports/object-database.ts';
import type { OutgoingRequests } from '../../core/ports/outgoing-requests.ts';
import type { Tracing } from '../../core/ports/tracing.ts';
import type { Entities } from '../../core/runtime/entities.ts';

export function tracedLog(events: EventStore, tracing: Pick<Tracing, 'append'>): EventStore {
  return { ...events, append: (request) => tracing.append(request.events, () => events.append(request)) };
}

/** The barrier of a request that needs no wait, under a read lease, has a span too: it tells that it cost nothing. */
export function tracedEntities(entities: Entities, tracing: Pick<Tracing, 'part'>): Entities {
  return {
    barrier: () => tracing.part('barrier', () => entities.barrier()),
    known() {
      const known = entities.known();
      if (known !== null) tracing.part('barrier', async () => known).catch(() => undefined);
      return known;
    },
    get: (decider, id) => entities.get(decider, id),
    reload: (decider, id) => entities.reload(decider, id),
    observe: (stream, firstRevision, position, events) => entities.observe(stream, firstRevision, position, events),
    appliedPosition: () => entities.appliedPosition(),
    residents: () => entities.residents(),
    start: () => entities.start(),
    close: () => entities.close(),
  };
}

export function tracedStores(layers: LayerStores, tracing: Pick<Tracing, 'part'>): LayerStores {
  const traced = (store: LayerStore): LayerStore => ({
    ...store,
    put: (...put) => tracing.part('store put', () => store.put(...put)),
    get: (...get) => tracing.part('store get', () => store.get(...get)),
    head: (key) => tracing.part('store head', () => store.head(key)),
    delete: (key) => tracing.part('store delete', () => store.delete(key)),
  });
  return {
    ...layers,
    platform: traced(layers.platform),
    of: (place, operation) => traced(layers.of(place, operation)),
  };
}

export function tracedObjects(
  objects: GitObjectDatabase,
  tracing: Pick<Tracing, 'part' | 'stream'>,
): GitObjectDatabase {
  const traced = (reader: ObjectReader): ObjectReader => ({
    ...reader,
    uploadPack: (options) => tracing.stream('git upload-pack', reader.uploadPack(options)),
    archive: (options) => tracing.stream('git archive', reader.archive(options)),
  });
  return {
    ...objects,
    receive: (options) => tracing.part('git receive', () => objects.receive(options)),
    open: async (committed) => traced(await tracing.part('git open', () => objects.open(committed))),
  };
}

export function tracedDeliveries(outgoing: OutgoingRequests, tracing: Pick<Tracing, 'alone'>): OutgoingRequests {
  return { ...outgoing, send: (request) => tracing.alone('webhook', () => outgoing.send(request)) };
}
