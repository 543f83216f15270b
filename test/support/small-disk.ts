/**
 * A file system of a few megabytes, to see what happens when a disk is full.
 *
 * Must stay true: it is mounted only where the process may (as root on Linux); elsewhere the caller skips aloud.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface SmallDisk {
  readonly path: string;
  remove(): void;
}

/** Mounts a tmpfs of this size, or says why it cannot. */
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
      // Lazily: a socket of a process that has just ended may keep it busy a moment longer.
      execFileSync('umount', ['-l', path], { stdio: 'pipe' });
      rmSync(path, { recursive: true });
    },
  };
}
