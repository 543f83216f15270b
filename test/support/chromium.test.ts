/** A browser is found only where it is installed and executable, and the CI run ends without one. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, test } from 'vitest';
import { findChromium } from './chromium.ts';
import { tempDir } from './temp-dir.ts';

const PREPARE = path.resolve(import.meta.dirname, '../../.ci/chromium.sh');

describe('Chromium', () => {
  test('is found on the search path if it can be run, and the one that STRATA_CHROMIUM names is preferred', async (context) => {
    const folder = await tempDir(context);
    const [own, other] = [path.join(folder, 'chromium'), path.join(folder, 'elsewhere', 'browser')];
    await mkdir(path.dirname(other));
    await writeFile(own, '#!/bin/sh\n');
    assert.notEqual(findChromium({ PATH: folder }), own, 'not executable yet');
    for (const file of [own, other]) {
      await writeFile(file, '#!/bin/sh\n');
      await chmod(file, 0o700);
    }
    assert.equal(findChromium({ PATH: `:${folder}` }), own);
    assert.equal(findChromium({ PATH: folder, STRATA_CHROMIUM: '' }), own);
    assert.equal(findChromium({ PATH: folder, STRATA_CHROMIUM: other }), other);
    assert.equal(findChromium({ PATH: folder, STRATA_CHROMIUM: path.join(folder, 'gone') }), null);
  });

  test('that is missing ends the CI run with the reason', async () => {
    const env = { PATH: process.env['PATH'] ?? '', STRATA_CHROMIUM: '/nowhere/chromium' };
    await assert.rejects(promisify(execFile)(PREPARE, { env }), (error: Error & { readonly stderr?: string }) => {
      assert.match(error.stderr ?? '', /^There is no Chromium for the tests of the website/);
      return true;
    });
  });
});
