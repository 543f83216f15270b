/** The part of an object reader that only native git answers, for readers of tests that do not use it. */
import type { ObjectDatabase } from '../../core/ports/object-database.ts';
import type { CommitFilter, ObjectHistory } from '../../core/ports/object-history.ts';
import type { ObjectSearch } from '../../core/ports/object-search.ts';

const unused = (): never => {
  throw new Error('Only native git compares commits and walks the history of a path');
};

export const NO_HISTORY: ObjectHistory = {
  diff: unused,
  diffOfBlobs: unused,
  findCommits: unused,
  changesBelow: unused,
  blame: unused,
  links: unused,
  commitsBetween: unused,
  aheadBehind: unused,
  mergeBase: unused,
};

/** Finds every commit. */
export const ANY_COMMIT: CommitFilter = {
  ...{ path: null, author: null, text: null },
  ...{ sinceSeconds: null, untilSeconds: null },
};

export const NO_SEARCH: ObjectSearch = { files: unused, lines: unused, isBinary: unused, regexFault: unused };

/** The same objects, where every commit seems to change nothing, so none is found, and where no file holds a line. */
export function withoutChanges<Objects extends Pick<ObjectDatabase, 'open'>>(database: Objects): Objects {
  const none = { diff: nothing, changesBelow: nothing, blame: nothing, findCommits: nothing };
  const history = { ...NO_HISTORY, ...none };
  const open: Objects['open'] = async (committed) => {
    const reader = await database.open(committed);
    const search = { ...reader.search, lines: () => nothing() };
    return { ...reader, history, search };
  };
  return { ...database, open };
}

async function* nothing(): AsyncGenerator<never> {}
