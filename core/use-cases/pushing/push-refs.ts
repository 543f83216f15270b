/**
 * A push: objects are received into quarantine, checked and stored as a layer, and then one append commits the push.
 *
 * Invariants (docs/architecture.md, invariants 2 and 3):
 * - the append of `RefsUpdated` is the only commit point: before it nothing is visible, after it nothing is lost;
 * - the pack is checked against exactly the layers committed at one revision of the repository. While the
 *   repository's shrink epoch is the same, later revisions only add layers, so a retry checks only the refs again;
 * - a layer holds no new object that the accepted refs of its push do not reach: what was refused once stays refused in
 *   a retry, since the layer may lack its objects;
 * - the vault record that the cause names is asked for again when the layer is stored; from then on the push has
 *   `PUSH_COMMIT_SPAN_MS`, which is shorter than the time after which such a record is swept;
 * - every exit without an append removes the layer again (new-layers.ts). What cannot be removed is an orphan, which no
 *   event names.
 */
import type { PlanQuotas } from '../../account/plans.ts';
import type { PackRefusal } from '../../git/pack-refusal.ts';
import { PackRefusedError } from '../../git/pack-refusal.ts';
import { branchOfRef, type RefName } from '../../git/ref-name.ts';
import type { Cause, LogPosition } from '../../kernel/envelope.ts';
import type { AccountId, EventId, ObjectId, PushId, RepositoryId } from '../../kernel/ids.ts';
import type { SettledWithin } from '../../ports/clock.ts';
import type { EventStore } from '../../ports/event-store.ts';
import type { LayerStores } from '../../ports/layer-stores.ts';
import {
  type ObjectDatabase,
  ObjectDatabaseError,
  type Quarantine,
  type RefMove,
} from '../../ports/object-database.ts';
import type { UsageReader } from '../../ports/usage.ts';
import type { RequestedUpdate } from '../../repository/commands.ts';
import { decideRefs, mayChooseDefaultBranch, type UpdateRefsDecision } from '../../repository/decide.ts';
import type { Door } from '../../repository/events.ts';
import { repositories } from '../../repository/evolve.ts';
import type { Layer } from '../../repository/layer.ts';
import type { Refs } from '../../repository/ref-runs.ts';
import { FALLBACK_DEFAULT_BRANCH, type OpenRepository } from '../../repository/state.ts';
import { type Entity, nextRevision } from '../../runtime/entity.ts';
import { type Context, envelop, type Guarding } from '../../runtime/execute.ts';
import { exceededQuota, type QuotaRefusal, roomForPack } from '../../usage/quota.ts';
import { committedObjects } from '../reading/committed-objects.ts';
import { type FoundRepository, placeOf } from '../repositories/repositories.ts';
import {
  decideOthers,
  leaveOutUnreached,
  NONE_REFUSED,
  type RefusedRefs,
  refusesMore,
} from './leave-out-unreached-objects.ts';
import { commitSpan, type NewLayers, wasTooLate, withNewLayers } from './new-layers.ts';
import { createPushEvents, type PartsContext } from './push-events.ts';
import { type PreparedLayer, prepareLayer, storeLayer } from './push-layer.ts';

/** git index-pack takes about 170 bytes of memory for each object. */
export const PACK_OBJECTS_MAX = 10_000_000;
/** How often a push is decided again because a ref moved whose command takes any object before. */
export const REDECISIONS_MAX = 20;
/** New branches of the first push whose dates are read to choose the default branch; the others count as oldest. */
export const DATED_BRANCHES_MAX = 10_000;

export interface PushContext extends Context, PartsContext {
  readonly layers: LayerStores;
  readonly objects: ObjectDatabase;
  readonly usage: UsageReader;
  readonly settledWithin: SettledWithin;
  /** Called after the commit of a push that brought a layer. It neither waits nor throws. */
  readonly onLayer: (pushed: PushedLayer) => void;
}

/** A repository right after a push that brought a layer. */
export interface PushedLayer {
  readonly account: AccountId;
  readonly repository: RepositoryId;
  /** The number of its layers. */
  readonly layers: number;
}

/**
 * One command as the client sent it. A null id means no object. Both are null to delete a ref that is not there.
 * `any` before stands for what the ref names when the push is decided.
 */
export interface PushCommand {
  readonly ref: RefName;
  readonly before: ObjectId | null | 'any';
  readonly after: ObjectId | null;
}

export interface Push {
  readonly repository: FoundRepository;
  readonly quotas: PlanQuotas;
  readonly cause: Cause;
  /**
   * Returns the cause again once the pack is received and checked, which may take days: the vault record that it names
   * may have been swept by then, since no event names it. Without this function the cause stays as it is.
   */
  readonly causeAgain?: () => Promise<Cause>;
  readonly guarding: Guarding;
  readonly door: Door;
  readonly commands: readonly PushCommand[];
  /** The key of the request, if it has one. */
  readonly key?: PushKey | null;
  /** Objects of the repository that the caller may not read: no ref gets one, as if it were not there. */
  readonly unreadable?: ReadonlySet<ObjectId>;
  /** The number of further commands that were refused for their names. The pack may hold objects for them. */
  readonly refusedNames: number;
  readonly atomic: boolean;
  readonly pushOptions: readonly string[];
  /** The bytes of the pack; null if every command is a deletion. */
  readonly pack: AsyncIterable<Uint8Array> | null;
  /** Returns the number of bytes of the body that were read so far. It is called at each attempt to commit. */
  readonly receivedBytes: () => number;
  readonly signal: AbortSignal;
  readonly onEndOfInput?: () => void;
}

/** Names what a request asks for, so that a repeat of it changes nothing (push-keys.ts). */
export interface PushKey {
  /** The id of the push. */
  readonly id: PushId;
  /** SHA-256 of what the request asks for, in hex. */
  readonly requestDigest: string;
  /** Returns whether another push has this id, up to a position of the log. */
  readonly isUsed: (position: LogPosition) => Promise<boolean>;
}

/** The reason for refusing a whole push. */
export type PushRefusal =
  | { readonly code: PackRefusal['refused']; readonly detail: string }
  | QuotaRefusal
  | { readonly code: 'token-no-longer-valid' | 'repository-not-found' | 'push-took-too-long' | 'refs-moved-too-often' }
  /** A push with the same key was faster. */
  | { readonly code: 'key-in-use' };

type Refused = { readonly refused: PushRefusal };

const TOOK_TOO_LONG: Refused = { refused: { code: 'push-took-too-long' } };
const KEY_IN_USE: Refused = { refused: { code: 'key-in-use' } };
const MOVED_TOO_OFTEN: Refused = { refused: { code: 'refs-moved-too-often' } };

/** `defaultBranch` is the branch that the push chose as the default, or null. */
export type PushOutcome = Pick<UpdateRefsDecision, 'results' | 'defaultBranch'> | Refused;

/** A push that was decided. */
export interface Pushed extends UpdateRefsDecision {
  /** The refs on which it was decided. */
  readonly refs: Refs;
  /** Null if no ref changed. */
  readonly event: EventId | null;
}

export async function pushRefs(context: PushContext, push: Push): Promise<Pushed | Refused> {
  const { pack } = push;
  if (pack === null) return commit(context, push, null);
  return receiving(context, { ...push, pack }, async (received) => {
    await context.failpoint('push-pack-received');
    return commit(context, push, received);
  });
}

/** A push with objects. */
export type PackedPush = Push & { readonly pack: AsyncIterable<Uint8Array> };

/** What would become of a push, and what was read of its objects. */
export interface TriedPush<Result> extends Pick<Pushed, 'results' | 'refs'> {
  readonly read: Result;
}

/** Receives and decides a push, reads its objects, and makes nothing of it. */
export async function tryPush<Result>(
  context: PushContext,
  push: PackedPush,
  read: (received: Quarantine) => Promise<Result>,
): Promise<TriedPush<Result> | Refused> {
  return receiving(context, push, async (received) => {
    const { entity, owned } = push.repository;
    const { refs } = entity.state;
    const updates = await inspect(push, refs, received);
    if ('refused' in updates) return refusedPack(updates);
    const { initialDefaultBranch } = owned;
    const command = { updates, atomic: push.atomic, initialDefaultBranch, commitSeconds: NO_DATES };
    const { results } = decideRefs(entity.state, command);
    const exceeded = await quotaExceededByPush(context, push, null);
    return exceeded === null ? { results, refs, read: await read(received) } : { refused: exceeded };
  });
}

/** Receives the pack and calls `use` with it; unless that installs it, nothing of it remains. */
async function receiving<Result>(
  context: PushContext,
  push: PackedPush,
  use: (received: Quarantine) => Promise<Result | Refused>,
): Promise<Result | Refused> {
  const { accountId, entity } = push.repository;
  const room = await roomForPack(context.usage, accountId, quotasOf(push));
  if ('refused' in room) return room;
  const received = await context.objects.receive({
    objects: committedObjects(push.repository, entity),
    pack: push.pack,
    packSizeBytesMax: room.packSizeBytesMax,
    objectCountMax: PACK_OBJECTS_MAX,
    signal: push.signal,
    ...(push.onEndOfInput === undefined ? {} : { onEndOfInput: push.onEndOfInput }),
  });
  if ('refused' in received) {
    const quota = received.refused === 'pack-too-large' ? room.boundBy : null;
    if (quota === null) return refusedPack(received);
    return { refused: { code: quota, leftBytes: room.packSizeBytesMax, sizeBytes: null } };
  }
  try {
    return await use(received);
  } catch (error) {
    if (wasTooLate(error)) return TOOK_TOO_LONG;
    if (error instanceof PackRefusedError) return refusedPack(error.refusal);
    // The tip was stored before objects had a size limit: no ref may newly point to it.
    if (!(error instanceof ObjectDatabaseError) || error.code !== 'object-too-large') throw error;
    return refusedPack({ refused: 'pack-object-too-large', detail: error.message });
  } finally {
    // Does nothing after an install. On every other exit it removes the quarantine.
    await received.discard();
  }
}

/** What lies in a bucket of the user counts against no quota of storage. */
export function quotasOf({ quotas, repository }: Pick<Push, 'quotas' | 'repository'>): PlanQuotas {
  return repository.owned.storageBucketId === null ? quotas : { ...quotas, storage_bytes: null };
}

/**
 * The number of lost races after which a push gives up. Internal: each lost race means that another append succeeded,
 * and only as many during one push reach it.
 */
const RACES_MAX = 1_000;

/** Decides the commands and tries to append. Repeats both after each lost race. */
function commit(context: PushContext, push: Push, quarantine: Quarantine | null): Promise<Pushed | Refused> {
  return withNewLayers(context, push.repository.entity.stream, (newLayers) =>
    decideAndAppend(context, push, quarantine, createAttempts({ context, newLayers }, push, quarantine)),
  );
}

async function decideAndAppend(
  context: PushContext,
  push: Push,
  quarantine: Quarantine | null,
  tryToAppend: Attempt,
): Promise<Pushed | Refused> {
  const { id, owned } = push.repository;
  let entity = push.repository.entity;
  let updates = await inspect(push, entity.state.refs, quarantine);
  if ('refused' in updates) return refusedPack(updates);
  const commitSeconds = await datesForChoice(push, quarantine, updates);
  let checked = entity.state;
  let redecisions = 0;
  let refused: RefusedRefs | null = null;
  for (let race = 0; race < RACES_MAX; race += 1) {
    push.signal.throwIfAborted();
    // Whoever wins a race may have the same key.
    if ((await push.key?.isUsed(entity.position)) === true) return KEY_IN_USE;
    const { refs } = entity.state;
    const hasMoved = isOutdated(push, updates, refs);
    if (hasMoved) redecisions += 1;
    if (redecisions > REDECISIONS_MAX) return MOVED_TOO_OFTEN;
    const hasShrunk = quarantine !== null && entity.state.shrinkEpoch !== checked.shrinkEpoch;
    if (hasShrunk) {
      // Objects were removed since. Neither the pack nor a tip outside it may depend on them.
      const disconnected = await quarantine.recheck(committedObjects(push.repository, entity));
      if (disconnected !== null) return refusedPack(disconnected);
      checked = entity.state;
      // What was committed when the pack was checked, and nobody reaches, may be new again.
      if (refused?.size === 0) refused = null;
    }
    if (hasMoved || hasShrunk) {
      updates = await inspect(push, refs, quarantine);
      if ('refused' in updates) return refusedPack(updates);
    }
    const { initialDefaultBranch } = owned;
    const command = { updates, atomic: push.atomic, initialDefaultBranch, commitSeconds };
    const decision = await decideOthers(entity.state, command, refused ?? NONE_REFUSED, context.clock.nextTurn);
    const changesRefs = decision.updates.length > 0;
    if (changesRefs && (refused === null || refusesMore(decision, refused))) {
      refused = await leaveOutUnreached({ ...push, quarantine, decision, checked });
    }
    const attempt = changesRefs ? await tryToAppend(entity, decision) : 'lost';
    if (attempt !== 'lost') return 'refused' in attempt ? attempt : { ...decision, refs, event: attempt.event };
    const current = await context.entities.reload(repositories, id);
    const { state } = current;
    if (state.status === 'closed') return { refused: { code: 'repository-not-found' } };
    // If no ref changes, answer only after the log was read again and is still at the revision that was decided on.
    if (!changesRefs && current.revision === entity.revision) return { ...decision, refs, event: null };
    entity = { ...current, state };
  }
  throw new Error(`${RACES_MAX} lost races on ${entity.stream}`);
}

type Attempt = (
  entity: Entity<OpenRepository>,
  decision: UpdateRefsDecision,
) => Promise<{ readonly event: EventId } | 'lost' | Refused>;

/**
 * Returns a function that tries to append a decision. Its first call stores the layer, and so does a later one after
 * the pack was written again. Every call checks the quotas, the guards and the time.
 */
function createAttempts(
  { context, newLayers }: { readonly context: PushContext; readonly newLayers: NewLayers },
  push: Push,
  quarantine: Quarantine | null,
): Attempt {
  const { id, accountId } = push.repository;
  const pushId = push.key?.id ?? context.ids.next<PushId>();
  let prepared: PreparedLayer | null = null;
  let stored: StoredSince | null = null;

  return async (entity, decision) => {
    if (stored !== null && quarantine !== null && stored.pack !== quarantine.pack) {
      if (stored.layer !== null) newLayers.abandon(stored.layer.key);
      stored = null;
    }
    if (stored === null && quarantine !== null) {
      const { updates } = decision;
      prepared = await prepareLayer(context.ids, quarantine, { repository: id, pushId, updates });
    }
    const exceeded = await quotaExceededByPush(context, push, prepared);
    if (exceeded !== null) return { refused: exceeded };
    if (stored === null) {
      const hasPassed = commitSpan(context.clock);
      const about = { account: accountId, cause: (await push.causeAgain?.()) ?? push.cause };
      const storing = { stores: context.layers, newLayers };
      const layer = prepared === null ? null : await storeLayer(storing, placeOf(push.repository), prepared);
      if (layer !== null && 'refused' in layer) return refusedPack(layer);
      const pack = quarantine?.pack ?? null;
      const readStream: EventStore['readStream'] = (...of) => context.events.readStream(...of);
      const eventsOf = createPushEvents({ ...context, events: { ...newLayers, readStream } }, about);
      stored = { hasPassed, about, eventsOf, layer, pack };
      if (layer !== null) await context.failpoint('push-layer-stored');
    }
    const { about, eventsOf, layer } = stored;
    const receivedBytes = push.receivedBytes();
    const { pushOptions, refusedNames, door } = push;
    const requestDigest = push.key?.requestDigest ?? null;
    const brought = { layer, pushOptions, receivedBytes, refusedNames };
    const facts = { pushId, ...brought, restored: null, door, requestDigest };
    const events = await eventsOf(facts, decision, entity.lastAt);
    // The guards are read last, so that nothing slow comes between them and the append.
    const guarded = await push.guarding();
    if ('refused' in guarded) return { refused: { code: 'token-no-longer-valid' } };
    // The log asks again before it sends what names the layer. A push without a layer has no other check.
    if (stored.hasPassed()) return TOOK_TOO_LONG;
    const enveloped = envelop(context, repositories, events.stored, { ...about, lastAt: entity.lastAt });
    const { stream, revision: expected } = entity;
    // The commit point of a push.
    const result = await newLayers.append({ stream, expected, events: enveloped, guards: guarded.guards });
    if (result.outcome === 'conflict') return 'lost';
    await context.failpoint('push-appended');
    if (quarantine !== null && layer !== null) await quarantine.install(layer);
    await context.failpoint('push-installed');
    // The refs become visible in memory only now, so that a reader finds their objects in this node's cache.
    const whole = enveloped.map((event, index) => ({ ...event, data: events.whole[index]?.data ?? event.data }));
    context.entities.observe(stream, nextRevision(expected), result.position, whole);
    if (layer !== null) {
      context.onLayer({ account: accountId, repository: id, layers: entity.state.layers.length + 1 });
    }
    const [event] = enveloped;
    if (event === undefined) throw new TypeError('A push is one event or more');
    return { event: event.id };
  };
}

/** The layer, whether the time from its put to the append has passed, and what the push appends from then on. */
interface StoredSince {
  readonly hasPassed: () => boolean;
  readonly about: { readonly account: AccountId; readonly cause: Cause };
  readonly eventsOf: ReturnType<typeof createPushEvents>;
  readonly layer: Layer | null;
  /** The pack of the quarantine then; null without one. */
  readonly pack: string | null;
}

async function quotaExceededByPush(
  context: PushContext,
  push: Push,
  prepared: PreparedLayer | null,
): Promise<QuotaRefusal | null> {
  // Deletions store nothing, and must stay possible when a quota is used up.
  if (push.pack === null) return null;
  const size = { layerSizeBytes: prepared?.layer.sizeBytes ?? 0, receivedBytes: push.receivedBytes() };
  return exceededQuota(context.usage, push.repository.accountId, quotasOf(push), size);
}

/** Whether a command that takes any object before was inspected with another one than its ref names now. */
function isOutdated({ commands }: Push, updates: readonly RequestedUpdate[], refs: Refs): boolean {
  return commands.some(({ ref, before }, index) => before === 'any' && idOf(refs, ref) !== updates[index]?.before);
}

function idOf(refs: Refs, ref: RefName): ObjectId | null {
  return refs.get(ref)?.id ?? null;
}

/** Reads every new tip, and checks whether each moved ref that is not a tag was fast-forwarded. */
async function inspect(
  push: Push,
  refs: Refs,
  quarantine: Quarantine | null,
): Promise<readonly RequestedUpdate[] | PackRefusal> {
  const commands = push.commands.map(({ ref, before, after }) => {
    return { ref, before: before === 'any' ? idOf(refs, ref) : before, after };
  });
  const wanted = commands.flatMap(({ after }) => (after === null ? [] : [after]));
  if (quarantine === null) {
    if (wanted.length > 0) throw new TypeError('A push with new tips carries a pack (gitprotocol-pack(5))');
    return commands.map((command) => ({ ...command, tip: null, fastForward: false }));
  }
  const found = await quarantine.tips(wanted);
  const tips = new Map(
    wanted.map((id, index) => [id, push.unreadable?.has(id) === true ? null : (found[index] ?? null)]),
  );
  const moves = new Map<(typeof commands)[number], RefMove>();
  for (const command of commands) {
    const { ref, before, after } = command;
    const tip = after === null ? null : (tips.get(after) ?? null);
    const isCommit = tip !== null && tip !== 'tag-too-deep' && tip.type === 'commit';
    // Tags should not move, so every move of a tag counts as forced.
    if (!isCommit || before === null || after === null || before === after || ref.startsWith('refs/tags/')) continue;
    moves.set(command, { before, after });
  }
  const compared = await quarantine.compareMoves([...moves.values()], push.signal);
  if ('refused' in compared) return compared;
  const forward = new Set([...moves.keys()].filter((_, index) => compared[index] === true));
  return commands.map((command) => {
    const tip = command.after === null ? null : (tips.get(command.after) ?? null);
    return { ...command, tip, fastForward: forward.has(command) };
  });
}

const NO_DATES: ReadonlyMap<ObjectId, number> = new Map();

/** Reads the dates of new branches, if the push has to choose the default branch by them. */
async function datesForChoice(
  { repository: { entity, owned } }: Push,
  quarantine: Quarantine | null,
  updates: readonly RequestedUpdate[],
): Promise<ReadonlyMap<ObjectId, number>> {
  if (quarantine === null || !mayChooseDefaultBranch(entity.state, owned)) return NO_DATES;
  const branches = updates.filter(({ ref }) => branchOfRef(ref) !== null);
  const certain = branches.length < 2 || branches.some(({ ref }) => CERTAIN.has(ref));
  if (certain) return NO_DATES;
  const tips = branches.flatMap(({ tip }) => (tip !== null && tip !== 'tag-too-deep' ? [tip.id] : []));
  return quarantine.commitSeconds(tips.slice(0, DATED_BRANCHES_MAX));
}

/** If one of them is pushed, no dates are needed. */
const CERTAIN: ReadonlySet<string> = new Set(['refs/heads/main', `refs/heads/${FALLBACK_DEFAULT_BRANCH}`]);

function refusedPack({ refused: code, detail }: PackRefusal): Refused {
  return { refused: { code, detail } };
}
