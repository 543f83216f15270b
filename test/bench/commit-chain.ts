/**
 * Small pushes prepared in advance: a chain of commits of one file each on top of the project's tip, and for each the
 * thin pack that git would send.
 *
 * Invariants: pack i holds exactly what commit i adds to commit i-1, so it fits any repository that holds the
 * project and the earlier commits.
 */
import path from 'node:path';
import { git, gitLines } from './git.ts';
import type { Project } from './project.ts';

export interface CommitChain {
  /** A bare repository with the project, and the chain on refs/heads/bench. */
  readonly folder: string;
  /** Oldest first. */
  readonly commits: readonly string[];
  /** packs[i] moves a repository from commits[i - 1] to commits[i]; packs[0] from the project's tip. */
  readonly packs: readonly Buffer[];
}

const PACKERS = 2;
const FIRST_COMMIT_SECONDS = 1_760_000_000;

export async function prepareCommitChain(workFolder: string, project: Project, length: number): Promise<CommitChain> {
  const folder = path.join(workFolder, 'chain.git');
  await git(['clone', '--quiet', '--bare', project.folder, folder]);
  let stream = '';
  for (let index = 0; index < length; index += 1) {
    const note = `Change ${index}\n${'A line of a note that a person would write.\n'.repeat(1 + (index % 7))}`;
    stream += `commit refs/heads/bench\ncommitter Bench <bench@example.org> ${FIRST_COMMIT_SECONDS + index} +0000\n`;
    stream += `data <<END\nChange ${index}\nEND\n${index === 0 ? `from ${project.tip}\n` : ''}`;
    stream += `M 100644 inline bench/note.md\ndata ${Buffer.byteLength(note)}\n${note}\n`;
  }
  await git(['fast-import', '--quiet', '--done'], { cwd: folder, input: `${stream}done\n` });
  const commits = await gitLines(['rev-list', '--reverse', `${project.tip}..refs/heads/bench`], { cwd: folder });
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
  return { folder, commits, packs };
}

/** Packs as send-pack does: thin, with offset deltas, everything reachable from `wanted` and not from `held`. */
async function packOf(folder: string, wanted: string, held: string): Promise<Buffer> {
  const args = ['pack-objects', '--revs', '--stdout', '--thin', '--delta-base-offset', '-q', '--threads=1'];
  return git(args, { cwd: folder, input: `${wanted}\n^${held}\n` });
}
