/**
 * The repository that the scenarios use: a bundle of a real one, or a generated one of comparable shape; and one of
 * many files.
 *
 * Invariants: it has only branches and tags, an existing default branch, one pack and packed refs, like a well-kept
 * server's; and it is the same for every side.
 */
import path from 'node:path';
import { createGeneratedHistory } from './generated-history.ts';
import { git, gitLines, gitText } from './git.ts';
import { createLongHistory } from './long-history.ts';

export interface Project {
  /** A bare repository; never written to. */
  readonly folder: string;
  /** A one-line description for the head of the table. */
  readonly description: string;
  readonly defaultBranch: string;
  readonly tip: string;
  readonly refCount: number;
  readonly commitCount: number;
  /** A text file in the root of the tip, for GET contents. */
  readonly file: string;
}

/**
 * Prepares the repository.
 * @param bundle path of a git bundle, or null for the generated repository.
 */
export async function prepareProject(workFolder: string, bundle: string | null): Promise<Project> {
  const folder = path.join(workFolder, 'project.git');
  if (bundle === null) {
    await git(['init', '--quiet', '--bare', '--initial-branch=main', folder]);
    await git(['fast-import', '--quiet'], { cwd: folder, input: createGeneratedHistory() });
  } else {
    const refspecs = ['+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*'];
    await git(['init', '--quiet', '--bare', folder]);
    await git(['fetch', '--quiet', path.resolve(bundle), ...refspecs], { cwd: folder });
  }
  const branches = await gitLines(['for-each-ref', '--format=%(refname:short)', 'refs/heads'], { cwd: folder });
  const defaultBranch = ['main', 'master'].find((name) => branches.includes(name)) ?? branches[0];
  if (defaultBranch === undefined) throw new Error('The repository to measure on has no branch');
  await git(['symbolic-ref', 'HEAD', `refs/heads/${defaultBranch}`], { cwd: folder });
  // fast-import's own deltas are poor, so a generated repository is repacked; a real one keeps its deltas from many
  // repacks.
  await pack(folder, bundle === null ? ['-f', '--window=3'] : []);
  const origin = bundle === null ? 'a generated repository' : `the bundle ${path.basename(bundle)}`;
  return describe(folder, defaultBranch, origin);
}

/** Prepares a repository whose one commit has this many files, in folders of folders. */
export async function prepareManyFiles(workFolder: string, files: number): Promise<Project> {
  const folder = path.join(workFolder, 'many-files.git');
  await git(['init', '--quiet', '--bare', '--initial-branch=main', folder]);
  await git(['fast-import', '--quiet', '--done'], { cwd: folder, input: createLongHistory({ commits: 1, files }) });
  await pack(folder, []);
  return describe(folder, 'main', `${files.toLocaleString('en-US')} generated files`);
}

async function pack(folder: string, options: readonly string[]): Promise<void> {
  await git(['repack', '-a', '-d', '-q', '--no-write-bitmap-index', ...options], { cwd: folder });
  await git(['pack-refs', '--all'], { cwd: folder });
}

async function describe(folder: string, defaultBranch: string, origin: string): Promise<Project> {
  const refCount = (await gitLines(['for-each-ref'], { cwd: folder })).length;
  const commitCount = Number(await gitText(['rev-list', '--all', '--count'], { cwd: folder }));
  const packs = await gitLines(['count-objects', '-v'], { cwd: folder });
  const packKib = Number(packs.find((line) => line.startsWith('size-pack: '))?.slice(11) ?? 0);
  const entries = await gitLines(['ls-tree', '-l', 'HEAD'], { cwd: folder });
  const files = entries.flatMap((line) => {
    const [, size, name] = /^100644 blob [0-9a-f]+ +(\d+)\t(.+)$/.exec(line) ?? [];
    return size === undefined || name === undefined ? [] : [{ name, size: Number(size) }];
  });
  const file = files.find(({ name }) => /^readme/i.test(name)) ?? files.find(({ size }) => size > 0 && size < 65_536);
  if (file === undefined) throw new Error('The repository to measure on has no plain file in its root');
  const size = `${(packKib / 1024).toFixed(1)} MiB packed`;
  return {
    folder,
    description: `${origin}: ${commitCount} commits, ${refCount} refs, ${size}`,
    defaultBranch,
    tip: await gitText(['rev-parse', `refs/heads/${defaultBranch}`], { cwd: folder }),
    refCount,
    commitCount,
    file: file.name,
  };
}
