/**
 * A push: objects into quarantine, checked, stored as a layer, and then one append that makes it true.
 *
 * Must stay true (architecture, invariants 2 and 3):
 * - the append of `RefsUpdated` is the only commit point; before it nothing is visible, after it nothing is lost;
 * - the pack was checked against exactly the layers committed at the revision it was judged at; while the
 *   repository's shrink epoch stands, later layers only add to them, so a lost race re-checks refs alone;
 * - every way out before the append leaves at most an orphaned layer, which no event names.
 */
import type { PlanQuotas } from '../account/plans.ts';
import type { Cause, NewEvent } from '../kernel/envelope.ts';
import type { LayerId, ObjectId, PushId } from '../kernel/ids.ts';
import { PACK_OBJECTS_MAX, PACK_SIZE_BYTES_MAX, PUSH_COMMIT_SPAN_MS } from '../kernel/limits.ts';
import { streamName } from '../kernel/envelope.ts';
import type { RefusalCode } from '../kernel/refusal.ts';
import type { Digest } from '../ports/digest.ts';
import type { Reach } from '../ports/fault-points.ts';
import { type LayerStore, layerKey } from '../ports/layer-store.ts';
import type { Layer, ObjectDatabase, PackRefusal, Quarantine } from '../ports/object-database.ts';
import type { UsageReader } from '../ports/usage.ts';
import type { RequestedUpdate } from '../repository/commands.ts';
import { decideRefs, type RefResult, type UpdateRefsDecision } from '../repository/decide.ts';
import {
  type RefUpdatesPart,
  type RepositoryEvent,
  refUpdatesEventKinds,
  type StoredLayer,
  type StoredRefUpdate,
} from '../repository/events.ts';
import { repositories } from '../repository/evolve.ts';
import type { OpenRepository } from '../repository/state.ts';
import { isNarrow, splitUpdates, updatesDigestText } from '../repository/wide-updates.ts';
import type { RefName } from '../git/ref-name.ts';
import type { Entity } from './entities.ts';
import { type Context, envelop, type Guarding } from './execute.ts';
import type { FoundRepository } from './repositories.ts';

export interface PushContext extends Context {
  readonly digest: Digest;
  readonly layers: LayerStore;
  readonly objects: ObjectDatabase;
  readonly usage: UsageReader;
  readonly reach: Reach;
}

/** One command as the client sent it; null ids stand for "no object". */
export interface PushCommand {
  readonly ref: RefName;
  readonly before: ObjectId | null;
  readonly after: ObjectId | null;
}

export interface Push {
  readonly repository: FoundRepository;
  readonly quotas: PlanQuotas;
  readonly cause: Cause;
  readonly guarding: Guarding;
  readonly commands: readonly PushCommand[];
  readonly atomic: boolean;
  readonly pushOptions: readonly string[];
  /** The raw pack; null when every command is a deletion. */
  readonly pack: AsyncIterable<Uint8Array> | null;
  /** Bytes of the body read so far, asked for at the commit. */
  readonly receivedBytes: () => number;
  readonly signal: AbortSignal;
  readonly onEndOfInput?: () => void;
}

/** Why a whole push was refused. */
export type PushRefusal =
  | { readonly code: PackRefusal['refused']; readonly detail: string }
  | {
      readonly code: Extract<
        RefusalCode,
        'storage-quota-reached' | 'ingress-quota-reached' | 'token-no-longer-valid' | 'repository-not-found'
      >;
    }
  | { readonly code: 'push-took-too-long' };

export type PushOutcome = { readonly results: readonly RefResult[] } | { readonly refused: PushRefusal };

export async function pushRefs(context: PushContext, push: Push): Promise<PushOutcome> {
  const room = await roomFor(context, push);
  if ('refused' in room) return room;
  if (push.pack === null) return commit(context, push, null, null);
  const { entity } = push.repository;
  const received = await context.objects.receive({
    objects: committedObjects(push.repository.id, entity),
    pack: push.pack,
    packSizeBytesMax: room.bytes,
    objectCountMax: PACK_OBJECTS_MAX,
    signal: push.signal,
    ...(push.onEndOfInput === undefined ? {} : { onEndOfInput: push.onEndOfInput }),
  });
  if ('refused' in received) {
    const quota = received.refused === 'pack-too-large' ? room.boundBy : null;
    return { refused: quota === null ? { code: received.refused, detail: received.detail } : { code: quota } };
  }
  try {
    await context.reach('push-pack-received');
    return await commit(context, push, received, entity);
  } finally {
    // After an install there is nothing left to discard; on every other way out the quarantine goes.
    await received.discard();
  }
}

type Room =
  | { readonly bytes: number; readonly boundBy: 'storage-quota-reached' | 'ingress-quota-reached' | null }
  | { readonly refused: PushRefusal };

/** How large the pack may be: the product's own bound, or what the account's quotas leave. */
async function roomFor(context: PushContext, push: Push): Promise<Room> {
  const { storage_bytes: storage, ingress_bytes: ingress } = push.quotas;
  if ((storage === null && ingress === null) || push.pack === null)
    return { bytes: PACK_SIZE_BYTES_MAX, boundBy: null };
  const used = await context.usage.usageOf(push.repository.accountId);
  const storageLeft = storage === null ? Number.POSITIVE_INFINITY : storage - used.storageBytes;
  const ingressLeft = ingress === null ? Number.POSITIVE_INFINITY : ingress - used.ingressBytes;
  if (storageLeft <= 0) return { refused: { code: 'storage-quota-reached' } };
  if (ingressLeft <= 0) return { refused: { code: 'ingress-quota-reached' } };
  const left = Math.min(storageLeft, ingressLeft);
  if (left >= PACK_SIZE_BYTES_MAX) return { bytes: PACK_SIZE_BYTES_MAX, boundBy: null };
  return { bytes: left, boundBy: storageLeft <= ingressLeft ? 'storage-quota-reached' : 'ingress-quota-reached' };
}

/** The layers of a repository at a revision, as the object database takes them. */
export function committedObjects(
  repository: FoundRepository['id'],
  entity: Entity<OpenRepository>,
): Parameters<ObjectDatabase['open']>[0] {
  const { layers, shrinkEpoch } = entity.state;
  return { repository, revision: entity.revision, shrinkEpoch, layers };
}

/** Lost races before a push gives up; each means that another push to the repository succeeded. */
const RACES_MAX = 1_000;

interface Prepared {
  readonly layer: Layer | null;
  /** Monotonic time of the layer's put. */
  readonly storedAtMs: number;
}

async function commit(
  context: PushContext,
  push: Push,
  quarantine: Quarantine | null,
  checkedAt: Entity<OpenRepository> | null,
): Promise<PushOutcome> {
  const { id, accountId } = push.repository;
  const pushId = context.ids.next<PushId>();
  const updates = await inspect(push, quarantine);
  const about = {
    updates,
    atomic: push.atomic,
    initialDefaultBranch: push.repository.owned.initialDefaultBranch,
  } as const;
  let entity = push.repository.entity;
  let epoch = checkedAt?.state.shrinkEpoch ?? entity.state.shrinkEpoch;
  let prepared: Prepared | null = null;
  for (let race = 0; race < RACES_MAX; race += 1) {
    push.signal.throwIfAborted();
    const decision = decideRefs(entity.state, about);
    if (decision.updates.length === 0) {
      const current = await reloadOpen(context, push);
      if (current === null) return { refused: { code: 'repository-not-found' } };
      if (current.revision === entity.revision) return { results: decision.results };
      entity = current;
      continue;
    }
    if (quarantine !== null && entity.state.shrinkEpoch !== epoch) {
      const refused = await quarantine.recheck(committedObjects(id, entity));
      if (refused !== null) return { refused: { code: refused.refused, detail: refused.detail } };
      epoch = entity.state.shrinkEpoch;
    }
    prepared ??= await storeLayer(context, push, pushId, quarantine, decision);
    if (context.clock.monotonicMs() - prepared.storedAtMs > PUSH_COMMIT_SPAN_MS) {
      return { refused: { code: 'push-took-too-long' } };
    }
    const guarded = await push.guarding();
    if ('refused' in guarded) return { refused: { code: 'token-no-longer-valid' } };
    const events = await eventsOf(context, push, entity, pushId, decision, prepared.layer);
    const envelopes = { account: accountId, cause: push.cause, lastAt: entity.lastAt };
    const stored = envelop(context, repositories, events.stored, envelopes);
    // The commit point of a push.
    const result = await context.events.append({
      stream: entity.stream,
      expected: entity.revision,
      events: stored,
      guards: guarded.guards,
    });
    if (result.outcome === 'appended') {
      await context.reach('push-appended');
      if (quarantine !== null && prepared.layer !== null) await quarantine.install(prepared.layer);
      await context.reach('push-installed');
      const whole = stored.map((event, index) => ({ ...event, data: events.whole[index]?.data ?? event.data }));
      context.entities.observe(entity.stream, result.revision - stored.length + 1, result.position, whole);
      return { results: decision.results };
    }
    const current = await reloadOpen(context, push);
    if (current === null) return { refused: { code: 'repository-not-found' } };
    entity = current;
  }
  throw new Error(`${RACES_MAX} lost races on ${entity.stream}`);
}

async function reloadOpen(context: PushContext, push: Push): Promise<Entity<OpenRepository> | null> {
  const entity = await context.entities.reload(repositories, push.repository.id);
  return entity.state.status === 'open' ? { ...entity, state: entity.state } : null;
}

/** Looks up every new tip, and whether each moved branch went forward. */
async function inspect(push: Push, quarantine: Quarantine | null): Promise<readonly RequestedUpdate[]> {
  const wanted = push.commands.flatMap(({ after }) => (after === null ? [] : [after]));
  if (quarantine === null) {
    if (wanted.length > 0) throw new TypeError('A push with new tips carries a pack (gitprotocol-pack(5))');
    return push.commands.map((command) => ({ ...command, tip: null, fastForward: false }));
  }
  const found = await quarantine.tips(wanted);
  const tips = new Map(wanted.map((id, index) => [id, found[index] ?? null]));
  const updates: RequestedUpdate[] = [];
  for (const command of push.commands) {
    const { ref, before, after } = command;
    const tip = after === null ? null : (tips.get(after) ?? null);
    const moved = before !== null && after !== null && before !== after && tip?.type === 'commit';
    // Tags are not meant to move at all, so any move of one counts as forced.
    const ordered = moved && !ref.startsWith('refs/tags/');
    updates.push({ ...command, tip, fastForward: ordered && (await quarantine.isAncestor(before, after)) });
  }
  return updates;
}

/** Stores the pack as a layer; a pack of no objects makes none. */
async function storeLayer(
  context: PushContext,
  push: Push,
  pushId: PushId,
  quarantine: Quarantine | null,
  decision: UpdateRefsDecision,
): Promise<Prepared> {
  const storedAtMs = context.clock.monotonicMs();
  if (quarantine === null || quarantine.objectCount === 0) return { layer: null, storedAtMs };
  const id = context.ids.next<LayerId>();
  const key = layerKey(`repositories/${push.repository.id}/layers/${id}.tar`);
  const lines = decision.updates.map(
    ({ after, ref, peeled }) => `${after} ${ref}${peeled === null ? '' : ` ${peeled}`}`,
  );
  const content = await quarantine.layer(lines, {
    format: 1,
    layer_id: id,
    push_id: pushId,
    repository_id: push.repository.id,
    object_count: quarantine.objectCount,
  });
  const put = await context.layers.put(key, content.body(), content.sizeBytes);
  if (put === 'exists') throw new TypeError(`The new layer ${id} exists already`);
  await context.reach('push-layer-stored');
  const { sizeBytes, sha256 } = content;
  return { layer: { id, key, sizeBytes, sha256, pack: quarantine.pack }, storedAtMs };
}

function storedLayer(layer: Layer): StoredLayer {
  return { id: layer.id, key: layer.key, size_bytes: layer.sizeBytes, sha256: layer.sha256, pack: layer.pack };
}

/** The events to store, and the same with a wide push's updates in place, as memory folds them. */
async function eventsOf(
  context: PushContext,
  push: Push,
  entity: Entity<OpenRepository>,
  pushId: PushId,
  decision: UpdateRefsDecision,
  layer: Layer | null,
): Promise<{ readonly stored: readonly RepositoryEvent[]; readonly whole: readonly RepositoryEvent[] }> {
  const data = {
    push_id: pushId,
    updates: decision.updates,
    parts: null,
    layer: layer === null ? null : storedLayer(layer),
    push_options: push.pushOptions,
    refused: decision.results.filter(({ code }) => code !== null).length,
    received_bytes: push.receivedBytes(),
  };
  const chosen: readonly RepositoryEvent[] =
    decision.defaultBranch === null
      ? []
      : [{ type: 'DefaultBranchChanged', data: { default_branch: decision.defaultBranch } }];
  const narrow: RepositoryEvent = { type: 'RefsUpdated', data };
  if (isNarrow(decision.updates, push.pushOptions)) return { stored: [narrow, ...chosen], whole: [narrow, ...chosen] };
  const parts = await appendParts(context, push, entity, decision.updates);
  const wide: RepositoryEvent = { type: 'RefsUpdated', data: { ...data, updates: [], parts } };
  return { stored: [wide, ...chosen], whole: [{ type: 'RefsUpdated', data: { ...data, parts } }, ...chosen] };
}

/** A new stream for each try: parts whose append lost its race mean nothing and are never named. */
async function appendParts(
  context: PushContext,
  push: Push,
  entity: Entity<OpenRepository>,
  updates: readonly StoredRefUpdate[],
): Promise<{ readonly stream: string; readonly count: number; readonly updates: number; readonly sha256: string }> {
  const stream = streamName('refUpdates', context.ids.next<PushId>());
  const parts = splitUpdates(updates);
  const about = { account: push.repository.accountId, cause: push.cause, lastAt: entity.lastAt };
  for (const [index, part] of parts.entries()) {
    const events: readonly NewEvent[] = envelop<RefUpdatesPart>(
      context,
      { kinds: refUpdatesEventKinds },
      [part],
      about,
    );
    const expected = index === 0 ? 'none' : index - 1;
    const result = await context.events.append({ stream, expected, events });
    if (result.outcome === 'conflict') throw new TypeError(`The new stream ${stream} exists already`);
  }
  await context.reach('push-parts-appended');
  const sha256 = context.digest.sha256(updatesDigestText(updates));
  return { stream, count: parts.length, updates: updates.length, sha256 };
}
