/** The account's log: its entries in pages, and exports of it. */
import { Readable } from 'node:stream';
import type { z } from 'zod';
import { openExport } from '../../../core/use-cases/auditing/export-account-log.ts';
import { listEntries } from '../../../core/use-cases/auditing/list-entries.ts';
import { type Headers, ok, problem } from '../http/answer.ts';
import { type AccountCall, accountRoute, type Outcome, type Route } from '../route.ts';
import { ACCOUNT_EVENTS, ACCOUNT_EVENTS_QUERY, EXPORT_QUERY } from '../schemas/account-log.ts';

const ENTRIES_NOTES =
  "Every event of the account's record, numbered without gaps (docs/audit.md). A page may end before its limit if its entries are large; `has_more` tells. A page ends before an entry that is not what its leaf was made of: somebody changed it, and the page that would begin with it is 500 and names its stream and revision.";

const EXPORT_NOTES =
  'The type is `application/x-ndjson`: a line for each entry, and a last one with the signed checkpoint, each in canonical JSON (docs/audit.md). With `since` or `until` it is a slice, which proves its place in the whole, and that nothing was cut off at its edges. An account may have two exports at a time.';

export const ACCOUNT_LOG_ROUTES: readonly Route[] = [
  accountRoute({
    operationId: 'listAccountEvents',
    tag: 'Audit',
    summary: "List entries of the account's log",
    description: ENTRIES_NOTES,
    method: 'GET',
    path: '/v1/account/events',
    grant: 'ALL',
    scope: 'ALL_REPO',
    schemas: { query: ACCOUNT_EVENTS_QUERY },
    answers: { 200: ACCOUNT_EVENTS },
    problems: [500],
    handle: getAccountEvents,
  }),
  accountRoute({
    operationId: 'exportAccountLog',
    costly: true,
    tag: 'Audit',
    summary: "Export the account's log",
    description: EXPORT_NOTES,
    method: 'GET',
    path: '/v1/account/events/export',
    grant: 'ALL',
    scope: 'ALL_REPO',
    schemas: { query: EXPORT_QUERY },
    answers: {},
    text: 'application/x-ndjson',
    problems: [],
    handle: getAccountExport,
  }),
];

async function getAccountEvents(
  { context, principal, position, requestId }: AccountCall,
  { query }: { readonly query: z.output<typeof ACCOUNT_EVENTS_QUERY> },
): Promise<Outcome> {
  const { type = null, stream = null, since = null, until = null } = query;
  const { repository_id: repositoryId = null, actor_id: actorId = null } = query;
  const page = await listEntries(context, {
    account: principal.account,
    seen: position,
    filter: { type, stream, repositoryId, actorId, since, until },
    after: query.after ?? null,
    limit: query.limit,
  });
  if ('changed' in page) {
    const { sequence, stream, revision, eventId } = page.changed;
    context.log.warn({ requestId, stream, revision, eventId }, 'An entry is not what its leaf was made of');
    return problem(
      500,
      `Entry ${sequence}, revision ${revision} of ${stream}, was changed after its leaf was made of it`,
    );
  }
  const { lines, nextAfter, hasMore } = page;
  return ok({ events: lines, pagination: { next_after: nextAfter, has_more: hasMore } });
}

const EXPORT_HEADERS: Headers = { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' };

async function getAccountExport(
  { context, principal, position, request }: AccountCall,
  { query }: { readonly query: z.output<typeof EXPORT_QUERY> },
): Promise<Outcome> {
  if (request.method === 'HEAD') return { status: 200, headers: EXPORT_HEADERS, body: { kind: 'none' } };
  const { since = null, until = null, form } = query;
  const opened = await openExport(context, { account: principal.account, seen: position, since, until, form });
  if ('refused' in opened) return opened;
  const stream = Readable.from(opened.chunks(), { objectMode: false });
  // 'close' follows a complete, an aborted and a failed stream alike.
  stream.once('close', opened.close);
  return { status: 200, headers: EXPORT_HEADERS, body: { kind: 'stream', stream } };
}
