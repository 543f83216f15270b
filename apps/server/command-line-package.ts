/**
 * The packed command line that the website offers: what `npm run client:pack` made for this server. The build of the
 * image makes it, and so does `npm start` (apps/launcher/command-line.mjs), perhaps only after this server began.
 *
 * Invariants: only one whole file is offered, the newest, with the digest of just these bytes. It is read again only
 * when it was replaced.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { MIB } from '../../core/kernel/byte-units.ts';
import type { CommandLinePackage, FindCommandLine } from '../website/context.ts';

/** Where the launcher and the image put it. */
export const COMMAND_LINE_FOLDER = path.resolve(import.meta.dirname, '../../.cache/command-line');

/** The service did not make a larger package. Internal: the command line has about one. */
const PACKAGE_BYTES_MAX = 16 * MIB;

const NAME = /^strata-cli-[\w.-]{1,64}\.tgz$/;

interface Found {
  readonly name: string;
  readonly changedMs: number;
}

export function createCommandLineFinder(folder: string): FindCommandLine {
  let known: (Found & { readonly made: Promise<CommandLinePackage> }) | null = null;
  return async () => {
    const newest = await newestIn(folder);
    if (newest === null) return null;
    if (known?.name !== newest.name || known.changedMs !== newest.changedMs) {
      const made = readPackage(folder, newest.name);
      known = { ...newest, made };
      made.catch(() => {
        known = null;
      });
    }
    return known.made;
  };
}

async function newestIn(folder: string): Promise<Found | null> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  });
  let newest: Found | null = null;
  for (const name of names.filter((each) => NAME.test(each))) {
    const found = await stat(path.join(folder, name)).catch(() => null);
    if (found === null || !found.isFile() || found.size > PACKAGE_BYTES_MAX) continue;
    if (newest === null || found.mtimeMs > newest.changedMs) newest = { name, changedMs: found.mtimeMs };
  }
  return newest;
}

async function readPackage(folder: string, name: string): Promise<CommandLinePackage> {
  const bytes = await readFile(path.join(folder, name));
  return { name, bytes, sha256: createHash('sha256').update(bytes).digest('hex') };
}
