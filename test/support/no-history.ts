/** The part of an object reader that only native git answers, for readers of tests that do not use it. */
import type { ObjectDatabase } from '../../core/ports/object-database.ts';
import type { ObjectHistory } from '../../core/ports/object-history.ts';

const unused = (): never => {
  throw new Error('Only native git compares commits and walks the history of a path');
};

export const NO_HISTORY: ObjectHistory = {
  diff: unused,
  commitsOfPath: unused,
  changesBelow: unused,
  links: unused,
  commitsBetween: unused,
  aheadBehind: unused,
  mergeBase: unused,
};

/** The same objects, where every commit seems to change nothing. */
export function withoutChanges<Objects extends Pick<ObjectDatabase, 'open'>>(database: Objects): Objects {
  const history = { ...NO_HISTORY, diff: () => noBytes() };
  return { ...database, open: async (committed) => ({ ...(await database.open(committed)), history }) };
}

async function* noBytes(): AsyncGenerator<Uint8Array> {}
