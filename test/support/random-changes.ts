/**
 * Random changes of files, and what they must make of a flat list of files. A path is a text with a code unit for each
 * byte, and a file is its mode and the id of its blob, e.g. `100644 5626abf0f72e58d7a153368ba57db4c673c0e171`.
 */
import type { FileMode, TreeChange } from '../../core/git/tree-changes.ts';
import type { ObjectId } from '../../core/kernel/ids.ts';
import type { Dice } from './seeded.ts';

export const bytesOf = (text: string) => new Uint8Array(Buffer.from(text, 'latin1'));

export const put = (path: string, blob: ObjectId, mode: FileMode | null = null): TreeChange => {
  return { action: 'put', path: bytesOf(path), blob, mode, expected: 'any' };
};
export const remove = (path: string): TreeChange => ({ action: 'delete', path: bytesOf(path), expected: 'any' });
export const move = (path: string, to: string): TreeChange => {
  return { action: 'move', path: bytesOf(path), to: bytesOf(to), expected: 'any' };
};

const MODES = ['100644', '100755', '120000'] as const;
const NAMES = ['a', 'b', 'a.b', 'a-', 'A', '\xe4', '\xc3\xa4', 'a b', '0'];

function randomPath(dice: Dice): string {
  return Array.from({ length: 1 + dice.below(3) }, () => dice.pick(NAMES)).join('/');
}

/** Mostly that of a file that is there, or of a folder. */
function knownPath(dice: Dice, files: ReadonlyMap<string, string>): string {
  if (files.size === 0 || dice.chance(0.2)) return randomPath(dice);
  const names = dice.pick([...files.keys()]).split('/');
  return dice.chance(0.7) ? names.join('/') : names.slice(0, 1 + dice.below(names.length)).join('/');
}

export function randomChange(dice: Dice, files: ReadonlyMap<string, string>, blobs: readonly ObjectId[]): TreeChange {
  if (files.size === 0 || dice.chance(0.5)) {
    const mode = dice.chance(0.3) ? null : dice.pick(MODES);
    return put(dice.chance(0.5) ? randomPath(dice) : knownPath(dice, files), dice.pick(blobs), mode);
  }
  return dice.chance(0.5) ? remove(knownPath(dice, files)) : move(knownPath(dice, files), randomPath(dice));
}

/** Does the same to a flat list of files; null where it must be refused. */
export function expectedFiles(
  files: ReadonlyMap<string, string>,
  changes: readonly TreeChange[],
): Map<string, string> | null {
  const result = new Map(files);
  const text = (path: Uint8Array) => Buffer.from(path).toString('latin1');
  const below = (path: string) => [...files.keys()].filter((file) => file.startsWith(`${path}/`));
  const paths = changes
    .flatMap((change) => (change.action === 'move' ? [change.path, change.to] : [change.path]))
    .map(text);
  if (new Set(paths).size < paths.length) return null;
  const placed: (readonly [string, string])[] = [];
  for (const change of changes) {
    const path = text(change.path);
    const inside = below(path);
    if (change.action === 'put') {
      placed.push([path, `${change.mode ?? files.get(path)?.slice(0, 6) ?? '100644'} ${change.blob}`]);
      continue;
    }
    const taken = files.has(path) ? [path] : inside;
    if (taken.length === 0) return null;
    if (inside.length > 0 && paths.some((other) => other.startsWith(`${path}/`))) return null;
    for (const file of taken) result.delete(file);
    if (change.action === 'delete') continue;
    const to = text(change.to);
    if (files.has(to) || below(to).length > 0) return null;
    for (const file of taken) placed.push([to + file.slice(path.length), files.get(file) ?? '']);
  }
  // What a move brings counts as one thing: nothing else may be put into it.
  const targets = changes.flatMap((change) => (change.action === 'move' ? [text(change.to)] : []));
  if (targets.some((to) => paths.some((other) => other.startsWith(`${to}/`)))) return null;
  for (const [path, entry] of placed) result.set(path, entry);
  const isBelowFile = [...result.keys()].some((path) => {
    return path.split('/').some((_, depth, names) => depth > 0 && result.has(names.slice(0, depth).join('/')));
  });
  return isBelowFile ? null : result;
}
