/**
 * Checks that every document that code or a document cites is in the repository, and has the cited section.
 *
 * A citation is the path of a document and, after a comma, its section or invariant: `docs/git-path.md, Wants` or
 * `docs/architecture.md, invariants 2 and 3`. Any other form is refused, since a reader could not follow it.
 */
import { posix } from 'node:path';
import type { SourceTree } from './source-tree.ts';

/** The paths of documents that a citation may name. */
const DOCUMENT = /(?:docs\/[a-z-]+|README|CONTRIBUTING|SECURITY|CHANGELOG)\.md/g;
/** A document's name without its folder, or a section with only the subject of its document. */
const STRAY_CITATIONS = [
  /(?<![\w/.(-])(?:spec|architecture|interface|git-path|event-log|event-forms|workflows|security|style|audit|website|read-leases)\.md/g,
  /\((?:spec|architecture|interface|git-path|event-log|workflows|security|style|audit|website), (?:invariant|[A-Z])[^)]*\)/g,
  /\bdesign\/[a-z-]+/g,
];
const INVARIANT = /\binvariants? (\d+(?:(?:, | and | to )\d+)*)/g;
const INVARIANTS_FILE = 'docs/architecture.md';
const FILE_PATH = /`((?:core|adapters|apps|projections|workflows|test)\/[\w{},./-]+\.(?:ts|mjs))`/g;
const LINK = /\]\(([^)\s]+)\)/g;

function isText(path: string): boolean {
  return /\.(ts|mjs|md|sh|ya?ml|conf)$/.test(path) || path.startsWith('.ci/') || path.startsWith('deploy/');
}

function headingsOf(markdown: string): string[] {
  return [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading.replaceAll('`', ''));
}

/** Joins the lines of comments, each of which begins with ` * ` or `// `, into one text. */
function joinedLines(text: string): string {
  return text.replace(/\n\s*(?:\*|\/\/)? ?/g, ' ');
}

/** Returns the fault of the section that follows a document's path and `, `; null if it exists or none is cited. */
function sectionFault(tree: SourceTree, path: string, after: string): string | null {
  const named = /^, ([A-Z].*)/.exec(after)?.[1];
  if (named === undefined) return null;
  const heading = headingsOf(tree.get(path) ?? '').some((one) => named.startsWith(one));
  return heading ? null : `${path} has no section "${named.slice(0, 40)}"`;
}

function documentFaults(tree: SourceTree, text: string): string[] {
  return [...text.matchAll(DOCUMENT)].flatMap((match) => {
    const [path] = match;
    if (!tree.has(path)) return [`${path} is not in the repository`];
    const fault = sectionFault(tree, path, text.slice(match.index + path.length, match.index + path.length + 80));
    return fault === null ? [] : [fault];
  });
}

function invariantFaults(tree: SourceTree, path: string, text: string): string[] {
  const list =
    /## Invariants\n(?<items>[^]*?)(?=\n## |$)/.exec(tree.get(INVARIANTS_FILE) ?? '')?.groups?.['items'] ?? '';
  const numbers = new Set([...list.matchAll(/^(\d+)\. /gm)].map(([, number = '']) => number));
  return [...text.matchAll(INVARIANT)].flatMap((match) => {
    const [all, cited = ''] = match;
    const unknown = cited.match(/\d+/g)?.filter((number) => !numbers.has(number)) ?? [];
    if (unknown.length > 0) return [`${INVARIANTS_FILE} has no invariant ${unknown.join(', ')}`];
    const before = text.slice(0, match.index);
    const named = path === INVARIANTS_FILE || before.endsWith(`${INVARIANTS_FILE}, `);
    return named ? [] : [`"${all}" does not say whose: ${INVARIANTS_FILE}, ${all}`];
  });
}

function linkFaults(tree: SourceTree, path: string, text: string): string[] {
  if (!path.endsWith('.md')) return [];
  return [...text.matchAll(LINK)].flatMap(([, target = '']) => {
    if (/^(https?:|#)/.test(target)) return [];
    const file = posix.join(posix.dirname(path), target.replace(/#.*/, ''));
    const there = tree.has(file) || [...tree.keys()].some((other) => other.startsWith(`${file}/`));
    return there ? [] : [`the link to ${target} leads nowhere`];
  });
}

/** Checks the files that a document names, such as `core/runtime/entities.ts`; braces name several. */
function pathFaults(tree: SourceTree, path: string, text: string): string[] {
  if (!path.startsWith('docs/')) return [];
  return [...text.matchAll(FILE_PATH)].flatMap(([, named = '']) =>
    expandBraces(named).flatMap((file) => (tree.has(file) ? [] : [`${file} is not in the repository`])),
  );
}

function expandBraces(text: string): string[] {
  const [braces, list = ''] = /\{([^}]*)\}/.exec(text) ?? [];
  return braces === undefined ? [text] : list.split(',').map((name) => text.replace(braces, name));
}

/** Returns one line for each citation that cannot be followed. */
export function citationFaults(tree: SourceTree): string[] {
  return [...tree].flatMap(([path, source]) => {
    if (!isText(path) || path.startsWith('test/architecture/citations')) return [];
    const text = joinedLines(source);
    const strays = STRAY_CITATIONS.flatMap((pattern) => [...text.matchAll(pattern)]).map(
      ([cited]) => `"${cited}" names no document of the repository`,
    );
    const relative = path.endsWith('.md') ? [] : strays;
    return [
      ...relative,
      ...documentFaults(tree, text),
      ...invariantFaults(tree, path, text),
      ...linkFaults(tree, path, source),
      ...pathFaults(tree, path, source),
    ].map((fault) => `${path}: ${fault}`);
  });
}
