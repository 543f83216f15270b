/** Questions to git about objects, the same in a quarantine and in a repository. */
import type { ObjectId } from '../../core/kernel/ids.ts';
import type { Tip } from '../../core/ports/object-database.ts';
import type { CatFile } from './cat-file.ts';
import type { GitCommand, GitProcesses } from './processes.ts';

export type Question = Omit<GitCommand, 'args'>;

/** The object, and what an annotated tag leads to in the end; null when it is not there. */
export async function findTip(objects: CatFile, id: ObjectId): Promise<Tip | null> {
  const info = await objects.info(id);
  if (info === null) return null;
  if (info.type !== 'tag') return { id, type: info.type, peeled: null };
  const peeled = await objects.info(id, '^{}');
  return { id, type: 'tag', peeled: peeled === null ? null : { id: peeled.id, type: peeled.type } };
}

/** Whether one commit is reached from the other; false when either is no commit here. */
export async function isAncestorOf(
  processes: GitProcesses,
  question: Question,
  ancestor: ObjectId,
  descendant: ObjectId,
): Promise<boolean> {
  const args = ['merge-base', '--is-ancestor', '--end-of-options', ancestor, descendant];
  const { code } = await processes.answer({ ...question, args }, '', [0, 1, 128]);
  return code === 0;
}
