/** Reads one branch with its head commit. */
import { listedRow } from '../../git/history/listed-commit.ts';
import { refuse } from '../../kernel/decider.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { BranchRow } from '../../ports/history.ts';
import { ObjectDatabaseError } from '../../ports/object-database.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { closing, type ObjectsContext, openView } from './repository-view.ts';
import { findOfKind } from './resolve-ref.ts';

export interface FoundBranch extends BranchRow {
  /** The version of the repository (`versionOf`). */
  readonly version: string;
}

/** `name` is without `refs/heads/`. Refused with `ref-not-found`. */
export async function readBranch(
  context: ObjectsContext,
  repository: FoundRepository,
  name: string,
): Promise<FoundBranch | { readonly refused: Refusal }> {
  const ref = findOfKind(repository.entity.state.refs, 'branch', name);
  if (ref === null) return refuse({ code: 'ref-not-found' });
  return closing(openView(context, repository), async (view) => {
    const commit = await (await view.objects()).commit(ref.id);
    if (commit === null) throw new ObjectDatabaseError('layer-missing', `Commit ${ref.id} is in no layer`);
    return { version: view.version, name, commit: listedRow(commit) };
  });
}
