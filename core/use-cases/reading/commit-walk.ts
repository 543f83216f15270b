/**
 * Pages of a history that no read model keeps: walked from the objects, newest first as `git log` does.
 *
 * Must stay true: a page beyond the end costs no walk, and a history is counted once for each tip.
 */
import type { ObjectId } from '../../kernel/ids.ts';
import { type Commit, ObjectDatabaseError, type ObjectReader } from '../../ports/object-database.ts';
import type { Page, PageOf } from '../../ports/read-models.ts';

/** How many commits a tip reaches, itself included: a tip's history never changes, so an entry is never stale. */
export interface CommitTotals {
  get(tip: ObjectId): number | undefined;
  set(tip: ObjectId, total: number): void;
}

export async function listCommits(
  reader: ObjectReader,
  tip: ObjectId,
  page: Page,
  totals: CommitTotals,
): Promise<PageOf<Commit>> {
  const total = totals.get(tip) ?? (await countCommits(reader, tip));
  totals.set(tip, total);
  if (page.offset >= total) return { items: [], total };
  const ids: ObjectId[] = [];
  const walked = reader.walk({ include: [tip], exclude: [], skip: page.offset, limit: page.limit });
  for await (const id of walked) ids.push(id);
  const commits = await reader.commits(ids);
  const items = commits.map((commit, index) => {
    if (commit !== null) return commit;
    throw new ObjectDatabaseError('layer-missing', `The history of ${tip} lacks commit ${ids[index]}`);
  });
  return { items, total };
}

async function countCommits(reader: ObjectReader, tip: ObjectId): Promise<number> {
  let total = 0;
  for await (const _id of reader.walk({ include: [tip], exclude: [] })) total += 1;
  return total;
}
