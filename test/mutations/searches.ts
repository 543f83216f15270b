/** Guards of searches: what bounds them, whose slots they take, and what passes for something else. */
import type { Mutation } from './mutation.ts';

const LIST = { file: 'core/git/file-list.ts', test: 'test/core/git/file-list.test.ts' };
const LINES = { file: 'core/git/grep-lines.ts', test: 'test/core/git/grep-lines.test.ts' };
const GIT = { file: 'adapters/git/object-search.ts', test: 'test/adapters/git/object-search.test.ts' };
const CODE = 'test/core/use-cases/reading/search-code.test.ts';
const SEARCH = { file: 'core/use-cases/reading/search-code.ts', test: CODE };
const FILES = 'test/core/use-cases/reading/find-files.test.ts';
const OVER_REST = 'test/apps/api/search.test.ts';

const BOUNDS = { ...LIST, red: 'ends beyond its bounds of paths and bytes' };

export const SEARCH_MUTATIONS: readonly Mutation[] = [
  { without: 'a bound of paths in a list', text: 'count > FILE_LIST_PATHS_MAX || ', by: '', ...BOUNDS },
  { without: 'a bound of bytes in a list', text: 'bytes > FILE_LIST_BYTES_MAX || ', by: '', ...BOUNDS },
  { without: 'a bound of a path in a list', text: ' || path.length > FILE_LIST_PATH_BYTES_MAX', by: '', ...BOUNDS },
  {
    without: 'a border between the paths of a list',
    text: "text.includes('\\0') ? [] : list.parts",
    by: 'list.parts',
    ...LIST,
    red: 'finds nothing but the paths that hold the text',
  },
  {
    without: 'one form of a letter',
    text: ".replaceAll('ς', 'σ')",
    by: '',
    ...LIST,
    red: 'finds letters of other scripts in any case',
  },
  {
    without: 'turns of the event loop in a list',
    text: 'if (index % PARTS_OF_A_TURN === 0) await nextTurn();',
    by: '',
    ...LIST,
    red: 'lets others have the event loop',
  },
  {
    without: 'a bound of a line',
    text: 'const room = GREP_LINE_BYTES_MAX - this.#kept.length;',
    by: 'const room = Number.MAX_SAFE_INTEGER;',
    ...LINES,
    red: 'keeps of a long line what is around the match',
  },
  {
    without: 'a separator that is no name',
    text: 'if (!this.#isInName && chunk[at] === DASH) {',
    by: 'if (chunk.length < 0) {',
    ...LINES,
    red: 'is read right whatever names and lines look like',
  },
  {
    without: 'slots of their own for searches',
    text: 'const own = { limits: SEARCH_LIMITS, slots: slots.searches };\n      const command: GitCommand = { args, view, variables',
    by: 'const own = { limits: SEARCH_LIMITS };\n      const command: GitCommand = { args, view, variables',
    ...GIT,
    red: 'is read by git within its limits of memory',
  },
  {
    without: 'literal paths of what is left out',
    text: ':(exclude,top,literal)',
    by: ':(exclude,top)',
    ...GIT,
    red: 'whose names are no patterns',
  },
  {
    without: 'a judgement of an expression',
    text: 'const fault = isRegex && canMatch ? await reader.search.regexFault(text, bounded) : null;',
    by: 'const fault = null as Awaited<ReturnType<typeof reader.search.regexFault>>;',
    ...SEARCH,
    red: 'by an expression is that of PCRE',
  },
  {
    without: 'a look for line feeds in the text',
    text: 'const canMatch = !/[\\n\\0]/.test(text);',
    by: 'const canMatch = true;',
    ...SEARCH,
    red: 'takes texts that look like options, patterns and several lines',
  },
  {
    without: 'a difference between what is whole and what time cut',
    text: "if (found.end === 'whole' || found.end === 'matches') ",
    by: '',
    ...SEARCH,
    red: 'shows what it found by then, and is not kept',
  },
  {
    without: 'a second search beside large files',
    text: "if (found.end !== 'memory' || root.type === 'blob') return found;",
    by: 'if (root !== undefined) return found;',
    ...SEARCH,
    red: 'goes on without files that git cannot hold',
  },
  {
    without: 'one listing for all who wait for it',
    file: 'core/kernel/work-once.ts',
    text: 'if (found !== null) return found.result;',
    by: '',
    test: FILES,
    red: 'are listed once for all who ask for them at the same time',
  },
  {
    without: 'texts that are no expressions in a search of commits',
    file: 'adapters/git/object-history.ts',
    text: "'--fixed-strings', '--regexp-ignore-case'",
    by: "'--regexp-ignore-case'",
    test: 'test/core/use-cases/reading/path-history.test.ts',
    red: 'and those that a search finds are those of git log',
  },
  {
    without: 'the price of a search',
    file: 'apps/api/handlers/search.ts',
    text: '    costly: true,\n',
    by: '',
    test: OVER_REST,
    red: 'finding files costs what a read does',
  },
  {
    without: 'the price of a search of commits',
    file: 'apps/api/handlers/commits.ts',
    text: 'isSearch(query) ? context.callers.charge(principal, SEARCH_POINTS) : null',
    by: 'null',
    test: OVER_REST,
    red: 'finding files costs what a read does',
  },
];
