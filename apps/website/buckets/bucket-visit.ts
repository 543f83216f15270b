/**
 * What the pages of storage buckets take from a visit: the viewer, the origin of a change, and the bucket of the
 * address.
 */
import { ALL_REPOSITORIES } from '../../../core/access-token/repository-selection.ts';
import { parseUuid, type StorageBucketId } from '../../../core/kernel/ids.ts';
import {
  type BucketCommandOrigin,
  type BucketViewer,
  type FoundBucket,
  findBucket,
} from '../../../core/use-cases/buckets/buckets.ts';
import type { SiteContext } from '../context.ts';
import type { PersonVisit } from '../layout/visit.ts';

export const BUCKETS = '/storage-buckets';

export function viewerOf({ person }: PersonVisit): BucketViewer {
  return { account: person.account, selection: ALL_REPOSITORIES };
}

export async function bucketOrigin(visit: PersonVisit): Promise<BucketCommandOrigin> {
  return { ...(await visit.origin(null)), selection: ALL_REPOSITORIES };
}

/** Returns the bucket that the address names; null if there is none. */
export async function bucketOf(context: SiteContext, visit: PersonVisit): Promise<FoundBucket | null> {
  const id = parseUuid<StorageBucketId>(visit.params['id'] ?? '');
  if (id === null) return null;
  const found = await findBucket(context, viewerOf(visit), id);
  return 'refused' in found ? null : found;
}

/** Returns the address of a bucket's page, or of one below it. */
export function pathOf(id: StorageBucketId, below = ''): string {
  return `${BUCKETS}/${id}${below}`;
}
