/**
 * `strata commit`: writes files of a folder to a branch, without a clone.
 *
 * Invariants: a file has the path in the repository that it has below the current folder, and its bytes are sent
 * unchanged. What git keeps for itself is not sent. A branch changes only from what it was when the command looked, or
 * from what its user named.
 */
import { createReadStream } from 'node:fs';
import { lstat, readdir, readFile, readlink } from 'node:fs/promises';
import path from 'node:path';
import { ApiError } from '../client/client.ts';
import type { Operations, TriedCommit } from '../client/operations.ts';
import type { Part } from '../client/parts.ts';
import type { Context, Given } from '../session/context.ts';
import { codeOf, Failure, usageFailure } from '../session/failure.ts';
import { type Session, signedIn } from '../session/host.ts';
import { type RepositoryName, repositoryNamed } from '../session/repositories.ts';
import { type Column, tableText } from '../terminal/table.ts';
import { showable } from '../terminal/text.ts';
import { NO_OBJECT } from './object-id.ts';
import { UPDATES } from './ref-updates.ts';
import { given as givenOnly, show } from './show.ts';

type Written = Operations['writeCommit']['answer'];
type Change = Operations['writeCommit']['body']['changes'][number];
type ChangedFile = TriedCommit['files'][number];

const FILES: readonly Column<ChangedFile>[] = [
  { title: 'PATH', text: ({ path: file }) => file, rigid: true },
  { title: 'CHANGE', text: ({ status }) => status },
  { title: 'BEFORE', text: ({ previous_path }) => previous_path ?? '' },
  { title: 'ADDED', text: ({ additions }) => String(additions ?? ''), right: true },
  { title: 'REMOVED', text: ({ deletions }) => String(deletions ?? ''), right: true },
];

export async function commit(context: Context, given: Given): Promise<void> {
  const { changes, parts } = await changesOf(context.folder, given.several('path'), given.list('delete') ?? []);
  if (changes.length === 0) throw usageFailure('There is nothing to commit', 'Name files or folders, or --delete PATH');
  const session = await signedIn(context);
  const repository = await repositoryNamed(context, session, given.argument('repository'));
  const branch = given.text('branch') ?? '';
  const start = given.text('start');
  const body = {
    branch,
    expected: given.text('expected') ?? (await headOf(session, repository, branch, start !== undefined)),
    message: given.text('message') ?? '',
    changes,
    dry_run: given.flag('dry-run'),
    ...givenOnly({ start }),
  };
  const textOf = (answer: Written) => outcomeText(context, repository, answer);
  await show(context, 'writeCommit', { path: repository, body, parts }, textOf, session);
}

function outcomeText({ terminal }: Context, { username, name }: RepositoryName, answer: Written): string {
  if (!('commit' in answer)) {
    return answer.files.length === 0 ? 'Nothing would change\n' : tableText(terminal, FILES, answer.files);
  }
  const { ref, before, after, event_id: event } = answer;
  if (event === null) return `Nothing changes: ${showable(ref)} is so already\n`;
  const kind = before === NO_OBJECT ? 'create' : 'fast-forward';
  const undo = `Undo it: strata repo restore ${username}/${name} --before ${event}\n`;
  return tableText(terminal, UPDATES, [{ ref, kind, before, after }]) + (terminal.isInteractive ? undo : '');
}

/** Zeros for a branch that the commit is to begin. */
async function headOf(
  { client }: Session,
  repository: RepositoryName,
  branch: string,
  starts: boolean,
): Promise<string> {
  try {
    return (await client.call('getBranch', { path: { ...repository, branch } })).commit.hexsha;
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
  }
  if (starts) return NO_OBJECT;
  const { branches } = await client.call('listBranches', { path: repository });
  if (branches.length === 0) return NO_OBJECT;
  throw new Failure(1, `There is no branch ${branch}`, 'Give --start REF, where it is to begin');
}

const MIB = 1024 * 1024;
/** The service takes 8 MiB of JSON, in which each three bytes are four. */
const FILES_BYTES_MAX = 6 * MIB;
/** A larger file is sent in a part of its own, while it is read. */
const FILE_IN_JSON_BYTES_MAX = MIB;
/** What the service takes in parts. */
const PARTS_MAX = 1_000;
const PART_BYTES_MAX = 64 * MIB;

interface Changes {
  readonly changes: readonly Change[];
  /** The contents of large files. */
  readonly parts: readonly Part[];
}

async function changesOf(folder: string, written: readonly string[], deleted: readonly string[]): Promise<Changes> {
  const changes = new Map<string, Change>();
  const parts = new Map<string, Part>();
  let leftBytes = FILES_BYTES_MAX;
  const add = async (place: string): Promise<void> => {
    const { kind, mode, sizeBytes } = await kindOf(place);
    if (kind === 'folder') {
      for (const name of (await readdir(place)).sort()) if (name !== '.git') await add(path.join(place, name));
      return;
    }
    const inside = insideOf(folder, place);
    if (sizeBytes > PART_BYTES_MAX) throw tooLarge(`${inside} is larger than 64 MiB`);
    if (sizeBytes > FILE_IN_JSON_BYTES_MAX) {
      const part = parts.get(inside)?.name ?? `file ${parts.size + 1}`;
      parts.set(inside, { name: part, sizeBytes, bytes: () => bytesOf(place, sizeBytes) });
      if (parts.size > PARTS_MAX) throw tooLarge(`More than ${PARTS_MAX} files are larger than 1 MiB`);
      changes.set(inside, { action: 'put', path: inside, mode, part });
      return;
    }
    leftBytes -= sizeBytes;
    if (leftBytes < 0) throw tooLarge('The files are too large for one request');
    const bytes = kind === 'link' ? await readlink(place, { encoding: 'buffer' }) : await readFile(place);
    changes.set(inside, { action: 'put', path: inside, mode, content_base64: bytes.toString('base64') });
  };
  for (const text of written) {
    const place = path.resolve(folder, text);
    insideOf(folder, place);
    await add(place);
  }
  for (const text of deleted) {
    const inside = insideOf(folder, path.resolve(folder, text));
    changes.set(`delete ${inside}`, { action: 'delete', path: inside });
  }
  return { changes: [...changes.values()], parts: [...parts.values()] };
}

function tooLarge(message: string): Failure {
  return new Failure(1, message, 'Push them with git');
}

/** Yields the bytes of a file, which the service is to be told the number of before. */
async function* bytesOf(place: string, sizeBytes: number): AsyncGenerator<Uint8Array> {
  let readBytes = 0;
  const stream: AsyncIterable<Buffer> = createReadStream(place, { highWaterMark: MIB });
  try {
    for await (const chunk of stream) {
      readBytes += chunk.length;
      if (readBytes > sizeBytes) break;
      yield chunk;
    }
  } catch (error) {
    throw new Failure(1, `${place} cannot be read: ${codeOf(error)}`);
  }
  if (readBytes !== sizeBytes) throw new Failure(1, `${place} was changed while it was sent`);
}

/** Returns the path below the folder, with slashes. */
function insideOf(folder: string, place: string): string {
  const inside = path.relative(folder, place).split(path.sep).join('/');
  if (inside !== '..' && !inside.startsWith('../') && !path.isAbsolute(inside)) return inside;
  throw usageFailure(`${place} is not in the current folder`, 'A file has the path that it has below this folder');
}

interface Kind {
  readonly kind: 'file' | 'link' | 'folder';
  readonly mode: '100644' | '100755' | '120000';
  readonly sizeBytes: number;
}

async function kindOf(place: string): Promise<Kind> {
  const found = await lstat(place).catch((error: unknown) => {
    throw new Failure(1, `${place} cannot be read: ${codeOf(error)}`);
  });
  const sizeBytes = found.size;
  if (found.isDirectory()) return { kind: 'folder', mode: '100644', sizeBytes };
  if (found.isSymbolicLink()) return { kind: 'link', mode: '120000', sizeBytes };
  if (found.isFile()) return { kind: 'file', mode: (found.mode & 0o100) === 0 ? '100644' : '100755', sizeBytes };
  throw new Failure(1, `${place} is no file, no folder and no link`);
}
