/**
 * Installs what drives each client: once, beside the tools of other tests (`STRATA_TOOLS_DIR`, else
 * `~/.cache/strata-tools`), in a folder whose name tells the versions and the driver's source.
 *
 * Invariants: a version is pinned in the folder of its driver, and packages come through the language's own client.
 * A folder is taken into use only when it is complete. Nothing is written into the project.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import type { DriverCommand } from './client.ts';

/** Compiling gitoxide takes minutes on a small machine. */
const INSTALL_MS_MAX = 30 * 60_000;

/** Why a client cannot be run on this machine. */
export class NotInstalled extends Error {}

/** A node program of this project, whose packages are there already. */
export async function nodeDriver(folder: string, ...args: readonly string[]): Promise<DriverCommand> {
  return { command: process.execPath, args: [path.join(import.meta.dirname, folder, 'driver.ts'), ...args] };
}

/** A driver in Python: the three share one environment, whose packages are pinned in `requirements.txt`. */
export async function pythonDriver(folder: string): Promise<DriverCommand> {
  const installed = await pythonEnvironment('python', path.join(import.meta.dirname, 'requirements.txt'));
  return {
    command: path.join(installed, 'bin/python'),
    args: [path.join(import.meta.dirname, folder, 'driver.py')],
  };
}

/** An environment with the packages of the file. */
export async function pythonEnvironment(name: string, requirements: string): Promise<string> {
  const needs = 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))';
  await requireProgram('Python 3.10 or newer with venv', 'python3', ['-c', needs]);
  return installOnce(name, [requirements], async (made) => {
    await run('python3', ['-m', 'venv', made]);
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--requirement', requirements];
    await run(path.join(made, 'bin/python'), pip);
  });
}

export async function goDriver(folder: string): Promise<DriverCommand> {
  await requireProgram('Go', 'go', ['version']);
  const source = path.join(import.meta.dirname, folder);
  const installed = await installOnce(folder, await filesOf(source), async (made) => {
    // The installed Go is used: a newer one would have to be downloaded.
    const env = { GOTOOLCHAIN: 'local', GOFLAGS: '-mod=readonly -buildvcs=false', CGO_ENABLED: '0' };
    await run('go', ['build', '-o', path.join(made, 'driver'), '.'], { cwd: source, env });
  });
  return { command: path.join(installed, 'driver'), args: [] };
}

export async function rustDriver(folder: string): Promise<DriverCommand> {
  await requireProgram('Cargo', 'cargo', ['--version']);
  const source = path.join(import.meta.dirname, folder);
  const installed = await installOnce(folder, await filesOf(source), async (made) => {
    // A copy, since Cargo writes its lock beside the manifest.
    await cp(source, path.join(made, 'source'), { recursive: true });
    await run('cargo', ['build', '--quiet'], { cwd: path.join(made, 'source') });
    await rename(path.join(made, 'source/target/debug/gix-driver'), path.join(made, 'driver'));
    await rm(path.join(made, 'source/target'), { recursive: true });
  });
  return { command: path.join(installed, 'driver'), args: [] };
}

export async function javaDriver(folder: string): Promise<DriverCommand> {
  await requireProgram('a JDK', 'javac', ['-version']);
  await requireProgram('Maven', 'mvn', ['--version']);
  const source = path.join(import.meta.dirname, folder);
  const installed = await installOnce(folder, await filesOf(source), async (made) => {
    const libraries = ['dependency:copy-dependencies', `-DoutputDirectory=${path.join(made, 'lib')}`];
    const quietly = ['--batch-mode', '--quiet', '--file', path.join(source, 'pom.xml')];
    await run('mvn', [...quietly, '-DincludeScope=runtime', ...libraries]);
    await run('javac', ['-cp', path.join(made, 'lib/*'), '-d', made, path.join(source, 'Driver.java')]);
  });
  const small = ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xmx256m'];
  // JGit keeps what it finds out about the disk in the user's home.
  const own = [`-Duser.home=${installed}`, '-cp', `${installed}:${installed}/lib/*`];
  return { command: 'java', args: [...small, ...own, 'Driver'] };
}

export async function requireProgram(what: string, command: string, args: readonly string[]): Promise<void> {
  await run(command, args).catch((error: unknown) => {
    throw new NotInstalled(`needs ${what}`, { cause: error });
  });
}

/** Returns the folder that `make` filled, now or at an earlier run with the same files. */
export async function installOnce(
  name: string,
  files: readonly string[],
  make: (folder: string) => Promise<void>,
): Promise<string> {
  const hash = createHash('sha256');
  for (const file of files)
    hash
      .update(path.basename(file))
      .update('\0')
      .update(await readFile(file))
      .update('\0');
  const tools = process.env['STRATA_TOOLS_DIR'] ?? path.join(homedir(), '.cache/strata-tools');
  const installed = path.join(tools, `client-${name}-${hash.digest('hex').slice(0, 12)}`);
  if (existsSync(path.join(installed, 'complete'))) return installed;
  process.stderr.write(`Installing what drives ${name}\n`);
  await rm(installed, { recursive: true, force: true });
  await mkdir(installed, { recursive: true });
  try {
    await make(installed);
  } catch (error) {
    await rm(installed, { recursive: true, force: true });
    throw new NotInstalled(`could not be installed: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
  await mkdir(path.join(installed, 'complete'));
  return installed;
}

async function filesOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .sort();
}

/** Rejects with the end of what the program wrote if it failed. */
export async function run(
  command: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<void> {
  const child = spawn(command, [...args], {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // Not `timeout`, whose timer outlives a program that is not there.
    signal: AbortSignal.timeout(INSTALL_MS_MAX),
  });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  if (code !== 0) throw new Error(`${command} ${args[0] ?? ''} failed: ${`${stdout}\n${stderr}`.trim().slice(-500)}`);
}
