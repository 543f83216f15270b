/**
 * Archives of the files of a commit or a tree: git-archive(1).
 *
 * Invariants: what a repository asks of git in its attributes (export-ignore, export-subst) starts no program. No
 * archive takes a slot of those that fetches and pushes share, and each has less memory and processor time than they.
 */
import { LRUCache } from 'lru-cache';
import { MIB } from '../../core/kernel/byte-units.ts';
import { createFairSlots, type FairSlots } from '../../core/kernel/fair-slots.ts';
import type { AccountId, ObjectId } from '../../core/kernel/ids.ts';
import { ARCHIVES_AT_ONCE_MAX } from '../../core/kernel/limits.ts';
import { type CountedCache, countedCache } from '../../core/kernel/shown-caches.ts';
import type { ArchiveOptions } from '../../core/ports/object-database.ts';
import { type CacheFolder, viewOf, viewOfRefs } from './cache/cache-folder.ts';
import type { ViewFolders } from './cache/view-folders.ts';
import {
  commandError,
  type Git,
  type GitCommand,
  noInput,
  type ObjectView,
  type OwnLimits,
} from './process/git-commands.ts';
import type { ConfigPairs, Environment } from './process/git-environment.ts';
import type { ProcessEnd } from './process/process-runner.ts';

/**
 * What git may take for one archive. A commit of some kilobytes can name billions of files, and git lists all of them
 * in memory before it writes the first: a million files take 200 MiB.
 */
export const ARCHIVE_CPU_SECONDS_MAX = 120;
export const ARCHIVE_MEMORY_BYTES_MAX = 512 * MIB;
export const ARCHIVE_SPAN_MS = 30 * 60_000;

export interface ArchiveContext {
  readonly git: Git;
  readonly slots: FairSlots;
  readonly limits: OwnLimits;
  /** By commit. Internal: what is not kept is looked for again. */
  readonly substituting: CountedCache<ObjectId, boolean>;
}

/** Commits of which it is kept whether their archives read refs. Internal: the others are looked at again. */
const SUBSTITUTING_MAX = 4_096;
/**
 * How long git may look for the attribute: a commit of some kilobytes can name billions of folders. Internal: an
 * archive of which this is not known is made over the refs.
 */
const ATTRIBUTES_CPU_SECONDS_MAX = 10;

export function createArchiveContext(git: Git, limits: Partial<OwnLimits> = {}): ArchiveContext {
  return {
    git,
    slots: createFairSlots({ slots: ARCHIVES_AT_ONCE_MAX, slotsPerKey: ARCHIVES_AT_ONCE_MAX }),
    limits: { cpuSecondsMax: ARCHIVE_CPU_SECONDS_MAX, memoryBytesMax: ARCHIVE_MEMORY_BYTES_MAX, ...limits },
    substituting: countedCache(
      'git_export_subst',
      'entries',
      new LRUCache<ObjectId, boolean>({ max: SUBSTITUTING_MAX }),
    ),
  };
}

const VARIABLES: Environment = { GIT_ATTR_NOSYSTEM: '1' };

/** git compresses in its own process. A placeholder of export-subst would have signatures checked. */
const CONFIG: ConfigPairs = [
  ['tar.tar.gz.command', 'git archive gzip'],
  ...['gpg.program', 'gpg.ssh.program', 'gpg.x509.program'].map((key) => [key, '/bin/false'] as const),
];

/**
 * Makes it over the view of the refs if there are some, as a clone has them: `%D` and `%(describe)` of export-subst
 * read them. git describes in a process of its own, which has the same limits.
 */
export async function* archive(
  { archives, views }: { readonly archives: ArchiveContext; readonly views: ViewFolders },
  folder: CacheFolder,
  account: AccountId,
  { tip, refs, format, prefix, signal, onMade }: ArchiveOptions,
): AsyncGenerator<Uint8Array> {
  const { git } = archives;
  const args = ['archive', `--format=${format}`, `--prefix=${prefix}`, tip];
  const leased = refs === null ? null : await views.acquire(folder, refs);
  try {
    const view = leased === null ? viewOf(folder, account) : viewOfRefs(folder, account, leased.path);
    const command: GitCommand = { args, view, signal, ...ownOf(archives) };
    yield* git.stream(command, noInput(), isMade);
  } finally {
    leased?.release();
    onMade?.();
  }
}

/**
 * Returns whether a .gitattributes of the commit names export-subst: git grep exits with 0 then, and else with 1. True
 * also where git did not find out in time.
 */
export async function readsRefs(
  archives: ArchiveContext,
  view: ObjectView,
  commit: ObjectId,
  signal: AbortSignal,
): Promise<boolean> {
  const known = archives.substituting.get(commit);
  if (known !== undefined) return known;
  const args = ['grep', '--threads=1', '--text', '--quiet', '--fixed-strings', '-e', 'export-subst', commit];
  const own = ownOf(archives);
  const cpuSecondsMax = Math.min(own.limits.cpuSecondsMax, ATTRIBUTES_CPU_SECONDS_MAX);
  const limits = { ...own.limits, cpuSecondsMax };
  const command: GitCommand = { args: [...args, '--', ':(glob)**/.gitattributes'], view, signal, ...own, limits };
  const end = await archives.git.run(command);
  if (end.signal === 'SIGXCPU') return true;
  if (end.killed !== 'no' || (end.code !== 0 && end.code !== 1)) throw commandError(command, end);
  archives.substituting.set(commit, end.code === 0);
  return end.code === 0;
}

function ownOf({ slots, limits }: ArchiveContext) {
  return { variables: VARIABLES, config: CONFIG, wallMsMax: ARCHIVE_SPAN_MS, limits, slots };
}

function isMade({ killed, code }: ProcessEnd): boolean {
  return killed === 'no' && code === 0;
}
