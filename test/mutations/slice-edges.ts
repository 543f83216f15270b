/** What keeps slices of an account's log from being cut, and changed entries from being served, each with its test. */
import type { Mutation } from './mutation.ts';

const EDGES = 'apps/verifier/slice.ts';
const TEST = 'test/apps/verifier/verify.test.ts';
const CUT = 'from which entries were cut at an edge is refused';
const MOVED = 'whose last line says another range is refused';
const WATCHED = 'apps/cli/commands/watched-entries.ts';
const WATCH_TEST = 'test/apps/cli/audit-watch.test.ts';

export const SLICE_EDGE_MUTATIONS: readonly Mutation[] = [
  {
    without: 'slice: the guard that it begins with',
    file: EDGES,
    text: 'if (first.sequence > 0 && !isOld) {',
    by: 'if (first.sequence < 0 && !isOld) {',
    test: TEST,
    red: CUT,
  },
  {
    without: 'slice: the guard that it ends with',
    file: EDGES,
    text: 'if (!isLogsEnd && !isNew) {',
    by: 'if (size < 0 && !isNew) {',
    test: TEST,
    red: CUT,
  },
  {
    without: 'slice: the two minutes of a guard',
    file: EDGES,
    text: 'const GUARD_MS = 120_000;',
    by: 'const GUARD_MS = 0;',
    test: TEST,
    red: CUT,
  },
  {
    without: 'slice: the log time of guards before it',
    file: EDGES,
    text: 'lastBefore !== null && (since === null || lastBefore >= since)',
    by: "lastBefore === '' && (since === null || lastBefore >= since)",
    test: TEST,
    red: MOVED,
  },
  {
    without: 'slice: the log time of its entries',
    file: EDGES,
    text: 'if (outside !== null) throw',
    by: 'if (outside !== null && size < 0) throw',
    test: TEST,
    red: MOVED,
  },
  {
    without: "slice: the log's end, behind which nothing is proved",
    file: EDGES,
    text: 'return { since, until: isBeyond ? last.logTime : until };',
    by: 'return { since, until: isBeyond && size < 0 ? last.logTime : until };',
    test: TEST,
    red: 'proves nothing behind the log, and no other range than the one that it has',
  },
  {
    without: 'slice: the neighbours that the service shows behind it',
    file: 'core/use-cases/auditing/export-account-log.ts',
    text: 'end: Math.min(size, later + 1)',
    by: 'end: Math.min(size, later)',
    test: TEST,
    red: 'shows its neighbours as guards without openings',
  },
  {
    without: 'entries: the end of a page before one that was changed',
    file: 'core/use-cases/auditing/list-entries.ts',
    text: 'const found = firstChanged < 0 ? read : read.slice(0, firstChanged);',
    by: 'const found = firstChanged < 1_000_000 ? read : read.slice(0, firstChanged);',
    test: 'test/apps/api/account-log.test.ts',
    red: 'serves no entry that is not what its leaf was made of',
  },
  {
    without: 'watch: the root of the new entries',
    file: WATCHED,
    text: 'return rootOf(range) === root ? null',
    by: "return rootOf(range) !== '' ? null",
    test: WATCH_TEST,
    red: 'fails at an entry that is forged with its leaf',
  },
  {
    without: 'watch: the leaves of the new entries',
    file: WATCHED,
    text: 'if (hash === null || checked.leaf !== hash)',
    by: 'if (hash === null)',
    test: WATCH_TEST,
    red: 'fails at an entry that is changed',
  },
];
