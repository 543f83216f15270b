/**
 * Checks whether node_modules holds the packages of package-lock.json, by comparing that file with the record that npm
 * writes as the last step of an install (node_modules/.package-lock.json).
 *
 * Invariants: an install that was interrupted, made for another platform or from another lock file is a mismatch.
 * An install without development or optional packages is not, if the entry does not need them. The check reads only
 * these two files, however many packages there are.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** npm's record of the packages in node_modules, which it writes when all of them are installed. */
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
 * @returns {Record<string, LockedPackage> | null} packages by path below the root; null if the file does not exist
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
 * Whether a package's `os` or `cpu` allows a value: one allowed name or several, or excluded names with `!`
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
 * Returns why the installed packages differ from the lock file, or null if they match.
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
    // The lock file may lack the hash of a package for a platform that it was not made on.
    if (wanted.integrity !== undefined && found.integrity !== wanted.integrity) return `${name} has other contents`;
    if (!allows(wanted.os, process.platform) || !allows(wanted.cpu, process.arch)) {
      return `${name} is of another platform`;
    }
  }
  return null;
}

/**
 * Whether the last install omitted development packages.
 *
 * @param {string} root
 */
export function developmentLeftOut(root) {
  const installed = Object.values(readPackages(join(root, INSTALL_RECORD)) ?? {});
  return installed.length > 0 && !installed.some((found) => found.dev === true);
}
