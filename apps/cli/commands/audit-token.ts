/** `strata audit token`: what an access token was allowed and what it did, in the order of time. */
import type { Operations } from '../client/operations.ts';
import type { Context, Given } from '../session/context.ts';
import { type Column, tableText } from '../terminal/table.ts';
import { timeCell } from '../terminal/values.ts';
import { given as givenOnly, show } from './show.ts';

type Activity = Operations['getAccessTokenActivity']['answer'];

interface Line {
  readonly at: string;
  readonly what: string;
  readonly repositories: string;
  readonly from: string;
}

const COLUMNS: readonly Column<Line>[] = [
  { title: 'AT', text: ({ at }, exact) => timeCell(at, exact) },
  { title: 'WHAT', text: ({ what }) => what },
  { title: 'REPOSITORIES', text: ({ repositories }) => repositories },
  { title: 'FROM', text: ({ from }) => from },
];

export async function auditToken(context: Context, given: Given): Promise<void> {
  const query = givenOnly({ after: given.text('after'), limit: given.number('limit') });
  const params = { id: given.argument('id') };
  await show(context, 'getAccessTokenActivity', { path: params, query }, (activity) => {
    const { pagination } = activity;
    if (pagination.has_more) context.terminal.say(`There are more: --after '${pagination.next_after}'`);
    return tableText(context.terminal, COLUMNS, linesOf(activity));
  });
}

/** A use lies in its minute, so a change within the same minute is listed after it. */
function linesOf({ changes, used }: Activity): readonly Line[] {
  const allowed = changes.map(({ at, revoked, grants, scope, repository_ids, expires_at }): Line => {
    const until = expires_at === null ? '' : ` until ${expires_at}`;
    const what = revoked ? 'revoked' : `allowed ${grants.join(', ')}${until}`;
    return { at, what, repositories: scope === 'ALL_REPO' ? 'all' : repository_ids.join(', '), from: '' };
  });
  const did = used.map(({ minute, repository_id, reads, writes, addresses }): Line => {
    const what = `${counted(reads, 'read')}, ${counted(writes, 'write')}`;
    const from = Object.values(addresses).map(({ value }) => value);
    return { at: minute, what, repositories: repository_id, from: from.join(', ') };
  });
  return [...allowed, ...did].toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}
