/**
 * What texts name in sets of refs: the table by which scenarios judge every surface that reads a ref.
 *
 * Commits have letters. `{A}` in a name or a text is the id of A, `{^A}` the same in upper case, `{64}` 64 hex digits.
 */
export type Letter = 'A' | 'B' | 'C' | 'D';

/** Texts by the commit that they lead to. */
type Answers = Readonly<Partial<Record<Letter | 'nothing', readonly string[]>>>;

export interface RefCase {
  readonly title: string;
  readonly refs: Readonly<Record<string, Letter>>;
  readonly defaultBranch?: string;
  /** What `ref=`, an archive's name and a comparison take. */
  readonly texts: Answers;
  /** Refs of addresses before a path, where the first segment decides. Those of `texts` without a slash too. */
  readonly addresses: Answers;
}

export function answersIn(answers: Answers): readonly (readonly [text: string, answer: Letter | null])[] {
  return (['A', 'B', 'C', 'D', 'nothing'] as const).flatMap((answer) =>
    (answers[answer] ?? []).map((text) => [text, answer === 'nothing' ? null : answer] as const),
  );
}

export const REF_CASES: readonly RefCase[] = [
  {
    title: 'an id is never a tag or a branch of that name',
    refs: { 'refs/heads/main': 'A', 'refs/tags/{A}': 'B', 'refs/heads/{A}': 'C', 'refs/tags/{64}': 'B' },
    texts: {
      A: ['{A}', '{^A}'],
      B: ['{B}', 'refs/tags/{A}', '{64}', 'refs/tags/{64}'],
      C: ['refs/heads/{A}'],
      nothing: ['{D}', '{^D}', 'ffffffffffffffffffffffffffffffffffffffff', 'refs/tags/{^A}'],
    },
    addresses: { B: ['refs/tags/{A}'], C: ['refs/heads/{A}'], nothing: ['refs/tags/{B}'] },
  },
  {
    title: 'a full name is never a branch or a tag of that name',
    refs: {
      'refs/heads/main': 'A',
      'refs/tags/v1.0': 'B',
      'refs/heads/refs/tags/v1.0': 'C',
      'refs/tags/refs/heads/gone': 'C',
    },
    texts: {
      B: ['refs/tags/v1.0', 'v1.0'],
      C: ['refs/heads/refs/tags/v1.0', 'refs/tags/refs/heads/gone'],
      nothing: [
        'refs/heads/v1.0',
        'refs/heads/gone',
        'tags/v1.0',
        'refs',
        'refs/',
        'refs/heads',
        'refs/heads/',
        'heads/main',
      ],
    },
    addresses: {
      B: ['refs/tags/v1.0'],
      C: ['refs/heads/refs/tags/v1.0', 'refs/tags/refs/heads/gone'],
      nothing: ['refs/heads/gone', 'refs/heads'],
    },
  },
  {
    title: 'what begins with an id is the id in an address',
    refs: { 'refs/heads/main': 'A', 'refs/heads/{A}/docs': 'B', 'refs/tags/{^A}/docs': 'C', 'refs/tags/x/{A}': 'C' },
    texts: { B: ['{A}/docs', 'refs/heads/{A}/docs'], C: ['{^A}/docs', 'x/{A}'], nothing: ['{A}/which.txt'] },
    addresses: { A: ['{A}', '{^A}'], B: ['refs/heads/{A}/docs'], C: ['refs/tags/{^A}/docs', 'x/{A}'] },
  },
  {
    title: 'HEAD is the default branch',
    refs: { 'refs/heads/main': 'A', 'refs/tags/HEAD': 'B', 'refs/heads/HEAD': 'C' },
    texts: { A: ['HEAD', ''], B: ['refs/tags/HEAD'], C: ['refs/heads/HEAD'], nothing: ['head', '@'] },
    addresses: { B: ['refs/tags/HEAD'], C: ['refs/heads/HEAD'] },
  },
  {
    title: 'what begins with HEAD is the default branch in an address',
    refs: { 'refs/heads/main': 'A', 'refs/heads/HEAD/docs': 'B', 'refs/tags/HEAD/docs': 'C', 'refs/heads/refs': 'C' },
    texts: { A: ['HEAD'], B: ['HEAD/docs'], C: ['refs/tags/HEAD/docs', 'refs'] },
    addresses: { A: ['HEAD'], B: ['refs/heads/HEAD/docs'], C: ['refs/heads/refs'], nothing: ['refs'] },
  },
  {
    title: 'refs of any folder have their full names',
    refs: { 'refs/heads/main': 'A', 'refs/pull/1/head': 'B', 'refs/remotes/origin/HEAD': 'C' },
    texts: {
      B: ['refs/pull/1/head'],
      C: ['refs/remotes/origin/HEAD'],
      nothing: ['pull/1/head', 'origin/HEAD', 'origin', 'refs/remotes/origin', 'refs/pull/1'],
    },
    addresses: { B: ['refs/pull/1/head'], C: ['refs/remotes/origin/HEAD'], nothing: ['pull/1/head'] },
  },
  {
    title: 'a branch comes before a tag, and the longest name of an address is meant',
    refs: {
      'refs/heads/main': 'A',
      'refs/tags/main': 'B',
      'refs/heads/a/b': 'B',
      'refs/tags/a/b/c': 'A',
    },
    texts: {
      A: ['main', 'a/b/c'],
      B: ['refs/tags/main', 'a/b'],
      nothing: ['a', 'a/c', 'main~1', 'main^{}', 'main@{0}', 'main..a', '--all'],
    },
    addresses: { A: ['a/b/c'], B: ['a/b', 'refs/tags/main'] },
  },
  {
    title: 'a default branch that was recorded with a full name stays that branch',
    refs: { 'refs/heads/main': 'A', 'refs/heads/refs/heads/main': 'B' },
    defaultBranch: 'refs/heads/main',
    texts: { A: ['refs/heads/main', 'main'], B: ['HEAD', '', 'refs/heads/refs/heads/main'] },
    addresses: { A: ['refs/heads/main'], B: ['HEAD', 'refs/heads/refs/heads/main'] },
  },
  {
    title: 'HEAD is nothing while the default branch does not exist',
    refs: { 'refs/heads/main': 'A', 'refs/tags/HEAD': 'B', 'refs/heads/HEAD': 'C' },
    defaultBranch: 'refs/heads/main',
    texts: { A: ['main'], nothing: ['HEAD', ''] },
    addresses: { C: ['refs/heads/HEAD'], nothing: ['HEAD'] },
  },
];
