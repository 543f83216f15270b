/**
 * Creates a lightweight tag over the API, which is the change of one ref.
 *
 * Invariants: what the answer shows of the tag is read before the change, so that a change that was made is answered.
 */
import type { EventId, ObjectId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { type ListedTag, tagOf } from '../reading/list-tag-page.ts';
import { closing, openView } from '../reading/repository-view.ts';
import { tagText } from '../reading/resolve-ref.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { type ChangeRefsContext, type ChangeRefsOrigin, changeRefs, type RefFault } from './change-refs.ts';

export interface WantedTag {
  readonly repository: FoundRepository;
  /** The short name as the caller sent it. */
  readonly name: string;
  readonly target: ObjectId;
  /** Null: there is no tag of this name; `any`: whatever is there. */
  readonly expected: null | 'any';
  readonly signal: AbortSignal;
}

export interface CreatedTag {
  readonly tag: ListedTag;
  /** Null if the tag was there already. */
  readonly event: EventId | null;
}

export async function createTag(
  context: ChangeRefsContext,
  origin: ChangeRefsOrigin,
  { repository, name, target, expected, signal }: WantedTag,
): Promise<CreatedTag | { readonly fault: RefFault } | { readonly refused: Refusal }> {
  const tag = await closing(openView(context, repository), async (view) => tagOf(await view.objects(), name, target));
  const updates = [{ ref: tagText(name), expected, after: target }];
  const changed = await changeRefs(context, origin, { repository, updates, atomic: true, signal });
  if ('refused' in changed) return changed;
  const [fault] = changed.faults;
  if (fault !== undefined) return { fault };
  if (tag === null) throw new TypeError(`A tag leads to ${target}, which is not there`);
  return { tag, event: changed.event };
}
