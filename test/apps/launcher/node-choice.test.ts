/** Which Node the launcher starts an entry on, for each platform: the process that asks is faked. */
import assert from 'node:assert/strict';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, type TestContext, test } from 'vitest';
import {
  chooseNode,
  floorWarning,
  NODE_PACKAGES,
  NoNodeError,
  nodeFault,
} from '../../../apps/launcher/node-choice.mjs';
import { tempDir } from '../../support/temp-dir.ts';

const OWN = '/usr/local/bin/node';

/** Returns a folder whose node_modules holds the package in the version; none for null. */
async function folderWith(context: TestContext, name: string, version: string | null): Promise<string> {
  const root = await tempDir(context);
  if (version === null) return root;
  const folder = path.join(root, 'node_modules', name);
  await mkdir(path.join(folder, 'bin'), { recursive: true });
  await writeFile(path.join(folder, 'package.json'), JSON.stringify({ name, version }));
  await writeFile(path.join(folder, 'bin', 'node'), '#!/bin/sh\n');
  await chmod(path.join(folder, 'bin', 'node'), 0o755);
  return root;
}

/** Packaged, running, and which of them is chosen; null if neither may run. */
const CHOICES: readonly (readonly [packaged: string | null, running: string, chosen: 'packaged' | 'running' | null])[] =
  [
    ['24.21.0', '20.20.2', 'packaged'],
    ['24.21.0', '24.21.0', 'packaged'],
    ['24.21.0', '24.9.0', 'packaged'],
    ['24.9.0', '24.10.0', 'running'],
    ['24.0.0', '24.21.0', 'running'],
    ['24.21.0', '24.21.1', 'running'],
    ['24.21.0', '26.0.0', 'running'],
    ['26.10.0', '24.99.0', 'packaged'],
    ['26.10.0', '26.9.9', 'packaged'],
    ['26.10.0', '26.10.1', 'running'],
    // CI runs no test under these.
    ['24.21.0', '25.9.0', 'packaged'],
    ['24.21.0', '27.0.0', 'packaged'],
    ['24.21.0', '28.1.0', 'packaged'],
    ['24.21.0', '26.0.0-nightly20260101', 'packaged'],
    ['25.1.0', '24.21.0', 'running'],
    ['27.1.0', '22.22.0', null],
    ['24.21.0-rc.1', '20.20.2', null],
    // An install without optional packages.
    [null, '24.21.0', 'running'],
    [null, '26.1.0', 'running'],
    [null, '24.0.0', 'running'],
    [null, '20.20.2', null],
    [null, '25.1.0', null],
    [null, '27.0.0', null],
  ];

describe('the Node of an entry', () => {
  for (const [machine, name] of Object.entries(NODE_PACKAGES)) {
    const [platform = '', arch = ''] = machine.split('-');
    for (const [packaged, running, chosen] of CHOICES) {
      const what = `${packaged ?? 'nothing'} is packaged and ${running} runs`;
      test(`on ${machine}, where ${what}: ${chosen ?? 'neither'}`, async (context) => {
        const root = await folderWith(context, name, packaged);
        const choose = () => chooseNode(root, { platform, arch, execPath: OWN, versions: { node: running } });
        if (chosen === null) {
          assert.throws(choose, (error) => {
            assert.ok(error instanceof NoNodeError);
            assert.match(error.message, new RegExp(`^Node 24 or 26 is needed, this is ${running}, and node_modules`));
            assert.match(error.message, /Run `npm ci` with optional packages, or start with Node 24 or 26\.$/);
            return true;
          });
          return;
        }
        const binary = path.join(root, 'node_modules', name, 'bin', 'node');
        const expected = chosen === 'packaged' ? { binary, version: packaged } : { binary: OWN, version: running };
        assert.deepEqual(choose(), expected);
      });
    }

    test(`on ${machine}, a packaged binary that cannot be run counts as none`, async (context) => {
      const root = await folderWith(context, name, '26.10.0');
      await chmod(path.join(root, 'node_modules', name, 'bin', 'node'), 0o644);
      const running = { platform, arch, execPath: OWN, versions: { node: '24.21.0' } };
      assert.equal(chooseNode(root, running).binary, OWN);
      await writeFile(path.join(root, 'node_modules', name, 'package.json'), '{');
      await chmod(path.join(root, 'node_modules', name, 'bin', 'node'), 0o755);
      assert.equal(chooseNode(root, running).binary, OWN);
    });
  }

  test('on another platform is the running one, if it may run', async (context) => {
    const root = await tempDir(context);
    const machine = { platform: 'freebsd', arch: 'x64', execPath: OWN };
    assert.equal(chooseNode(root, { ...machine, versions: { node: '26.3.0' } }).binary, OWN);
    const choose = () => chooseNode(root, { ...machine, versions: { node: '22.1.0' } });
    assert.throws(choose, /none is packaged for freebsd x64/);
  });

  test('is warned of below 24.14.1, and never as of 26.0.0', () => {
    for (const [version, fault] of [
      ['24.0.0', 'old'],
      ['24.13.99', 'old'],
      ['24.14.0', 'old'],
      ['24.14.1', null],
      ['24.15.0', null],
      ['26.0.0', null],
      ['26.12.1', null],
      ['25.9.0', 'unknown'],
      ['27.0.0', 'unknown'],
    ] as const) {
      assert.equal(nodeFault(version), fault, version);
      const warning = floorWarning({ binary: OWN, version });
      assert.equal(warning !== null, fault === 'old', version);
    }
    const warning = floorWarning({ binary: OWN, version: '24.0.0' }) ?? '';
    assert.match(
      warning,
      /^Node 24\.0\.0 \(\/usr\/local\/bin\/node\) lacks security fixes.*24\.14\.1 or 26\.0\.0 or newer/,
    );
  });
});
