/** Changed files as JSON, the same wherever commits are compared. */
import type { z } from 'zod';
import type { Diff } from '../../core/git/diff/diff.ts';
import { pathMembers } from './contents-json.ts';
import type { CHANGED_COMMIT } from './schemas/commits.ts';

/** The bounds of such a diff: its lines are counted and not kept. */
export const COUNTED_ONLY = { fileLines: 0, keptBytes: 0 };

type Files = Pick<z.output<typeof CHANGED_COMMIT>, 'files' | 'files_truncated'>;

export function filesJson(diff: Diff): Files {
  return {
    files: diff.files.map(({ path, previousPath, status, additions, deletions, binary }) => ({
      ...pathMembers(path),
      ...previousMembers(previousPath),
      status,
      additions,
      deletions,
      binary,
    })),
    files_truncated: diff.filesTotal !== diff.files.length,
  };
}

function previousMembers(
  bytes: Uint8Array | null,
): Pick<Files['files'][number], 'previous_path' | 'previous_path_encoded'> {
  if (bytes === null) return { previous_path: null };
  const { path, path_encoded } = pathMembers(bytes);
  return { previous_path: path, ...(path_encoded === undefined ? {} : { previous_path_encoded: path_encoded }) };
}
