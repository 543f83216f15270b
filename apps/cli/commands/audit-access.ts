/** `strata audit access`: who could read a repository, and who did. */
import type { Operations } from '../client/operations.ts';
import type { Context, Given } from '../session/context.ts';
import { usageFailure } from '../session/failure.ts';
import { signedIn } from '../session/host.ts';
import { repositoryNamed } from '../session/repositories.ts';
import { type Column, tableText } from '../terminal/table.ts';
import { timeCell } from '../terminal/values.ts';
import { given as givenOnly, show } from './show.ts';

type Subject = Operations['getRepositoryAccess']['answer']['subjects'][number];
type Access = Operations['listRepositoryAccesses']['answer']['accesses'][number];

const SUBJECTS: readonly Column<Subject>[] = [
  { title: 'KIND', text: ({ kind }) => kind },
  { title: 'ID', text: ({ id }) => id },
  { title: 'NAME', text: ({ name }) => name ?? '' },
  { title: 'GRANTS', text: ({ grants }) => grants.join(', ') },
  { title: 'SCOPE', text: ({ scope }) => scope },
  { title: 'EVENT', text: ({ event_id }) => event_id },
];

const ACCESSES: readonly Column<Access>[] = [
  { title: 'AT', text: ({ minute, whole_day }, exact) => (whole_day ? minute.slice(0, 10) : timeCell(minute, exact)) },
  { title: 'BY', text: ({ kind, id }) => `${kind} ${id}` },
  { title: 'READS', text: ({ reads }) => String(reads), right: true },
  { title: 'PUSHES', text: ({ pushes }) => String(pushes), right: true },
  { title: 'RESTORES', text: ({ restores }) => String(restores), right: true },
  {
    title: 'FROM',
    text: ({ addresses }) =>
      Object.values(addresses)
        .map(({ value }) => value)
        .join(', '),
  },
];

const OF_DID = ['since', 'until', 'after'] as const;

export async function auditAccess(context: Context, given: Given): Promise<void> {
  const did = given.flag('did') || OF_DID.some((name) => given.text(name) !== undefined);
  const at = given.text('at');
  if (did && at !== undefined) throw usageFailure('--at tells who could read it, --did, --since and --until who did');
  if (!did && given.number('limit') !== undefined) throw usageFailure('--limit is for --did');
  const session = await signedIn(context);
  const path = await repositoryNamed(context, session, given.optionalArgument('repository'));
  const { terminal } = context;
  if (!did) {
    const textOf = ({ subjects }: Operations['getRepositoryAccess']['answer']) =>
      tableText(terminal, SUBJECTS, subjects);
    await show(context, 'getRepositoryAccess', { path, query: givenOnly({ at }) }, textOf, session);
    return;
  }
  const query = givenOnly({
    since: given.text('since'),
    until: given.text('until'),
    after: given.text('after'),
    limit: given.number('limit'),
  });
  await show(
    context,
    'listRepositoryAccesses',
    { path, query },
    ({ accesses, pagination, not_metered }) => {
      if (pagination.has_more) terminal.say(`There are more: --after '${pagination.next_after}'`);
      terminal.say(`Not metered: ${not_metered.join(', ')}`);
      return tableText(terminal, ACCESSES, accesses);
    },
    session,
  );
}
