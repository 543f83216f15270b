/**
 * Paths of files that somebody wants to create.
 *
 * Invariants: a name that git-fsck(1) calls a danger to clients is refused here, so that the writer learns which one:
 * `.git` under any name by which a file system may know it, `.` and `..` (fsck.c, path.c and utf8.c in git). What is
 * taken here is checked again with all rules when its tree is pushed.
 */
import { TREE_PATH_BYTES_MAX } from '../kernel/limits.ts';
import { decodeUtf8Lossy } from './utf8.ts';

export type PathFault =
  /** It is empty, begins or ends with a slash, or holds two of them in a row, or NUL. */
  'path-malformed' | 'path-forbidden' | 'path-too-long';

const SLASH = 0x2f;
const NUL = 0;

/** Returns the names from the root down, or why no commit may have this path. */
export function namesOfPath(path: Uint8Array): readonly Uint8Array[] | PathFault {
  if (path.length > TREE_PATH_BYTES_MAX) return 'path-too-long';
  if (path.includes(NUL)) return 'path-malformed';
  const names: Uint8Array[] = [];
  for (let start = 0; start <= path.length; ) {
    const slash = path.indexOf(SLASH, start);
    const end = slash < 0 ? path.length : slash;
    if (end === start) return 'path-malformed';
    const name = path.subarray(start, end);
    if (isForbidden(name)) return 'path-forbidden';
    names.push(name);
    start = end + 1;
  }
  return names;
}

/** NTFS also knows it as a short name, ends it at a colon or a backslash, and drops dots and spaces at its end. */
const GIT_ON_NTFS = /(?:^|\\)(?:\.git|git~1)[. ]*(?:$|[\\:])/i;
/** What HFS+ ignores in names. */
const IGNORED_ON_HFS = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;

function isForbidden(name: Uint8Array): boolean {
  const text = decodeUtf8Lossy(name);
  if (text === '.' || text === '..' || GIT_ON_NTFS.test(text)) return true;
  return text.replaceAll(IGNORED_ON_HFS, '').toLowerCase() === '.git';
}
