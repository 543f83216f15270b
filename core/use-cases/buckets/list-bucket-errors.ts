/**
 * Lists what went wrong with the storage buckets of an account: failed verifications, and errors of their repositories.
 */
import { accounts } from '../../account/evolve.ts';
import { refuse } from '../../kernel/decider.ts';
import type { LogPosition } from '../../kernel/envelope.ts';
import type { StorageBucketId } from '../../kernel/ids.ts';
import type { Page, PageOf } from '../../kernel/page.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { BucketErrorLists, BucketErrorRow } from '../../ports/bucket-error-lists.ts';
import type { ReadModelProgress } from '../../ports/read-models.ts';
import type { Context } from '../../runtime/execute.ts';
import type { BucketViewer } from './buckets.ts';

export interface WantedErrors {
  readonly viewer: BucketViewer;
  /** Null: of all buckets that the account has. */
  readonly bucket: StorageBucketId | null;
  /** The list must include the log up to this position. */
  readonly seen: LogPosition;
  readonly page: Page;
}

/** Lists the newest first. Refused with `storage-bucket-not-found`. */
export async function listBucketErrors(
  context: Pick<Context, 'entities'> & { readonly readModels: ReadModelProgress & BucketErrorLists },
  { viewer, bucket, seen, page }: WantedErrors,
): Promise<PageOf<BucketErrorRow> | { readonly refused: Refusal }> {
  const { account, selection } = viewer;
  const { state } = await context.entities.get(accounts, account);
  const own = state.status === 'open' ? [...state.storageBuckets.keys()] : [];
  if (bucket !== null && !own.includes(bucket)) return refuse({ code: 'storage-bucket-not-found' });
  const buckets = bucket === null ? own : [bucket];
  const repositories = selection.scope === 'ALL_REPO' ? null : selection.repositoryIds;
  await context.readModels.caughtUp(seen);
  return context.readModels.bucketErrors({ account, buckets, repositories }, page);
}
