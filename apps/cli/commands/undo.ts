/** `strata repo restore`, `deleted`, `undelete` and `purge`. */
import type { DeletedRepositoryList, Purge, Restoration } from '../client/operations.ts';
import { confirm } from '../session/confirm.ts';
import type { Context, Given } from '../session/context.ts';
import { usageFailure } from '../session/failure.ts';
import { type Session, signedIn } from '../session/host.ts';
import { repositoryNamed } from '../session/repositories.ts';
import { type Column, tableText } from '../terminal/table.ts';
import { showable } from '../terminal/text.ts';
import { sizeText, timeCell } from '../terminal/values.ts';
import { time } from './fields.ts';
import { NO_OBJECT } from './object-id.ts';
import { type RefUpdate, UPDATES } from './ref-updates.ts';
import { given as givenOnly, show } from './show.ts';

type Deleted = DeletedRepositoryList['repositories'][number];

const DELETED: readonly Column<Deleted>[] = [
  { title: 'NAME', text: ({ name }) => name, rigid: true },
  { title: 'ID', text: ({ id }) => id, rigid: true },
  { title: 'SIZE', text: ({ size_bytes }, exact) => (exact ? String(size_bytes) : sizeText(size_bytes)), right: true },
  { title: 'DELETED', text: ({ deleted_at }, exact) => timeCell(deleted_at, exact) },
  { title: 'KEPT UNTIL', text: ({ expires_at }, exact) => timeCell(expires_at, exact) },
  { title: 'CANNOT BE UNDELETED', text: ({ reason }) => reason ?? '' },
];

export async function restore(context: Context, given: Given): Promise<void> {
  const moment = givenOnly({
    at: time(given.text('at')) ?? undefined,
    event_id: given.text('event'),
    before_event_id: given.text('before'),
  });
  if (Object.keys(moment).length !== 1) {
    throw usageFailure('To which moment?', 'Give one of --at, --event and --before');
  }
  const isDry = given.flag('dry-run');
  const session = await signedIn(context);
  const path = await repositoryNamed(context, session, given.optionalArgument('repository'));
  const what = `This moves branches and tags of ${path.username}/${path.name}`;
  if (!isDry) await confirm(context, given, what, 'Add --dry-run to see which, --yes to do it');
  const body = { ...moment, ...givenOnly({ refs: given.list('refs') }), dry_run: isDry };
  await show(context, 'restoreRefs', { path, body }, (found) => restoredText(context, found, isDry), session);
}

function restoredText(
  { terminal }: Context,
  { event_id: event, updates, left_out }: Restoration,
  isDry: boolean,
): string {
  // A ref that is left out does not change, and has a row to say so.
  const leftOut = left_out.map((ref): RefUpdate => ({ ref, kind: 'left-out', before: NO_OBJECT, after: NO_OBJECT }));
  if (updates.length + leftOut.length === 0) return 'Nothing changes: the refs are as they were then\n';
  const why = leftOut.length === 0 ? '' : 'Left out: no branch or tag of such a name is created any more\n';
  const undo = isDry || event === null ? '' : `Undo it: strata repo restore --before ${event}\n`;
  return tableText(terminal, UPDATES, [...updates, ...leftOut]) + (terminal.isInteractive ? why + undo : '');
}

export async function deleted(context: Context): Promise<void> {
  const { terminal } = context;
  await show(context, 'listDeletedRepositories', {}, ({ repositories }) =>
    repositories.length === 0 && terminal.isInteractive
      ? 'No deleted repositories\n'
      : tableText(terminal, DELETED, repositories),
  );
}

export async function undelete(context: Context, given: Given): Promise<void> {
  const session = await signedIn(context);
  const id = (await deletedNamed(session, given.argument('repository'))) ?? given.argument('repository');
  const body = givenOnly({ name: given.text('name') });
  await show(
    context,
    'undeleteRepository',
    { path: { id }, body },
    (found) => `Undeleted ${showable(found.full_name)}\n${showable(found.clone_url)}\n`,
    session,
  );
}

/** Returns the id of the last deleted repository of this name; null if none has it. */
async function deletedNamed({ client }: Session, name: string): Promise<string | null> {
  const { repositories } = await client.call('listDeletedRepositories', {});
  const own = name.toLowerCase().replace(/^.*\//, '');
  return repositories.find((one) => one.id === own || one.name.toLowerCase() === own)?.id ?? null;
}

export async function purge(context: Context, given: Given): Promise<void> {
  const session = await signedIn(context);
  const named = given.argument('repository');
  const found = await purged(context, session, named);
  const isDry = given.flag('dry-run');
  const what = `This removes ${found.what} for good`;
  if (!isDry) await confirm(context, given, what, 'Add --dry-run to see its size, --yes to do it');
  const input = { path: { id: found.id }, body: { dry_run: isDry } };
  await show(context, 'purgeRepository', input, (answer) => purgeText(context, answer, isDry), session);
}

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * A living repository by its name, and a deleted one only by its id: a name must not turn out to be a deleted one's.
 */
async function purged(
  context: Context,
  session: Session,
  named: string,
): Promise<{ readonly id: string; readonly what: string }> {
  if (ID.test(named)) return { id: named, what: `all of the repository ${named} if it is deleted` };
  const path = await repositoryNamed(context, session, named);
  const { id, full_name: name } = await session.client.call('getRepository', { path });
  return { id, what: `what no branch and no tag of ${showable(name)} reaches` };
}

function purgeText({ terminal }: Context, { freed_bytes: freed, left_with_owner_bytes: left }: Purge, isDry: boolean) {
  const size = (bytes: number): string => (terminal.isInteractive ? sizeText(bytes) : `${bytes} bytes`);
  const text = isDry ? `A purge frees ${size(freed)}\n` : `Purged: ${size(freed)} leave storage within about an hour\n`;
  if (left === undefined) return text;
  const why = 'the service no longer knows the place of the storage bucket that held it';
  return `${text}${size(left)} stay with their owner: ${why}\n`;
}
