/** The verifier as an auditor installs it: its packed modules alone, on the oldest Node that they support. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import verifier from '../../../apps/verifier/package.json' with { type: 'json' };
import { ROOT } from '../../architecture/source-tree.ts';
import { suiteEnding } from '../../support/cleanup.ts';
import { oldestNode } from '../../support/command-line.ts';
import { createExportedLog } from '../../support/exported-log.ts';
import { tempDir } from '../../support/temp-dir.ts';

describe('the packed verifier', () => {
  const ending = suiteEnding();
  let folder: string;
  let unpacked: string;

  beforeAll(async () => {
    folder = await tempDir(ending);
    const packed = spawnSync(process.execPath, [path.join(ROOT, 'apps/verifier/build/pack.ts'), folder], {
      encoding: 'utf8',
    });
    assert.equal(packed.status, 0, packed.stderr);
    const extracted = spawnSync('tar', ['-xzf', packed.stdout.trim(), '-C', folder]);
    assert.equal(extracted.status, 0);
    unpacked = path.join(folder, 'package');
    const log = await createExportedLog();
    const checkpoint = await log.checkpoint();
    await log.grow();
    await writeFile(path.join(folder, 'log'), await log.exported());
    await writeFile(path.join(folder, 'checkpoint'), checkpoint);
    const { body } = await log.fixture.request('GET', '/.well-known/strata-log-keys', null);
    await writeFile(path.join(folder, 'keys'), body);
    await log.close();
  });

  const run = (...args: readonly string[]) =>
    spawnSync(oldestNode() ?? process.execPath, [path.join(unpacked, 'main.mjs'), ...args], {
      encoding: 'utf8',
      cwd: folder,
    });

  test('holds its sources without types, and depends on nothing', async () => {
    const names = await readdir(unpacked);
    assert.ok(names.includes('verify.mjs') && names.includes('LICENSE') && names.includes('README.md'));
    for (const name of names.filter((entry) => entry.endsWith('.mjs'))) {
      const imports = [...(await readFile(path.join(unpacked, name), 'utf8')).matchAll(/ from '([^']+)'/g)];
      for (const [, from = ''] of imports) assert.match(from, /^(node:|\.\/[a-z]+\.mjs$)/, name);
    }
    const manifest = JSON.parse(await readFile(path.join(unpacked, 'package.json'), 'utf8')) as object;
    assert.ok(!('dependencies' in manifest) && !('devDependencies' in manifest));
  });

  test('verifies an export, and names the line of what is wrong', async () => {
    const proved = run('log', '--keys', 'keys', '--checkpoint', 'checkpoint');
    assert.equal(proved.status, 0, proved.stderr);
    assert.match(proved.stdout, /^verified \d+ entries: the whole log of account /);
    assert.match(run('log').stdout, /not checked/);
    const lines = (await readFile(path.join(folder, 'log'), 'utf8')).split('\n');
    await writeFile(path.join(folder, 'changed'), lines.toSpliced(4, 1).join('\n'));
    const changed = run('changed', '--keys', 'keys');
    assert.deepEqual([changed.status, changed.stdout], [1, '']);
    assert.match(changed.stderr, /^strata-verify: line 5: it has sequence 5 in the place of 4\n$/);
  });

  test('adds up every checkpoint that is given, and refuses keys that are given twice', async () => {
    const { stdout: usage } = run('--help');
    const options = [...usage.matchAll(/^ {2}(--\w+) FILE/gm)].map(([, name = '']) => name);
    assert.deepEqual(options, ['--keys', '--checkpoint']);
    const kept = await readFile(path.join(folder, 'checkpoint'), 'utf8');
    const [origin = '', size = '', root = '', ...rest] = kept.split('\n');
    const otherRoot = Buffer.from(root, 'base64').map((byte) => byte ^ 1);
    const contradicting = [origin, size, Buffer.from(otherRoot).toString('base64'), ...rest].join('\n');
    await writeFile(path.join(folder, 'contradicting'), contradicting);
    for (const pair of [
      ['contradicting', 'checkpoint'],
      ['checkpoint', 'contradicting'],
    ]) {
      const contradicted = run('log', ...pair.flatMap((name) => ['--checkpoint', name]));
      assert.deepEqual([contradicted.status, contradicted.stdout], [1, '']);
    }
    assert.match(run('log', '--checkpoint', 'checkpoint', '--checkpoint', 'checkpoint').stdout, /^verified/);
    const twice = run('log', '--keys', 'keys', '--keys=keys');
    assert.deepEqual([twice.status, twice.stderr], [2, 'strata-verify: --keys is given twice: give it once\n']);
  });

  test('says how it is used', () => {
    assert.equal(run('--help').status, 0);
    assert.equal(run('--version').stdout, `${verifier.version}\n`);
    assert.equal(run().status, 2);
    assert.equal(run('log', 'more').status, 2);
    assert.match(run('log', '--keys', 'log').stderr, /log: line 1 is no key/);
    assert.equal(run('none').status, 2);
  });
});
