/**
 * Says whether node_modules holds what package-lock.json names, by comparing it with the record npm itself
 * leaves as the last step of an install (node_modules/.package-lock.json).
 *
 * Must stay true: an install that was cut short, made for another platform or from another lock is a mismatch;
 * one that left out development or optional packages on purpose is not, as far as the entry can do without.
 * Reading two JSON files is all it costs, no matter how many packages there are.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** npm's record of what it put into node_modules, written when all of it is there. */
export const INSTALL_RECORD = join('node_modules', '.package-lock.json');

/**
 * @typedef {object} LockedPackage
 * @property {string} [version]
 * @property {string} [integrity]
 * @property {boolean} [dev]
 * @property {boolean} [optional]
 * @property {boolean} [devOptional]
 * @property {boolean} [link]
 * @property {string | string[]} [os]
 * @property {string | string[]} [cpu]
 */

/**
 * @param {string} file
 * @returns {Record<string, LockedPackage> | null} packages by path below the root; null when the file is not there
 */
function readPackages(file) {
  let text;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
  /** @type {unknown} */
  const lock = JSON.parse(text);
  return /** @type {{ packages?: Record<string, LockedPackage> }} */ (lock).packages ?? {};
}

/**
 * Whether a package's `os` or `cpu` allows a value: one name or several, or names to leave out with `!`
 * (package.json(5)).
 *
 * @param {string | string[] | undefined} names
 * @param {string} value
 */
function allows(names, value) {
  if (names === undefined) return true;
  const list = [names].flat();
  const wanted = list.filter((name) => !name.startsWith('!'));
  return !list.includes(`!${value}`) && (wanted.length === 0 || wanted.includes(value));
}

/**
 * Why the packages in place are not those of the lock, or null when they are.
 *
 * @param {string} root
 * @param {{ development: boolean }} needs whether the entry needs development packages
 * @returns {string | null}
 */
export function mismatch(root, needs) {
  const locked = readPackages(join(root, 'package-lock.json'));
  if (locked === null) throw new Error(`${join(root, 'package-lock.json')} is missing`);
  const installed = readPackages(join(root, INSTALL_RECORD));
  for (const [path, wanted] of Object.entries(locked)) {
    if (path === '' || wanted.link === true) continue;
    if (installed === null) return 'nothing is installed';
    const found = installed[path];
    const name = path.replace(/^.*node_modules\//, '');
    if (found === undefined) {
      const spared = wanted.optional === true || (wanted.dev === true && !needs.development);
      if (spared || wanted.devOptional === true) continue;
      return `${name} is missing`;
    }
    if (found.version !== wanted.version) return `${name} is ${found.version} rather than ${wanted.version}`;
    // A package of a platform the lock was not made on may stand there without its hash.
    if (wanted.integrity !== undefined && found.integrity !== wanted.integrity) return `${name} has other contents`;
    if (!allows(wanted.os, process.platform) || !allows(wanted.cpu, process.arch)) {
      return `${name} is of another platform`;
    }
  }
  return null;
}

/**
 * Whether the packages in place were installed without development packages.
 *
 * @param {string} root
 */
export function developmentLeftOut(root) {
  const installed = Object.values(readPackages(join(root, INSTALL_RECORD)) ?? {});
  return installed.length > 0 && !installed.some((found) => found.dev === true);
}
