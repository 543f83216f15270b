/**
 * The folder that one server keeps everything in which is its own: made and held before anything in it is touched.
 *
 * Must stay true: two servers never work in one data directory, whatever database they use, since each empties the
 * other's quarantines; the lock is released last.
 */
import { chmod, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { type DirectoryLock, lockDirectory } from '../../adapters/node/directory-lock.ts';

/** Throws `DirectoryInUseError` when another server has it. */
export async function holdDataDirectory(dataDir: string): Promise<DirectoryLock> {
  // Under root the embedded PostgreSQL runs as another user and passes through.
  const mode = process.getuid?.() === 0 ? 0o711 : 0o700;
  const first = await mkdir(dataDir, { recursive: true, mode });
  if (first !== undefined) {
    // The umask may have taken away what mkdir was asked for.
    for (let folder = path.resolve(dataDir); folder.startsWith(first); folder = path.dirname(folder)) {
      await chmod(folder, mode);
    }
  }
  return lockDirectory(dataDir);
}
