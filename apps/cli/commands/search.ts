/** `strata search`. */
import type { CodeMatch, CodeSearch, Operations } from '../client/operations.ts';
import type { Context, Given } from '../session/context.ts';
import { type Session, signedIn } from '../session/host.ts';
import { type RepositoryName, repositoryNamed } from '../session/repositories.ts';
import { type Column, tableText } from '../terminal/table.ts';
import { given as givenOnly, printBody } from './show.ts';

type Query = Exclude<Operations['searchCode']['query'], undefined>;

const MATCHES: readonly Column<CodeMatch>[] = [
  { title: 'PATH', text: ({ path }) => path },
  { title: 'LINE', text: ({ line }) => String(line), rigid: true, right: true },
  { title: 'TEXT', text: ({ text }, exact) => (exact ? text : text.trimStart()) },
];

/** The most that the API sends on one page. */
const PAGE_LIMIT = 100;

export async function search(context: Context, given: Given): Promise<void> {
  const { terminal, globals } = context;
  const session = await signedIn(context);
  const repository = await repositoryNamed(context, session, given.argument('repository'));
  const query: Query = {
    q: given.argument('word'),
    limit: PAGE_LIMIT,
    ...givenOnly({ ref: given.text('ref'), path: given.text('path') }),
    ...(given.flag('regex') ? { regex: true } : {}),
  };
  const { body, found } = await everyMatch(session, repository, query);
  if (globals.json) printBody(context, body);
  else if (found.matches.length > 0 || !terminal.isInteractive)
    terminal.out(tableText(terminal, MATCHES, found.matches));
  else terminal.out(`No line of ${found.searched_files} files holds it\n`);
  if (!found.complete) terminal.warn('Not all files were searched; a longer word or --path narrows the search');
}

/** Reads all matches. One page is returned as it came; of several the body is put together. */
async function everyMatch(
  { client }: Session,
  path: RepositoryName,
  query: Query,
): Promise<{ readonly body: string; readonly found: CodeSearch }> {
  const first = await client.callWithText('searchCode', { path, query });
  const matches = [...first.value.matches];
  let last = first.value;
  while (last.pagination.has_more) {
    last = await client.call('searchCode', { path, query: { ...query, page: last.pagination.page + 1 } });
    matches.push(...last.matches);
  }
  if (last === first.value) return { body: first.text, found: first.value };
  const pagination = { page: 0, limit: matches.length, total: matches.length, has_more: false };
  const found = { ...first.value, matches, pagination };
  return { body: JSON.stringify(found), found };
}
