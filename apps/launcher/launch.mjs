/**
 * Starts a TypeScript entry of this project from source: `node apps/launcher/launch.cjs <entry.ts> [args…]`, on the
 * Node that node-choice.mjs chooses. Before that it installs the packages of package-lock.json, unless node_modules
 * holds them already.
 *
 * Invariants: these files are plain modules for Node 20 without dependencies, since they run before the install. If
 * nothing is to be installed, the launcher takes a few milliseconds, prints nothing but a warning of a Node that lacks
 * security fixes, and stays no process of its own if Node can replace itself; only the server keeps it, which it starts
 * again after a failure. The launcher ends with the entry's exit code or signal. An npm script ends with npm.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants as osConstants } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packCommandLine } from './command-line.mjs';
import { InstallError, install } from './install.mjs';
import { developmentLeftOut, mismatch } from './installed.mjs';
import { chooseNode, floorWarning, NoNodeError } from './node-choice.mjs';
import { endWithout, isStartedByNpm, watchingOption } from './parent.mjs';
import { supervise } from './supervise.mjs';

const NODE_MAJOR_MIN = 20;
const NODE_OPTIONS = [
  // Some 24.x still call type stripping experimental on every start.
  '--disable-warning=ExperimentalWarning',
  // V8 sizes its young generation by the machine's memory: up to 128 MiB for a server that holds 60 MiB, without being
  // faster.
  '--max-semi-space-size=16',
  // Where there is much memory, V8 lets the heap grow to four times what is alive before it collects; to twice is as
  // fast.
  '--heap-growing-percent=100',
  // Node asks the file system for the links in the path of each module, of which a start loads 1,800. `root` has none,
  // and npm makes none below it.
  '--preserve-symlinks',
  '--preserve-symlinks-main',
];
/** That of adapters/git/process/git-environment.ts. */
const GIT_MIN = [2, 39, 4];
/** Entries that run until somebody stops them. */
const SUPERVISED = ['apps/server/main.ts'];
const FORWARDED_SIGNALS = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']);

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..');

class LaunchError extends Error {}

/**
 * The command line has packages of its own, since it is installed without the rest and runs on an older Node; the tests
 * and checks need them as well, the server does not.
 */
const commandLine = join(root, 'apps', 'cli');
const hasCommandLine = existsSync(join(commandLine, 'package-lock.json'));

/**
 * The folders whose packages an entry needs.
 *
 * @param {string} entry
 */
function packageFolders(entry) {
  const isNeeded = !entry.startsWith('apps/') || entry.startsWith('apps/cli/');
  return isNeeded && hasCommandLine ? [root, commandLine] : [root];
}

/**
 * Brings the packages that an entry needs in line with their lock files. A start of the server that has to install
 * brings those of the command line too, which people use next; it starts without them as well.
 *
 * @param {string} entry
 */
async function installMissing(entry) {
  // Entries below apps/ run in production, where the development packages may not be installed.
  const development = !entry.startsWith('apps/') || entry === 'apps/cli/build/pack.ts';
  const folders = packageFolders(entry);
  // What the command line needs is bundled into it, so all its packages are for development.
  const needsOf = (/** @type {string} */ folder) => ({ development: development || folder !== root });
  const missing = folders.filter((folder) => mismatch(folder, needsOf(folder)) !== null);
  for (const folder of missing) await install(folder, needsOf(folder));
  if (!SUPERVISED.includes(entry) || missing.length === 0 || !hasCommandLine || developmentLeftOut(root)) return;
  if (mismatch(commandLine, { development: true }) === null) return;
  try {
    await install(commandLine, { development: true });
  } catch (error) {
    if (!(error instanceof InstallError)) throw error;
    console.error(`strata: the command line is not installed yet: ${error.message}`);
  }
}

function checkNode() {
  if (Number(process.versions.node.split('.')[0]) >= NODE_MAJOR_MIN) return;
  throw new LaunchError(
    `Node ${process.versions.node} is too old: Node ${NODE_MAJOR_MIN} or newer is needed to install the rest. ` +
      'Get it from https://nodejs.org/ or your package manager.',
  );
}

/** The server and the tests run the machine's git, and rely on hooks, quarantine and fsck messages as of git 2.39.4. */
function checkGit() {
  // The server too runs git without the settings of the machine and of the person, which may be broken.
  const env = { ...process.env, GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' };
  const result = spawnSync('git', ['--version'], { encoding: 'utf8', env });
  const needed = `git ${GIT_MIN.join('.')} or newer is needed`;
  const advice = 'Install it with your package manager (apt install git, brew install git).';
  if (result.error !== undefined) throw new LaunchError(`git cannot be run: ${needed}. ${advice}`);
  if (result.status !== 0) throw new LaunchError(`git cannot be run: ${result.stderr.trim()}`);
  const found = (/\d+(?:\.\d+)+/.exec(result.stdout)?.[0] ?? '').split('.').map(Number);
  const differing = GIT_MIN.findIndex((part, at) => (found[at] ?? 0) !== part);
  if (differing === -1 || (found[differing] ?? 0) > (GIT_MIN[differing] ?? 0)) return;
  throw new LaunchError(`${result.stdout.trim()} is too old: ${needed}. ${advice}`);
}

/**
 * The environment of the entry: the tools of node_modules first on the path, the user's working directory, and the
 * folder of Node's compile cache. With that cache Node strips types once instead of at every start, which halves the
 * work of a start. glibc gives each thread of Node's pool a heap of its own, none of which shrinks: two are enough.
 */
function entryEnvironment() {
  const tools = join(root, 'node_modules', '.bin');
  const { PATH: path = '', INIT_CWD: directory = process.cwd() } = process.env;
  const first = path.split(delimiter)[0];
  return {
    NODE_COMPILE_CACHE: join(root, '.cache', 'compile'),
    MALLOC_ARENA_MAX: '2',
    ...process.env,
    PATH: first === tools ? path : `${tools}${delimiter}${path}`,
    INIT_CWD: directory,
  };
}

/**
 * Runs the entry as a child process, for a Node that cannot replace itself (before 22.15), and ends with its exit code
 * or signal.
 *
 * @param {string} node
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} env
 */
function runAsChild(node, args, env) {
  const child = spawn(node, args, { stdio: 'inherit', env });
  for (const signal of FORWARDED_SIGNALS) {
    process.on(signal, () => {
      // A terminal sends Ctrl-C to the child as well; a second SIGINT would make the server stop without an orderly
      // end.
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
    });
  }
  child.on('error', (error) => {
    console.error(`strata: ${node} cannot be run: ${error.message}`);
    process.exit(1);
  });
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
    // A signal that does not end this process (Node ignores SIGPIPE) is reported as an exit code.
    setTimeout(() => process.exit(128 + osConstants.signals[signal]), 100);
  });
}

async function main() {
  const [entry, ...args] = process.argv.slice(2);
  if (entry === undefined) throw new LaunchError('Usage: node apps/launcher/launch.cjs <entry.ts> [args…]');
  checkNode();
  checkGit();
  const endsWithNpm = isStartedByNpm(entry);
  if (endsWithNpm) endWithout(process.ppid);
  await installMissing(entry);
  const found = chooseNode(root, process);
  const warning = floorWarning(found);
  if (warning !== null) console.error(`strata: ${warning}`);
  const node = found.binary;
  const nodeArgs = [...NODE_OPTIONS, resolve(root, entry), ...args];
  const env = entryEnvironment();
  if (SUPERVISED.includes(entry)) {
    supervise(node, nodeArgs, env);
    // Who starts the server in another way, in production or to measure it, has made the package or wants none.
    if (endsWithNpm) packCommandLine(root, node, env);
    return;
  }
  if (process.execve === undefined) return runAsChild(node, nodeArgs, env);
  process.execve(node, [node, ...(endsWithNpm ? [watchingOption()] : []), ...nodeArgs], env);
}

try {
  await main();
} catch (error) {
  // An unexpected error is printed with its stack, an expected one as a sentence.
  const isExpected = error instanceof LaunchError || error instanceof InstallError || error instanceof NoNodeError;
  console.error(isExpected ? `strata: ${error.message}` : error);
  process.exitCode = 1;
}
