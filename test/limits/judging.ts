/**
 * Judges each limit: whether callers can reach it, and the tests that then hold it (test/limits/judged.ts).
 *
 * Invariants: a limit has exactly one verdict, and one that has none is a fault. So a new limit needs a test at it and
 * a test one past it, or the reason in its comment why no caller can reach it.
 */
import type { SourceTree } from '../architecture/source-tree.ts';
import { type Limit, limitsOf } from './found-limits.ts';

/** By test file, by title as its source has it: the limits that the test goes to and one past. */
export interface LimitTests {
  /** With `at:` or `past:` before the name, the test does only one of the two. */
  readonly [file: string]: { readonly [title: string]: string };
}

export type Verdict =
  | { readonly kind: 'tested'; readonly files: readonly string[] }
  | { readonly kind: 'internal'; readonly reason: string };

export interface JudgedLimit {
  readonly limit: Limit;
  readonly verdict: Verdict;
}

interface NamedTest {
  readonly name: string;
  readonly file: string;
  readonly title: string;
  readonly does: 'at' | 'past' | 'both';
}

function namedTests(tests: LimitTests): NamedTest[] {
  return Object.entries(tests).flatMap(([file, titles]) =>
    Object.entries(titles).flatMap(([title, names]) =>
      names.split(' ').map((text) => {
        const [, does, name = ''] = /^(?:(at|past):)?(.*)$/.exec(text) ?? [];
        return { name, file, title, does: does === 'at' || does === 'past' ? does : 'both' } as const;
      }),
    ),
  );
}

/** A limit by its name, or by its path and name if several files have one of that name. */
function isNamed(limit: Limit, name: string): boolean {
  return name === limit.name || name === `${limit.path}#${limit.name}`;
}

function verdictsOf(limit: Limit, tests: readonly NamedTest[]): Verdict[] {
  const found: Verdict[] = [];
  const own = tests.filter(({ name }) => isNamed(limit, name));
  if (own.length > 0) found.push({ kind: 'tested', files: [...new Set(own.map(({ file }) => file))] });
  if (limit.internal !== null) found.push({ kind: 'internal', reason: limit.internal });
  return found;
}

function testFaults(tree: SourceTree, tests: readonly NamedTest[]): string[] {
  return tests.flatMap(({ name, file, title }) => {
    const text = tree.get(file);
    if (text === undefined) return [`${name}: ${file} is not in the repository`];
    const titles = ["'", '"', '`'].map((quote) => `(${quote}${title}${quote}`);
    return titles.some((one) => text.replaceAll(/\(\n\s*/g, '(').includes(one))
      ? []
      : [`${name}: ${file} has no test "${title}"`];
  });
}

function halfTested(tests: readonly NamedTest[]): string[] {
  return [...new Set(tests.map(({ name }) => name))].flatMap((name) => {
    const does = tests.filter((one) => one.name === name).map((one) => one.does);
    const isWhole = does.includes('both') || (does.includes('at') && does.includes('past'));
    return isWhole ? [] : [`${name} has a test only ${does.includes('at') ? 'at it' : 'one past it'}`];
  });
}

/** Returns the verdict of each limit, and one line for each limit or test that is at fault. */
export function judge(tree: SourceTree, limitTests: LimitTests): { judged: JudgedLimit[]; faults: string[] } {
  const tests = namedTests(limitTests);
  const named = [...new Set(tests.map(({ name }) => name))];
  const limits = limitsOf(tree, new Set(named.map((name) => name.split('#').at(-1) ?? '')));
  const faults = [...testFaults(tree, tests), ...halfTested(tests)];
  const judged: JudgedLimit[] = [];
  for (const limit of limits) {
    const [verdict, ...others] = verdictsOf(limit, tests);
    const where = `${limit.path}: ${limit.name}`;
    if (verdict === undefined)
      faults.push(`${where} has no tests in test/limits/judged.ts, and no \`Internal:\` in its comment`);
    else judged.push({ limit, verdict });
    if (others.length > 0) faults.push(`${where} has tests, and \`Internal:\` in its comment`);
    if (limit.why === '') faults.push(`${where} has no comment that says why`);
  }
  for (const name of named) {
    const count = limits.filter((limit) => isNamed(limit, name)).length;
    if (count !== 1) faults.push(`${name}: ${count} limits have this name`);
  }
  return { judged, faults };
}
