/**
 * Restores refs to what they were at an earlier revision: one `RefsUpdated`, as a push makes it.
 *
 * Invariants: the updates are decided on one revision of the stream, and the append expects it. So no restoration
 * overwrites a ref that it has not seen: whoever loses the race to a push is refused. Every restored tip is found in
 * the committed layers of that revision, which are closed under reachability (docs/architecture.md, invariant 3). A ref
 * whose name nobody may create any more is left out if the restoration would have to make it, and the plan names it.
 */
import type { FoundTip } from '../../git/objects.ts';
import { newNameRefusal, parseRefName, type RefName } from '../../git/ref-name.ts';
import { refuse } from '../../kernel/decider.ts';
import { streamName } from '../../kernel/envelope.ts';
import { type EventId, type ObjectId, type PushId, uuid } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { finishInTurns } from '../../kernel/turns.ts';
import { type AccountLogReader, EVERY_ENTRY } from '../../ports/account-log.ts';
import type { ExpectedRevision } from '../../ports/event-store.ts';
import type { ObjectReader } from '../../ports/object-database.ts';
import type { RequestedUpdate } from '../../repository/commands.ts';
import { decidingRefs, type UpdateRefsDecision } from '../../repository/decide.ts';
import type { Door, StoredRefUpdate } from '../../repository/events.ts';
import { repositories } from '../../repository/evolve.ts';
import { type Refs, sortedRefNames } from '../../repository/ref-runs.ts';
import type { OpenRepository } from '../../repository/state.ts';
import type { Entity } from '../../runtime/entity.ts';
import type { Context } from '../../runtime/execute.ts';
import type { PastEntities } from '../../runtime/past-entities.ts';
import { repositoryAt } from '../as-of/as-of.ts';
import { expiredTip } from '../as-of/expired-tip.ts';
import { type MomentContext, positionOf, type RestorePoint } from '../as-of/resolve-moment.ts';
import { appendPushEvents, createPushEvents, type PartsContext } from '../pushing/push-events.ts';
import { type ObjectsContext, openView } from '../reading/repository-view.ts';
import type { FoundRepository, RepositoryCommandOrigin } from '../repositories/repositories.ts';

/** Moves of refs of which a restoration finds out whether they are forced; the others count as forced. */
export const RESTORED_MOVES_COMPARED_MAX = 1_000;

export interface RestoreContext extends Context, PartsContext, ObjectsContext {
  readonly readModels: MomentContext['readModels'] & Pick<AccountLogReader, 'entryPlaces'>;
  readonly past: PastEntities;
  readonly retentionMs: number;
}

export interface WantedRestoration {
  readonly repository: FoundRepository;
  readonly to: RestorePoint;
  /** The full names of the refs to restore; null for all. */
  readonly refs: readonly string[] | null;
  /** The revision that the caller has seen a plan for; null if there was none. */
  readonly seen: ExpectedRevision | null;
  readonly signal: AbortSignal;
}

export interface RestorationPlan {
  /** In the order of the refs' names; empty if nothing changes. */
  readonly updates: readonly StoredRefUpdate[];
  /** Refs that it would have to make and leaves out for their names, in their order. */
  readonly leftOut: readonly RefName[];
  /** The revision that the plan was made for. */
  readonly revision: ExpectedRevision;
}

type Refused = { readonly refused: Refusal };

/** What a plan needs to become an event. */
interface Prepared {
  readonly entity: Entity<OpenRepository>;
  readonly decision: UpdateRefsDecision;
  readonly leftOut: readonly RefName[];
  readonly restored: EventId;
}

/** Returns what a restoration would do now. */
export async function planRestoration(
  context: RestoreContext,
  wanted: WantedRestoration,
): Promise<RestorationPlan | Refused> {
  const prepared = await prepare(context, wanted, wanted.repository.entity);
  return 'refused' in prepared ? prepared : planOf(prepared);
}

/**
 * Lost races that change no ref, such as one to a compaction, after which it gives up. Internal: only as many appends
 * of others during one restoration reach it.
 */
const RACES_MAX = 100;

export type RestoreOrigin = RepositoryCommandOrigin & { readonly door: Door };

/** Restores the refs. `event` is null if nothing changes. */
export async function restoreRefs(
  context: RestoreContext,
  origin: RestoreOrigin,
  wanted: WantedRestoration,
): Promise<(RestorationPlan & { readonly event: EventId | null }) | Refused> {
  let { entity } = wanted.repository;
  if (wanted.seen !== null && wanted.seen !== entity.revision) return refuse({ code: 'refs-moved-meanwhile' });
  const { refs } = entity.state;
  const append = createAppend(context, origin);
  for (let race = 0; race < RACES_MAX; race += 1) {
    wanted.signal.throwIfAborted();
    const prepared = await prepare(context, wanted, entity);
    if ('refused' in prepared) return prepared;
    const plan = planOf(prepared);
    const outcome = plan.updates.length === 0 ? 'nothing' : await append(prepared);
    if (typeof outcome === 'object') return 'refused' in outcome ? outcome : { ...plan, event: outcome.event };
    const current = await context.entities.reload(repositories, wanted.repository.id);
    if (current.state.status === 'closed') return refuse({ code: 'repository-not-found' });
    // Without an event, the answer is of a revision that the log has confirmed.
    if (outcome === 'nothing' && current.revision === entity.revision) return { ...plan, event: null };
    entity = { ...current, state: current.state };
    if (!sameRefs(refs, entity.state.refs)) return refuse({ code: 'refs-moved-meanwhile' });
  }
  throw new Error(`${RACES_MAX} lost races on ${entity.stream}`);
}

function planOf({ decision, leftOut, entity }: Prepared): RestorationPlan {
  return { updates: decision.updates, leftOut, revision: entity.revision };
}

function sameRefs(before: Refs, after: Refs): boolean {
  if (before === after) return true;
  return before.size === after.size && [...before.entries()].every(([name, { id }]) => after.get(name)?.id === id);
}

async function prepare(
  context: RestoreContext,
  wanted: WantedRestoration,
  entity: Entity<OpenRepository>,
): Promise<Prepared | Refused> {
  const repository = { ...wanted.repository, entity };
  const past = await pastRefs(context, repository, wanted.to);
  if ('refused' in past) return past;
  const wantedNames = namesOf(entity.state.refs, past.refs, wanted.refs);
  if ('refused' in wantedNames) return wantedNames;
  const { names, leftOut } = withoutUnmakeable(entity.state.refs, past.refs, wantedNames);
  const view = openView(context, repository);
  try {
    const inspected = await inspect(view, { current: entity.state.refs, past: past.refs, names }, wanted.signal);
    if ('missing' in inspected) {
      const event = await expiredTip(context, entity, inspected.missing);
      return refuse({ code: 'objects-expired', event });
    }
    const { initialDefaultBranch } = repository.owned;
    const { updates } = inspected;
    // A restoration chooses no default branch.
    const command = { updates, atomic: true, initialDefaultBranch, commitSeconds: new Map() };
    const decision = await finishInTurns(decidingRefs(entity.state, command), context.clock.nextTurn);
    const refused = decision.results.find(({ code }) => code !== null && code !== 'atomic-push-refused');
    if (refused?.code === 'too-many-refs') return refuse({ code: 'restored-refs-too-many' });
    if (refused !== undefined) return refuse({ code: 'restored-ref-collides', ref: refused.ref });
    return { entity, decision: { ...decision, defaultBranch: null }, leftOut, restored: past.event };
  } finally {
    view.close();
  }
}

/** Returns the refs at that point, and the event that they are of. */
async function pastRefs(
  context: RestoreContext,
  repository: FoundRepository,
  point: RestorePoint,
): Promise<{ readonly refs: Refs; readonly event: EventId } | Refused> {
  const found = await positionOf(context, repository, point);
  if ('refused' in found) return found;
  const then = await repositoryAt(context, repository, found.position);
  if (then === null) return refuse({ code: 'repository-not-there-then' });
  const { state, lastEventId } = then.entity;
  return { refs: state.refs, event: lastEventId ?? (await creationOf(context, repository)) };
}

/** Before its stream's first event a repository is what its account's `RepositoryCreated` says. */
async function creationOf({ readModels }: RestoreContext, { id, accountId }: FoundRepository): Promise<EventId> {
  const stream = streamName('account', accountId);
  const filter = { ...EVERY_ENTRY, type: 'RepositoryCreated', stream, repositoryId: id };
  const { size } = await readModels.logPrefix(accountId, null);
  const [created] = await readModels.entryPlaces(accountId, filter, { from: 0, to: size, limit: 1 });
  if (created === undefined) throw new TypeError(`The log does not hold the creation of repository ${id}`);
  return created.eventId;
}

/** Returns the refs to restore, in order: those that differ, among the wanted ones. */
function namesOf(current: Refs, past: Refs, wanted: readonly string[] | null): readonly RefName[] | Refused {
  if (wanted === null) return [...new Set([...sortedRefNames(past), ...sortedRefNames(current)])];
  const names = new Set<RefName>();
  for (const text of wanted) {
    const name = parseRefName(text);
    if (typeof name !== 'string' || (!current.has(name) && !past.has(name))) return refuse({ code: 'ref-not-found' });
    names.add(name);
  }
  return [...names];
}

function withoutUnmakeable(
  current: Refs,
  past: Refs,
  wanted: readonly RefName[],
): { readonly names: readonly RefName[]; readonly leftOut: readonly RefName[] } {
  const isLeftOut = (name: RefName) => past.has(name) && !current.has(name) && newNameRefusal(name) !== null;
  return { names: wanted.filter((name) => !isLeftOut(name)), leftOut: wanted.filter(isLeftOut) };
}

interface Restored {
  readonly current: Refs;
  readonly past: Refs;
  readonly names: readonly RefName[];
}

/** Finds each tip that a ref gets back, and how the ref moves. */
async function inspect(
  view: ReturnType<typeof openView>,
  { current, past, names }: Restored,
  signal: AbortSignal,
): Promise<{ readonly updates: readonly RequestedUpdate[] } | { readonly missing: ObjectId }> {
  const changed = names.filter((name) => current.get(name)?.id !== past.get(name)?.id);
  const wanted = [...new Set(changed.flatMap((name) => past.get(name)?.id ?? []))];
  const tips = new Map<ObjectId, FoundTip>();
  const descends = wanted.length === 0 ? null : createDescends(await view.objects(), signal);
  if (wanted.length > 0) {
    const found = await (await view.objects()).tips(wanted);
    for (const [index, id] of wanted.entries()) {
      if (found[index] === null || found[index] === undefined) return { missing: id };
      tips.set(id, found[index]);
    }
  }
  const updates: RequestedUpdate[] = [];
  for (const ref of changed) {
    const [before, after] = [current.get(ref), past.get(ref)];
    const move = before?.type === 'commit' && after?.type === 'commit' && !ref.startsWith('refs/tags/');
    updates.push({
      ref,
      before: before?.id ?? null,
      after: after?.id ?? null,
      tip: after === undefined ? null : (tips.get(after.id) ?? null),
      fastForward: move && descends !== null && (await descends(before.id, after.id)),
    });
  }
  return { updates };
}

/**
 * Returns a function that tells whether a commit descends from another. Of very many it says no: a move that counts as
 * forced only makes a later compaction look for objects that no ref reaches.
 */
function createDescends(
  reader: ObjectReader,
  signal: AbortSignal,
): (before: ObjectId, after: ObjectId) => Promise<boolean> {
  const known = new Map<string, boolean>();
  return async (before, after) => {
    signal.throwIfAborted();
    const key = `${before} ${after}`;
    const answered = known.get(key);
    if (answered !== undefined || known.size >= RESTORED_MOVES_COMPARED_MAX) return answered ?? false;
    const descends = await reader.isAncestor(before, after);
    known.set(key, descends);
    return descends;
  };
}

type Append = (prepared: Prepared) => Promise<{ readonly event: EventId } | 'lost' | Refused>;

function createAppend(context: RestoreContext, origin: RestoreOrigin): Append {
  const about = { account: origin.account, cause: origin.cause };
  const eventsOf = createPushEvents(context, about);
  const pushId = context.ids.next<PushId>();
  return async ({ entity, decision, restored }) => {
    const brought = { layer: null, pushOptions: [], receivedBytes: 0, refusedNames: 0 };
    const facts = { pushId, ...brought, restored, door: origin.door, requestDigest: null };
    const events = await eventsOf(facts, decision, entity.lastAt);
    const guarded = (await origin.guarding?.()) ?? { guards: [] };
    if ('refused' in guarded) return guarded;
    // The commit point of a restoration.
    const appended = await appendPushEvents(context, entity, events, { ...about, ...guarded });
    if (appended === 'lost') return 'lost';
    await context.failpoint('refs-restored');
    const [event] = appended;
    if (event === undefined) throw new TypeError('A restoration is one event');
    return { event: uuid(event.id) };
  };
}
