/**
 * A compaction that drops what no ref has reached within the retention: it replaces all layers of a repository by one
 * with the closure of the refs, and one with what earlier tips of the retention reach beyond that.
 *
 * Invariants (docs/architecture.md, invariants 2, 3 and 4):
 * - it takes every layer that was committed at its revision, and what it adds holds the closure of every tip that a ref
 *   has, or had within the retention;
 * - the append of `LayersCompacted` is the only commit point. It expects the revision up to which later layers and tips
 *   were checked against what is kept; what they lack is added first. So the committed layers stay closed;
 * - it calls the layers clean, or once reached, only if none that came while it ran holds an object of the replaced
 *   ones that is not kept;
 * - it drops nothing that a webhook delivery is still to be made of;
 * - it raises the shrink epoch, and a push that was checked before is checked again;
 * - every exit without an append removes the layers that it stored (new-layers.ts). The replaced layers stay in
 *   storage.
 */
import { readEvent } from '../../kernel/decider.ts';
import type { Digest } from '../../kernel/digest.ts';
import type { Cause, LogPosition, RecordedEvent, StreamName } from '../../kernel/envelope.ts';
import {
  type AccountId,
  type LayerId,
  later,
  type ObjectId,
  plusMs,
  type RepositoryId,
  type Timestamp,
} from '../../kernel/ids.ts';
import { PENDING_DELIVERY_KEPT_MS } from '../../kernel/limits.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { KeptObjects, LayerDrops } from '../../ports/layer-drops.ts';
import type { MergedLayers } from '../../ports/layer-merges.ts';
import { decideRepository } from '../../repository/decide.ts';
import { repositoryEventKinds } from '../../repository/events.ts';
import { repositories } from '../../repository/evolve.ts';
import type { Layer } from '../../repository/layer.ts';
import type { OpenRepository } from '../../repository/state.ts';
import { isDroppingDue, leavesObjects, leftTipsOf } from '../../repository/unreached.ts';
import { type Entity, nextRevision } from '../../runtime/entity.ts';
import { envelop, type Guarding } from '../../runtime/execute.ts';
import { readBack } from '../../runtime/read-back.ts';
import { systemCause } from '../../runtime/system-cause.ts';
import { type NewLayers, wasTooLate, withNewLayers } from '../pushing/new-layers.ts';
import { withUpdatesInPlace } from '../pushing/restore-wide-updates.ts';
import { committedObjects } from '../reading/committed-objects.ts';
import { type FoundRepository, findRepositoryById } from '../repositories/repositories.ts';
import { type CompactionContext, layerDescription, storeMerged } from './compact-layers.ts';

/**
 * Tips left within the retention that a compaction keeps when it drops what no ref reaches; if there are more, it drops
 * nothing. Internal: compactions change no answer.
 */
export const DROPPING_TIPS_MAX = 200_000;
/**
 * Pushes that may commit between the check of a compaction that drops objects and its append, one after the other.
 * Internal: compactions change no answer.
 */
export const DROPPING_RACES_MAX = 100;

export interface DroppingContext extends Omit<CompactionContext, 'objects'> {
  readonly objects: LayerDrops;
  readonly digest: Digest;
  readonly retentionMs: number;
  /** A position up to which webhooks were notified of all pushes of the account; null if they never were of any. */
  readonly notifiedTo: (account: AccountId) => Promise<LogPosition | null>;
}

/**
 * `nothing`: it is not due, or the repository is gone or beyond a limit. `lost`: another compaction was faster, or
 * pushes were, `DROPPING_RACES_MAX` times, or the append came too late. `waits`: webhooks are still to be notified of a
 * push that is older than the retention.
 */
export type DroppingOutcome = 'dropped' | 'nothing' | 'lost' | 'waits';

export interface Dropped {
  readonly account: AccountId;
  readonly repository: RepositoryId;
  /** The shrink epoch in which more was found in the layers than refs reach, though the state calls them clean. */
  readonly holdsMoreIn?: number;
}

/** Who asked for a drop. */
export interface DropAsked {
  readonly cause: Cause;
  /** The guard of the append. */
  readonly guarding: Guarding;
  /**
   * Why the repository may not be rewritten now; null if it may. `seen` is a position that its events are known up to.
   */
  readonly refusal: (found: FoundRepository, seen: LogPosition) => Promise<Refusal | null>;
}

type Refused = { readonly refused: Refusal };

/**
 * A small page, because each event may be almost as large as an append may be. Internal: the rest is read in further
 * pages.
 */
const PAGE_EVENTS_MAX = 100;

type OpenEntity = Entity<OpenRepository> & { readonly revision: number };

/** Drops once what is due. Rejects if the log, the store or the layers cannot be read or written. */
export async function dropUnreached(
  context: DroppingContext,
  of: Dropped,
  signal: AbortSignal,
): Promise<DroppingOutcome> {
  const due = await findDue(context, of);
  return due === null ? 'nothing' : dropDue(context, { ...of, by: null }, due, signal);
}

/**
 * Does what `dropUnreached` does, for who asked for it: what is due is refused if the repository may not be rewritten
 * now.
 */
export async function dropAsFor(
  context: DroppingContext,
  of: Dropped & { readonly by: DropAsked },
  signal: AbortSignal,
): Promise<DroppingOutcome | Refused> {
  const due = await findDue(context, of);
  if (due === null) return 'nothing';
  const refused = await of.by.refusal(due.found, due.seen);
  return refused === null ? dropDue(context, of, due, signal) : { refused };
}

async function dropDue(
  context: DroppingContext,
  of: Dropped & Pick<Run, 'by'>,
  due: Due,
  signal: AbortSignal,
): Promise<DroppingOutcome> {
  const begun = await begin(context, due, signal, 'drop');
  if (typeof begun === 'string') return begun;
  try {
    return await withNewLayers(context, begun.begun.stream, (newLayers) =>
      new Dropping(context, { ...of, ...begun, newLayers, signal }).run(),
    );
  } catch (error) {
    if (wasTooLate(error)) return 'lost';
    throw error;
  } finally {
    await begun.kept.discard();
  }
}

/** Returns by how many bytes the current layers would shrink, and changes nothing; 0 if no drop is due. */
export async function droppedBytes(context: DroppingContext, of: Dropped, signal: AbortSignal): Promise<number> {
  const due = await findDue(context, of);
  const begun = due === null ? 'nothing' : await begin(context, due, signal, 'dry-run');
  if (typeof begun === 'string') return 0;
  const { found, kept } = begun;
  try {
    let bytes = begun.begun.state.layersSizeBytes;
    for (const pack of [kept.refs, kept.left]) {
      if (pack === null) continue;
      const layer = layerDescription(found.id, context.ids.next<LayerId>(), pack.objectCount);
      bytes -= (await pack.layer(layer)).sizeBytes;
    }
    return bytes;
  } finally {
    await kept.discard();
  }
}

/** A repository that a drop is due of. */
interface Due {
  readonly found: FoundRepository;
  readonly begun: OpenEntity;
  readonly seen: LogPosition;
  readonly now: Timestamp;
}

async function findDue(context: DroppingContext, of: Dropped): Promise<Due | null> {
  const seen = await context.entities.barrier();
  const found = await findRepositoryById(context, of.account, of.repository);
  if (found === null || typeof found.entity.revision !== 'number') return null;
  const begun: OpenEntity = { ...found.entity, revision: found.entity.revision };
  const now = context.clock.now();
  const holdsMore = of.holdsMoreIn === begun.state.shrinkEpoch;
  return holdsMore || isDroppingDue(begun.state, now, context.retentionMs) ? { found, begun, seen, now } : null;
}

/** Packs what is kept; the caller discards it. A dry run takes nothing from webhooks, so it waits for none. */
async function begin(
  context: DroppingContext,
  { found, begun, now }: Due,
  signal: AbortSignal,
  mode: 'drop' | 'dry-run',
): Promise<Pick<Run, 'found' | 'begun' | 'kept'> | 'nothing' | 'waits'> {
  const window = await changesBetween(context, begun.stream, {
    from: begun.revision,
    since: plusMs(now, -context.retentionMs),
  });
  if (window === null) return 'nothing';
  const mayWait = mode === 'drop' && window.before !== null;
  if (mayWait && (await mayBeNotified(context, found, window.before))) return 'waits';
  const tips = { refs: tipsOf(begun.state), left: [...window.left] };
  return { found, begun, kept: await context.objects.keep(committedObjects(found, begun), tips, signal) };
}

/**
 * Whether webhooks are still to be notified of a push of the repository, at this event or before it. Nobody waits for
 * pushes of other accounts, whose webhooks may be far behind.
 */
async function mayBeNotified(
  context: Pick<DroppingContext, 'clock' | 'events' | 'notifiedTo'>,
  { account, accountId }: FoundRepository,
  last: RecordedEvent,
): Promise<boolean> {
  // A webhook that is made later is told of no push before it.
  if (account.webhooks.size === 0) return false;
  const since = plusMs(context.clock.now(), -PENDING_DELIVERY_KEPT_MS);
  if (last.occurredAt < since) return false;
  const notified = await context.notifiedTo(accountId);
  if (notified === null || notified >= last.position) return false;
  return hasPushSince(context, last, (event) => event.position > notified && event.occurredAt >= since);
}

/** Whether a stream has a push up to an event, among the last events that are new enough. */
async function hasPushSince(
  { events }: Pick<DroppingContext, 'events'>,
  { stream, revision }: RecordedEvent,
  isNew: (event: RecordedEvent) => boolean,
): Promise<boolean> {
  for await (const event of readBack(events, stream, revision)) {
    if (!isNew(event)) return false;
    if (event.type === 'RefsUpdated') return true;
  }
  return false;
}

/** Returns what refs name, each once. */
export function tipsOf({ refs }: OpenRepository): readonly ObjectId[] {
  return [...new Set([...refs.entries()].map(([, { id }]) => id))];
}

interface Changes {
  /** The tips that refs left, but for those that the ref's new tip reaches. */
  readonly left: ReadonlySet<ObjectId>;
  /** Whether refs were changed at all. */
  readonly moved: boolean;
  /** Whether a push left objects that no ref may reach. */
  readonly leaves: boolean;
  /** Whether the refs of each push reached all that its layer added. */
  readonly onceReached: boolean;
  /** The last event that was not read, because it is too old; null if all were read. */
  readonly before: RecordedEvent | null;
}

/**
 * Reads the pushes of a stream backwards: those after a revision, or since a time. Returns null if they left more than
 * `DROPPING_TIPS_MAX` tips.
 */
async function changesBetween(
  context: Pick<DroppingContext, 'events' | 'digest'>,
  stream: StreamName,
  {
    from,
    after = -1,
    since = null,
  }: { readonly from: number; readonly after?: number; readonly since?: Timestamp | null },
): Promise<Changes | null> {
  const left = new Set<ObjectId>();
  let moved = false;
  let leaves = false;
  let onceReached = true;
  for (let next = from; next > after; ) {
    const page = await context.events.readStream(stream, {
      direction: 'backwards',
      from: next,
      limit: PAGE_EVENTS_MAX,
    });
    if (page.length === 0) break;
    for (const recorded of page) {
      // The times of a stream never go back.
      if (recorded.revision <= after || (since !== null && recorded.occurredAt <= since)) {
        return { left, moved, leaves, onceReached, before: recorded };
      }
      if (recorded.type !== 'RefsUpdated') continue;
      const event = readEvent(repositoryEventKinds, await withUpdatesInPlace(context, recorded));
      if (event.type !== 'RefsUpdated') continue;
      moved = true;
      leaves ||= leavesObjects(event.data);
      onceReached &&= event.data.layer === null || event.data.once_reached;
      for (const tip of leftTipsOf(event.data)) left.add(tip);
      if (left.size > DROPPING_TIPS_MAX) return null;
    }
    next -= page.length;
  }
  return { left, moved, leaves, onceReached, before: null };
}

interface Run extends Dropped {
  /** Null: the service itself. */
  readonly by: DropAsked | null;
  readonly found: FoundRepository;
  /** The repository whose layers are replaced. */
  readonly begun: OpenEntity;
  readonly kept: KeptObjects;
  readonly newLayers: NewLayers;
  readonly signal: AbortSignal;
}

interface Added {
  readonly layer: Layer;
  readonly holds: 'refs' | 'retention';
  readonly pack: MergedLayers;
}

/** From the packs to the append. */
class Dropping {
  readonly #context: DroppingContext;
  readonly #run: Run;
  readonly #added: Added[] = [];
  /** The revision up to which layers and tips are checked against what is kept. */
  #checked: OpenEntity;
  #clean: boolean;
  /** What is kept, a ref once reached; a later layer may hold something else. */
  #onceReached = true;

  constructor(context: DroppingContext, run: Run) {
    this.#context = context;
    this.#run = run;
    this.#checked = run.begun;
    this.#clean = run.kept.left === null;
  }

  async run(): Promise<DroppingOutcome> {
    const { kept, repository, signal } = this.#run;
    await this.#add(kept.refs, 'refs');
    await this.#add(kept.left, 'retention');
    await this.#context.failpoint('dropping-layers-stored');
    for (let race = 0; race < DROPPING_RACES_MAX; race += 1) {
      signal.throwIfAborted();
      const { state, revision, ...rest } = await this.#context.entities.reload(repositories, repository);
      if (state.status === 'closed' || typeof revision !== 'number') return 'nothing';
      await this.#supplement({ ...rest, state, revision });
      const outcome = await this.#append();
      if (outcome !== 'raced') return outcome;
    }
    return 'lost';
  }

  async #add(pack: MergedLayers | null, holds: Added['holds']): Promise<void> {
    if (pack === null) return;
    const { newLayers, found } = this.#run;
    const layer = await storeMerged({ ...this.#context, newLayers }, found, pack);
    this.#added.push({ layer, holds, pack });
  }

  /** Adds what the layers and tips since the last check need of the objects that are not kept. */
  async #supplement(current: OpenEntity): Promise<void> {
    const { found, kept } = this.#run;
    const { revision, state } = this.#checked;
    if (current.revision === revision) return;
    const changes = await changesBetween(this.#context, current.stream, { from: current.revision, after: revision });
    if (changes === null) throw new RangeError(`More than ${DROPPING_TIPS_MAX} tips were left since`);
    const layers = new Set([...state.layers].map(({ id }) => id));
    const added = [...current.state.layers].filter(({ id }) => !layers.has(id));
    // Few of many thousand refs are new.
    const before = new Set(tipsOf(state));
    const tips = { refs: tipsOf(current.state).filter((id) => !before.has(id)), left: [...changes.left] };
    // Every layer comes with a push, or holds what other layers held.
    if (changes.moved) {
      const pack = await kept.supplement(committedObjects(found, current), added, tips);
      await this.#add(pack, 'retention');
      const areDropped = await kept.areDroppedIn(added);
      this.#clean &&= pack === null && !changes.leaves && !areDropped;
      this.#onceReached &&= changes.onceReached && !areDropped;
    }
    this.#checked = current;
  }

  async #append(): Promise<DroppingOutcome | 'raced'> {
    const { clock, ids, entities, failpoint } = this.#context;
    const { account, begun, found, newLayers } = this.#run;
    const { state, stream, revision: expected, lastAt } = this.#checked;
    const decision = decideRepository(state, {
      type: 'DropUnreached',
      revision: begun.revision,
      removed: [...begun.state.layers].map(({ id }) => id),
      added: this.#added,
      clean: this.#clean,
      onceReached: this.#onceReached,
    });
    if ('refused' in decision) return 'nothing';
    const [event] = decision.events;
    if (event === undefined) return 'lost';
    const { by } = this.#run;
    const cause = by?.cause ?? systemCause(ids, 'layer-compaction');
    const guarded = (await by?.guarding()) ?? { guards: [] };
    if ('refused' in guarded) return 'nothing';
    const enveloped = envelop(this.#context, repositories, [event], { account, cause, lastAt });
    // The commit point.
    const result = await newLayers.append({ stream, expected, events: enveloped, guards: guarded.guards });
    if (result.outcome === 'conflict') return 'raced';
    await failpoint('dropping-appended');
    const after = repositories.evolve(state, event, later(clock.now(), lastAt));
    if (after.status === 'open') {
      const objects = committedObjects(found, { ...this.#checked, state: after, revision: nextRevision(expected) });
      for (const { layer, pack } of this.#added) await pack.install(objects, layer);
    }
    entities.observe(stream, nextRevision(expected), result.position, enveloped);
    return 'dropped';
  }
}
