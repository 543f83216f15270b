/**
 * The configuration file: the services that the person has signed in to, in TOML.
 *
 * Invariants: the file holds secrets, so nobody else can read it (mode 0600), and no message quotes it. It is
 * replaced as a whole, so that a reader never sees half of it, and under a lock, so that two commands lose nothing.
 * What this command does not know in it stays in it.
 */
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type * as SmolToml from 'smol-toml';
import type { Environment } from '../client/proxy.ts';

export interface StoredHost {
  readonly token: string;
  readonly username: string | null;
  readonly webUrl: string | null;
  /** The id of the token, for `logout`. */
  readonly tokenId: string | null;
  readonly expiresAt: string | null;
}

export interface Config {
  /** The service that is used when none is named: the one of the last login. */
  readonly current: string | null;
  /** By the address of its API. */
  readonly hosts: ReadonlyMap<string, StoredHost>;
}

/** The file cannot be used. The message names it and says why, but quotes nothing. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Null if nothing names a folder for it. */
export function configPath(environment: Environment): string | null {
  const named = environment['SERVICE_CONFIG'];
  if (named !== undefined && named !== '') return named;
  const folder = environment['XDG_CONFIG_HOME'];
  // A relative XDG_CONFIG_HOME is to be ignored: XDG Base Directory Specification.
  if (folder !== undefined && isAbsolute(folder)) return join(folder, 'strata', 'config.toml');
  const home = homeOf(environment);
  return home === null ? null : join(home, '.config', 'strata', 'config.toml');
}

/** An empty or relative HOME would put the secret into the working folder: what the system knows counts then. */
function homeOf({ HOME: named = '' }: Environment): string | null {
  if (isAbsolute(named)) return named;
  try {
    const { homedir } = userInfo();
    return isAbsolute(homedir) ? homedir : null;
  } catch {
    // The user has no entry in the system's list, as in a container.
    return null;
  }
}

type Table = Record<string, unknown>;
type Toml = typeof SmolToml;

/** Returns the file's content; null if there is no file. */
export async function readConfig(file: string | null, warn: (line: string) => void): Promise<Config | null> {
  const text = file === null ? null : readText(file, warn);
  return file === null || text === null ? null : configOf(tableOf(await import('smol-toml'), file, text));
}

function readText(file: string, warn: (line: string) => void): string | null {
  try {
    const { mode } = statSync(file);
    const open = process.platform === 'win32' ? 0 : mode & 0o077;
    if (open !== 0) {
      warn(
        `${file} holds secrets and other people can use it (mode ${(mode & 0o777).toString(8)}): chmod 600 '${file}'`,
      );
    }
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return null;
    throw new ConfigError(`${file} cannot be read: ${codeOf(error)}`, { cause: error });
  }
}

function tableOf({ parse, TomlError }: Toml, file: string, text: string): Table {
  try {
    return parse(text);
  } catch (error) {
    // The message of the parser quotes the line, which may hold a token; so the error is no cause either.
    const place = error instanceof TomlError ? ` (line ${error.line})` : '';
    throw new ConfigError(`${file} is not TOML${place}: correct or remove it`, { cause: null });
  }
}

function configOf(table: Table): Config {
  const { current, hosts } = table;
  const listed = isTable(hosts) ? Object.entries(hosts) : [];
  return {
    current: textOf(current),
    hosts: new Map(
      listed.flatMap(([url, host]): [string, StoredHost][] => {
        const token = isTable(host) ? textOf(host['token']) : null;
        if (!isTable(host) || token === null) return [];
        const [username, webUrl, tokenId] = [
          textOf(host['username']),
          textOf(host['web_url']),
          textOf(host['token_id']),
        ];
        return [[url, { token, username, webUrl, tokenId, expiresAt: textOf(host['expires_at']) }]];
      }),
    ),
  };
}

/** Stores a login and makes its service the current one. */
export async function storeHost(file: string | null, baseUrl: string, host: StoredHost): Promise<void> {
  await change(file, (table) => {
    table['current'] = baseUrl;
    const hosts = isTable(table['hosts']) ? table['hosts'] : {};
    const known = isTable(hosts[baseUrl]) ? hosts[baseUrl] : {};
    const fields = {
      username: host.username,
      web_url: host.webUrl,
      token_id: host.tokenId,
      expires_at: host.expiresAt,
      token: host.token,
    };
    // TOML has no null.
    const set = Object.entries(fields).filter(([, value]) => value !== null);
    const others = Object.entries(known).filter(([name]) => !Object.hasOwn(fields, name));
    table['hosts'] = { ...hosts, [baseUrl]: Object.fromEntries([...others, ...set]) };
  });
}

/** Forgets a login. Another service becomes the current one, if there is one. */
export async function forgetHost(file: string | null, baseUrl: string): Promise<void> {
  await change(file, (table) => {
    const hosts = isTable(table['hosts']) ? table['hosts'] : {};
    const kept = Object.entries(hosts).filter(([url]) => url !== baseUrl);
    table['hosts'] = Object.fromEntries(kept);
    if (table['current'] !== baseUrl) return;
    delete table['current'];
    const next = kept[0]?.[0];
    if (next !== undefined) table['current'] = next;
  });
}

/** Under the lock the file is read and replaced without a pause, so that no signal ends the process in between. */
async function change(file: string | null, apply: (table: Table) => void): Promise<void> {
  if (file === null) throw new ConfigError('There is no home folder: set HOME or SERVICE_CONFIG to an absolute path');
  const toml = await import('smol-toml');
  let unlock = (): void => undefined;
  try {
    unlock = await lock(file);
    const table = tableOf(toml, file, readText(file, () => undefined) ?? '');
    apply(table);
    const text = `# Written by strata. It holds secrets: keep its mode 0600.\n${toml.stringify(table)}`;
    replaceFile(targetOf(file), text);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError(`${file} cannot be written: ${codeOf(error)}`, { cause: error });
  } finally {
    unlock();
  }
}

const LOCK_WAIT_MS_MAX = 5_000;
const LOCK_POLL_MS = 20;

/** Takes the lock of the file, as git does: a file beside it. Returns how to let go of it. */
async function lock(file: string): Promise<() => void> {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const path = `${targetOf(file)}.lock`;
  const deadline = Date.now() + LOCK_WAIT_MS_MAX;
  while (!isMade(path)) {
    if (Date.now() > deadline) {
      throw new ConfigError(`${file} is being changed by another strata; if none runs, remove ${path}`);
    }
    await sleep(LOCK_POLL_MS);
  }
  return () => rmSync(path, { force: true });
}

/** Makes a file; false if there is one. */
function isMade(path: string): boolean {
  try {
    closeSync(openSync(path, 'wx', 0o600));
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Writes a file beside the old one and moves it into its place. */
function replaceFile(target: string, text: string): void {
  const fresh = `${target}.${randomBytes(6).toString('hex')}`;
  const descriptor = openSync(fresh, 'wx', 0o600);
  try {
    writeSync(descriptor, text);
    fsyncSync(descriptor);
    closeSync(descriptor);
    renameSync(fresh, target);
  } catch (error) {
    rmSync(fresh, { force: true });
    throw error;
  }
}

/** A symbolic link stays: its target is replaced. */
function targetOf(file: string): string {
  try {
    return realpathSync(file);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return file;
    throw error;
  }
}

function isTable(value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function textOf(value: unknown): string | null {
  if (value instanceof Date) return value.toISOString();
  return typeof value === 'string' && value !== '' ? value : null;
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
