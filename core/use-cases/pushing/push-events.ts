/**
 * Makes the events of a push: one `RefsUpdated`, parts with its updates if there are many, and a `DefaultBranchChanged`
 * if the push chooses the default branch.
 *
 * Invariants: parts are in the log before the event that names them. Parts that no event names mean nothing.
 */
import { readEvent } from '../../kernel/decider.ts';
import type { Digest } from '../../kernel/digest.ts';
import { type Cause, type NewEvent, type StreamName, streamName } from '../../kernel/envelope.ts';
import type { AccountId, EventId, PushId, Timestamp } from '../../kernel/ids.ts';
import type { EventStore, StreamGuard } from '../../ports/event-store.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import type { UpdateRefsDecision } from '../../repository/decide.ts';
import {
  type Door,
  type RefsUpdated,
  type RepositoryEvent,
  refUpdatesEventKinds,
  type StoredRefUpdate,
  type UpdateParts,
} from '../../repository/events.ts';
import { repositories } from '../../repository/evolve.ts';
import type { Layer } from '../../repository/layer.ts';
import { recordedLayer } from '../../repository/layers.ts';
import type { OpenRepository } from '../../repository/state.ts';
import { isNarrow, splitUpdates, startUpdatesDigest } from '../../repository/wide-updates.ts';
import { type Entity, nextRevision } from '../../runtime/entity.ts';
import { type Context, envelop } from '../../runtime/execute.ts';

export interface PartsContext extends Pick<Context, 'events' | 'clock' | 'ids' | 'written'> {
  readonly digest: Digest;
  readonly failpoint: Failpoint;
}

export interface PushedFacts {
  readonly pushId: PushId;
  readonly layer: Layer | null;
  readonly pushOptions: readonly string[];
  readonly receivedBytes: number;
  /** The number of commands that were refused for their names, before `decideRefs`. */
  readonly refusedNames: number;
  /** The event whose refs are restored; null for a push. */
  readonly restored: EventId | null;
  readonly door: Door;
  /** SHA-256 of the request, in hex, if it has an idempotency key. */
  readonly requestDigest: string | null;
}

export interface PushEvents {
  /** The events to append. */
  readonly stored: readonly RepositoryEvent[];
  /** The same events with all updates in place, for folding in memory. */
  readonly whole: readonly RepositoryEvent[];
}

/**
 * Returns a function that makes the events of one push, and appends parts if it needs them. When the push retries with
 * the same updates, it uses the parts that are already in the log.
 */
export function createPushEvents(
  context: Omit<PartsContext, 'events'> & { readonly events: Pick<EventStore, 'append' | 'readStream'> },
  about: { readonly account: AccountId; readonly cause: Cause },
): (facts: PushedFacts, decision: UpdateRefsDecision, lastAt: Timestamp | null) => Promise<PushEvents> {
  let appended: { readonly parts: UpdateParts; readonly of: readonly StoredRefUpdate[] } | null = null;

  async function partsOf(
    { pushId, requestDigest }: PushedFacts,
    updates: readonly StoredRefUpdate[],
    lastAt: Timestamp | null,
  ): Promise<UpdateParts> {
    if (appended !== null && areEqual(appended.of, updates)) return appended.parts;
    // A request with the same key may have died after it had appended these parts, or others.
    const known = requestDigest === null ? null : await append(streamName('refUpdates', pushId), updates, lastAt);
    const parts = known ?? (await append(streamName('refUpdates', context.ids.next<PushId>()), updates, lastAt));
    if (parts === null) throw new TypeError('A new stream exists already');
    await context.failpoint('push-parts-appended');
    appended = { parts, of: updates };
    return parts;
  }

  /** Appends the parts that the stream does not have; null if it has others. */
  async function append(
    stream: StreamName,
    updates: readonly StoredRefUpdate[],
    lastAt: Timestamp | null,
  ): Promise<UpdateParts | null> {
    // Part by part, so that others have the event loop while each is appended.
    const running = startUpdatesDigest(context.digest);
    const parts = splitUpdates(updates);
    for (const [index, part] of parts.entries()) {
      running.add(part.data.updates);
      const events = envelop(context, { kinds: refUpdatesEventKinds }, [part], { ...about, lastAt });
      const expected = index === 0 ? 'none' : index - 1;
      const result = await context.events.append({ stream, expected, events });
      if (result.outcome === 'conflict' && !(await isThere(context, stream, index, part.data.updates))) return null;
    }
    return { stream, count: parts.length, updates: updates.length, sha256: running.hex() };
  }

  return async (facts, decision, lastAt) => {
    const { updates, defaultBranch } = decision;
    const data: RefsUpdated['data'] = {
      push_id: facts.pushId,
      updates,
      parts: isNarrow(updates, facts.pushOptions) ? null : await partsOf(facts, updates, lastAt),
      layer: facts.layer === null ? null : recordedLayer(facts.layer),
      // leave-out-unreached-objects.ts has seen to it.
      once_reached: true,
      push_options: facts.pushOptions,
      refused: facts.refusedNames + decision.results.filter(({ code }) => code !== null).length,
      received_bytes: facts.receivedBytes,
      restored: facts.restored === null ? null : { event_id: facts.restored },
      door: facts.door,
      request_digest: facts.requestDigest,
      rules: null,
      certificate_ref: null,
      undone: null,
    };
    const chosen: readonly RepositoryEvent[] =
      defaultBranch === null ? [] : [{ type: 'DefaultBranchChanged', data: { default_branch: defaultBranch } }];
    const stored = data.parts === null ? data : { ...data, updates: [] };
    return {
      stored: [{ type: 'RefsUpdated', data: stored }, ...chosen],
      whole: [{ type: 'RefsUpdated', data }, ...chosen],
    };
  };
}

/**
 * Appends the events of refs that are changed without a pack, and folds them in memory. `lost`: the stream has got
 * another event since the entity was read.
 */
export async function appendPushEvents(
  context: Context,
  { stream, revision: expected, lastAt }: Entity<OpenRepository>,
  { stored, whole }: PushEvents,
  { guards, ...about }: { readonly account: AccountId; readonly cause: Cause; readonly guards: readonly StreamGuard[] },
): Promise<readonly NewEvent[] | 'lost'> {
  const enveloped = envelop(context, repositories, stored, { ...about, lastAt });
  const result = await context.events.append({ stream, expected, events: enveloped, guards });
  if (result.outcome === 'conflict') return 'lost';
  const observed = enveloped.map((event, index) => ({ ...event, data: whole[index]?.data ?? event.data }));
  context.entities.observe(stream, nextRevision(expected), result.position, observed);
  return enveloped;
}

async function isThere(
  { events }: { readonly events: Pick<EventStore, 'readStream'> },
  stream: StreamName,
  revision: number,
  updates: readonly StoredRefUpdate[],
): Promise<boolean> {
  const [part] = await events.readStream(stream, { direction: 'forwards', from: revision, limit: 1 });
  return part !== undefined && areEqual(readEvent(refUpdatesEventKinds, part).data.updates, updates);
}

function areEqual(some: readonly StoredRefUpdate[], others: readonly StoredRefUpdate[]): boolean {
  return some.length === others.length && some.every((one, index) => isEqual(one, others[index]));
}

function isEqual(a: StoredRefUpdate, b: StoredRefUpdate | undefined): boolean {
  if (b === undefined || a.ref !== b.ref || a.before !== b.before || a.after !== b.after) return false;
  return a.type === b.type && a.peeled === b.peeled && a.kind === b.kind;
}
