/**
 * The environment of every git process, and which git is used.
 *
 * Must stay true: no configuration of the machine or of a user reaches git; no process asks for a password, runs a hook
 * or opens a connection; replace objects are ignored.
 */
import { access, constants } from 'node:fs/promises';
import { delimiter, dirname, isAbsolute, join } from 'node:path';

export type Environment = { readonly [name: string]: string };
/** Configuration for one command, for example `['uploadpack.allowFilter', 'true']`. */
export type ConfigPairs = readonly (readonly [key: string, value: string])[];

/** git knows all the fsck ids that receiving/index-pack.ts names since 2.39; an unknown id makes index-pack fail. */
const VERSION_FLOOR = { major: 2, minor: 39 } as const;

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
  throw new Error('Strata needs git 2.39 or newer; there is no git on the PATH');
}

/** The version in the output of `git version`, e.g. `2.39.5`; throws when it is too old. */
export function checkGitVersion(gitPath: string, output: string): string {
  const [, version = '', major = '', minor = ''] = /^git version ((\d+)\.(\d+)[^\s]*)/.exec(output) ?? [];
  const newEnough =
    Number(major) > VERSION_FLOOR.major ||
    (Number(major) === VERSION_FLOOR.major && Number(minor) >= VERSION_FLOOR.minor);
  if (version === '' || !newEnough) {
    const found = version === '' ? 'no version at all' : `version ${version}`;
    throw new Error(`Strata needs git ${VERSION_FLOOR.major}.${VERSION_FLOOR.minor} or newer; ${gitPath} has ${found}`);
  }
  return version;
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
