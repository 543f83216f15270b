/** `strata blame`. */
import type { Blame, BlameRange, Contents } from '../client/operations.ts';
import type { Context, Given } from '../session/context.ts';
import { type Session, signedIn } from '../session/host.ts';
import { type RepositoryName, repositoryNamed } from '../session/repositories.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { cutTo, showable, showableLines } from '../terminal/text.ts';
import { shortId } from './object-id.ts';
import { given as givenOnly, printBody } from './show.ts';

export async function blame(context: Context, given: Given): Promise<void> {
  const session = await signedIn(context);
  const repository = await repositoryNamed(context, session, given.argument('repository'));
  const path = { ...repository, path: given.argument('path') };
  const { body, found } = await everyRange(session, path, given.text('ref'));
  if (context.globals.json) {
    printBody(context, body);
    return;
  }
  const contents = await session.client.call('getContents', { path, query: { ref: found.commit } });
  const { terminal } = context;
  const lines = linesOf(contents);
  terminal.out(terminal.isInteractive ? shownText(terminal, found, lines) : exactText(found, lines));
  if (found.truncated) terminal.warn(`Who brought the lines from ${endOf(found) + 1} on was not found`);
}

interface FilePath extends RepositoryName {
  readonly path: string;
}

/** Reads all ranges at one commit. One page is returned as it came; of several the body is put together. */
async function everyRange(
  { client }: Session,
  path: FilePath,
  ref: string | undefined,
): Promise<{ readonly body: string; readonly found: Blame }> {
  const first = await client.callWithText('getBlame', { path, query: givenOnly({ ref }) });
  const { commit } = first.value;
  const ranges = [...first.value.ranges];
  let last = first.value;
  while (last.pagination.has_more) {
    last = await client.call('getBlame', { path, query: { ref: commit, page: last.pagination.page + 1 } });
    ranges.push(...last.ranges);
  }
  if (last === first.value) return { body: first.text, found: first.value };
  const pagination = { page: 0, limit: ranges.length, total: ranges.length, has_more: false };
  const found = { commit, ranges, truncated: last.truncated, pagination };
  return { body: JSON.stringify(found), found };
}

/** Returns the texts of the lines, whose ends are line feeds, as for git. */
function linesOf(contents: Contents): readonly string[] {
  if (contents.type === 'symlink') return [contents.target];
  if (contents.type !== 'file') return [];
  const { content, encoding } = contents;
  const text = encoding === 'base64' ? Buffer.from(content, 'base64').toString('utf8') : content;
  const lines = text.split('\n');
  return text === '' || text.endsWith('\n') ? lines.slice(0, -1) : lines;
}

function endOf({ ranges }: Blame): number {
  const last = ranges.at(-1);
  return last === undefined ? 0 : last.start + last.count - 1;
}

/** For people: what is known of a range stands above its lines. */
export function shownText(
  terminal: Pick<Terminal, 'columns' | 'coloured'>,
  found: Pick<Blame, 'ranges'>,
  lines: readonly string[],
): string {
  const width = String(lines.length).length;
  const numbered = (number: number): string =>
    `${String(number).padStart(width)}  ${showableLine(lines[number - 1] ?? '')}`;
  const texts = found.ranges.flatMap((range) => [
    terminal.coloured(cutTo(headOf(range), terminal.columns), 'dim'),
    ...numbersOf(range).map((number) => cutTo(numbered(number), terminal.columns)),
  ]);
  return texts.map((text) => `${text}\n`).join('');
}

function headOf({ commit, path, event_id: event, actor }: BlameRange): string {
  const pushed = event === null || actor === null ? '' : `, pushed by ${actor.kind} ${actor.id}, event ${event}`;
  return `${shortId(commit, false)} ${showable(path)}${pushed}`;
}

/** For other programs. The text of a line stands last, since it may hold tabs. */
function exactText(found: Blame, lines: readonly string[]): string {
  const rows = found.ranges.flatMap((range) => {
    const { commit, event_id: event, actor, path } = range;
    const who = actor === null ? '' : `${actor.kind} ${actor.id}`;
    const start = [commit, event ?? '', who, showable(path)].join('\t');
    return numbersOf(range).map((number) => `${start}\t${number}\t${showableLines(lines[number - 1] ?? '')}\n`);
  });
  return rows.join('');
}

/** Each tab takes as many columns as two spaces, so that the line fits the terminal. */
function showableLine(text: string): string {
  return showableLines(text).replaceAll('\t', '  ');
}

function numbersOf({ start, count }: BlameRange): readonly number[] {
  return Array.from({ length: count }, (_, index) => start + index);
}
