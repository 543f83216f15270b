/**
 * A file system of a few megabytes, for tests of a full disk.
 *
 * Invariants: it is mounted only where the process may mount (as root on Linux); elsewhere the caller skips its
 * test with the reason.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface SmallDisk {
  readonly path: string;
  remove(): void;
}

/** Mounts a tmpfs of this size, or returns the reason why it cannot. */
export function mountSmallDisk(sizeBytes: number): SmallDisk | { readonly skip: string } {
  const path = mkdtempSync(join(tmpdir(), 'strata-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeBytes}`, 'tmpfs', path], { stdio: 'pipe' });
  } catch (cause) {
    rmSync(path, { recursive: true });
    return { skip: `cannot mount a small file system here: ${cause instanceof Error ? cause.message : cause}` };
  }
  return {
    path,
    remove: () => {
      // A lazy unmount: a socket of a process that has just ended may keep the file system busy for a moment.
      execFileSync('umount', ['-l', path], { stdio: 'pipe' });
      rmSync(path, { recursive: true });
    },
  };
}
