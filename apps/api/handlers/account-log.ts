/** The account's log: its entries in pages. */
import type { z } from 'zod';
import { listEntries } from '../../../core/use-cases/auditing/list-entries.ts';
import { ok } from '../http/answer.ts';
import type { AccountCall, Outcome } from '../route.ts';
import type { ACCOUNT_EVENTS_QUERY } from '../schemas/account-log.ts';

export async function getAccountEvents(
  { context, principal, position }: AccountCall,
  { query }: { readonly query: z.output<typeof ACCOUNT_EVENTS_QUERY> },
): Promise<Outcome> {
  const { type = null, stream = null, since = null, until = null } = query;
  const { repository_id: repositoryId = null, actor_id: actorId = null } = query;
  const { lines, nextAfter, hasMore } = await listEntries(context, {
    account: principal.account,
    seen: position,
    filter: { type, stream, repositoryId, actorId, since, until },
    after: query.after ?? null,
    limit: query.limit,
  });
  return ok({ events: lines, pagination: { next_after: nextAfter, has_more: hasMore } });
}
