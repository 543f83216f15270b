/**
 * A push: objects into quarantine, checked, stored as a layer, and then one append that makes it true.
 *
 * Must stay true (architecture, invariants 2 and 3):
 * - the append of `RefsUpdated` is the only commit point; before it nothing is visible, after it nothing is lost;
 * - the pack was checked against exactly the layers committed at the revision it was judged at; while the
 *   repository's shrink epoch stands, later layers only add to them, so a lost race re-checks refs alone;
 * - every way out before the append leaves at most an orphaned layer, which no event names.
 */
import type { PlanQuotas } from '../../account/plans.ts';
import type { RefName } from '../../git/ref-name.ts';
import type { Cause } from '../../kernel/envelope.ts';
import { type ObjectId, plusMs, type PushId, type Timestamp } from '../../kernel/ids.ts';
import { PACK_OBJECTS_MAX, PUSH_COMMIT_SPAN_MS } from '../../kernel/limits.ts';
import type { Clock } from '../../ports/clock.ts';
import type { LayerStore } from '../../ports/layer-store.ts';
import type { CommittedObjects, ObjectDatabase, PackRefusal, Quarantine } from '../../ports/object-database.ts';
import type { UsageReader } from '../../ports/usage.ts';
import type { RequestedUpdate } from '../../repository/commands.ts';
import { decideRefs, type RefResult, type UpdateRefsDecision } from '../../repository/decide.ts';
import { repositories } from '../../repository/evolve.ts';
import type { OpenRepository } from '../../repository/state.ts';
import { type Entity, nextRevision } from '../../runtime/entity.ts';
import { type Context, envelop, type Guarding } from '../../runtime/execute.ts';
import { createPushEvents, type PartsContext } from './push-events.ts';
import { type PreparedLayer, prepareLayer, storeLayer } from './push-layer.ts';
import { type QuotaRefusalCode, quotaPassed, roomForPack } from '../../usage/quota.ts';
import type { FoundRepository } from '../accounts/repositories.ts';

export interface PushContext extends Context, PartsContext {
  readonly layers: LayerStore;
  readonly objects: ObjectDatabase;
  readonly usage: UsageReader;
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
  /** Commands beside those, refused for their names: the pack may hold what was meant for them. */
  readonly refusedNames: number;
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
  | { readonly code: QuotaRefusalCode | 'token-no-longer-valid' | 'repository-not-found' | 'push-took-too-long' };

type Refused = { readonly refused: PushRefusal };

export type PushOutcome = { readonly results: readonly RefResult[] } | Refused;

export async function pushRefs(context: PushContext, push: Push): Promise<PushOutcome> {
  if (push.pack === null) return commit(context, push, null);
  const { id, accountId, entity } = push.repository;
  const room = await roomForPack(context.usage, accountId, push.quotas);
  if ('refused' in room) return room;
  const received = await context.objects.receive({
    objects: committedObjects(id, entity),
    pack: push.pack,
    packSizeBytesMax: room.packSizeBytesMax,
    objectCountMax: PACK_OBJECTS_MAX,
    signal: push.signal,
    ...(push.onEndOfInput === undefined ? {} : { onEndOfInput: push.onEndOfInput }),
  });
  if ('refused' in received) {
    const quota = received.refused === 'pack-too-large' ? room.boundBy : null;
    return quota === null ? refusedPack(received) : { refused: { code: quota } };
  }
  try {
    await context.reach('push-pack-received');
    return await commit(context, push, received);
  } finally {
    // After an install this does nothing; on every other way out the quarantine goes.
    await received.discard();
  }
}

/** The layers of a repository at a revision, as the object database takes them. */
export function committedObjects(repository: FoundRepository['id'], entity: Entity<OpenRepository>): CommittedObjects {
  const { layers, shrinkEpoch } = entity.state;
  return { repository, revision: entity.revision, shrinkEpoch, layers };
}

/** Lost races before a push gives up; each means that another push to the repository succeeded. */
const RACES_MAX = 1_000;

/** Judges the commands and tries to append, anew after each lost race. */
async function commit(context: PushContext, push: Push, quarantine: Quarantine | null): Promise<PushOutcome> {
  const { id, owned } = push.repository;
  const tryToAppend = createAttempts(context, push, quarantine);
  let updates = await inspect(push, quarantine);
  let entity = push.repository.entity;
  let { shrinkEpoch } = entity.state;
  for (let race = 0; race < RACES_MAX; race += 1) {
    push.signal.throwIfAborted();
    if (quarantine !== null && entity.state.shrinkEpoch !== shrinkEpoch) {
      // Objects went meanwhile: the pack, and every tip outside it, must stand without them.
      const refused = await quarantine.recheck(committedObjects(id, entity));
      if (refused !== null) return refusedPack(refused);
      updates = await inspect(push, quarantine);
      ({ shrinkEpoch } = entity.state);
    }
    const { initialDefaultBranch } = owned;
    const decision = decideRefs(entity.state, { updates, atomic: push.atomic, initialDefaultBranch });
    const moves = decision.updates.length > 0;
    const attempt = moves ? await tryToAppend(entity, decision) : 'lost';
    if (attempt === 'appended') return { results: decision.results };
    if (attempt !== 'lost') return attempt;
    const current = await context.entities.reload(repositories, id);
    const { state } = current;
    if (state.status === 'closed') return { refused: { code: 'repository-not-found' } };
    // That nothing moves is said on the log's own word only.
    if (!moves && current.revision === entity.revision) return { results: decision.results };
    entity = { ...current, state };
  }
  throw new Error(`${RACES_MAX} lost races on ${entity.stream}`);
}

type Attempt = (entity: Entity<OpenRepository>, decision: UpdateRefsDecision) => Promise<'appended' | 'lost' | Refused>;

/** The layer is stored at the first attempt, and once; quotas, guards and time are looked at in each. */
function createAttempts(context: PushContext, push: Push, quarantine: Quarantine | null): Attempt {
  const { id, accountId } = push.repository;
  const about = { account: accountId, cause: push.cause };
  const pushId = context.ids.next<PushId>();
  const eventsOf = createPushEvents(context, about);
  let prepared: PreparedLayer | null = null;
  let stored: StoredSince | null = null;

  return async (entity, decision) => {
    if (stored === null && quarantine !== null) {
      const { updates } = decision;
      prepared = await prepareLayer(context.ids, quarantine, { repository: id, pushId, updates });
    }
    const passed = await quotaPassedBy(context, push, prepared);
    if (passed !== null) return { refused: { code: passed } };
    if (stored === null) {
      stored = { at: context.clock.now(), monotonicMs: context.clock.monotonicMs() };
      if (prepared !== null) {
        const refused = await storeLayer(context.layers, prepared);
        if (refused !== null) return refusedPack(refused);
        await context.reach('push-layer-stored');
      }
    }
    const layer = prepared?.layer ?? null;
    const receivedBytes = push.receivedBytes();
    const { pushOptions, refusedNames } = push;
    const facts = { pushId, layer, pushOptions, receivedBytes, refusedNames };
    const events = await eventsOf(facts, decision, entity.lastAt);
    // Last of all, so that nothing slow stands between it and the append.
    const guarded = await push.guarding();
    if ('refused' in guarded) return { refused: { code: 'token-no-longer-valid' } };
    if (tookTooLong(context.clock, stored)) return { refused: { code: 'push-took-too-long' } };
    const enveloped = envelop(context, repositories, events.stored, { ...about, lastAt: entity.lastAt });
    const { stream, revision: expected } = entity;
    // The commit point of a push.
    const result = await context.events.append({ stream, expected, events: enveloped, guards: guarded.guards });
    if (result.outcome === 'conflict') return 'lost';
    await context.reach('push-appended');
    if (quarantine !== null && layer !== null) await quarantine.install(layer);
    await context.reach('push-installed');
    // Only now, so that who sees the refs finds their objects in this node's cache.
    const whole = enveloped.map((event, index) => ({ ...event, data: events.whole[index]?.data ?? event.data }));
    context.entities.observe(stream, nextRevision(expected), result.position, whole);
    return 'appended';
  };
}

/** When the layer's put began. */
interface StoredSince {
  readonly at: Timestamp;
  readonly monotonicMs: number;
}

/**
 * Whether the layer may be gone soon (sweep-layers.ts). By both clocks: the monotonic one stands still while a machine
 * sleeps, and the other may be set back.
 */
function tookTooLong(clock: Clock, since: StoredSince): boolean {
  const spanMs = clock.monotonicMs() - since.monotonicMs;
  return spanMs > PUSH_COMMIT_SPAN_MS || clock.now() > plusMs(since.at, PUSH_COMMIT_SPAN_MS);
}

async function quotaPassedBy(
  context: PushContext,
  push: Push,
  prepared: PreparedLayer | null,
): Promise<QuotaRefusalCode | null> {
  // Deletions take nothing, and must stay possible where everything is used up.
  if (push.pack === null) return null;
  const size = { layerSizeBytes: prepared?.layer.sizeBytes ?? 0, receivedBytes: push.receivedBytes() };
  return quotaPassed(context.usage, push.repository.accountId, push.quotas, size);
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

function refusedPack({ refused: code, detail }: PackRefusal): Refused {
  return { refused: { code, detail } };
}
