/**
 * Opens the objects of repositories for one command.
 *
 * Invariants: the cache is the command's own, beside those of a running server, and is removed with it.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { createGitObjectDatabase, type GitObjectDatabase } from '../../adapters/git/object-database.ts';
import type { Closer } from '../server/closer.ts';
import type { OpenedStorage } from './context.ts';

/** The closer closes what is opened. */
export async function openObjects(
  { layers, settings: { cacheBytesMax }, log }: ObjectsOf,
  parts: Closer,
): Promise<GitObjectDatabase> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'strata-admin-'));
  parts.add(() => rm(folder, { recursive: true, force: true }));
  const database = await createGitObjectDatabase({ directory: path.join(folder, 'cache'), layers, cacheBytesMax, log });
  parts.add(() => database.close());
  return database;
}

export interface ObjectsOf extends Pick<OpenedStorage, 'layers' | 'log'> {
  readonly settings: Pick<OpenedStorage['settings'], 'cacheBytesMax'>;
}
