/**
 * Searches of files by git: the paths below a tree, and the lines that hold a text.
 *
 * Invariants: git gets ids in full, a text as the value of an option, and paths as literal ones; neither attributes nor
 * configuration of the machine change what it finds. Each command holds one of few slots for searches, has one thread,
 * less memory and less processor time than other reads for pages, and ends with its request.
 */
import { GREP_CONTEXT_LINES } from '../../core/git/grep-lines.ts';
import { decodeUtf8 } from '../../core/git/utf8.ts';
import { MIB } from '../../core/kernel/byte-units.ts';
import { EMPTY_TREE_ID } from '../../core/kernel/ids.ts';
import { ObjectDatabaseError } from '../../core/ports/object-database.ts';
import type { ObjectSearch, RegexFault } from '../../core/ports/object-search.ts';
import { type HistoryContext, inTurns, READING_VARIABLES } from './object-history.ts';
import { type GitCommand, noInput, type ObjectView, type OwnLimits } from './process/git-commands.ts';
import type { ProcessEnd } from './process/process-runner.ts';

/** What git may take for a search of lines: the memory holds a file of some 40 MiB. */
export const SEARCH_CPU_SECONDS_MAX = 5;
export const SEARCH_MEMORY_BYTES_MAX = 64 * MIB;
/** The same for a list of paths: 300,000 take a second. */
export const FILE_LISTING_CPU_SECONDS_MAX = 10;
export const FILE_LISTING_MEMORY_BYTES_MAX = 128 * MIB;

const SEARCH_LIMITS: OwnLimits = {
  cpuSecondsMax: SEARCH_CPU_SECONDS_MAX,
  memoryBytesMax: SEARCH_MEMORY_BYTES_MAX,
};
const LISTING_LIMITS: OwnLimits = {
  cpuSecondsMax: FILE_LISTING_CPU_SECONDS_MAX,
  memoryBytesMax: FILE_LISTING_MEMORY_BYTES_MAX,
};

const LINES = ['grep', '--threads=1', '--no-color', '--full-name', '--line-number', '--column', '--null', '-I'];
LINES.push(`--context=${GREP_CONTEXT_LINES}`);

/** How much of a file git looks at for NUL: `buffer_is_binary` in its xdiff-interface.c. */
const BINARY_SEEN_BYTES = 8_000;

export function createObjectSearch({ git, slots }: HistoryContext, view: ObjectView): ObjectSearch {
  return {
    async *files(tree, { sizes }, { signal, spanMs }) {
      const args = ['ls-tree', '-r', '-z', '--full-tree', ...(sizes ? ['-l'] : []), tree];
      const own = { limits: LISTING_LIMITS, slots: slots.listings };
      const command: GitCommand = { args, view, variables: READING_VARIABLES, signal, wallMsMax: spanMs, ...own };
      yield* inTurns(git.stream(command, noInput(), ({ killed, code }) => killed === 'no' && code === 0));
    },
    async *lines(root, { text, isRegex, without }, { signal, spanMs }) {
      const args = [...LINES, kindOf(isRegex), '-e', text, root, ...leftOut(without)];
      const own = { limits: SEARCH_LIMITS, slots: slots.searches };
      const command: GitCommand = { args, view, variables: READING_VARIABLES, signal, wallMsMax: spanMs, ...own };
      const ended: { end: ProcessEnd | null } = { end: null };
      try {
        yield* inTurns(
          git.stream(command, noInput(), (end) => {
            ended.end = end;
            return isDone(end);
          }),
        );
      } catch (cause) {
        throw boundReached(ended.end, cause) ?? cause;
      }
    },
    async isBinary(blob, { signal, spanMs }) {
      const own = { limits: SEARCH_LIMITS, slots: slots.searches };
      const command: GitCommand = { args: ['cat-file', 'blob', blob], view, signal, wallMsMax: spanMs, ...own };
      let left = BINARY_SEEN_BYTES;
      for await (const chunk of git.stream(command, noInput())) {
        if (chunk.subarray(0, left).includes(0)) return true;
        left -= chunk.length;
        if (left <= 0) break;
      }
      return false;
    },
    async regexFault(regex, { signal, spanMs }) {
      const args = ['grep', '--threads=1', kindOf(true), '-e', regex, EMPTY_TREE_ID];
      const own = { limits: SEARCH_LIMITS, slots: slots.searches };
      const end = await git.run({ args, view, variables: READING_VARIABLES, signal, wallMsMax: spanMs, ...own });
      return isDone(end) ? null : faultOf(end);
    },
  };
}

function kindOf(isRegex: boolean): string {
  return isRegex ? '--perl-regexp' : '--fixed-strings';
}

/** git ends with status 1 if it found nothing. */
function isDone({ killed, code }: ProcessEnd): boolean {
  return killed === 'no' && (code === 0 || code === 1);
}

/** Paths that are no text cannot be arguments. */
function leftOut(paths: readonly Uint8Array[]): readonly string[] {
  const texts = paths.map(decodeUtf8).filter((path) => path !== null);
  return texts.length === 0 ? [] : ['--', ...texts.map((path) => `:(exclude,top,literal)${path}`)];
}

/** Returns the error for a search that reached a bound which git itself tells; null for any other end. */
function boundReached(ended: ProcessEnd | null, cause: unknown): ObjectDatabaseError | null {
  const stderr = ended?.stderr ?? '';
  if (/[Oo]ut of memory|[Cc]annot allocate memory/.test(stderr)) {
    return new ObjectDatabaseError('object-too-large', 'git cannot hold a file in the memory of a search', { cause });
  }
  // PCRE gives up an expression that takes too many steps over a line.
  if (!/^fatal: pcre2?_(?:jit_)?match failed with error code/m.test(stderr)) return null;
  return new ObjectDatabaseError('reading-too-costly', 'The expression takes too many steps', { cause });
}

const TOO_COSTLY = 'it takes too long to read';
const UNREADABLE = 'git cannot read it';

/** git names where the expression stands, the expression, and what PCRE says of it. */
function faultOf({ killed, signal, stderr }: ProcessEnd): RegexFault {
  if (/not compiled with|was not compiled|without .*PCRE/i.test(stderr)) return { kind: 'unavailable' };
  if (killed !== 'no' || signal !== null) return { kind: 'invalid', reason: TOO_COSTLY };
  const [, reason = UNREADABLE] = /^fatal: .*': ([^']+)$/ms.exec(stderr.trim()) ?? [];
  return { kind: 'invalid', reason };
}
