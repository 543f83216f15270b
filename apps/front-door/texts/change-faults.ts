/** What is wrong with a change of a new commit. */
import type { CommitFault } from '../../../core/use-cases/pushing/decide-commit.ts';

type ChangeCode = Extract<CommitFault, { readonly at: 'change' }>['code'];

/** Without a full stop. */
export const CHANGE_FAULTS: Readonly<Record<ChangeCode, string>> = {
  'path-malformed': 'A path is names with a slash between them, without NUL',
  'path-forbidden': 'No path has this name: some file systems take it for .git, or for another folder',
  'path-too-long': 'The path is longer than it may be',
  'path-changed-twice': 'Another change has this path, or removes a folder that it is in',
  'blob-moved': 'Something else is at the path than was expected',
  'path-missing': 'Nothing is at the path',
  'path-exists': 'Something is at the path already',
  'path-is-folder': 'A folder is at the path',
  'path-is-submodule': 'A submodule is at the path',
  'path-below-file': 'A file or a submodule is where one of the folders of the path should be',
  'changes-too-wide': 'The changes touch more files and folders than one commit may',
  'trees-too-large': 'The changed folders are too large',
  'blob-not-found': 'There is no such blob',
  'content-refused': 'The content has the form of an attack on SHA-1',
};
