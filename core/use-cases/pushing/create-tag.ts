/**
 * Creates a tag over the API, which is the change of one ref: to the target of a lightweight tag, or to an object that
 * is made for an annotated one.
 *
 * Invariants: no tag leads to an object that its caller could not fetch by its id. What the answer shows of the tag is
 * read before the change, so that a change that was made is answered.
 */
import { readSignature } from '../../git/commit-bytes.ts';
import { listedPerson } from '../../git/history/listed-commit.ts';
import type { Signature } from '../../git/objects.ts';
import { tagBytes } from '../../git/tag-bytes.ts';
import type { EventId, ObjectId } from '../../kernel/ids.ts';
import { COMMIT_LISTED_MESSAGE_LENGTH_MAX } from '../../kernel/limits.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { startOfText } from '../../kernel/text.ts';
import type { NewObjects } from '../../ports/new-objects.ts';
import { type ListedTag, tagOf } from '../reading/list-tag-page.ts';
import { closing, type ObjectsContext, openView } from '../reading/repository-view.ts';
import { tagText } from '../reading/resolve-ref.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import {
  type ChangeRefsContext,
  type ChangeRefsOrigin,
  changeRefs,
  type RefFault,
  unreadableOf,
  type WantedRefs,
} from './change-refs.ts';
import { createObjectsToPush, ObjectRefused } from './objects-to-push.ts';
import type { PushKey } from './push-refs.ts';

export interface CreateTagContext extends ChangeRefsContext {
  readonly newObjects: NewObjects;
}

export interface WantedTag {
  readonly repository: FoundRepository;
  /** The short name as the caller sent it. */
  readonly name: string;
  readonly target: ObjectId;
  /** Null: there is no tag of this name; `any`: whatever is there. */
  readonly expected: null | 'any';
  /** Null for a lightweight tag. */
  readonly annotation: { readonly message: string; readonly tagger: Signature } | null;
  /** The key of the request, if it has one. */
  readonly key: PushKey | null;
  readonly signal: AbortSignal;
}

export interface CreatedTag {
  readonly tag: ListedTag;
  /** Null if the tag was there already. */
  readonly event: EventId | null;
}

export async function createTag(
  context: CreateTagContext,
  origin: ChangeRefsOrigin,
  wanted: WantedTag,
): Promise<CreatedTag | { readonly fault: RefFault } | { readonly refused: Refusal }> {
  const { repository, name, expected, key, signal } = wanted;
  const ref = tagText(name);
  const made = await tagToMake(context, wanted);
  if (typeof made === 'string') return { fault: { ref, code: made, detail: null, head: null } };
  const { tag, object } = made;
  if (object instanceof ObjectRefused) {
    return { fault: { ref, code: 'objects-refused', detail: object.message, head: null } };
  }
  const updates = [{ ref, expected, after: object?.id ?? wanted.target }];
  const brought = object === null ? {} : { made: object };
  const changed = await changeRefs(context, origin, { repository, updates, atomic: true, ...brought, key, signal });
  if ('refused' in changed) return changed;
  const [fault] = changed.faults;
  if (fault !== undefined) return { fault };
  if (tag === null) throw new TypeError(`A tag leads to ${wanted.target}, which is not there`);
  return { tag, event: changed.event };
}

interface TagToMake {
  /** Null if its target is not there. */
  readonly tag: ListedTag | null;
  /** The object of an annotated tag. */
  readonly object: NonNullable<WantedRefs['made']> | ObjectRefused | null;
}

async function tagToMake(
  context: CreateTagContext,
  { repository, name, target, annotation }: WantedTag,
): Promise<TagToMake | 'object-missing'> {
  const [tag, type] = await closing(openView(context, repository), async (view) => {
    const reader = await view.objects();
    const [info = null] = annotation === null ? [] : await reader.lookup([target]);
    return [await tagOf(reader, name, target), info?.type ?? null] as const;
  });
  if (annotation === null) return { tag, object: null };
  // The ref of a lightweight tag is judged by its target, that of an annotated one by what was made.
  if (type === null || (await unreadableOf(context, repository, [target])).has(target)) return 'object-missing';
  const { message, tagger } = annotation;
  const objects = createObjectsToPush(context.newObjects, () => undefined);
  try {
    const id = objects.add('tag', tagBytes({ target: { id: target, type }, name, tagger, message }));
    const shown = startOfText(message, COMMIT_LISTED_MESSAGE_LENGTH_MAX);
    const shownTag = { id, message: shown, tagger: listedPerson(readSignature(tagger)) };
    return { tag: tag === null ? null : { ...tag, annotation: shownTag }, object: { id, pack: objects.pack } };
  } catch (error) {
    if (error instanceof ObjectRefused) return { tag, object: error };
    throw error;
  }
}

/** Returns what the answer shows of a tag that names this object; null if it is not there. */
export function readTag(
  context: ObjectsContext,
  { repository, name, target }: Pick<WantedTag, 'repository' | 'name' | 'target'>,
): Promise<ListedTag | null> {
  return closing(openView(context, repository), async (view) => tagOf(await view.objects(), name, target));
}
