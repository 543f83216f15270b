/** Lists tags in pages, found by a part of their name, with their message and the commit that they lead to. */
import type { CommitRow } from '../../git/commit-row.ts';
import { listedPage, listedPerson, listedRow } from '../../git/history/listed-commit.ts';
import type { Signature } from '../../git/objects.ts';
import type { ObjectId } from '../../kernel/ids.ts';
import {
  COMMIT_CROWDED_MESSAGE_LENGTH_MAX,
  COMMIT_LISTED_MESSAGE_LENGTH_MAX,
  COMMITS_PAGE_BYTES_MAX,
} from '../../kernel/limits.ts';
import type { Page, PageOf } from '../../kernel/page.ts';
import { cutText, startOfText } from '../../kernel/text.ts';
import type { ObjectReader } from '../../ports/object-database.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { type FindRefsContext, findRefs, type NamedRef, type RefOrder } from './find-refs.ts';
import { closing, type ObjectsContext, openView } from './repository-view.ts';
export interface WantedTagPage {
  /** A part of the name, in any case; empty finds all. */
  readonly search: string;
  readonly order: RefOrder;
  readonly page: Page;
}

export interface ListedTag {
  readonly name: string;
  /** What the tag leads to in the end: mostly a commit. */
  readonly target: ObjectId;
  readonly type: 'commit' | 'tree' | 'blob';
  /** The object of an annotated tag; null for a lightweight one. */
  readonly annotation: { readonly id: ObjectId; readonly message: string; readonly tagger: Signature | null } | null;
  /** Null if the tag leads to a tree or a blob. */
  readonly commit: CommitRow | null;
}

export interface TagPage {
  /** The version of the repository (`versionOf`). */
  readonly version: string;
  readonly tags: PageOf<ListedTag>;
}

export async function listTagPage(
  context: ObjectsContext & FindRefsContext,
  repository: FoundRepository,
  { search, order, page }: WantedTagPage,
): Promise<TagPage> {
  const { items, total } = await findRefs(context, repository.entity.state, { kind: 'tag', search, order, page });
  return closing(openView(context, repository), async (view) => {
    const tags: ListedTag[] = [];
    if (items.length > 0) {
      const reader = await view.objects();
      // One after the other: each may be large until it is cut.
      for (const item of items) tags.push(await listedTag(reader, item));
    }
    return { version: view.version, tags: { items: fitting(tags), total } };
  });
}

/** Returns what a tag of this name shows that names this object; null if it is not there, or no ref may name it. */
export async function tagOf(reader: ObjectReader, name: string, id: ObjectId): Promise<ListedTag | null> {
  const [tip = null] = await reader.tips([id]);
  if (tip === null || tip === 'tag-too-deep') return null;
  const ref = { id, type: tip.type, peeled: tip.peeled?.id ?? null };
  const [tag = null] = fitting([await listedTag(reader, { name, ref })]);
  return tag;
}

/** Cuts the messages of tags, and those of their commits as `listedPage` does, on a page that would be too large. */
function fitting(tags: readonly ListedTag[]): readonly ListedTag[] {
  const commits = listedPage(tags.flatMap(({ commit }) => (commit === null ? [] : [commit])));
  const byId = new Map(commits.map((commit) => [commit.id, commit]));
  const length = tags.reduce((sum, { annotation }) => sum + (annotation?.message.length ?? 0), 0);
  const isCrowded = length > COMMITS_PAGE_BYTES_MAX;
  return tags.map((tag) => {
    const { annotation, commit } = tag;
    const message =
      isCrowded && annotation !== null ? cutText(annotation.message, COMMIT_CROWDED_MESSAGE_LENGTH_MAX) : '';
    return {
      ...tag,
      annotation: annotation === null || !isCrowded ? annotation : { ...annotation, message },
      commit: commit === null ? null : (byId.get(commit.id) ?? commit),
    };
  });
}

async function listedTag(reader: ObjectReader, { name, ref }: NamedRef): Promise<ListedTag> {
  const target = ref.peeled ?? ref.id;
  const tag = ref.type === 'tag' ? await reader.tag(ref.id) : null;
  const commit = await reader.commit(target);
  const [info] = commit === null ? await reader.lookup([target]) : [];
  return {
    name,
    target,
    type: commit !== null ? 'commit' : info?.type === 'tree' ? 'tree' : 'blob',
    annotation:
      tag === null
        ? null
        : {
            id: tag.id,
            message: startOfText(tag.message, COMMIT_LISTED_MESSAGE_LENGTH_MAX),
            tagger: tag.tagger === null ? null : listedPerson(tag.tagger),
          },
    commit: commit === null ? null : listedRow(commit),
  };
}
