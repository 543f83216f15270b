/**
 * How git upload-pack ends a fetch that it does not answer, whose cause that is, and what the client is told
 * (docs/git-path.md, Ends of a fetch).
 *
 * Invariants: what a request can cause over a healthy repository is the client's, and no outage. A row matches a whole
 * line of git's own, so nothing that a client or a repository chose passes for one.
 */
import { OBJECT_ID_PATTERN } from '../../../core/kernel/ids.ts';
import type { ProcessEnd } from '../process/process-runner.ts';

interface FetchEnd {
  /** The last line that git writes on standard error. */
  readonly line: RegExp;
  /** What the client is told after `ERR`; `$1` is the group of the pattern. */
  readonly told: string;
}

/**
 * The ends that a request causes. Each comes before the first byte of a pack. The parsers of core/git/wire and
 * open-fetch.ts refuse all others that a request can cause, before git sees it.
 */
const CLIENTS: readonly FetchEnd[] = [
  { line: /^fatal: no commits selected for shallow requests$/, told: 'no commits selected for shallow requests' },
  { line: new RegExp(`^fatal: invalid shallow object (${OBJECT_ID_PATTERN})$`), told: 'invalid shallow object $1' },
];

/** The exit status of git's `die`. */
const DIED = 128;

/** Returns what to tell the client that caused this end; null for an end that is a fault. */
export function toldToClient({ killed, code, stderr }: ProcessEnd): string | null {
  if (killed !== 'no' || code !== DIED) return null;
  const last = stderr.trimEnd().split('\n').at(-1) ?? '';
  const row = CLIENTS.find(({ line }) => line.test(last));
  return row === undefined ? null : last.replace(row.line, row.told);
}
