/**
 * Judges files one after the other: those that are named, and those of folders.
 *
 * Invariants: one file is open at a time. Of several files one that is refuted decides, then one that is not decidable.
 * A kept checkpoint counts for the files of its own log, and one that counts for none leaves the verdict open.
 */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Checkpoint } from './checkpoint.ts';
import { verifyFile } from './file.ts';
import { isDecided } from './report.ts';
import { type Verified, VerifyError, type VerifyOptions } from './verify.ts';

/** 0: verified. 1: refuted. 2: not decidable. */
export type Status = 0 | 1 | 2;

export type Judged =
  | { readonly file: string; readonly status: 0 | 2; readonly verified: Verified }
  /** Refuted, or not to be read. */
  | { readonly file: string; readonly status: 1 | 2; readonly verified: null; readonly why: string };

/** What exports in a folder are called. */
const EXPORT_NAME = /\.ndjson$/;

/** A path that names no export. */
export class NoExportError extends Error {
  override readonly name = 'NoExportError';
}

/** Returns the files that the paths name, those of a folder in the order of their names. */
export async function exportsOf(paths: readonly string[]): Promise<readonly string[]> {
  const files: string[] = [];
  for (const path of paths) {
    if (!(await stat(path)).isDirectory()) {
      files.push(path);
      continue;
    }
    const names = (await readdir(path)).filter((name) => EXPORT_NAME.test(name)).sort();
    if (names.length === 0) throw new NoExportError(`${path} holds no file *.ndjson`);
    files.push(...names.map((name) => join(path, name)));
  }
  return files;
}

/** Yields the verdict of each file. */
export async function* judge(files: readonly string[], options: VerifyOptions): AsyncGenerator<Judged> {
  for (const file of files) {
    yield await judgeFile(file, { ...options, ofSeveral: files.length > 1 });
  }
}

async function judgeFile(file: string, options: VerifyOptions): Promise<Judged> {
  try {
    const verified = await verifyFile(file, options);
    return { file, status: isDecided(verified) ? 0 : 2, verified };
  } catch (error) {
    if (error instanceof VerifyError) return { file, status: 1, verified: null, why: `${file}, ${error.message}` };
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    return {
      file,
      status: 2,
      verified: null,
      why: `${file} cannot be read: ${'code' in error ? String(error.code) : ''}`,
    };
  }
}

/** Returns the verdict of all, and the kept checkpoints that counted for none of them. */
export function together(
  all: readonly Judged[],
  older: readonly Checkpoint[],
): { readonly status: Status; readonly unused: readonly Checkpoint[] } {
  // Nobody knows how far a refuted file came.
  const isRefuted = all.some(({ status }) => status === 1);
  const used = new Set(all.map(({ verified }) => verified?.checkpoint.origin));
  const unused = isRefuted ? [] : older.filter(({ origin }) => !used.has(origin));
  const isOpen = unused.length > 0 || all.some(({ status }) => status === 2);
  return { status: isRefuted ? 1 : isOpen ? 2 : 0, unused };
}
