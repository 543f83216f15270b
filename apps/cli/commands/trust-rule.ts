/** `strata trust-rule …`. */
import type { RefusedExchangeList, TrustRule } from '../client/operations.ts';
import type { Context, Given } from '../session/context.ts';
import { usageFailure } from '../session/failure.ts';
import { type Column, fieldsText, tableText } from '../terminal/table.ts';
import { timeCell } from '../terminal/values.ts';
import { pairs, parseGrants, parseScope, selection } from './fields.ts';
import { given as givenOnly, show } from './show.ts';

const COLUMNS: readonly Column<TrustRule>[] = [
  { title: 'ID', text: ({ id }) => id, rigid: true },
  { title: 'NAME', text: ({ name }) => name },
  { title: 'SUBJECT', text: ({ subject }) => subject },
  { title: 'GRANTS', text: ({ grants }) => grants.join(',') },
  { title: 'LAST USED', text: ({ last_used_at }, exact) => timeCell(last_used_at, exact) },
];

const REFUSAL_COLUMNS: readonly Column<RefusedExchangeList['refusals'][number]>[] = [
  { title: 'LAST', text: ({ last_at }, exact) => timeCell(last_at, exact) },
  { title: 'TIMES', text: ({ times }) => String(times), right: true },
  { title: 'MESSAGE', text: ({ message }) => message },
  { title: 'CLAIM', text: ({ claim }) => claim ?? '' },
  { title: 'FOUND', text: ({ found }) => found ?? '' },
];

function ruleText({ terminal }: Context, rule: TrustRule): string {
  const exact = !terminal.isInteractive;
  return fieldsText(terminal, [
    ['id', rule.id],
    ['name', rule.name],
    ['issuer', rule.issuer],
    ['audience', rule.audience],
    ['subject', rule.subject],
    ...Object.entries(rule.claims).map(([name, value]) => [`claim ${name}`, value] as const),
    ['grants', rule.grants.join(',')],
    ['scope', rule.scope],
    ...(rule.repository_ids.length === 0 ? [] : [['repositories', rule.repository_ids.join(',')] as const]),
    ['created', timeCell(rule.created_at, exact)],
    ['last used', timeCell(rule.last_used_at, exact)],
  ]);
}

export async function list(context: Context): Promise<void> {
  await show(context, 'listTrustRules', {}, ({ trust_rules }) => tableText(context.terminal, COLUMNS, trust_rules));
}

export async function get(context: Context, given: Given): Promise<void> {
  const path = { id: given.argument('id') };
  await show(context, 'getTrustRule', { path }, (found) => ruleText(context, found));
}

export async function create(context: Context, given: Given): Promise<void> {
  const body = {
    name: given.text('name') ?? '',
    issuer: given.text('issuer') ?? '',
    subject: given.text('subject') ?? '',
    claims: pairs(given.list('claims')) ?? {},
    grants: parseGrants(given.list('grants')) ?? [],
    ...selection(given),
  };
  await show(context, 'createTrustRule', { body }, (made) => ruleText(context, made));
}

export async function edit(context: Context, given: Given): Promise<void> {
  const body = givenOnly({
    name: given.text('name'),
    issuer: given.text('issuer'),
    subject: given.text('subject'),
    claims: pairs(given.list('claims')),
    grants: parseGrants(given.list('grants')),
    scope: parseScope(given.text('scope')),
    repository_ids: given.list('repository-ids'),
  });
  if (Object.keys(body).length === 0) {
    throw usageFailure('Nothing to change', 'strata trust-rule edit --help lists the options');
  }
  const path = { id: given.argument('id') };
  await show(context, 'updateTrustRule', { path, body }, (found) => ruleText(context, found));
}

export async function refusals(context: Context, given: Given): Promise<void> {
  const path = { id: given.argument('id') };
  await show(context, 'listRefusedExchanges', { path }, (found) =>
    tableText(context.terminal, REFUSAL_COLUMNS, found.refusals),
  );
}

export async function remove(context: Context, given: Given): Promise<void> {
  const path = { id: given.argument('id') };
  await show(
    context,
    'deleteTrustRule',
    { path },
    () => `Deleted ${path.id}; the tokens that it gave out have ended\n`,
  );
}
