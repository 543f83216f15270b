/** The verifier as an auditor installs it: its packed modules alone, on the oldest Node that they support. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
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
    const open = run('log');
    assert.equal(open.status, 2);
    assert.match(open.stdout, /^undecided .*\nsigned {3}no: give the keys/s);
    const lines = (await readFile(path.join(folder, 'log'), 'utf8')).split('\n');
    await writeFile(path.join(folder, 'changed'), lines.toSpliced(4, 1).join('\n'));
    const changed = run('changed', '--keys', 'keys');
    assert.deepEqual([changed.status, changed.stdout], [1, '']);
    assert.match(changed.stderr, /^strata-verify: changed, line 5: it has sequence 5 in the place of 4\n$/);
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
    const both = ['--checkpoint', 'checkpoint', '--checkpoint', 'checkpoint'];
    assert.match(run('log', '--keys', 'keys', ...both).stdout, /^verified .*prefix {3}of 2 older checkpoints/s);
    const twice = run('log', '--keys', 'keys', '--keys=keys');
    assert.deepEqual([twice.status, twice.stderr], [2, 'strata-verify: --keys is given twice: give it once\n']);
  });

  test('judges files and folders together: one that is refuted decides, then one that is not decidable', async () => {
    const exports_ = path.join(folder, 'exports');
    await mkdir(exports_);
    const text = await readFile(path.join(folder, 'log'), 'utf8');
    await writeFile(path.join(exports_, 'a.ndjson'), text);
    await writeFile(path.join(exports_, 'notes'), 'no export');
    const keys = ['--keys', 'keys'];
    assert.equal(run('exports', ...keys, '--checkpoint', 'checkpoint').status, 0);
    const both = run('exports', 'log', ...keys);
    assert.deepEqual([both.status, both.stdout.match(/^verified/gm)?.length], [0, 2]);
    assert.match(both.stdout, /^exports\/a\.ndjson\nverified/);
    // A checkpoint of another log counts for none of several files.
    const other = (await readFile(path.join(folder, 'checkpoint'), 'utf8')).replace(/^[^/]+/, 'other.example');
    await writeFile(path.join(folder, 'foreign'), other);
    const unused = run('exports', 'log', ...keys, '--checkpoint', 'foreign');
    assert.deepEqual([unused.status, /no export is of other\.example/.test(unused.stderr)], [2, true]);
    assert.equal(run('log', '--checkpoint', 'foreign').status, 1, 'of one file it is a contradiction');
    assert.equal(run('exports', 'none', ...keys).status, 2);
    await writeFile(path.join(exports_, 'b.ndjson'), text.replace('"version":1', '"version":2'));
    const refuted = run('exports', ...keys);
    assert.deepEqual([refuted.status, /b\.ndjson, line 1: its leaf/.test(refuted.stderr)], [1, true]);
    assert.match(refuted.stdout, /a\.ndjson\nverified/);
    await rm(exports_, { recursive: true });
  });

  test('compares the range that a file proves with the one that was asked for', () => {
    assert.equal(run('log', '--keys', 'keys', '--since', '2020-01-01T00:00:00Z').status, 1);
    assert.equal(run('log', '--keys', 'keys', '--until', '2030-01-01T00:00:00+01:00').status, 2);
    const wrong = run('log', '--keys', 'keys', '--since', 'yesterday');
    assert.deepEqual(
      [wrong.status, wrong.stderr],
      [2, 'strata-verify: --since is no RFC 3339 time such as 2026-11-21T10:00:00Z\n'],
    );
  });

  test('takes a revoked key with the size that it counts up to, and not without', async () => {
    const [key = ''] = (await readFile(path.join(folder, 'keys'), 'utf8')).split('\n');
    const [, size = ''] = (await readFile(path.join(folder, 'checkpoint'), 'utf8')).split('\n');
    const wrong = (...args: readonly string[]) => {
      const { status, stdout, stderr } = run('log', '--keys', 'keys', ...args);
      assert.deepEqual([status, stdout], [2, '']);
      return stderr;
    };
    const both = 'strata-verify: Give --revoke and --after together\n';
    assert.deepEqual([wrong('--revoke', key), wrong('--after', size)], [both, both]);
    assert.match(wrong('--revoke', 'strata.example', '--after', size), /--revoke is no key/);
    for (const no of ['-1', '1.5', '01', '1e3', '1000000000000000', '', 'all']) {
      assert.match(wrong('--revoke', key, `--after=${no}`), /--after is no number of entries/);
    }
    assert.match(wrong('--revoke', key, '--after', size, '--after', size), /--after is given twice/);
    const kept = ['--keys', 'keys', '--checkpoint', 'checkpoint', '--revoke', key, '--after'];
    const beyond = run('log', ...kept, size);
    assert.deepEqual([beyond.status, /and was revoked after/.test(beyond.stderr)], [1, true]);
  });

  test('says how it is used', () => {
    assert.equal(run('--help').status, 0);
    assert.equal(run('--version').stdout, `${verifier.version}\n`);
    assert.equal(run().status, 2);
    assert.equal(run('log', '--unknown').status, 2);
    assert.equal(run('log', 'more').status, 2);
    assert.match(run('log', '--keys', 'log').stderr, /log: line 1 is no key/);
    assert.equal(run('none').status, 2);
  });
});
