/**
 * Lists pages of a history that no read model keeps. It walks the objects, newest first, in the order of `git log`.
 *
 * Invariants: a page beyond the end costs no walk, and a history is counted once for each tip. Texts are cut to the
 * same lengths as in the read model, so that a page is of bounded size.
 */
import type { CommitRow } from '../../git/commit-row.ts';
import { listedPage, listedRow } from '../../git/history/listed-commit.ts';
import type { ObjectId } from '../../kernel/ids.ts';
import type { Page, PageOf } from '../../kernel/page.ts';
import { type WorkUnderWay, workOnce } from '../../kernel/work-once.ts';
import { ObjectDatabaseError, type ObjectReader } from '../../ports/object-database.ts';
import { readCommits } from '../../ports/read-commits.ts';

/**
 * Maps a tip to the number of commits it reaches, itself included. No entry is ever stale: a tip's history never
 * changes.
 */
export interface CommitTotals {
  get(tip: ObjectId): number | undefined;
  set(tip: ObjectId, total: number): void;
  readonly underWay: WorkUnderWay<ObjectId, number>;
}

export async function walkCommits(
  reader: ObjectReader,
  tip: ObjectId,
  page: Page,
  totals: CommitTotals,
): Promise<PageOf<CommitRow>> {
  const total = totals.get(tip) ?? (await countOnce(reader, tip, totals));
  if (page.offset >= total) return { items: [], total };
  const ids: ObjectId[] = [];
  const walked = reader.walk({ include: [tip], exclude: [], skip: page.offset, limit: page.limit });
  for await (const id of walked) ids.push(id);
  return { items: await readCommitRows(reader, ids), total };
}

/** Reads commits for a list, in the order of the ids. Each must be in the repository. */
export async function readCommitRows(reader: ObjectReader, ids: readonly ObjectId[]): Promise<readonly CommitRow[]> {
  const items: CommitRow[] = [];
  for await (const [id, commit] of readCommits(reader, ids)) {
    if (commit === null) throw new ObjectDatabaseError('layer-missing', `Commit ${id} is in no layer`);
    items.push(listedRow(commit));
  }
  return listedPage(items);
}

/** A history is counted once for all who ask for its pages at one moment. */
async function countOnce(reader: ObjectReader, tip: ObjectId, totals: CommitTotals): Promise<number> {
  // It may also fail for a reason of its own repository: then another request counts.
  return workOnce(totals.underWay, tip, async () => {
    const total = await reader.count(tip);
    totals.set(tip, total);
    return total;
  });
}
