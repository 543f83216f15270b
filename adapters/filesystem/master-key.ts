/**
 * The master key, which wraps the vault's data keys.
 *
 * Invariants: a key is durable before it is used; only the server's user can read it. Losing it loses the vault. A key
 * that was used is replaced only by a rotation, in one rename, when nothing in the database needs it any more; until
 * then the new key lies beside it.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { link, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';

const KEY_BYTES = 32;
const FILE_NAME = 'master-key';
const NEXT_NAME = 'master-key.next';

export interface MasterKeyOptions {
  readonly dataDir: string;
  /** The value of STRATA_MASTER_KEY: 32 bytes, as 64 hex digits or base64; absent to use the file. */
  readonly configured: string | undefined;
}

/**
 * The configured key, or else the one in `<data directory>/master-key`, which is created at the first call (mode 0600).
 * 32 bytes. Safe when several processes start at the same time. Rejects when the configured text or the file is no key.
 */
export async function loadMasterKey({ dataDir, configured }: MasterKeyOptions): Promise<Uint8Array> {
  if (configured !== undefined) return parseMasterKey(configured, 'STRATA_MASTER_KEY');
  const file = path.join(dataDir, FILE_NAME);
  return (await readKeyFile(file)) ?? makeKeyFile(dataDir, file);
}

/**
 * That key, and the one that a rotation under way replaces it with, if there is one: `configuredNext`, the value of
 * STRATA_MASTER_KEY_NEW, or without a configured key the one beside the file. Rejects as `loadMasterKey`.
 */
export async function loadMasterKeys(
  options: MasterKeyOptions & { readonly configuredNext: string | undefined },
): Promise<readonly [Uint8Array, ...Uint8Array[]]> {
  const { dataDir, configured, configuredNext } = options;
  const key = await loadMasterKey(options);
  if (configuredNext !== undefined) return [key, parseMasterKey(configuredNext, 'STRATA_MASTER_KEY_NEW')];
  const next = configured === undefined ? await readKeyFile(path.join(dataDir, NEXT_NAME)) : null;
  return next === null ? [key] : [key, next];
}

/** Makes the key that is to replace the file's, durably beside it, or returns the one that is there. */
export async function makeNextMasterKey(dataDir: string): Promise<Uint8Array> {
  const file = path.join(dataDir, NEXT_NAME);
  return (await readKeyFile(file)) ?? makeKeyFile(dataDir, file);
}

/** Replaces the file's key by the one beside it. Durable when it resolves. */
export async function replaceMasterKey(dataDir: string): Promise<void> {
  await rename(path.join(dataDir, NEXT_NAME), path.join(dataDir, FILE_NAME));
  await syncDirectory(dataDir);
}

async function syncDirectory(folder: string): Promise<void> {
  const directory = await open(folder, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

async function readKeyFile(file: string): Promise<Uint8Array | null> {
  try {
    const { mode } = await stat(file);
    if ((mode & 0o077) !== 0) throw new Error(`${file} can be read by others: chmod 600 it, and think who has read it`);
    return parseMasterKey(await readFile(file, 'utf8'), file);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return null;
    throw error;
  }
}

/** Writes a key under another name and links it into place: of several processes one succeeds, and all use its key. */
async function makeKeyFile(dataDir: string, file: string): Promise<Uint8Array> {
  // When the server is root, PostgreSQL runs as another user and must enter this folder (adapters/embedded-postgres).
  await mkdir(dataDir, { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 });
  const draft = `${file}.${randomUUID()}`;
  const handle = await open(draft, 'wx', 0o600);
  try {
    await handle.writeFile(`${randomBytes(KEY_BYTES).toString('hex')}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  try {
    await link(draft, file);
  } catch (error) {
    if (!isSystemError(error, 'EEXIST')) throw error;
  } finally {
    await rm(draft, { force: true });
  }
  await syncDirectory(dataDir);
  const key = await readKeyFile(file);
  if (key === null) throw new Error(`${file} was removed while the server started`);
  return key;
}

/** The error's message never holds the text, which may be a key with one letter missing. */
export function parseMasterKey(text: string, source: string): Uint8Array {
  const trimmed = text.trim();
  if (/^[0-9a-fA-F]{64}$/.test(trimmed)) return Buffer.from(trimmed, 'hex');
  // Both base64 alphabets of RFC 4648; 32 bytes are 43 digits and one padding character.
  if (/^[A-Za-z0-9+/_-]{43}=?$/.test(trimmed)) {
    const key = Buffer.from(trimmed, 'base64');
    if (key.length === KEY_BYTES) return key;
  }
  throw new Error(`${source} must hold ${KEY_BYTES} bytes as 64 hex digits or base64 (openssl rand -hex ${KEY_BYTES})`);
}

function isSystemError(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
