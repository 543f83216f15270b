/** `strata tag create`. */
import type { CreatedTag } from '../client/operations.ts';
import type { Context, Given } from '../session/context.ts';
import { signedIn } from '../session/host.ts';
import { repositoryNamed } from '../session/repositories.ts';
import { type Column, tableText } from '../terminal/table.ts';
import { showable } from '../terminal/text.ts';
import { NO_OBJECT, shortId } from './object-id.ts';
import { given as givenOnly, show } from './show.ts';

const CREATED: readonly Column<CreatedTag>[] = [
  { title: 'TAG', text: ({ name }) => name, rigid: true },
  { title: 'LEADS TO', text: ({ target }, exact) => shortId(target, exact) },
  { title: 'TYPE', text: ({ type }) => type },
  { title: 'ANNOTATED', text: ({ annotated }) => (annotated ? 'yes' : 'no') },
];

export async function create(context: Context, given: Given): Promise<void> {
  const session = await signedIn(context);
  const path = await repositoryNamed(context, session, given.argument('repository'));
  const body = {
    name: given.argument('name'),
    target: given.argument('id'),
    expected: given.flag('move') ? 'any' : NO_OBJECT,
    ...givenOnly({ message: given.text('message') }),
  };
  const { terminal } = context;
  await show(
    context,
    'createTag',
    { path, body },
    (tag) => {
      if (tag.event_id === null) return `Nothing changes: ${showable(tag.name)} is so already\n`;
      const undo = `Undo it: strata repo restore ${path.username}/${path.name} --before ${tag.event_id}\n`;
      return tableText(terminal, CREATED, [tag]) + (terminal.isInteractive ? undo : '');
    },
    session,
  );
}
