/**
 * Makes a repository of a restored log readable again: its list of layers becomes that of a newer manifest, and the
 * refs go whose tips no layer of the manifest holds.
 *
 * A purge, a drop or a merge after the backup took away layers that the restored log names as current. The manifest
 * names what took their place, and every layer that was pushed between the backup and the manifest. The log does not
 * know these: they come into the list, so no sweep removes them as layers without a name. What was pushed after the
 * backup is in them, though no ref of the restored log names it, and stays as long as what a deleted ref leaves. The
 * refs stay as the log has them: all that a ref of the log reaches is in the layers of the manifest, unless its owner
 * let it go after the backup.
 *
 * Invariants (docs/architecture.md, invariants 2, 3 and 4):
 * - the layers of the list are those of one manifest, which were committed together: they are closed under
 *   reachability. So a ref whose tip they hold is whole;
 * - each layer has its SHA-256 before an event names it: that of the log, or else that of the manifest;
 * - only the service writes manifests on platform storage. In a bucket of a user anybody may have written one, and no
 *   push has checked the objects of its layers, so it is refused there;
 * - nothing is adopted over what the log took on after it was restored: such an event is newer than the manifest;
 * - no byte in storage is removed but of a deleted repository whose layers had all been let go. A layer that the
 *   manifest names no longer and that is still there stays for the retention, as after any compaction;
 * - the refs go before the layers, and whoever dies between them does the rest the next time.
 */
import type { RefName } from '../../git/ref-name.ts';
import type { Cause } from '../../kernel/envelope.ts';
import {
  type AccountId,
  type LayerId,
  type ObjectId,
  type PushId,
  type RepositoryId,
  type Timestamp,
  uuid,
} from '../../kernel/ids.ts';
import { finishInTurns } from '../../kernel/turns.ts';
import type { LayerPlace } from '../../ports/layer-stores.ts';
import type { ObjectDatabase } from '../../ports/object-database.ts';
import { decideRepository, decidingRefs } from '../../repository/decide.ts';
import { repositories } from '../../repository/evolve.ts';
import type { Layer, LayerKey } from '../../repository/layer.ts';
import { layerKeyOf } from '../../repository/layers.ts';
import { LAYERS_REMOVED_AT_ONCE_MAX } from '../../repository/limits.ts';
import type { Manifest } from '../../repository/manifest.ts';
import type { OpenRepository, Repository } from '../../repository/state.ts';
import type { Entity } from '../../runtime/entity.ts';
import { type Context, execute } from '../../runtime/execute.ts';
import { readBack } from '../../runtime/read-back.ts';
import { appendPushEvents, createPushEvents, type PartsContext } from '../pushing/push-events.ts';
import { replacedLayers } from '../repositories/expire-layers-early.ts';

export interface AdoptionContext extends Context, PartsContext {
  /** Opens the layers of the manifest, by a cache of its own. */
  readonly objects: Pick<ObjectDatabase, 'open'>;
}

/** A repository whose log names a layer as current that is not in storage. */
export interface Adopted {
  readonly id: RepositoryId;
  readonly place: LayerPlace;
  readonly entity: Entity<Repository>;
  /** The newest one, of a later revision than the log's. All its layers are in storage. */
  readonly manifest: Manifest;
  /** The keys of the layers in storage. */
  readonly stored: ReadonlySet<LayerKey>;
}

export interface AdoptionPlan {
  /** Refs that are deleted, since their tips are in no layer of the manifest, with these tips. */
  readonly lostRefs: ReadonlyMap<RefName, ObjectId>;
  /** Layers that leave the list because their bytes have left storage. */
  readonly gone: readonly LayerId[];
  /** Layers that leave the list and are still in storage. */
  readonly replaced: readonly LayerId[];
  /** Layers that the log does not know. */
  readonly added: readonly Layer[];
}

/**
 * `in-bucket`: the manifest lies in a bucket of a user. `log-went-on`: the log has an event from after the manifest.
 * `undeleted-since`: the log says that it is deleted, and the manifest that it was brought back. `too-many-layers`: one
 * append cannot name them.
 */
export type AdoptionRefusal = 'in-bucket' | 'log-went-on' | 'undeleted-since' | 'too-many-layers';

/** The command that adopts, as its events name it. Those of a run that died do not count as a log that went on. */
export const ADOPTION = 'storage adopt';

/** An added layer takes some 330 bytes of the append, and one that leaves the list some 200: in events and in parts. */
const ADDED_WEIGHT = 4;
const REMOVED_WEIGHT = 2;

/** Rejects with an ObjectDatabaseError if a layer of the manifest has other bytes than the log or it says. */
export async function planAdoption(
  context: AdoptionContext,
  adopted: Adopted,
): Promise<AdoptionPlan | { readonly refused: AdoptionRefusal }> {
  const { place, entity, manifest, stored } = adopted;
  if (place.storageBucketId !== null) return { refused: 'in-bucket' };
  if (await wentOn(context, entity, manifest)) return { refused: 'log-went-on' };
  const { state } = entity;
  const { layers, refs } = state.status === 'closed' ? state.before : state;
  const known = new Map([...layers].map((layer) => [layer.id, layer] as const));
  const listed = manifest.layers.map((layer) => known.get(layer.id) ?? layer);
  const named = new Set(listed.map(({ id }) => id));
  const leaving = [...layers].filter(({ id }) => !named.has(id));
  const layersOfPlan = {
    gone: leaving.filter(({ key }) => !stored.has(key)).map(({ id }) => id),
    replaced: leaving.filter(({ key }) => stored.has(key)).map(({ id }) => id),
    added: listed.filter(({ id }) => !known.has(id)),
  };
  if (state.status === 'closed') {
    return listed.length === 0 ? { ...layersOfPlan, lostRefs: new Map() } : { refused: 'undeleted-since' };
  }
  const weight = REMOVED_WEIGHT * leaving.length + ADDED_WEIGHT * layersOfPlan.added.length;
  if (weight > LAYERS_REMOVED_AT_ONCE_MAX) return { refused: 'too-many-layers' };
  return { ...layersOfPlan, lostRefs: await lostRefs(context, adopted, { refs, listed }) };
}

/** Whether the stream has an event from after the manifest, but for those of an adoption that died. */
async function wentOn(
  { events }: Pick<AdoptionContext, 'events'>,
  { stream, revision }: Entity<Repository>,
  { asOf }: Manifest,
): Promise<boolean> {
  for await (const { occurredAt, actor } of readBack(events, stream, revision === 'none' ? -1 : revision)) {
    // The times of a stream never go back.
    if (occurredAt <= asOf) return false;
    if (actor.kind !== 'admin' || actor.id !== ADOPTION) return true;
  }
  return false;
}

/** Reads and checks every layer of the manifest. */
async function lostRefs(
  { objects }: Pick<AdoptionContext, 'objects'>,
  { id: repository, place, manifest }: Adopted,
  { refs, listed }: Pick<OpenRepository, 'refs'> & { readonly listed: readonly Layer[] },
): Promise<ReadonlyMap<RefName, ObjectId>> {
  const tips = [...new Set([...refs.entries()].map(([, { id }]) => id))];
  const missing = new Set(tips);
  if (listed.length > 0) {
    const { revision } = manifest;
    const opened = { repository, place, revision, shrinkEpoch: 0, keptSinceEpoch: null, layers: listed };
    const reader = await objects.open(opened);
    try {
      const found = await reader.lookup(tips);
      for (const [index, id] of tips.entries()) if (found[index] != null) missing.delete(id);
    } finally {
      reader.close();
    }
  }
  return new Map([...refs.entries()].flatMap(([name, { id }]) => (missing.has(id) ? [[name, id] as const] : [])));
}

interface About {
  readonly account: AccountId;
  readonly cause: Cause;
}

/** Resolves to false if another process has changed the repository since the plan: then the rest was left. */
export async function adoptManifest(
  context: AdoptionContext,
  about: About,
  adopted: Adopted,
  plan: AdoptionPlan,
): Promise<boolean> {
  const { id, entity } = adopted;
  if (entity.state.status === 'closed') return expireDeleted(context, about, id, entity.state.closedAt);
  await expireGone(context, about, adopted);
  if (!(await deleteRefs(context, about, id, plan.lostRefs))) return false;
  const current = await context.entities.reload(repositories, id);
  if (typeof current.revision !== 'number') return false;
  const { revision } = current;
  const { gone, replaced, added } = plan;
  // The commit point of an adoption.
  const executed = await execute(context, repositories, id, about, (state) =>
    decideRepository(state, { type: 'AdoptLayers', revision, gone, replaced, added }),
  );
  return !('refused' in executed) && executed.entity.revision !== revision;
}

/** Lets all layers of a deleted repository go: it stays deleted, and cannot come back. */
async function expireDeleted(
  context: AdoptionContext,
  about: About,
  id: RepositoryId,
  closedUntil: Timestamp,
): Promise<boolean> {
  for (;;) {
    const executed = await execute(context, repositories, id, about, (state) =>
      decideRepository(state, { type: 'ExpireDeleted', closedUntil }),
    );
    if ('refused' in executed) return false;
    const { state } = executed.entity;
    if (state.status === 'open') return false;
    if (state.before.layers.length === 0) return true;
  }
}

/**
 * Records that layers have left storage which compactions before the backup replaced. They leave in the order of the
 * compactions, so all up to the last one that lacks a layer had been let go.
 */
async function expireGone(context: AdoptionContext, about: About, { id, entity, stored }: Adopted): Promise<void> {
  const replaced = await replacedLayers(context, id, entity.state);
  const last = replaced.findLastIndex(({ layers }) =>
    layers.some((layer) => !stored.has(layerKeyOf(id, uuid<LayerId>(layer.id)))),
  );
  const gone = replaced.slice(0, last + 1);
  for (let isDone = gone.length === 0; !isDone; ) {
    await execute(context, repositories, id, about, (state) => {
      const decision = decideRepository(state, { type: 'PurgeLayers', all: false, replaced: gone, reason: 'purge' });
      isDone = 'refused' in decision || decision.events.length === 0;
      return decision;
    });
  }
}

/** Resolves to false if one of the refs has moved. */
async function deleteRefs(
  context: AdoptionContext,
  about: About,
  id: RepositoryId,
  lost: AdoptionPlan['lostRefs'],
): Promise<boolean> {
  if (lost.size === 0) return true;
  const { state, ...entity } = await context.entities.reload(repositories, id);
  if (state.status === 'closed') return false;
  const updates = [...lost].map(([ref, before]) => ({ ref, before, after: null, tip: null, fastForward: false }));
  const command = { updates, atomic: true, initialDefaultBranch: null, commitSeconds: new Map<ObjectId, number>() };
  const decision = await finishInTurns(decidingRefs(state, command), context.clock.nextTurn);
  if (decision.results.some(({ code }) => code !== null)) return false;
  const brought = { layer: null, pushOptions: [], receivedBytes: 0, refusedNames: 0 };
  const pushId = context.ids.next<PushId>();
  const facts = { pushId, ...brought, restored: null, door: 'admin', requestDigest: null } as const;
  const events = await createPushEvents(context, about)(facts, decision, entity.lastAt);
  const appended = await appendPushEvents(context, { ...entity, state }, events, { ...about, guards: [] });
  return appended !== 'lost';
}
