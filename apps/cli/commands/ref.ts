/**
 * `strata ref list`, `create`, `move` and `delete`.
 *
 * Invariants: a ref changes only from what it was when the command looked, or from what its user named.
 */
import type { Operations } from '../client/operations.ts';
import type { Context, Given } from '../session/context.ts';
import { Failure } from '../session/failure.ts';
import { type Session, signedIn } from '../session/host.ts';
import { type RepositoryName, repositoryNamed } from '../session/repositories.ts';
import { type Column, tableText } from '../terminal/table.ts';
import { showable } from '../terminal/text.ts';
import { NO_OBJECT, shortId } from './object-id.ts';
import { UPDATES } from './ref-updates.ts';
import { show } from './show.ts';

type Ref = Operations['listRefs']['answer']['refs'][number];

const REFS: readonly Column<Ref>[] = [
  { title: 'REF', text: ({ name }) => name, rigid: true },
  { title: 'ID', text: ({ target }, exact) => shortId(target, exact) },
  { title: 'LEADS TO', text: ({ peeled }, exact) => (peeled === null ? '' : shortId(peeled, exact)) },
];

const BRANCHES = 'refs/heads/';

export async function list(context: Context, given: Given): Promise<void> {
  const session = await signedIn(context);
  const path = await repositoryNamed(context, session, given.optionalArgument('repository'));
  const { terminal } = context;
  const textOf = (refs: readonly Ref[]) =>
    refs.length === 0 && terminal.isInteractive ? 'No refs\n' : tableText(terminal, REFS, refs);
  await show(context, 'listRefs', { path }, ({ refs }) => textOf(refs), session);
}

export async function create(context: Context, given: Given): Promise<void> {
  await change(context, given, given.argument('id'), async () => NO_OBJECT);
}

export async function move(context: Context, given: Given): Promise<void> {
  await change(context, given, given.argument('id'), headOf);
}

export async function remove(context: Context, given: Given): Promise<void> {
  await change(context, given, null, headOf);
}

/** Returns the full name of a ref: a text without `refs/` is a branch. */
function fullName(text: string): string {
  return text.startsWith('refs/') ? text : `${BRANCHES}${text}`;
}

async function change(
  context: Context,
  given: Given,
  after: string | null,
  seen: (session: Session, path: RepositoryName, ref: string) => Promise<string>,
): Promise<void> {
  const session = await signedIn(context);
  const path = await repositoryNamed(context, session, given.argument('repository'));
  const ref = fullName(given.argument('ref'));
  const expected = given.text('expected') ?? (await seen(session, path, ref));
  const body = { updates: [{ ref, expected, after }] };
  const { terminal } = context;
  await show(
    context,
    'updateRefs',
    { path, body },
    ({ event_id: event, updates }) => {
      if (event === null) return `Nothing changes: ${showable(ref)} is so already\n`;
      const undo = `Undo it: strata repo restore ${path.username}/${path.name} --before ${event}\n`;
      return tableText(terminal, UPDATES, updates) + (terminal.isInteractive ? undo : '');
    },
    session,
  );
}

/** A branch is read alone, which needs fewer grants than all refs do. */
async function headOf({ client }: Session, path: RepositoryName, ref: string): Promise<string> {
  if (ref.startsWith(BRANCHES)) {
    const branch = ref.slice(BRANCHES.length);
    return (await client.call('getBranch', { path: { ...path, branch } })).commit.hexsha;
  }
  const { refs } = await client.call('listRefs', { path });
  const found = refs.find(({ name }) => name === ref);
  if (found === undefined) throw new Failure(1, `There is no ${ref}`, 'See: strata ref list');
  return found.target;
}
