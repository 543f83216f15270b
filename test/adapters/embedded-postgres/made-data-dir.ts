/** Data directories whose cluster is already made: a copy takes a fraction of initdb's time. */
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before } from 'node:test';
import { promisify } from 'node:util';
import { startEmbeddedPostgres } from '../../../adapters/embedded-postgres/start.ts';
import type { Ending } from '../../support/cleanup.ts';
import { keepLog } from '../../support/log.ts';
import { tempDir } from '../../support/temp-dir.ts';

/** Called once a file; returns a function that gives each test a copy of one stopped server's data directory. */
export function madeDataDirs(): (context: Ending) => Promise<string> {
  let original: string;
  before(async () => {
    original = await mkdtemp(path.join(await realpath(os.tmpdir()), 'strata-test-'));
    await chmod(original, 0o711);
    const dataDir = path.join(original, 'data');
    const embedded = await startEmbeddedPostgres({ dataDir, log: keepLog(), settings: { fsync: 'off' } });
    await embedded.stop();
  });
  after(() => rm(original, { recursive: true, force: true }));
  return async (context) => {
    const dataDir = path.join(await tempDir(context), 'data');
    await promisify(execFile)('cp', ['-a', path.join(original, 'data'), dataDir]);
    return dataDir;
  };
}
