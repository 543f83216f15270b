/** A commit that tells of one file, with all the objects that it brings: what attacks on reading hide and look for. */
import { blob, commit, tree, type WireObject } from './git-wire.ts';

export interface Story {
  readonly file: WireObject;
  readonly folder: WireObject;
  readonly tip: WireObject;
  readonly all: readonly WireObject[];
}

/** Makes a commit with a file of its own. */
export function story(text: string, parents: readonly string[] = []): Story {
  const file = blob(`${text}\n`);
  const folder = tree([{ mode: '100644', name: 'file', id: file.id }]);
  const tip = commit(text, folder.id, parents);
  return { file, folder, tip, all: [tip, folder, file] };
}
