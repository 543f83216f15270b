/** `strata token …`. */
import type { AccessToken } from '../client/operations.ts';
import type { Context, Given } from '../session/context.ts';
import { type Column, fieldsText, tableText } from '../terminal/table.ts';
import { showable } from '../terminal/text.ts';
import { timeCell } from '../terminal/values.ts';
import { parseGrants, parseScope, selection, time } from './fields.ts';
import { given as givenOnly, show } from './show.ts';

const COLUMNS: readonly Column<AccessToken>[] = [
  { title: 'ID', text: ({ id }) => id, rigid: true },
  { title: 'NAME', text: ({ name }) => name },
  { title: 'GRANTS', text: ({ grants }) => grants.join(',') },
  {
    title: 'SCOPE',
    text: ({ scope, repository_ids: ids }) => (scope === 'ALL_REPO' ? 'all' : `${ids.length} selected`),
  },
  { title: 'LAST USED', text: ({ last_used_at }, exact) => timeCell(last_used_at, exact) },
  {
    title: 'EXPIRES',
    text: ({ expires_at }, exact) => (expires_at === null ? 'never' : timeCell(expires_at, exact)),
  },
];

function tokenFields(token: AccessToken, exact: boolean): (readonly [string, string])[] {
  return [
    ['id', token.id],
    ['name', token.name],
    ['grants', token.grants.join(',')],
    ['scope', token.scope],
    ...(token.repository_ids.length === 0 ? [] : [['repositories', token.repository_ids.join(',')] as const]),
    ['created', timeCell(token.created_at, exact)],
    ['last used', timeCell(token.last_used_at, exact)],
    ['expires', token.expires_at === null ? 'never' : timeCell(token.expires_at, exact)],
    ['begins with', token.token_prefix],
  ];
}

export async function list(context: Context): Promise<void> {
  await show(context, 'listAccessTokens', {}, ({ access_tokens }) =>
    tableText(context.terminal, COLUMNS, access_tokens),
  );
}

export async function get(context: Context, given: Given): Promise<void> {
  const { terminal } = context;
  const path = { id: given.argument('id') };
  await show(context, 'getAccessToken', { path }, (found) =>
    fieldsText(terminal, tokenFields(found, !terminal.isInteractive)),
  );
}

export async function create(context: Context, given: Given): Promise<void> {
  const { terminal } = context;
  const body = {
    name: given.text('name') ?? '',
    grants: parseGrants(given.list('grants')) ?? (['ALL'] as const),
    ...selection(given),
    expires_at: time(given.text('expires-at')) ?? null,
  };
  await show(context, 'createAccessToken', { body }, (made) => {
    if (!terminal.isInteractive) return `${showable(made.token)}\n`;
    return `${fieldsText(terminal, tokenFields(made, false))}\nThe secret, shown here once:\n${showable(made.token)}\n`;
  });
}

export async function edit(context: Context, given: Given): Promise<void> {
  const { terminal } = context;
  const body = givenOnly({
    name: given.text('name'),
    scope: parseScope(given.text('scope')),
    grants: parseGrants(given.list('grants')),
    repository_ids: given.list('repository-ids'),
    expires_at: time(given.text('expires-at')),
  });
  const path = { id: given.argument('id') };
  await show(context, 'updateAccessToken', { path, body }, (found) =>
    fieldsText(terminal, tokenFields(found, !terminal.isInteractive)),
  );
}

export async function remove(context: Context, given: Given): Promise<void> {
  const path = { id: given.argument('id') };
  await show(context, 'deleteAccessToken', { path }, () => `Revoked ${path.id}\n`);
}
