/**
 * The verifier as it was before slices had guards, on what the service exports now: auditors who installed it are told
 * that they cannot verify a slice of form 2, and never that it is right.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { ROOT } from '../../architecture/source-tree.ts';
import { suiteEnding } from '../../support/cleanup.ts';
import { createExportedLog } from '../../support/exported-log.ts';
import { skippedFor } from '../../support/skipped.ts';
import { tempDir } from '../../support/temp-dir.ts';

/** The last commit before form 2 that changed the verifier. */
const RELEASED = 'd4c4d7ee0c79d440bb6df94d8e10423b85555ab9';

const archive = spawnSync('git', ['archive', RELEASED, 'apps/verifier'], { cwd: ROOT, maxBuffer: 16 * 1024 * 1024 });

describe('the verifier of before form 2', {
  ...skippedFor(archive.status !== 0 && 'needs the history of the repository'),
}, () => {
  const ending = suiteEnding();
  let folder: string;
  const exports_: Record<string, string> = {};

  beforeAll(async () => {
    folder = await tempDir(ending);
    await mkdir(path.join(folder, 'old'));
    const extracted = spawnSync('tar', ['-x', '-C', path.join(folder, 'old')], { input: archive.stdout });
    assert.equal(extracted.status, 0, String(extracted.stderr));
    const log = await createExportedLog();
    for (let n = 0; n < 5; n += 1) await log.grow();
    const { body: keys } = await log.fixture.request('GET', '/.well-known/strata-log-keys', null);
    const moment = new Date(Date.parse(log.fixture.clock.now()) - 60_000).toISOString();
    exports_['whole'] = await log.exported();
    exports_['guarded'] = await log.exported(`?since=${moment}`);
    exports_['without guards'] = await log.exported('?until=2030-01-01T00:00:00Z');
    exports_['form 1'] = await log.exported(`?since=${moment}&form=1`);
    for (const [name, text] of Object.entries(exports_)) await writeFile(path.join(folder, name), text);
    await writeFile(path.join(folder, 'keys'), keys);
    await log.close();
  });

  const run = (name: string) =>
    spawnSync(process.execPath, [path.join(folder, 'old/apps/verifier/main.ts'), name, '--keys', 'keys'], {
      encoding: 'utf8',
      cwd: folder,
    });

  test('refuses a slice of form 2 at its first guard, or at its last line', () => {
    const guarded = run('guarded');
    assert.deepEqual([guarded.status, guarded.stdout], [1, '']);
    assert.match(guarded.stderr, /line 1: it is neither an entry nor a checkpoint/);
    const last = (exports_['without guards'] ?? '').split('\n').length - 1;
    const bare = run('without guards');
    assert.deepEqual([bare.status, bare.stdout], [1, '']);
    assert.match(bare.stderr, new RegExp(`line ${last}: it is neither an entry nor a checkpoint`));
  });

  test('verifies a whole log, and a slice of form 1', () => {
    for (const name of ['whole', 'form 1']) {
      const { status, stdout, stderr } = run(name);
      assert.equal(status, 0, stderr);
      assert.match(stdout, /^verified \d+ entries/);
    }
  });
});
