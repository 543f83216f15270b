/**
 * Packs the command line for the documentation of the website, which offers it: by `npm start`, where its packages and
 * the bundler are installed.
 *
 * Invariants: the server waits for nothing of this, and does not fail with it. A package that is newer than its sources
 * is not made again. One process packs at a time.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { join } from 'node:path';
import { mismatch } from './installed.mjs';

const PACK = join('apps', 'cli', 'build', 'pack.ts');
/** What is bundled. */
const SOURCES = [join('apps', 'cli'), join('apps', 'replay'), 'core', join('docs', 'cli.md')];
const LEFT_OUT = new Set(['node_modules', '.cache']);
/** Where the server finds it (apps/server/command-line-package.ts). */
const FOLDER = join('.cache', 'command-line');
/** What holds the lock for longer was ended within its work. */
const PACKING_SPAN_MS = 10 * 60_000;

/**
 * @param {string} root
 * @param {string} node
 * @param {NodeJS.ProcessEnv} env
 */
export function packCommandLine(root, node, env) {
  if (!canPack(root)) return;
  const folder = join(root, FOLDER);
  const packedMs = packagesIn(folder)[0]?.packedMs ?? 0;
  if (packedMs >= Math.max(...SOURCES.map((source) => changedMs(join(root, source))))) return;
  const lock = join(folder, '.packing');
  if (!takeLock(folder, lock)) return;
  const child = spawn(node, [join(root, PACK), folder], { cwd: root, env, stdio: 'ignore' });
  const end = () => {
    child.kill();
    release(lock);
  };
  process.once('exit', end);
  child.on('error', () => release(lock));
  child.on('spawn', () => lowerPriority(child.pid));
  child.on('exit', (code) => {
    process.off('exit', end);
    release(lock);
    if (code === 0) removeOlder(folder);
    else console.error('strata: the package of the command line could not be made: npm run client:pack says why');
  });
  child.unref();
}

/** @param {string} root */
function canPack(root) {
  const commandLine = join(root, 'apps', 'cli');
  if (!existsSync(join(root, PACK)) || !existsSync(join(root, 'node_modules', '.bin', 'tsc'))) return false;
  return existsSync(join(commandLine, 'package-lock.json')) && mismatch(commandLine, { development: true }) === null;
}

/**
 * The packages, the newest first.
 *
 * @param {string} folder
 */
function packagesIn(folder) {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names
    .filter((name) => name.startsWith('strata-cli-') && name.endsWith('.tgz'))
    .map((name) => ({ path: join(folder, name), packedMs: statSync(join(folder, name)).mtimeMs }))
    .sort((a, b) => b.packedMs - a.packedMs);
}

/**
 * Removes the packages of older versions.
 *
 * @param {string} folder
 */
function removeOlder(folder) {
  for (const { path } of packagesIn(folder).slice(1)) rmSync(path, { force: true });
}

/**
 * The time of the last change of a file, or of any below a folder.
 *
 * @param {string} path
 * @returns {number}
 */
function changedMs(path) {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory() !== true) return found?.mtimeMs ?? 0;
  const names = readdirSync(path).filter((name) => !LEFT_OUT.has(name));
  return names.reduce((last, name) => Math.max(last, changedMs(join(path, name))), 0);
}

/**
 * @param {string} folder
 * @param {string} lock
 */
function takeLock(folder, lock) {
  try {
    mkdirSync(folder, { recursive: true });
    if (existsSync(lock) && Date.now() - statSync(lock).mtimeMs > PACKING_SPAN_MS) release(lock);
    mkdirSync(lock);
    return true;
  } catch {
    // Another process packs, or nothing can be written here.
    return false;
  }
}

/** @param {string} lock */
function release(lock) {
  try {
    rmdirSync(lock);
  } catch {
    // Another process took it for left behind.
  }
}

/** @param {number | undefined} pid */
function lowerPriority(pid) {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_LOW);
  } catch {
    // It has ended.
  }
}
