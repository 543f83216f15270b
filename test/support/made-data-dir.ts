/**
 * Data directories with a prepared PostgreSQL cluster: a copy takes a fraction of initdb's time.
 *
 * STRATA_TEST_MADE_DATA_DIR names the directory to copy; without it each process prepares one for itself.
 */
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { embeddedBinaries } from '../../adapters/embedded-postgres/binaries.ts';
import { ensureCluster, prepareHome, readOrMakePassword } from '../../adapters/embedded-postgres/cluster.ts';
import { postgresUser } from '../../adapters/embedded-postgres/unix-user.ts';
import { afterProcess } from './after-process.ts';
import type { Ending } from './cleanup.ts';
import { tempDir } from './temp-dir.ts';

export interface MadeDataDir {
  /** Pass it to other processes as STRATA_TEST_MADE_DATA_DIR. */
  readonly dataDir: string;
  remove(): Promise<void>;
}

/** Prepares one in a temporary directory. It is removed when this process ends, even after a SIGKILL. */
export async function makeDataDir(): Promise<MadeDataDir> {
  const root = await mkdtemp(path.join(await realpath(os.tmpdir()), 'strata-test-made-'));
  await chmod(root, 0o711);
  const dismiss = afterProcess('rm -rf "$1"', root);
  const dataDir = path.join(root, 'data');
  const paths = await prepareHome(dataDir);
  const user = await postgresUser(paths.cluster);
  await ensureCluster(paths, await embeddedBinaries(), user, await readOrMakePassword(paths));
  return {
    dataDir,
    remove: async () => {
      await rm(root, { recursive: true, force: true });
      dismiss();
    },
  };
}

let own: Promise<MadeDataDir> | null = null;

/** Makes `target`, which must not exist, a data directory whose cluster no server has started yet. */
export async function copyMadeDataDir(target: string): Promise<void> {
  const shared = process.env['STRATA_TEST_MADE_DATA_DIR'];
  if (shared === undefined) own ??= makeDataDir();
  const made = shared ?? (await own)?.dataDir ?? '';
  await promisify(execFile)('cp', ['-a', made, target]);
}

/** Returns a copy that is removed after the test. */
export async function madeDataDir(context: Ending): Promise<string> {
  const dataDir = path.join(await tempDir(context), 'data');
  await copyMadeDataDir(dataDir);
  return dataDir;
}
