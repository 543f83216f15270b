/**
 * Walks and comparisons of commits by git: diffs, the commits of a path, how far branches are apart.
 *
 * Invariants: git gets ids in full, and paths as literal bytes; neither attributes nor configuration of the machine
 * change what it prints. Each command holds one of the few slots for reading, has less memory and processor time than
 * those of fetches, and ends with its request.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { decodeUtf8 } from '../../core/git/utf8.ts';
import { MIB } from '../../core/kernel/byte-units.ts';
import { EMPTY_TREE_ID, type ObjectId, objectId } from '../../core/kernel/ids.ts';
import { HISTORY_READ_CPU_SECONDS_MAX } from '../../core/kernel/limits.ts';
import { ObjectDatabaseError } from '../../core/ports/object-database.ts';
import type {
  Bounded,
  CommitFilter,
  CommitLinks,
  DiffDetail,
  DiffOptions,
  ObjectHistory,
} from '../../core/ports/object-history.ts';
import { idBatches } from './packs/reachable-sets.ts';
import { type Git, type GitCommand, noInput, type ObjectView, type OwnLimits } from './process/git-commands.ts';
import type { Environment } from './process/git-environment.ts';
import type { ReadingSlots } from './reading-slots.ts';

/**
 * The memory and the processor time that git may take for a diff. Beyond the memory, as two folders of half a million
 * files need, the diff says that it was cut.
 */
export const DIFF_MEMORY_BYTES_MAX = 128 * MIB;
export const DIFF_CPU_SECONDS_MAX = 30;
/** The memory that git may take for another read for a page: a walk over a million commits takes some 300 MiB. */
export const HISTORY_READ_MEMORY_BYTES_MAX = 512 * MIB;
/** Files on one side that are compared with those on the other to find renames; beyond it only equal files are. */
export const DIFF_RENAME_FILES_MAX = 400;
/** How long git may count the commits that one reaches. */
export const COUNT_SPAN_MS = 10_000;
const DIFF_LIMITS: OwnLimits = { memoryBytesMax: DIFF_MEMORY_BYTES_MAX, cpuSecondsMax: DIFF_CPU_SECONDS_MAX };
const OTHER_LIMITS: OwnLimits = {
  memoryBytesMax: HISTORY_READ_MEMORY_BYTES_MAX,
  cpuSecondsMax: HISTORY_READ_CPU_SECONDS_MAX,
};

export const READING_VARIABLES: Environment = {
  GIT_ATTR_NOSYSTEM: '1',
  // Else git takes the current folder for a working tree, and reads attributes from it.
  GIT_IMPLICIT_WORK_TREE: '0',
};
export const HISTORY_VARIABLES: Environment = { ...READING_VARIABLES, GIT_LITERAL_PATHSPECS: '1' };

export const AS_IT_IS = ['--no-color', '--no-ext-diff', '--no-textconv'];
const DIFF = ['-z', '--full-index', '--no-abbrev', ...AS_IT_IS];
DIFF.push('--find-renames', `-l${DIFF_RENAME_FILES_MAX}`, '--submodule=short', '--src-prefix=a/', '--dst-prefix=b/');
const DIFF_COMMANDS = [
  ['diff-tree', '-r', ...DIFF],
  ['diff', ...DIFF],
] as const;
const [OF_TREES, OF_BLOBS] = DIFF_COMMANDS;

const DETAILS: Readonly<Record<DiffDetail, readonly string[]>> = {
  records: ['--raw'],
  counts: ['--numstat'],
  patches: ['--raw', '-p'],
};

/** What else git is told of a diff. */
function detailsOf({ detail = 'patches', context = 3, ignoresWhiteSpace = false }: DiffOptions): readonly string[] {
  const lines = detail === 'patches' ? [`--unified=${context}`] : [];
  return [...DETAILS[detail], ...lines, ...(ignoresWhiteSpace ? ['--ignore-all-space'] : [])];
}

const BLAME = ['blame', '--incremental', '--no-ext-diff', '--no-textconv'];

const CHANGES = ['log', '-z', '--raw', '-t', '-c', '--no-abbrev', '--no-renames', '--format=%H', ...AS_IT_IS];
CHANGES.push('--no-notes', '--no-show-signature', '--no-decorate');

export interface HistoryContext {
  readonly git: Git;
  readonly slots: ReadingSlots;
}

export function createObjectHistory({ git, slots }: HistoryContext, view: ObjectView): ObjectHistory {
  /** Runs a command whose input are revisions and paths. */
  function output(
    args: readonly string[],
    input: Iterable<Uint8Array | string>,
    bounded: Bounded,
    accepts?: (code: number | null) => boolean,
  ): AsyncGenerator<Buffer> {
    const { signal, spanMs } = bounded;
    const isDiff = DIFF_COMMANDS.some(([name]) => name === args[0]);
    const own = isDiff ? { limits: DIFF_LIMITS, slots: slots.diffs } : { limits: OTHER_LIMITS, slots: slots.others };
    const command: GitCommand = { args, view, variables: HISTORY_VARIABLES, signal, wallMsMax: spanMs, ...own };
    const accepted = accepts ?? ((code: number | null) => code === 0);
    return inTurns(git.stream(command, inputOf(input), ({ killed, code }) => killed === 'no' && accepted(code)));
  }

  return {
    diff: (from, to, bounded) =>
      output([...OF_TREES, ...detailsOf(bounded), '--end-of-options', from ?? EMPTY_TREE_ID, to, '--'], [], bounded),
    diffOfBlobs: (from, to, bounded) =>
      output([...OF_BLOBS, ...detailsOf(bounded), '--end-of-options', from, to, '--'], [], bounded),
    async *findCommits(tip, filter, bounded) {
      const paths = filter.path === null ? NO_PATHS : pathArguments([filter.path]);
      if (paths === null) throw new ObjectDatabaseError('reading-too-costly', 'git cannot be asked for this path');
      const args = ['rev-list', '--stdin', ...filterArguments(filter), ...paths.args];
      yield* idBatches(output(args, [tip, ...paths.input], bounded));
    },
    async *changesBelow(tip, exclude, paths, bounded) {
      const limits = paths.some(({ length }) => length === 0) ? NO_PATHS : pathArguments(paths);
      if (limits === null) return;
      const revisions = [tip, ...exclude.map((id) => `^${id}`)];
      yield* output([...CHANGES, '--stdin', ...limits.args], [...revisions, ...limits.input], bounded);
    },
    async *blame(tip, path, lines, { signal, spanMs }) {
      const args = [...BLAME, `-L1,${lines}`, tip, '--'];
      const own = { limits: OTHER_LIMITS, slots: slots.blames, lastArgument: argumentOf(path) };
      yield* inTurns(
        git.stream({ args, view, variables: HISTORY_VARIABLES, signal, wallMsMax: spanMs, ...own }, noInput()),
      );
    },
    async *links(include, exclude, bounded) {
      if (include.length === 0) return;
      const revisions = [...include, ...exclude.map((id) => `^${id}`)];
      const args = ['rev-list', '--topo-order', '--parents', '--stdin'];
      yield* inTurns(linksIn(idBatches(output(args, revisions, bounded))));
    },
    async commitsBetween(exclude, tip, { offset, limit }, bounded) {
      const args = ['rev-list', `--skip=${offset}`, `--max-count=${limit}`, '--stdin'];
      return (await Array.fromAsync(idBatches(output(args, [tip, `^${exclude}`], bounded)))).flat();
    },
    async aheadBehind(a, b, bounded) {
      const args = ['rev-list', '--count', '--left-right', '--end-of-options', `${a}...${b}`, '--'];
      const [ahead, behind] = (await textOf(output(args, [], bounded))).trim().split('\t').map(Number);
      return { ahead: ahead ?? 0, behind: behind ?? 0 };
    },
    async mergeBase(a, b, bounded) {
      const args = ['merge-base', '--end-of-options', a, b];
      // git ends with status 1 if the two have no commit in common.
      const text = await textOf(output(args, [], bounded, (code) => code === 0 || code === 1));
      return text === '' ? null : objectId(text.trim());
    },
  };
}

/** Counts the commits that a tip reaches. Not bound to one request, because several may wait for it. */
export async function countCommits(git: Git, view: ObjectView, slots: ReadingSlots, tip: ObjectId): Promise<number> {
  const args = ['rev-list', '--count', '--end-of-options', tip, '--'];
  const own = { variables: HISTORY_VARIABLES, wallMsMax: COUNT_SPAN_MS, limits: OTHER_LIMITS, slots: slots.others };
  const ended = git.stream({ args, view, ...own }, noInput(), ({ killed, code }) => killed === 'no' && code === 0);
  return Number(await textOf(ended));
}

interface PathArguments {
  /** What follows the options. */
  readonly args: readonly string[];
  /** What follows the revisions on standard input. */
  readonly input: readonly (string | Uint8Array)[];
}

/**
 * The paths that git gets as arguments. Linux takes 128 KiB in one argument; execve(2). A path beyond it has no
 * history.
 */
export const ARGUMENTS_BYTES_MAX = 64 * 1024;
const NO_PATHS: PathArguments = { args: [], input: [] };

/**
 * Paths go to standard input, where a line is a path: arguments are texts, and a path need not be one. Returns null if
 * git can be asked for none of them.
 */
function pathArguments(paths: readonly Uint8Array[]): PathArguments | null {
  const input: Uint8Array[] = [];
  const args: string[] = [];
  let argumentBytes = 0;
  for (const path of paths) {
    // git splits its input at line feeds, and drops a carriage return before them.
    if (!path.includes(0x0a) && path.at(-1) !== 0x0d) {
      input.push(path);
      continue;
    }
    const text = decodeUtf8(path);
    argumentBytes += path.length;
    if (text !== null && argumentBytes <= ARGUMENTS_BYTES_MAX) args.push(text);
  }
  if (input.length + args.length === 0) return null;
  return { args: args.length === 0 ? [] : ['--', ...args], input: input.length === 0 ? [] : ['--', ...input] };
}

/**
 * Texts are parts of an author's name and address, and of a line of a message, and no expressions. A commit is judged
 * by its own time: with `--since` git would end the walk at an older one, whose parents may be newer.
 */
function filterArguments({ author, text, sinceSeconds, untilSeconds }: CommitFilter): readonly string[] {
  const args: string[] = [];
  if (author !== null || text !== null) args.push('--fixed-strings', '--regexp-ignore-case');
  if (author !== null) args.push(`--author=${author}`);
  if (text !== null) args.push(`--grep=${text}`);
  if (sinceSeconds !== null) args.push(`--since-as-filter=@${sinceSeconds} +0000`);
  if (untilSeconds !== null) args.push(`--until=@${untilSeconds} +0000`);
  return args;
}

/** git blame takes its path as an argument alone. */
function argumentOf(path: Uint8Array): Uint8Array {
  if (path.length <= BLAMED_PATH_BYTES_MAX) return path;
  throw new ObjectDatabaseError('reading-too-costly', 'git cannot be asked for this path');
}

/**
 * The longest path of which git is asked who brought its lines: the shell that starts git gets each byte as five at
 * most, in one argument.
 */
export const BLAMED_PATH_BYTES_MAX = 16 * 1024;

async function* inputOf(items: Iterable<string | Uint8Array>): AsyncGenerator<Uint8Array> {
  let batched: Buffer[] = [];
  for (const item of items) {
    batched.push(Buffer.from(item), LINE_END);
    if (batched.length < INPUT_BATCH) continue;
    yield Buffer.concat(batched);
    batched = [];
  }
  if (batched.length > 0) yield Buffer.concat(batched);
}

const LINE_END = Buffer.from('\n');
const INPUT_BATCH = 2_000;

/** How long a reader may block the event loop with what has arrived already. */
const TURN_MS = 5;

/** Lets others have the event loop between items, whose reader may take long for each. */
export async function* inTurns<Item>(items: AsyncIterable<Item>): AsyncGenerator<Item> {
  let sinceMs = performance.now();
  for await (const item of items) {
    yield item;
    if (performance.now() - sinceMs < TURN_MS) continue;
    await nextTurn();
    sinceMs = performance.now();
  }
}

/** Few, because the reader of links works for each. */
const LINKS_AT_ONCE = 200;

async function* linksIn(batches: AsyncIterable<readonly string[]>): AsyncGenerator<readonly CommitLinks[]> {
  for await (const lines of batches) {
    for (let at = 0; at < lines.length; at += LINKS_AT_ONCE) yield lines.slice(at, at + LINKS_AT_ONCE).map(linksOf);
  }
}

function linksOf(line: string): CommitLinks {
  const [id = '', ...parents] = line.split(' ');
  return { id: id as ObjectId, parents: parents as ObjectId[] };
}

async function textOf(chunks: AsyncIterable<Buffer>): Promise<string> {
  let text = '';
  for await (const chunk of chunks) text += chunk.toString('latin1');
  return text;
}
