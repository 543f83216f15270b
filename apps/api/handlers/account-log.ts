/** The account's log: its entries in pages, and exports of it. */
import { Readable } from 'node:stream';
import type { z } from 'zod';
import { type EventId, parseUuid } from '../../../core/kernel/ids.ts';
import { openExport } from '../../../core/use-cases/auditing/export-account-log.ts';
import { type ChangedEntry, findEntry, isChanged, listEntries } from '../../../core/use-cases/auditing/list-entries.ts';
import { type Headers, ok, problem } from '../http/answer.ts';
import { type AccountCall, accountRoute, type Outcome, type Route } from '../route.ts';
import { ACCOUNT_EVENTS, ACCOUNT_EVENTS_QUERY, EXPORT_QUERY, LOG_LINE } from '../schemas/account-log.ts';
import { ID_PARAMS } from '../schemas/params.ts';

const ENTRIES_NOTES =
  "Every event of the account's record, numbered without gaps (docs/audit.md). A page may end before its limit if its entries are large; `has_more` tells. A page ends before an entry that is not what its leaf was made of: somebody changed it, and the page that would begin with it is 500 and names its stream and revision.";

const EVENT_NOTES =
  "By the event's id, in the form of an export. 404 for another account's, and for operational events, which are in no log. 500 names one that somebody changed.";

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
    operationId: 'getAccountEvent',
    tag: 'Audit',
    summary: "Read an entry of the account's log",
    description: EVENT_NOTES,
    method: 'GET',
    path: '/v1/account/events/{id}',
    grant: 'ALL',
    scope: 'ALL_REPO',
    schemas: { params: ID_PARAMS },
    answers: { 200: LOG_LINE },
    problems: [404, 500],
    handle: getAccountEvent,
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
  call: AccountCall,
  { query }: { readonly query: z.output<typeof ACCOUNT_EVENTS_QUERY> },
): Promise<Outcome> {
  const { context, principal, position } = call;
  const { type = null, stream = null, since = null, until = null } = query;
  const { repository_id: repositoryId = null, actor_id: actorId = null, request_id: requestId = null } = query;
  const page = await listEntries(context, {
    account: principal.account,
    seen: position,
    filter: { type, stream, repositoryId, actorId, requestId, since, until },
    after: query.after ?? null,
    limit: query.limit,
  });
  if ('changed' in page) return changedAnswer(call, page.changed);
  const { lines, nextAfter, hasMore } = page;
  return ok({ events: lines, pagination: { next_after: nextAfter, has_more: hasMore } });
}

function changedAnswer({ context, requestId }: AccountCall, entry: ChangedEntry['changed']): Outcome {
  const { sequence, stream, revision, eventId } = entry;
  context.log.warn({ requestId, stream, revision, eventId }, 'An entry is not what its leaf was made of');
  return problem(
    500,
    `Entry ${sequence}, revision ${revision} of ${stream}, was changed after its leaf was made of it`,
  );
}

async function getAccountEvent(
  call: AccountCall,
  { params }: { readonly params: z.output<typeof ID_PARAMS> },
): Promise<Outcome> {
  const { context, principal, position } = call;
  const entry = parseUuid<EventId>(params.id);
  const read = entry === null ? null : await findEntry(context, { account: principal.account, seen: position, entry });
  if (read === null) return { refused: { code: 'entry-not-found' } };
  return isChanged(context, read) ? changedAnswer(call, read.place) : ok(read.line);
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
