/** `strata repo …`. */
import type { Repository, RepositoryList } from '../client/operations.ts';
import { confirm } from '../session/confirm.ts';
import type { Context, Given } from '../session/context.ts';
import { Failure, usageFailure } from '../session/failure.ts';
import { capturedGit, helperCommand, shownGit } from '../session/git.ts';
import { type Session, signedIn } from '../session/host.ts';
import { repositoryNamed, repositoryOfUrl } from '../session/repositories.ts';
import { type Column, fieldsText, tableText } from '../terminal/table.ts';
import { showable } from '../terminal/text.ts';
import { relativeTime, sizeText, timeCell } from '../terminal/values.ts';
import { given as givenOnly, printBody, show } from './show.ts';

const COLUMNS: readonly Column<Repository>[] = [
  { title: 'NAME', text: ({ full_name }) => full_name, rigid: true },
  { title: 'DESCRIPTION', text: ({ description }) => description ?? '' },
  { title: 'BRANCH', text: ({ default_branch }) => default_branch },
  { title: 'SIZE', text: ({ size_bytes }, exact) => (exact ? String(size_bytes) : sizeText(size_bytes)), right: true },
  { title: 'PUSHED', text: ({ pushed_at }, exact) => timeCell(pushed_at, exact) },
];
const PAGE_LIMIT = 100;

export async function list(context: Context, given: Given): Promise<void> {
  const session = await signedIn(context);
  const [page, limit] = [given.number('page'), given.number('limit')];
  if (page !== undefined) {
    const query = { page, ...(limit === undefined ? {} : { limit }) };
    await show(context, 'listRepositories', { query }, (found) => listText(context, found), session);
    return;
  }
  const { body, all } = await everyPage(session, limit);
  if (context.globals.json) printBody(context, body);
  else context.terminal.out(listText(context, all));
}

/** Reads up to `max` repositories, or all. One page is returned as it came; of several the body is put together. */
async function everyPage(
  { client }: Session,
  max: number | undefined,
): Promise<{ readonly body: string; readonly all: RepositoryList }> {
  const limit = Math.min(max ?? PAGE_LIMIT, PAGE_LIMIT);
  const first = await client.callWithText('listRepositories', { query: { limit } });
  const repositories = [...first.value.repositories];
  let last = first.value.pagination;
  while (last.has_more && (max === undefined || repositories.length < max)) {
    const next = await client.call('listRepositories', { query: { limit, page: last.page + 1 } });
    repositories.push(...next.repositories);
    last = next.pagination;
  }
  if (last.page === 0) return { body: first.text, all: first.value };
  const kept = repositories.slice(0, max);
  const pagination = { page: 0, limit: kept.length, total: last.total, has_more: kept.length < last.total };
  const all = { repositories: kept, pagination };
  return { body: JSON.stringify(all), all };
}

function listText({ terminal }: Context, { repositories, pagination }: RepositoryList): string {
  if (repositories.length === 0 && terminal.isInteractive)
    return 'No repositories. Make one: strata repo create NAME\n';
  const more = terminal.isInteractive && pagination.has_more ? `${repositories.length} of ${pagination.total}\n` : '';
  return tableText(terminal, COLUMNS, repositories) + more;
}

function repositoryText({ terminal }: Context, repository: Repository): string {
  const exact = !terminal.isInteractive;
  const time = (value: string): string => (exact ? value : relativeTime(value));
  return fieldsText(terminal, [
    ['name', repository.full_name],
    ['id', repository.id],
    ['description', repository.description ?? ''],
    ['default branch', repository.default_branch],
    ['size', exact ? String(repository.size_bytes) : sizeText(repository.size_bytes)],
    ['storage', repository.storage_bucket_id ?? 'platform'],
    ['created', time(repository.created_at)],
    ['pushed', repository.pushed_at === null ? 'never' : time(repository.pushed_at)],
    ['page', repository.html_url],
    ['clone', repository.clone_url],
  ]);
}

export async function create(context: Context, given: Given): Promise<void> {
  const session = await signedIn(context);
  const settings = givenOnly({
    description: given.text('description'),
    default_branch: given.text('default-branch'),
    storage_bucket_id: given.text('storage-bucket-id'),
  });
  const body = { name: given.argument('name'), ...settings };
  const { text, value } = await session.client.callWithText('createRepository', { body });
  if (context.globals.json) printBody(context, text);
  else context.terminal.out(`Created ${showable(value.full_name)}\n${showable(value.clone_url)}\n`);
  if (given.flag('clone')) await cloneInto(context, session, value, undefined);
}

export async function get(context: Context, given: Given): Promise<void> {
  const session = await signedIn(context);
  const path = await repositoryNamed(context, session, given.optionalArgument('repository'));
  await show(context, 'getRepository', { path }, (found) => repositoryText(context, found), session);
}

export async function edit(context: Context, given: Given): Promise<void> {
  const body = givenOnly({ description: given.text('description'), default_branch: given.text('default-branch') });
  if (Object.keys(body).length === 0) throw usageFailure('Nothing to change', 'Give --description or --default-branch');
  const session = await signedIn(context);
  const path = await repositoryNamed(context, session, given.optionalArgument('repository'));
  await show(context, 'updateRepository', { path, body }, (found) => repositoryText(context, found), session);
}

export async function rename(context: Context, given: Given): Promise<void> {
  const session = await signedIn(context);
  const path = await repositoryNamed(context, session, given.argument('repository'));
  const body = { name: given.argument('name') };
  const renamed = (found: Repository): string =>
    `Renamed ${showable(`${path.username}/${path.name}`)} to ${showable(found.full_name)}\n${showable(found.clone_url)}\n`;
  await show(context, 'updateRepository', { path, body }, renamed, session);
}

export async function url(context: Context, given: Given): Promise<void> {
  const session = await signedIn(context);
  const path = await repositoryNamed(context, session, given.optionalArgument('repository'));
  const wanted = given.flag('web') ? 'html_url' : 'clone_url';
  await show(context, 'getRepository', { path }, (found) => `${showable(found[wanted])}\n`, session);
}

export async function clone(context: Context, given: Given): Promise<void> {
  const session = await signedIn(context);
  const path = await repositoryNamed(context, session, given.argument('repository'));
  const { text, value } = await session.client.callWithText('getRepository', { path });
  await cloneInto(context, session, value, given.optionalArgument('directory'));
  if (context.globals.json) printBody(context, text);
}

/** Clones with this program as git's credential helper, in the clone's own configuration. */
async function cloneInto(
  context: Context,
  { host }: Session,
  { clone_url: cloneUrl, username, name }: Repository,
  directory: string | undefined,
): Promise<void> {
  const webUrl = webAddressOf(cloneUrl, { username, name });
  // Git has transports that run programs, so it gets only what is an address of a repository.
  if (webUrl === null) throw new Failure(1, `${JSON.stringify(cloneUrl)} is no address to clone from`);
  const key = `credential.${webUrl}.helper`;
  const known = await capturedGit(context, ['config', '--global', '--get-all', key]);
  const helper = helperCommand(context, { baseUrl: host.baseUrl, webUrl });
  const settings =
    known?.includes('git-credential') === true ? [] : ['--config', `${key}=`, '--config', `${key}=${helper}`];
  await shownGit(context, ['clone', ...settings, '--', cloneUrl, ...(directory === undefined ? [] : [directory])]);
}

/** The address of the website, as the URL of a repository tells it. */
function webAddressOf(
  cloneUrl: string,
  { username, name }: { readonly username: string; readonly name: string },
): string | null {
  const end = `/r/${username}/${name}.git`;
  const web = cloneUrl.endsWith(end) ? cloneUrl.slice(0, -end.length) : '';
  return URL.canParse(web) && repositoryOfUrl(cloneUrl, web) !== null ? web : null;
}

export async function remove(context: Context, given: Given): Promise<void> {
  const session = await signedIn(context);
  const path = await repositoryNamed(context, session, given.argument('repository'));
  const what = `This deletes ${path.username}/${path.name} with all its branches`;
  await confirm(context, given, what, 'Add --yes to do it');
  await show(context, 'deleteRepository', { path }, () => `Deleted ${path.username}/${path.name}\n`, session);
}
