/**
 * git index-pack as a push needs it: every object checked, nothing accepted that refers to what is not there.
 *
 * Must stay true: success is exit status 0 and nothing but the one line with the pack's checksum on standard
 * output. A bad .gitmodules is found after that line was written, and bytes after a pack are echoed behind it.
 */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { PackRefusal } from '../../../core/ports/object-database.ts';
import { type CacheFolder, objectsPath } from '../cache/cache-folder.ts';
import { commandError, ended, feed, type Git, type GitCommand, type ObjectView } from '../process/git-commands.ts';
import { type ConfigPairs, quoteAlternate } from '../process/git-environment.ts';
import { type PackInput, PackTooLargeError, tooLarge } from './pack-input.ts';
import { refusalOf } from './pack-refusal.ts';
import type { ProcessEnd } from '../process/process-runner.ts';

/**
 * `--strict` turns every warning of fsck into an error; these are the exceptions, found in old real histories, and
 * what hostile ones use and fsck only mentions (git-fsck(1)). Severities in configuration do nothing here.
 */
const SEVERITIES = [
  'zeroPaddedFilemode=ignore',
  'missingSpaceBeforeDate=ignore',
  'badTimezone=ignore',
  'badFilemode=ignore',
  'gitattributesSymlink=error',
  'gitignoreSymlink=error',
  'mailmapSymlink=error',
  'gitmodulesParse=error',
].join(',');

/** The layer store syncs what is kept; quarantines need not survive a power cut. */
const CONFIG: ConfigPairs = [['core.fsync', 'none']];
/** From here on a second thread resolves deltas faster; below, starting it costs more. */
const SECOND_THREAD_OBJECTS_MIN = 20_000;

/** The objects of a quarantine folder, then those of the committed layers. */
export function quarantineView(committed: CacheFolder, quarantine: string): ObjectView {
  return {
    key: committed.repository,
    variables: {
      GIT_DIR: committed.path,
      GIT_OBJECT_DIRECTORY: quarantine,
      GIT_ALTERNATE_OBJECT_DIRECTORIES: quoteAlternate(objectsPath(committed)),
    },
  };
}

export interface IndexPackOptions {
  readonly view: ObjectView;
  readonly input: PackInput;
  readonly packSizeBytesMax: number;
  readonly signal: AbortSignal;
  readonly onEndOfInput: (() => void) | undefined;
}

/** Writes pack and index into the view's object directory; the answer is the pack's checksum. */
export async function indexPack(git: Git, options: IndexPackOptions): Promise<{ readonly pack: string } | PackRefusal> {
  const { input, signal, onEndOfInput } = options;
  const command: GitCommand = {
    args: [
      'index-pack',
      '--stdin',
      '--fix-thin',
      '--report-end-of-input',
      `--max-input-size=${options.packSizeBytesMax}`,
      `--strict=${SEVERITIES}`,
      `--threads=${input.objectCount < SECOND_THREAD_OBJECTS_MIN ? 1 : 2}`,
    ],
    view: options.view,
    config: CONFIG,
    signal,
    ...(onEndOfInput === undefined ? {} : { onNul: onEndOfInput }),
  };
  const running = await git.start(command, 'stream', 'collect');
  let refusal: PackRefusal | null = null;
  try {
    if (running.stdin === null) throw new TypeError('A stream was asked for and not given');
    await unlessAborted(signal, feed(running.stdin, input.bytes()));
  } catch (error) {
    running.kill();
    await running.ended;
    if (!(error instanceof PackTooLargeError)) throw error;
    refusal = tooLarge(options.packSizeBytesMax);
  }
  const end = await running.ended;
  signal.throwIfAborted();
  if (refusal !== null) return refusal;
  const outcome = outcomeOf(command, end);
  if ('refused' in outcome) await unlessAborted(signal, input.drain());
  return outcome;
}

/** A source that hangs must not hold up a push whose client is gone. */
export async function unlessAborted<Result>(signal: AbortSignal, work: Promise<Result>): Promise<Result> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
    // Whatever becomes of it when it lost the race is nobody's concern any more.
    work.catch(() => {});
    aborted.catch(() => {});
  }
}

const CHECKSUM_LINE = /^pack\t([0-9a-f]{40})\n$/;

function outcomeOf(command: GitCommand, end: ProcessEnd): { readonly pack: string } | PackRefusal {
  ended(command, end);
  if (end.code === 0) {
    const pack = CHECKSUM_LINE.exec(end.stdout ?? '')?.[1];
    if (pack !== undefined) return { pack };
    return { refused: 'pack-broken', detail: 'something follows the pack' };
  }
  const refusal = refusalOf(end);
  if (refusal === null) throw commandError(command, end);
  return refusal;
}

/** Checks a pack that is on disk already against another set of objects. */
export async function recheckPack(
  git: Git,
  packPath: string,
  committed: CacheFolder,
  scratch: string,
): Promise<PackRefusal | null> {
  await mkdir(scratch, { recursive: true });
  try {
    const command: GitCommand = {
      args: ['index-pack', `--strict=${SEVERITIES}`, '-o', join(scratch, 'recheck.idx'), packPath],
      // An empty object directory of its own: only the committed layers count beside the pack.
      view: quarantineView(committed, scratch),
      config: CONFIG,
    };
    const end = ended(command, await (await git.start(command, 'none', 'collect')).ended);
    if (end.code === 0) return null;
    const refusal = refusalOf(end);
    if (refusal === null) throw commandError(command, end);
    return refusal;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}
