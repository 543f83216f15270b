/**
 * Creates and locks the data directory, which holds the server's own files.
 *
 * Invariants: the lock is taken before anything in the directory is touched, and released last. Two servers never
 * share a data directory, whatever database they use, since each deletes the other's quarantines.
 */
import { chmod, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { type DirectoryLock, lockDirectory } from '../../adapters/node/directory-lock.ts';

/** Throws `DirectoryInUseError` if another server holds the lock. */
export async function lockDataDirectory(dataDir: string): Promise<DirectoryLock> {
  // Under root the embedded PostgreSQL runs as another user, who must be able to enter its subfolder.
  const mode = process.getuid?.() === 0 ? 0o711 : 0o700;
  const first = await mkdir(dataDir, { recursive: true, mode });
  if (first !== undefined) {
    // The umask may have removed bits of the requested mode.
    for (let folder = path.resolve(dataDir); folder.startsWith(first); folder = path.dirname(folder)) {
      await chmod(folder, mode);
    }
  }
  return lockDirectory(dataDir);
}
