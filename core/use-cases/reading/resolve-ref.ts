/**
 * Which commit a reader means: a branch, a tag, or a full commit id; never a revision expression.
 *
 * Must stay true: only what the repository's current refs reach is found, so what a deleted branch held is
 * gone for readers. Where names collide the branch wins; `refs/tags/<name>` in full names the tag.
 */
import { parseRefName } from '../../git/ref-name.ts';
import { refuse } from '../../kernel/decider.ts';
import { parseObjectId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { Commit, ObjectReader } from '../../ports/object-database.ts';
import type { Ref } from '../../repository/state.ts';
import { currentTips } from './authorise-wants.ts';
import type { FoundRepository } from '../accounts/repositories.ts';

export interface ResolvedRef {
  /** What was asked for, or the short name of the default branch. */
  readonly name: string;
  readonly commit: Commit;
}

type Refused = { readonly refused: Refusal };

/** The branch or tag of that name; null where there is none. */
function findRef(repository: FoundRepository, name: string): Ref | null {
  const { refs } = repository.entity.state;
  const inFull = /^refs\/(heads|tags)\//.test(name) ? [name] : [];
  for (const candidate of [`refs/heads/${name}`, `refs/tags/${name}`, ...inFull]) {
    const parsed = parseRefName(candidate);
    const ref = typeof parsed === 'string' ? refs.get(parsed) : undefined;
    if (ref !== undefined) return ref;
  }
  return null;
}

/** The tip of the default branch; null while it does not exist. */
export function findDefaultBranch(repository: FoundRepository): Ref | null {
  const name = parseRefName(`refs/heads/${repository.defaultBranch}`);
  return typeof name === 'string' ? (repository.entity.state.refs.get(name) ?? null) : null;
}

/** `asked` null: the default branch. Refused with `repository-without-commits` or `ref-not-found`. */
export async function resolveRef(
  repository: FoundRepository,
  reader: ObjectReader,
  asked: string | null,
): Promise<ResolvedRef | Refused> {
  const ref = asked === null ? findDefaultBranch(repository) : findRef(repository, asked);
  if (ref === null && (asked === null || repository.entity.state.refs.size === 0)) {
    return refuse({ code: 'repository-without-commits' });
  }
  // A tag may lead to a tree or a blob, which have no history and no root folder to show.
  const commit =
    ref === null ? await commitInSight(repository, reader, asked ?? '') : await reader.commit(ref.peeled ?? ref.id);
  return commit === null ? refuse({ code: 'ref-not-found' }) : { name: asked ?? repository.defaultBranch, commit };
}

async function commitInSight(repository: FoundRepository, reader: ObjectReader, asked: string): Promise<Commit | null> {
  const id = parseObjectId(asked.toLowerCase());
  if (id === null) return null;
  const [info] = await reader.lookup([id]);
  if (info?.type !== 'commit') return null;
  const tips = currentTips(repository.entity.state);
  if (!tips.has(id)) {
    const reached = await reader.reachable([id], [...tips], String(repository.entity.revision));
    if (!reached.has(id)) return null;
  }
  return reader.commit(id);
}
