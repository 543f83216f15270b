/** Finds the full id of the commit that a short one names. */
import { refuse } from '../../kernel/decider.ts';
import type { ObjectId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { closing, type ObjectsContext, openView } from './repository-view.ts';
import { commitNamed } from './resolve-ref.ts';

/** Refused with `ref-not-found` or `short-id-ambiguous`. */
export async function fullIdOf(
  context: ObjectsContext,
  repository: FoundRepository,
  text: string,
): Promise<{ readonly id: ObjectId } | { readonly refused: Refusal }> {
  return closing(openView(context, repository), async (view) => {
    const commit = await commitNamed(repository, await view.objects(), text);
    if (commit === null) return refuse({ code: 'ref-not-found' });
    return 'refused' in commit ? commit : { id: commit.id };
  });
}
