/**
 * The environment every git process runs in, and which git that is.
 *
 * Must stay true: nothing of the machine's or a user's configuration reaches git, no process asks for a password,
 * runs a hook or opens a connection, and replace objects are ignored.
 */
import { access, constants } from 'node:fs/promises';
import { delimiter, dirname, isAbsolute, join } from 'node:path';

export type Environment = { readonly [name: string]: string };
/** Configuration of one command: `['uploadpack.allowFilter', 'true']`. */
export type ConfigPairs = readonly (readonly [key: string, value: string])[];

/** fsck's ids that the severities of a push name are known since 2.39; unknown ones are fatal. */
const VERSION_FLOOR = { major: 2, minor: 39 } as const;

const CONFIG: ConfigPairs = [
  // The cache belongs to whoever runs the server, whatever its files' owner.
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

/** The environment of a command of this git, with its own variables and configuration added. */
export function gitEnvironment(gitPath: string, variables: Environment = {}, config: ConfigPairs = []): Environment {
  const environment: { [name: string]: string } = {
    PATH: `${dirname(gitPath)}:/usr/bin:/bin`,
    HOME: '/nonexistent',
    // Messages are read by program (pack-refusal.ts).
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_TERMINAL_PROMPT: '0',
    // Without it rev-list writes every line by itself.
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
 * One entry of GIT_ALTERNATE_OBJECT_DIRECTORIES. Always quoted as C does: a `:` in a path would end an entry, and
 * a `"` or `#` at its start means something else (git-config's objects/info/alternates, alternate_object_db).
 */
export function quoteAlternate(path: string): string {
  const escaped = path.replace(/["\\]/g, '\\$&').replace(/\n/g, '\\n');
  return `"${escaped}"`;
}

/** The absolute path of git: the one given, or the first on this process's PATH. */
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

/** The version in `git version`'s answer, e.g. `2.39.5`; throws when it is below the floor. */
export function checkGitVersion(gitPath: string, answer: string): string {
  const [, version = '', major = '', minor = ''] = /^git version ((\d+)\.(\d+)[^\s]*)/.exec(answer) ?? [];
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
    // Not there, or not ours to run: the next folder may have one.
    return false;
  }
}
