/** The account's log: its entries in pages, and exports of it. */
import { Readable } from 'node:stream';
import type { z } from 'zod';
import { openExport } from '../../../core/use-cases/auditing/export-account-log.ts';
import { listEntries } from '../../../core/use-cases/auditing/list-entries.ts';
import { type Headers, ok } from '../http/answer.ts';
import type { AccountCall, Outcome } from '../route.ts';
import type { ACCOUNT_EVENTS_QUERY, EXPORT_QUERY } from '../schemas/account-log.ts';

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

const EXPORT_HEADERS: Headers = { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' };

export async function getAccountExport(
  { context, principal, position, request }: AccountCall,
  { query }: { readonly query: z.output<typeof EXPORT_QUERY> },
): Promise<Outcome> {
  if (request.method === 'HEAD') return { status: 200, headers: EXPORT_HEADERS, body: { kind: 'none' } };
  const { since = null, until = null } = query;
  const opened = await openExport(context, { account: principal.account, seen: position, since, until });
  if ('refused' in opened) return opened;
  const stream = Readable.from(opened.chunks(), { objectMode: false });
  // 'close' follows a complete, an aborted and a failed stream alike.
  stream.once('close', opened.close);
  return { status: 200, headers: EXPORT_HEADERS, body: { kind: 'stream', stream } };
}
