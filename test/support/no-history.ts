/** The part of an object reader that only native git answers, for readers of tests that do not use it. */
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
  apart: unused,
  mergeBase: unused,
};
