/** Temporary directories that are removed after the test. */
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { cleanUp, type Ending } from './cleanup.ts';

/** Makes a directory that other users may traverse (mode 0711); it is removed after the test. */
export async function tempDir(context: Ending): Promise<string> {
  const directory = await mkdtemp(path.join(await realpath(os.tmpdir()), 'strata-test-'));
  await chmod(directory, 0o711);
  cleanUp(context, () => rm(directory, { recursive: true, force: true }));
  return directory;
}
