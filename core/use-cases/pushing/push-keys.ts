/**
 * Keys by which a caller repeats a change of refs whose answer it may have missed: the repeat is answered from the
 * event of the first request, and changes nothing.
 *
 * Invariants: a key is kept in the log alone. The id of a push is derived from the key of its request, and a read model
 * finds the event by that id, on every node and whatever died in between. A push with a key is appended only at a
 * revision up to which the key was not used (push-refs.ts). So a key makes one change, however many requests race.
 */
import { readEvent, refuse } from '../../kernel/decider.ts';
import type { LogPosition } from '../../kernel/envelope.ts';
import { type EventId, type PushId, plusMs } from '../../kernel/ids.ts';
import { canonicalJson } from '../../kernel/json.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { ActivityReader, KeyedPush } from '../../ports/activity.ts';
import { ReadModelError } from '../../ports/read-models.ts';
import { type RefsUpdated, repositoryEventKinds } from '../../repository/events.ts';
import { nextRevision } from '../../runtime/entity.ts';
import type { Principal } from '../callers/principal.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import type { PushContext, PushKey } from './push-refs.ts';
import { withUpdatesInPlace } from './restore-wide-updates.ts';

/** How long a key stands for the change that it was used for. */
export const PUSH_KEY_SPAN_MS = 24 * 60 * 60_000;
/** The first version of `RefsUpdated` that holds the digest of a request. */
const KEYED_VERSION = 4;
/** Seconds after which the last process of an older version may have ended. */
const UPGRADE_WAIT_SECONDS = 60;

export interface PushKeysContext extends Pick<PushContext, 'events' | 'clock' | 'ids' | 'written' | 'digest'> {
  readonly readModels: Pick<ActivityReader, 'keyedPush'>;
}

export interface KeyedRequest {
  readonly repository: FoundRepository;
  readonly principal: Principal;
  /** The operation: a key that was used for one is free for another. */
  readonly operation: string;
  /** The text that the caller chose. */
  readonly key: string;
  /** SHA-256 of all that the request asks for, in hex: a key stands for one such request. */
  readonly requestDigest: string;
  /** A position of the log up to which an earlier use must be found. */
  readonly position: LogPosition;
}

/** The change that a key was used for. */
export interface UsedKey {
  readonly event: EventId;
  /** With all updates in place. */
  readonly data: RefsUpdated['data'];
}

export async function lookUpKey(
  context: PushKeysContext,
  request: KeyedRequest,
): Promise<{ readonly free: PushKey } | { readonly used: UsedKey } | { readonly refused: Refusal }> {
  // What is written for older programs holds no digest, so that a repeat could not be told from another request.
  if (context.written.versionOf('RefsUpdated') < KEYED_VERSION) {
    return refuse({ code: 'keys-during-upgrade', waitSeconds: UPGRADE_WAIT_SECONDS });
  }
  const { repository, requestDigest } = request;
  const seen = laterOf(request.position, repository.entity.position);
  const find = (id: PushId, at: LogPosition) => context.readModels.keyedPush(repository.id, id, at);
  // Each turn finds a use that is a day older than the next one.
  for (let before: EventId | null = null; ; ) {
    const id = pushIdOf(context, request, before);
    const push: KeyedPush | null = await find(id, seen);
    if (push === null) return { free: { id, requestDigest, isUsed: createIsUsed(seen, (at) => find(id, at)) } };
    if (plusMs(push.at, PUSH_KEY_SPAN_MS) > context.clock.now()) {
      if (push.requestDigest !== requestDigest) return refuse({ code: 'key-used-otherwise' });
      // The repository was read before: it lacks what the use has brought.
      if (push.revision >= nextRevision(repository.entity.revision)) return refuse({ code: 'key-in-use' });
      return { used: await readUse(context, repository, push) };
    }
    before = push.eventId;
  }
}

function laterOf(a: LogPosition, b: LogPosition): LogPosition {
  return a > b ? a : b;
}

/** `before` is the last use of the key, if that was so long ago that the key is free again. */
function pushIdOf(
  { ids }: Pick<PushKeysContext, 'ids'>,
  { repository, principal, operation, key }: KeyedRequest,
  before: EventId | null,
): PushId {
  const name = [repository.accountId, operation, ...userOf(principal), key, before];
  return ids.derive<PushId>(repository.id, canonicalJson(name));
}

/** Who may repeat a request: jobs exchange a token for each run, so a rule and its subject stand for theirs. */
function userOf(principal: Principal): readonly string[] {
  switch (principal.kind) {
    case 'access-token':
      return ['token', principal.tokenId];
    case 'exchanged-token':
      return ['trust_rule', principal.token.trustRule.id, principal.token.subjectRef];
    case 'session':
      return ['user', principal.account];
  }
}

/** The first look was at `seen`. */
function createIsUsed(seen: LogPosition, find: (at: LogPosition) => Promise<KeyedPush | null>): PushKey['isUsed'] {
  let unusedTo = seen;
  return async (position) => {
    if (position <= unusedTo) return false;
    if ((await find(position)) !== null) return true;
    unusedTo = position;
    return false;
  };
}

async function readUse(
  context: Pick<PushKeysContext, 'events' | 'digest'>,
  { entity: { stream } }: FoundRepository,
  { revision, eventId }: KeyedPush,
): Promise<UsedKey> {
  const [recorded] = await context.events.readStream(stream, { direction: 'forwards', from: revision, limit: 1 });
  if (recorded?.id !== eventId) throw new ReadModelError('read-model-behind', `The log has no event ${eventId} now`);
  const event = readEvent(repositoryEventKinds, await withUpdatesInPlace(context, recorded));
  if (event.type !== 'RefsUpdated') throw new TypeError(`${eventId} is not a push`);
  return { event: eventId, data: event.data };
}
