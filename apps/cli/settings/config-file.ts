/**
 * The configuration file: the services that the person has signed in to, in TOML.
 *
 * Invariants: the file holds secrets, so nobody else can read it (mode 0600), and no message quotes it. It is
 * replaced as a whole, so that a reader never sees half of it. What this command does not know in it stays in it.
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
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
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

export function configPath(environment: Environment): string {
  const named = environment['SERVICE_CONFIG'];
  if (named !== undefined && named !== '') return named;
  const home = environment['HOME'] ?? homedir();
  const folder = environment['XDG_CONFIG_HOME'];
  // A relative XDG_CONFIG_HOME is to be ignored: XDG Base Directory Specification.
  const base = folder?.startsWith('/') === true ? folder : join(home, '.config');
  return join(base, 'strata', 'config.toml');
}

type Table = Record<string, unknown>;

/** Returns the file's content; null if there is no file. */
export async function readConfig(file: string, warn: (line: string) => void): Promise<Config | null> {
  const table = await readTable(file, warn);
  return table === null ? null : configOf(table);
}

async function readTable(file: string, warn: (line: string) => void): Promise<Table | null> {
  let text;
  try {
    const { mode } = statSync(file);
    const open = process.platform === 'win32' ? 0 : mode & 0o077;
    if (open !== 0) {
      warn(
        `${file} holds secrets and other people can use it (mode ${(mode & 0o777).toString(8)}): chmod 600 '${file}'`,
      );
    }
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return null;
    throw new ConfigError(`${file} cannot be read: ${codeOf(error)}`, { cause: error });
  }
  const { parse, TomlError } = await import('smol-toml');
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
export async function storeHost(file: string, baseUrl: string, host: StoredHost): Promise<void> {
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
export async function forgetHost(file: string, baseUrl: string): Promise<void> {
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

async function change(file: string, apply: (table: Table) => void): Promise<void> {
  const table = (await readTable(file, () => undefined)) ?? {};
  apply(table);
  const { stringify } = await import('smol-toml');
  const text = `# Written by strata. It holds secrets: keep its mode 0600.\n${stringify(table)}`;
  try {
    replaceFile(file, text);
  } catch (error) {
    throw new ConfigError(`${file} cannot be written: ${codeOf(error)}`, { cause: error });
  }
}

/** Writes a file beside the old one and moves it into its place. A symbolic link stays, and its target is replaced. */
function replaceFile(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const target = targetOf(file);
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
