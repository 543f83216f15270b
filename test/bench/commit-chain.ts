/**
 * Small changes prepared in advance: a chain of commits of one file each on top of the project's tip, and for each the
 * thin pack that git would send.
 *
 * Invariants: pack i holds exactly what commit i adds to commit i-1, so it fits any repository that holds the
 * project and the earlier commits. Author, committer, date and message of a commit follow from its number.
 */
import { git, gitLines } from './git.ts';
import type { Project } from './project.ts';

export interface CommitChain {
  /** A bare repository with the project, and the chain on its branch. */
  readonly folder: string;
  readonly file: ChainFile;
  /** Oldest first. */
  readonly commits: readonly string[];
  /** packs[i] moves a repository from commits[i - 1] to commits[i]; packs[0] from the project's tip. */
  readonly packs: readonly Buffer[];
}

/** The file that every commit of a chain changes. */
export interface ChainFile {
  readonly path: string;
  /** In the commit with this number. */
  readonly text: (index: number) => string;
}

export const CHAIN_BRANCH = 'bench';
/** The author and committer of each. */
export const CHAIN_AUTHOR = { name: 'Bench', email: 'bench@example.org' };

/** A note that a person would write. */
export const NOTE: ChainFile = {
  path: 'bench/note.md',
  text: (index) => `Change ${index}\n${'A line of a note that a person would write.\n'.repeat(1 + (index % 7))}`,
};

const PACKERS = 2;
const FIRST_COMMIT_SECONDS = 1_760_000_000;
const COMMITS_MAX = 1_500;

/** @param folder of the bare repository to make. */
export async function prepareCommitChain(
  folder: string,
  project: Project,
  file: ChainFile,
  length: number,
): Promise<CommitChain> {
  await git(['clone', '--quiet', '--bare', project.folder, folder]);
  const { name, email } = CHAIN_AUTHOR;
  let stream = '';
  for (let index = 0; index < Math.min(length, COMMITS_MAX); index += 1) {
    const [text, message] = [file.text(index), chainMessage(index)];
    stream += `commit refs/heads/${CHAIN_BRANCH}\ncommitter ${name} <${email}> ${chainSeconds(index)} +0000\n`;
    stream += `data ${Buffer.byteLength(message)}\n${message}\n${index === 0 ? `from ${project.tip}\n` : ''}`;
    stream += `M 100644 inline ${file.path}\ndata ${Buffer.byteLength(text)}\n${text}\n`;
  }
  await git(['fast-import', '--quiet', '--done'], { cwd: folder, input: `${stream}done\n` });
  const commits = await gitLines(['rev-list', '--reverse', `${project.tip}..refs/heads/${CHAIN_BRANCH}`], {
    cwd: folder,
  });
  const packs: Buffer[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < commits.length) {
      const index = next;
      next += 1;
      packs[index] = await packOf(folder, commits[index] ?? '', commits[index - 1] ?? project.tip);
    }
  };
  await Promise.all(Array.from({ length: PACKERS }, work));
  return { folder, file, commits, packs };
}

export function chainMessage(index: number): string {
  return `Change ${index}\n`;
}

/** The moment of a commit, since 1970. */
export function chainSeconds(index: number): number {
  return FIRST_COMMIT_SECONDS + index;
}

/** Packs as send-pack does: thin, with offset deltas, everything reachable from `wanted` and not from `held`. */
async function packOf(folder: string, wanted: string, held: string): Promise<Buffer> {
  const args = ['pack-objects', '--revs', '--stdout', '--thin', '--delta-base-offset', '-q', '--threads=1'];
  return git(args, { cwd: folder, input: `${wanted}\n^${held}\n` });
}
