/** Reads of large files for pages: one at a time for an account, so that who opens many holds up nobody else. */
import type { PageRequest } from './page-request.ts';

/** Waits for the account's turn. Rejects when the reader leaves. */
export async function inLargeTurn<Result>(
  { context, repository, visit }: PageRequest,
  read: () => Promise<Result>,
): Promise<Result> {
  const release = await context.largeListings.acquire(repository.accountId, visit.signal);
  try {
    return await read();
  } finally {
    release();
  }
}
