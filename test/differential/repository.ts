/**
 * The repositories that both sides serve: a history that a seed makes, with everything that git stores and few
 * repositories have, pushed to each side by the same pushes.
 *
 * Invariants: the seed decides every object and ref, so that a case means the same in each run.
 */
import { join } from 'node:path';
import { type TestRepository, testRepository } from '../support/git.ts';
import type { Dice } from '../support/seeded.ts';

/**
 * `plain` got its refs in one push; `forced` had other ones before; `headless` lacks the branch that its HEAD names;
 * `empty` has no refs.
 */
export const REPOSITORIES = ['plain', 'forced', 'headless', 'empty'] as const;
export type RepositoryName = (typeof REPOSITORIES)[number];

export const FIRST_SECONDS = 1_700_000_000;
const SUBMODULE = '[submodule "vendor"]\n\tpath = vendor\n\turl = https://example.org/vendor.git\n';
const SPARSE_PATTERNS = '/*\n!/deep/\n';

/** What cases are made from. */
export interface Words {
  readonly branches: readonly string[];
  readonly tags: readonly string[];
  /** Full names of all refs. */
  readonly refs: readonly string[];
  /** What refs name, and what tags lead to. */
  readonly tips: readonly string[];
  readonly commits: readonly string[];
  readonly trees: readonly string[];
  readonly blobs: readonly string[];
  /** Objects that only a ref reached that was forced away or deleted. */
  readonly left: readonly string[];
  /** The times of commits, in seconds. */
  readonly seconds: readonly number[];
}

export interface Source {
  readonly words: Words;
  /** The folder of a repository with every object. */
  readonly path: string;
  /** Pushes what this repository holds. */
  push(repository: RepositoryName, url: string): void;
}

export function makeSource(folder: string, dice: Dice): Source {
  const repository = testRepository(join(folder, 'source'));
  repository.git(['fast-import', '--quiet', '--force'], { input: historyOf(dice) });
  addTags(repository);
  const before = objectsOf(repository);
  const first = refsOf(repository);
  forceAway(repository);
  const after = new Set(objectsOf(repository).map(({ id }) => id));
  const left = before.filter(({ id }) => !after.has(id)).map(({ id }) => id);
  const push = (url: string, ...refspecs: readonly string[]): void => {
    repository.git(['push', '--quiet', '--force', url, ...refspecs]);
  };
  return {
    words: wordsOf(repository, left),
    path: repository.path,
    push: (name, url) => {
      if (name === 'forced') push(url, ...[...first].map(([ref, id]) => `${id}:${ref}`));
      if (name === 'forced' || name === 'plain') push(url, '--prune', 'refs/*:refs/*');
      if (name === 'headless') push(url, 'refs/heads/dev', 'refs/heads/feature/x', 'refs/tags/v1');
    },
  };
}

/** A stream for fast-import: branches that are merged into each other, an unrelated root, and odd entries. */
function historyOf(dice: Dice): string {
  const script: string[] = [];
  const tips = new Map<string, number>();
  let [mark, seconds] = [0, FIRST_SECONDS];
  const commit = (
    branch: string,
    files: readonly string[],
    merged: readonly number[] = [],
    from = tips.get(branch),
  ) => {
    mark += 1;
    // Some commits are of the same second, and some are older than their parents.
    seconds += dice.chance(0.1) ? -300 : 60 * dice.below(3);
    script.push(`commit refs/heads/${branch}`, `mark :${mark}`);
    script.push(`committer Ada <ada@example.org> ${seconds} +0000`, data(`Commit ${mark}`));
    if (from !== undefined) script.push(`from :${from}`);
    script.push(...merged.map((other) => `merge :${other}`), ...files);
    tips.set(branch, mark);
  };
  const file = (): string => {
    const name = dice.pick(['a', 'b', 'deep/a', 'deep/b', 'deep/er/a', 'deep/er/st/a', 'ünï']);
    const size = dice.chance(0.1) ? 20_000 : dice.chance(0.2) ? 1_024 : dice.below(40);
    return inline('100644', name, `${mark} `.repeat(size / 2 + 1));
  };
  const odd = [inline('100644', '.gitmodules', SUBMODULE), `M 160000 ${'c'.repeat(40)} vendor`];
  commit('main', [inline('100644', 'README', 'hello\n'), inline('120000', 'link', 'README'), ...odd]);
  commit('main', [inline('100755', 'run', '#!/bin/sh\n'), inline('100644', 'sparse', SPARSE_PATTERNS)]);
  for (const branch of ['dev', 'side', 'feature/x', 'forced', 'deleted']) {
    commit(branch, [file()], [], dice.pick([...tips.values()]));
  }
  commit('orphan', [inline('100644', 'other', 'unrelated\n')]);
  const branches = ['main', 'main', 'dev', 'side', 'feature/x', 'forced', 'deleted'];
  for (let more = 20 + dice.below(20); more > 0; more -= 1) {
    const branch = dice.pick(branches);
    const others = [...tips.values()].filter((other) => other !== tips.get(branch));
    const merged = dice.chance(0.25) ? [dice.pick(others)] : [];
    commit(branch, dice.chance(0.05) ? [] : [file(), file()], merged);
  }
  commit('main', [file()], [tips.get('orphan') ?? 1, tips.get('side') ?? 1]);
  for (const branch of ['forced', 'deleted']) commit(branch, [file(), inline('100644', branch, 'left behind\n')]);
  return `${script.join('\n')}\n`;
}

function inline(mode: string, name: string, content: string): string {
  return `M ${mode} inline ${name}\n${data(content)}`;
}

function data(text: string): string {
  return `data ${Buffer.byteLength(text)}\n${text}`;
}

function addTags({ git }: TestRepository): void {
  const tag = (...args: readonly string[]): void => {
    git(['tag', ...args], { env: { GIT_COMMITTER_DATE: `${FIRST_SECONDS} +0000` } });
  };
  tag('light', 'main');
  tag('-a', '-m', 'one', 'v1', 'main~1');
  tag('-a', '-m', 'two', 'v1-signed', 'v1');
  tag('-a', '-m', 'of a tree', 'tree', 'main^{tree}');
  tag('-a', '-m', 'of a blob', 'blob', 'main:README');
  tag('light-tree', 'main~1^{tree}');
  tag('light-blob', 'main:sparse');
  tag('moved', 'deleted');
  tag('both', 'dev');
  git(['update-ref', 'refs/heads/both', 'main~2']);
  git(['update-ref', 'refs/heads/main-2', 'main~3']);
  git(['update-ref', 'refs/heads/ünï', 'side']);
  git(['update-ref', 'refs/pull/1/head', 'feature/x']);
}

function forceAway({ git }: TestRepository): void {
  git(['update-ref', 'refs/heads/forced', 'main~1']);
  git(['update-ref', 'refs/tags/moved', 'dev']);
  git(['update-ref', '-d', 'refs/heads/deleted']);
}

interface Found {
  readonly id: string;
  readonly type: string;
}

/** Every object that a ref reaches. */
function objectsOf({ git }: TestRepository): readonly Found[] {
  const reached = git(['rev-list', '--objects', '--all', '--no-object-names']);
  return lines(git(['cat-file', '--batch-check=%(objectname) %(objecttype)'], { input: reached })).map((line) => {
    const [id = '', type = ''] = line.split(' ');
    return { id, type };
  });
}

function refsOf({ git }: TestRepository): ReadonlyMap<string, string> {
  const listed = lines(git(['for-each-ref', '--format=%(refname) %(objectname)']));
  return new Map(listed.map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]));
}

function wordsOf(repository: TestRepository, left: readonly string[]): Words {
  const refs = refsOf(repository);
  const names = [...refs.keys()];
  const below = (folder: string): string[] =>
    names.filter((name) => name.startsWith(folder)).map((name) => name.slice(folder.length));
  const objects = objectsOf(repository);
  const ofType = (type: string): string[] => objects.filter((found) => found.type === type).map(({ id }) => id);
  const peeled = lines(repository.git(['rev-parse', ...names.map((name) => `${name}^{}`)]));
  return {
    branches: below('refs/heads/'),
    tags: below('refs/tags/'),
    refs: names,
    tips: [...refs.values(), ...peeled],
    commits: ofType('commit'),
    trees: ofType('tree'),
    blobs: ofType('blob'),
    left,
    seconds: lines(repository.git(['log', '--all', '--format=%ct'])).map(Number),
  };
}

function lines(output: Buffer): string[] {
  return output.toString().split('\n').filter(Boolean);
}
