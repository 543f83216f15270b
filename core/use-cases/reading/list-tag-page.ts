/** Lists tags in pages, found by a part of their name, with their message and the commit that they lead to. */
import { COMMIT_LISTED_MESSAGE_LENGTH_MAX } from '../../kernel/limits.ts';
import type { ObjectId } from '../../kernel/ids.ts';
import type { Page, PageOf } from '../../kernel/page.ts';
import { startOfText } from '../../kernel/text.ts';
import type { CommitRow } from '../../ports/history.ts';
import type { ObjectReader, Signature } from '../../ports/object-database.ts';
import { listedCommit, listedPerson } from '../../git/history/listed-commit.ts';
import type { FoundRepository } from '../accounts/repositories.ts';
import { commitRow } from './commit-walk.ts';
import { findRefs, type FindRefsContext, type NamedRef, type RefOrder } from './find-refs.ts';
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
    return { version: view.version, tags: { items: tags, total } };
  });
}

async function listedTag(reader: ObjectReader, { name, ref }: NamedRef): Promise<ListedTag> {
  const target = ref.peeled ?? ref.id;
  const tag = ref.type === 'tag' ? await reader.tag(ref.id) : null;
  const commit = await reader.commit(target);
  return {
    name,
    target,
    annotation:
      tag === null
        ? null
        : {
            id: tag.id,
            message: startOfText(tag.message, COMMIT_LISTED_MESSAGE_LENGTH_MAX),
            tagger: tag.tagger === null ? null : listedPerson(tag.tagger),
          },
    commit: commit === null ? null : commitRow(listedCommit(commit)),
  };
}
