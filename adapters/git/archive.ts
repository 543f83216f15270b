/**
 * Archives of the files of a commit or a tree: git-archive(1).
 *
 * Invariants: what a repository asks of git in its attributes (export-ignore, export-subst) starts no program. No
 * archive takes a slot of those that fetches and pushes share, and each has less memory and processor time than they.
 */
import { MIB } from '../../core/kernel/byte-units.ts';
import { createFairSlots, type FairSlots } from '../../core/kernel/fair-slots.ts';
import { ARCHIVES_AT_ONCE_MAX } from '../../core/kernel/limits.ts';
import type { ArchiveOptions } from '../../core/ports/object-database.ts';
import type { Git, GitCommand, ObjectView, OwnLimits } from './process/git-commands.ts';
import type { ConfigPairs, Environment } from './process/git-environment.ts';

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
}

export function createArchiveContext(git: Git, limits: Partial<OwnLimits> = {}): ArchiveContext {
  return {
    git,
    slots: createFairSlots({ slots: ARCHIVES_AT_ONCE_MAX, slotsPerKey: ARCHIVES_AT_ONCE_MAX }),
    limits: { cpuSecondsMax: ARCHIVE_CPU_SECONDS_MAX, memoryBytesMax: ARCHIVE_MEMORY_BYTES_MAX, ...limits },
  };
}

const VARIABLES: Environment = { GIT_ATTR_NOSYSTEM: '1' };

/** git compresses in its own process. A placeholder of export-subst would have signatures checked. */
const CONFIG: ConfigPairs = [
  ['tar.tar.gz.command', 'git archive gzip'],
  ...['gpg.program', 'gpg.ssh.program', 'gpg.x509.program'].map((key) => [key, '/bin/false'] as const),
];

export async function* archive(
  { git, slots, limits }: ArchiveContext,
  view: ObjectView,
  { tip, format, prefix, signal, onMade }: ArchiveOptions,
): AsyncGenerator<Uint8Array> {
  const args = ['archive', `--format=${format}`, `--prefix=${prefix}`, tip];
  const own = { variables: VARIABLES, config: CONFIG, wallMsMax: ARCHIVE_SPAN_MS, limits, slots };
  const command: GitCommand = { args, view, signal, ...own };
  try {
    yield* git.stream(command, noInput(), ({ killed, code }) => killed === 'no' && code === 0);
  } finally {
    onMade?.();
  }
}

async function* noInput(): AsyncGenerator<Uint8Array> {}
