/**
 * The environment of every git process, and which git is used.
 *
 * Invariants: no configuration of the machine or of a user reaches git; no process asks for a password, runs a hook
 * or opens a connection; replace objects are ignored.
 */
import { access, constants } from 'node:fs/promises';
import { delimiter, dirname, isAbsolute, join } from 'node:path';

export type Environment = { readonly [name: string]: string };
/** Configuration for one command, for example `['uploadpack.allowFilter', 'true']`. */
export type ConfigPairs = readonly (readonly [key: string, value: string])[];

/**
 * git knows all the fsck ids that receiving/index-pack.ts names since 2.39; an unknown id makes index-pack fail. 2.39.4
 * is the first of that line that knows GIT_NO_LAZY_FETCH, and refuses to fetch for a repository of somebody else.
 */
const VERSION_FLOOR = [2, 39, 4] as const;

const CONFIG: ConfigPairs = [
  // git must trust the cache, whichever user owns its files.
  ['safe.directory', '*'],
  ['core.hooksPath', '/dev/null'],
  ['gc.auto', '0'],
  ['pack.threads', '1'],
  ['pack.windowMemory', '64m'],
  ['pack.deltaCacheSize', '64m'],
  ['pack.writeReverseIndex', 'true'],
  ['core.packedGitLimit', '256m'],
  ['core.bigFileThreshold', '16m'],
  ['core.deltaBaseCacheLimit', '16m'],
  ['core.protectHFS', 'true'],
  ['core.protectNTFS', 'true'],
];

/** The environment of one command of this git, with the command's own variables and configuration added. */
export function gitEnvironment(gitPath: string, variables: Environment = {}, config: ConfigPairs = []): Environment {
  const environment: { [name: string]: string } = {
    PATH: `${dirname(gitPath)}:/usr/bin:/bin`,
    HOME: '/nonexistent',
    // pack-refusal.ts parses git's messages.
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_TERMINAL_PROMPT: '0',
    // An object that is missing is missing: git asks no other repository for it (git(1)).
    GIT_NO_LAZY_FETCH: '1',
    // Without it rev-list flushes its output after every line.
    GIT_FLUSH: '0',
    GIT_ALLOW_PROTOCOL: '',
    ...variables,
    GIT_CONFIG_COUNT: String(CONFIG.length + config.length),
  };
  for (const [index, [key, value]] of [...CONFIG, ...config].entries()) {
    environment[`GIT_CONFIG_KEY_${index}`] = key;
    environment[`GIT_CONFIG_VALUE_${index}`] = value;
  }
  return environment;
}

/**
 * One entry of GIT_ALTERNATE_OBJECT_DIRECTORIES (git(1)). Always quoted as a C string: otherwise a `:` in the path
 * would end the entry, and a `"` or `#` at its start would mean something else.
 */
export function quoteAlternate(path: string): string {
  const escaped = path.replace(/["\\]/g, '\\$&').replace(/\n/g, '\\n');
  return `"${escaped}"`;
}

/** The absolute path of git: `gitPath`, or else the first git on this process's PATH. */
export async function findGit(gitPath: string | undefined): Promise<string> {
  if (gitPath !== undefined) {
    if (!isAbsolute(gitPath)) throw new TypeError(`The path of git must be absolute, not ${gitPath}`);
    return gitPath;
  }
  for (const folder of (process.env['PATH'] ?? '/usr/bin:/bin').split(delimiter).filter(isAbsolute)) {
    const candidate = join(folder, 'git');
    if (await isExecutable(candidate)) return candidate;
  }
  throw new Error(`Strata needs git ${VERSION_FLOOR.join('.')} or newer; there is no git on the PATH`);
}

/** The version in the output of `git version`, e.g. `2.39.5`; throws when it is too old. */
export function checkGitVersion(gitPath: string, output: string): string {
  const [, version = '', ...numbers] = /^git version ((\d+)\.(\d+)(?:\.(\d+))?[^\s]*)/.exec(output) ?? [];
  if (version === '' || !isNewEnough(numbers.map((number) => Number(number ?? 0)))) {
    const found = version === '' ? 'no version at all' : `version ${version}`;
    throw new Error(`Strata needs git ${VERSION_FLOOR.join('.')} or newer; ${gitPath} has ${found}`);
  }
  return version;
}

function isNewEnough(version: readonly number[]): boolean {
  for (const [place, least] of VERSION_FLOOR.entries()) {
    const number = version[place] ?? 0;
    if (number !== least) return number > least;
  }
  return true;
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch {
    // The file is missing or not executable: the next folder on the PATH may have one.
    return false;
  }
}
