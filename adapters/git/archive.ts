/**
 * Archives of a commit's files: git-archive(1).
 *
 * Must stay true: what a repository asks of git in its attributes (export-ignore, export-subst) starts no program.
 */
import type { ArchiveOptions } from '../../core/ports/object-database.ts';
import type { ConfigPairs, Environment } from './process/git-environment.ts';
import type { Git, ObjectView } from './process/git-commands.ts';

const VARIABLES: Environment = { GIT_ATTR_NOSYSTEM: '1' };

/** git compresses in its own process. A placeholder of export-subst would have signatures checked. */
const CONFIG: ConfigPairs = [
  ['tar.tar.gz.command', 'git archive gzip'],
  ...['gpg.program', 'gpg.ssh.program', 'gpg.x509.program'].map((key) => [key, '/bin/false'] as const),
];

const ARCHIVE_MS_MAX = 30 * 60_000;

export async function* archive(
  git: Git,
  view: ObjectView,
  { commit, format, prefix, signal }: ArchiveOptions,
): AsyncGenerator<Uint8Array> {
  const args = ['archive', `--format=${format}`, `--prefix=${prefix}`, commit];
  const command = { args, view, variables: VARIABLES, config: CONFIG, signal, wallMsMax: ARCHIVE_MS_MAX };
  yield* git.stream(command, noInput(), ({ killed, code }) => killed === 'no' && code === 0);
}

async function* noInput(): AsyncGenerator<Uint8Array> {}
