/**
 * Changes refs over the API: a push of a pack without objects, to objects that the repository has, or of a pack of
 * objects that were made for them.
 *
 * Invariants: `pushRefs` decides and commits the change, with the checks, quotas and event of every push. No ref gets
 * an object that its caller could not fetch by its id: it is refused as one that is not there.
 */
import type { Plans } from '../../account/plans.ts';
import { parseRefName, type RefName, type RefNameRefusalCode } from '../../git/ref-name.ts';
import { refuse } from '../../kernel/decider.ts';
import { type EventId, type ObjectId, ZERO_OBJECT_ID } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { RefRefusalCode } from '../../repository/commands.ts';
import type { Door, StoredRefUpdate } from '../../repository/events.ts';
import type { Refs } from '../../repository/ref-runs.ts';
import type { Guarding } from '../../runtime/execute.ts';
import { refsKeyOf } from '../reading/advertised-refs.ts';
import { unauthorisedMentions } from '../reading/authorise-wants.ts';
import { closing, openView } from '../reading/repository-view.ts';
import type { FoundRepository, RepositoryCommandOrigin } from '../repositories/repositories.ts';
import type { ObjectsToPush } from './objects-to-push.ts';
import {
  type Push,
  type PushCommand,
  type PushContext,
  type PushKey,
  type PushRefusal,
  pushRefs,
} from './push-refs.ts';
import { refusalOfPush } from './refusal-of-push.ts';

export interface ChangeRefsContext extends PushContext {
  readonly plans: Plans;
}

/** A push always needs its caller's guard. */
export type ChangeRefsOrigin = RepositoryCommandOrigin & { readonly guarding: Guarding; readonly door: Door };

export interface WantedRef {
  /** The full name as the caller sent it. */
  readonly ref: string;
  /** What the ref names; null: it is not there; `any`: whatever it is. */
  readonly expected: ObjectId | null | 'any';
  /** Null deletes the ref. */
  readonly after: ObjectId | null;
}

export interface WantedRefs {
  readonly repository: FoundRepository;
  /** No ref twice. */
  readonly updates: readonly WantedRef[];
  /** Whether nothing changes if one of them is refused. */
  readonly atomic: boolean;
  /** An object that the service made for a ref. */
  readonly made?: { readonly id: ObjectId; readonly pack: ObjectsToPush['pack'] };
  /** The key of the request, if it has one. */
  readonly key: PushKey | null;
  readonly signal: AbortSignal;
}

/** Why a ref is not as wanted, by the code of a push that is refused for this reason. */
export type RefFault =
  | {
      readonly ref: string;
      readonly code: RefRefusalCode;
      readonly detail: null;
      /** What the ref names instead of what was expected, zeros for nothing; null if that is not the reason. */
      readonly head: ObjectId | null;
    }
  /** `detail` is what is wrong with the name, or with the object that was made for the ref. */
  | {
      readonly ref: string;
      readonly code: RefNameRefusalCode | 'objects-refused';
      readonly detail: string;
      readonly head: null;
    };

export interface ChangedRefs {
  /** Null if nothing changed. */
  readonly event: EventId | null;
  /** What changed, in the order of the wanted updates. */
  readonly updates: readonly StoredRefUpdate[];
  /** In the order of the wanted updates. */
  readonly faults: readonly RefFault[];
}

export async function changeRefs(
  context: ChangeRefsContext,
  origin: ChangeRefsOrigin,
  wanted: WantedRefs,
): Promise<ChangedRefs | { readonly refused: Refusal }> {
  const { repository, atomic, made } = wanted;
  const faults = new Map<string, RefFault>();
  const commands: PushCommand[] = [];
  for (const { ref: text, expected, after } of wanted.updates) {
    const ref = parseRefName(text);
    if (typeof ref !== 'string') faults.set(text, { ref: text, code: ref.refused, detail: ref.detail, head: null });
    else commands.push({ ref, before: expected, after });
  }
  if (commands.length === 0 || (atomic && faults.size > 0)) {
    for (const { ref } of commands) faults.set(ref, faultOf(ref, 'atomic-push-refused'));
    return { event: null, updates: [], faults: inOrder(wanted, faults) };
  }
  const bringing = commands.some(({ after }) => after !== null);
  const named = wanted.updates.flatMap(({ after }) => (after === null || after === made?.id ? [] : [after]));
  const pushed = await pushRefs(context, {
    repository,
    quotas: context.plans[repository.account.plan],
    cause: origin.cause,
    guarding: origin.guarding,
    door: origin.door,
    key: wanted.key,
    unreadable: await unreadableOf(context, repository, named),
    commands,
    refusedNames: faults.size,
    atomic,
    pushOptions: [],
    ...(bringing ? (made?.pack() ?? emptyPack()) : NO_PACK),
    signal: wanted.signal,
  });
  if ('refused' in pushed) {
    const { refused } = pushed;
    const found = made === undefined ? [] : commands.flatMap(({ ref }) => faultOfMade(ref, refused) ?? []);
    return found.length === 0 ? refuse(refusalOfPush(refused)) : { event: null, updates: [], faults: found };
  }
  for (const { ref, code } of pushed.results) if (code !== null) faults.set(ref, faultOf(ref, code, pushed.refs));
  return { event: pushed.event, updates: pushed.updates, faults: inOrder(wanted, faults) };
}

/**
 * A pack of no objects and its checksum (gitformat-pack(5)), which git sends as well where refs move to what is there.
 */
const EMPTY_PACK = new Uint8Array([
  0x50, 0x41, 0x43, 0x4b, 0, 0, 0, 2, 0, 0, 0, 0, 0x02, 0x9d, 0x08, 0x82, 0x3b, 0xd8, 0xa8, 0xea, 0xb5, 0x10, 0xad,
  0x6a, 0xc7, 0x5c, 0x82, 0x3c, 0xfd, 0x3e, 0xd3, 0x1e,
]);

const NO_PACK: Pick<Push, 'pack' | 'receivedBytes'> = { pack: null, receivedBytes: () => 0 };

function emptyPack(): Pick<Push, 'pack' | 'receivedBytes'> {
  return { pack: chunks(EMPTY_PACK), receivedBytes: () => EMPTY_PACK.length };
}

async function* chunks(pack: Uint8Array): AsyncGenerator<Uint8Array> {
  yield pack;
}

/** Returns which of the objects exist, and may not be fetched. */
export async function unreadableOf(
  context: Pick<ChangeRefsContext, 'objects' | 'clock'>,
  repository: FoundRepository,
  ids: readonly ObjectId[],
): Promise<ReadonlySet<ObjectId>> {
  const { state } = repository.entity;
  const found = await closing(openView(context, repository), (view) =>
    unauthorisedMentions(state, [...new Set(ids)], refsKeyOf(repository), context.clock.now(), () => view.objects()),
  );
  return new Set(found);
}

/** Why an object that was made is not taken, if that is the reason. */
function faultOfMade(ref: RefName, refused: PushRefusal): RefFault | null {
  // A purge removed what it leads to.
  if (refused.code === 'pack-not-connected') return faultOf(ref, 'object-missing');
  if (refused.code !== 'pack-fsck-failed' && refused.code !== 'pack-broken') return null;
  return { ref, code: 'objects-refused', detail: refused.detail, head: null };
}

const MOVED: ReadonlySet<RefRefusalCode> = new Set(['ref-moved', 'ref-exists', 'ref-missing'] as const);

/** `refs` are those on which it was decided. */
export function faultOf(ref: RefName, code: RefRefusalCode, refs: Refs | null = null): RefFault {
  const head = refs !== null && MOVED.has(code) ? (refs.get(ref)?.id ?? ZERO_OBJECT_ID) : null;
  return { ref, code, detail: null, head };
}

function inOrder({ updates }: WantedRefs, faults: ReadonlyMap<string, RefFault>): readonly RefFault[] {
  return updates.flatMap(({ ref }) => faults.get(ref) ?? []);
}
