/** Nothing in the project may depend on one machine. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { projectTree, type SourceTree, treeOf } from './source-tree.ts';

/** Absolute paths of users' and workspaces' folders. */
const MACHINE_PATH = /(?<![\w.:/-])(\/(home|Users|root|work|workspace|private)\/[\w.-]|[A-Z]:\\Users\\)/;
/** This file contains samples of what it refuses. */
const THIS_FILE = 'test/architecture/portability.test.ts';

function machinePaths(tree: SourceTree): string[] {
  return [...tree].flatMap(([path, text]) => {
    if (path === THIS_FILE) return [];
    const lines = text.split('\n').flatMap((line, index) => (MACHINE_PATH.test(line) ? [index + 1] : []));
    return lines.map((line) => `${path}:${line}`);
  });
}

/** Lines that fix where npm downloads a package from; .npmrc keeps such addresses out of the lock. */
function downloadAddresses(tree: SourceTree): string[] {
  return [...tree].flatMap(([path, text]) => {
    if (!/(^|\/)(package-lock\.json|npm-shrinkwrap\.json|\.npmrc)$/.test(path)) return [];
    const lines = text.split('\n').flatMap((line, index) => {
      return /"resolved":\s*"(?!file:)|^\s*(@[^:]+:)?registry\s*=|_authToken/.test(line) ? [index + 1] : [];
    });
    return lines.map((line) => `${path}:${line}`);
  });
}

test('no file names a path of one machine', () => {
  assert.deepEqual(machinePaths(projectTree()), []);
});

test('refuses paths of one machine, and no others', () => {
  const refused = [
    'cd /home/ada/strata',
    'const a = "/root/.npmrc";',
    'see /Users/ada/x',
    'C:\\Users\\ada',
    '(/work/a)',
  ];
  for (const text of refused) assert.equal(machinePaths(treeOf({ 'docs/operating.md': text })).length, 1, text);
  const accepted = [
    'GET /api/users/ada',
    'https://example.org/home/ada',
    '../work/a',
    'app.get("/home")',
    '/usr/bin/git',
  ];
  for (const text of accepted) assert.deepEqual(machinePaths(treeOf({ 'docs/operating.md': text })), [], text);
});

test('the lock names no download address', () => {
  assert.deepEqual(downloadAddresses(projectTree()), []);
});

test('refuses a download address in the lock or the settings of npm', () => {
  const lock = '"resolved": "https://registry.example.org/zod/-/zod-4.0.0.tgz",';
  assert.equal(downloadAddresses(treeOf({ 'package-lock.json': lock })).length, 1);
  assert.equal(downloadAddresses(treeOf({ '.npmrc': 'registry=https://registry.example.org/' })).length, 1);
  assert.equal(downloadAddresses(treeOf({ '.npmrc': '@a:registry = https://registry.example.org/' })).length, 1);
});

/** Packages without a hash in the lock, whose contents npm could not verify. */
function unhashedPackages(lock: string): string[] {
  const { packages } = JSON.parse(lock) as {
    packages: Record<string, { integrity?: string; link?: boolean; dev?: boolean; optional?: boolean }>;
  };
  return Object.entries(packages).flatMap(([path, { integrity, link, dev, optional }]) => {
    // npm refuses a lock without the builds of a tool for other systems, and takes their hashes only from a registry
    // that has them.
    const otherBuild = dev === true && optional === true;
    return path === '' || link === true || otherBuild || integrity !== undefined ? [] : [path];
  });
}

test('the locks hold the hash of every package that runs in production, and of every tool', () => {
  for (const lock of ['package-lock.json', 'apps/cli/package-lock.json']) {
    assert.deepEqual(unhashedPackages(projectTree().get(lock) ?? '{}'), [], lock);
  }
});

test('refuses packages without a hash, but for builds of development tools', () => {
  const packages = {
    '': { name: 'strata' },
    'node_modules/a': { version: '1.0.0' },
    'node_modules/b': { version: '1.0.0', optional: true },
    'node_modules/c': { version: '1.0.0', dev: true },
    'node_modules/c-darwin': { version: '1.0.0', dev: true, optional: true },
    'node_modules/d': { version: '1.0.0', integrity: 'sha512-x' },
  };
  assert.deepEqual(unhashedPackages(JSON.stringify({ packages })), [
    'node_modules/a',
    'node_modules/b',
    'node_modules/c',
  ]);
});
