/**
 * Runs git index-pack for a push: it checks every object, and refuses one that refers to a missing object.
 *
 * Invariants: success is exit status 0 and nothing but the one line with the pack's checksum on standard
 * output. git finds a bad .gitmodules only after it wrote that line, and echoes bytes that follow the pack behind it.
 */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ObjectInfo } from '../../../core/git/objects.ts';
import type { PackRefusal } from '../../../core/git/pack-refusal.ts';
import { type ObjectId, PACK_CHECKSUM_PATTERN } from '../../../core/kernel/ids.ts';
import { type CacheFolder, objectsPath, viewOf } from '../cache/cache-folder.ts';
import type { PackBytes } from '../packs/joined-pack.ts';
import { commandError, completed, feed, type Git, type GitCommand, type ObjectView } from '../process/git-commands.ts';
import { type ConfigPairs, quoteAlternate } from '../process/git-environment.ts';
import type { ProcessEnd } from '../process/process-runner.ts';
import { unlessAborted } from '../process/unless-aborted.ts';
import { SlowSenderError } from './pack-input.ts';
import { refusalOf } from './pack-refusal.ts';
import type { PackAdmission } from './push-memory.ts';
import type { SentPack } from './sent-pack.ts';

/**
 * `--strict` turns every warning of fsck into an error (git-fsck(1)). These are the exceptions: real old histories hold
 * such objects, git and GitHub take them, and no client is harmed by them. What endangers a client stays an error:
 * `.git` in any disguise, `..`, slashes, duplicate and unsorted entries, null ids, NUL in headers. Severities in git's
 * configuration have no effect here.
 */
const SEVERITIES = [
  'zeroPaddedFilemode=ignore',
  'badFilemode=ignore',
  // git does not follow these links in a work tree, and reads what it can of a .gitmodules.
  'gitattributesSymlink=ignore',
  'gitignoreSymlink=ignore',
  'mailmapSymlink=ignore',
  'gitmodulesParse=ignore',
  // Identity lines.
  'missingNameBeforeEmail=ignore',
  'missingSpaceBeforeEmail=ignore',
  'missingEmail=ignore',
  'missingSpaceBeforeDate=ignore',
  'badName=ignore',
  'badEmail=ignore',
  'badDate=ignore',
  'badDateOverflow=ignore',
  'badTimezone=ignore',
  'zeroPaddedDate=ignore',
  'multipleAuthors=ignore',
].join(',');

/** The layer store syncs what is kept; a quarantine need not survive a power cut. */
const CONFIG: ConfigPairs = [['core.fsync', 'none']];
/**
 * For this many objects a second thread resolves deltas faster; for fewer, starting it costs more. Internal: both ways
 * give the same index.
 */
const SECOND_THREAD_OBJECTS_MIN = 20_000;

/** Resolves with the folder of a quarantine once its files are there. */
export type QuarantineFolder = () => Promise<string>;

/** The objects of a quarantine folder and of the committed layers. */
export function quarantineView(committed: CacheFolder, quarantine: QuarantineFolder, account: string): ObjectView {
  const all = viewOf(committed, account);
  const variables = async () => ({
    ...(await all.variables()),
    GIT_OBJECT_DIRECTORY: await quarantine(),
    GIT_ALTERNATE_OBJECT_DIRECTORIES: quoteAlternate(objectsPath(committed)),
  });
  return { key: account, variables };
}

/** The objects of a quarantine folder and no others. */
export function quarantineAlone(committed: CacheFolder, quarantine: QuarantineFolder, account: string): ObjectView {
  return {
    key: account,
    variables: async () => ({ GIT_DIR: committed.path, GIT_OBJECT_DIRECTORY: await quarantine() }),
  };
}

export interface IndexPackOptions {
  readonly view: ObjectView;
  readonly sent: SentPack;
  readonly objectCount: number;
  readonly admission: PackAdmission;
  readonly packSizeBytesMax: number;
  readonly signal: AbortSignal;
  /** Null if it is known that the client has sent everything. */
  readonly onEndOfInput: (() => void) | null;
}

export interface IndexedPack {
  /** The checksum, hex. */
  readonly pack: string;
  /** What the client sent; null where it has to be read from the pack. */
  readonly sent: readonly ObjectInfo[] | null;
  /** The sent objects to which no other one of them refers, all of which are new; null where that is not known. */
  readonly unreferenced: readonly ObjectId[] | null;
  /** The pack, if it is in memory only; null where git wrote it, with a reverse index. */
  readonly held: PackBytes | null;
}

/**
 * Writes pack and index into the view's object directory. `outgrown`: it took more memory than it was admitted with;
 * `slow`: its client is fast no more.
 */
export async function indexPack(
  git: Git,
  options: IndexPackOptions,
): Promise<IndexedPack | PackRefusal | 'outgrown' | 'slow'> {
  const { view, sent, objectCount, admission, signal, onEndOfInput } = options;
  const received = counted(sent.bytes());
  const command: GitCommand = {
    args: [
      'index-pack',
      '--stdin',
      '--fix-thin',
      '--report-end-of-input',
      `--max-input-size=${options.packSizeBytesMax}`,
      `--strict=${SEVERITIES}`,
      `--threads=${objectCount < SECOND_THREAD_OBJECTS_MIN ? 1 : 2}`,
    ],
    view,
    config: CONFIG,
    signal,
    ...boundBy(admission, received.bytesSoFar),
    ...(onEndOfInput === null ? {} : { onNul: onEndOfInput }),
  };
  const running = await git.start(command, 'stream', 'collect');
  try {
    const { stdin } = running;
    if (stdin === null) throw new TypeError('The process was started without the stream it needs');
    await unlessAborted(signal, () => feed(stdin, received.bytes));
  } catch (error) {
    running.kill();
    await running.ended;
    if (error instanceof SlowSenderError) return 'slow';
    throw error;
  }
  const end = await running.ended;
  signal.throwIfAborted();
  return end.outgrown ? 'outgrown' : outcomeOf(command, end);
}

/** What an admission says of its process, which has read this many bytes of the pack. */
export function boundBy(
  { slots, memoryBytesMax, cpuMsMax }: PackAdmission,
  bytesSoFar: () => number,
): Required<Pick<GitCommand, 'slots' | 'memoryBytesMax' | 'cpuMsMax'>> {
  return { slots, memoryBytesMax, cpuMsMax: () => cpuMsMax(bytesSoFar()) };
}

/** The same bytes, and how many of them were read. */
export function counted(bytes: AsyncIterable<Uint8Array>): {
  readonly bytes: AsyncIterable<Uint8Array>;
  readonly bytesSoFar: () => number;
} {
  let read = 0;
  const reading = async function* () {
    for await (const chunk of bytes) {
      read += chunk.byteLength;
      yield chunk;
    }
  };
  return { bytes: reading(), bytesSoFar: () => read };
}

const CHECKSUM_LINE = new RegExp(`^pack\\t(${PACK_CHECKSUM_PATTERN})\\n$`);

function outcomeOf(command: GitCommand, end: ProcessEnd): IndexedPack | PackRefusal {
  completed(command, end);
  if (end.code === 0) {
    const pack = CHECKSUM_LINE.exec(end.stdout ?? '')?.[1];
    if (pack !== undefined) return { pack, sent: null, unreferenced: null, held: null };
    return { refused: 'pack-broken', detail: 'something follows the pack' };
  }
  const refusal = refusalOf(end);
  if (refusal === null) throw commandError(command, end);
  return refusal;
}

export interface RecheckOptions {
  readonly packPath: string;
  readonly packBytes: number;
  readonly committed: CacheFolder;
  readonly scratch: string;
  readonly account: string;
  readonly admission: PackAdmission;
}

/** Checks a pack that is already on disk against another set of layers; null when it passes. */
export async function recheckPack(
  git: Git,
  { packPath, packBytes, committed, scratch, account, admission }: RecheckOptions,
): Promise<PackRefusal | null> {
  await mkdir(scratch, { recursive: true });
  try {
    const command: GitCommand = {
      args: ['index-pack', `--strict=${SEVERITIES}`, '-o', join(scratch, 'recheck.idx'), packPath],
      // `scratch` is an empty object directory: beside the pack, git sees only the committed layers.
      view: quarantineView(committed, async () => scratch, account),
      config: CONFIG,
      ...boundBy(admission, () => packBytes),
    };
    const end = completed(command, await (await git.start(command, 'none', 'collect')).ended);
    if (end.code === 0) return null;
    const refusal = refusalOf(end);
    if (refusal === null) throw commandError(command, end);
    return refusal;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}
