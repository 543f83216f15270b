/** Nothing in the project may hold on one machine only. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { projectTree, type SourceTree, treeOf } from './source-tree.ts';

/** Folders of a person or a workplace, by their absolute path. */
const MACHINE_PATH = /(?<![\w.:/-])(\/(home|Users|root|work|workspace|private)\/[\w.-]|[A-Z]:\\Users\\)/;
/** This file has to show what it refuses. */
const THIS_FILE = 'test/architecture/portability.test.ts';

function machinePaths(tree: SourceTree): string[] {
  return [...tree].flatMap(([path, text]) => {
    if (path === THIS_FILE) return [];
    const lines = text.split('\n').flatMap((line, index) => (MACHINE_PATH.test(line) ? [index + 1] : []));
    return lines.map((line) => `${path}:${line}`);
  });
}

/** Where npm would download a package from, if the file said so: .npmrc keeps it out of the lock. */
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
  for (const text of refused) assert.equal(machinePaths(treeOf({ 'docs/a.md': text })).length, 1, text);
  const accepted = [
    'GET /api/users/ada',
    'https://example.org/home/ada',
    '../work/a',
    'app.get("/home")',
    '/usr/bin/git',
  ];
  for (const text of accepted) assert.deepEqual(machinePaths(treeOf({ 'docs/a.md': text })), [], text);
});

test('the lock leaves open where packages are downloaded from', () => {
  assert.deepEqual(downloadAddresses(projectTree()), []);
});

test('refuses a download address in the lock or the settings of npm', () => {
  const lock = '"resolved": "https://registry.example.org/zod/-/zod-4.0.0.tgz",';
  assert.equal(downloadAddresses(treeOf({ 'package-lock.json': lock })).length, 1);
  assert.equal(downloadAddresses(treeOf({ '.npmrc': 'registry=https://registry.example.org/' })).length, 1);
  assert.equal(downloadAddresses(treeOf({ '.npmrc': '@a:registry = https://registry.example.org/' })).length, 1);
});

/** Packages whose contents npm would take unseen: they stand in the lock without a hash. */
function unhashedPackages(lock: string): string[] {
  const { packages } = JSON.parse(lock) as {
    packages: Record<string, { integrity?: string; link?: boolean; dev?: boolean; optional?: boolean }>;
  };
  return Object.entries(packages).flatMap(([path, { integrity, link, dev, optional }]) => {
    // npm refuses a lock that leaves out the builds of a tool for other systems, and takes their hashes only from
    // a registry that has them.
    const otherBuild = dev === true && optional === true;
    return path === '' || link === true || otherBuild || integrity !== undefined ? [] : [path];
  });
}

test('the lock holds the hash of every package that runs in production, and of every tool', () => {
  assert.deepEqual(unhashedPackages(projectTree().get('package-lock.json') ?? '{}'), []);
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
