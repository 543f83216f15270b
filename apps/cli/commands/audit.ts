/**
 * `strata audit log`, `export` and `verify`.
 *
 * Invariants: an export that did not come to its end never takes the place of a file. Verifying asks nobody.
 */
import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { parseKey } from '../../verifier/checkpoint.ts';
import { readCheckpoint, readKeys } from '../../verifier/file.ts';
import { exportsOf, type Judged, judge, NoExportError, together } from '../../verifier/judge.ts';
import type { RevokedKey } from '../../verifier/keys.ts';
import { FORM_1_WARNING, isDecided, type ReportOptions, reportText } from '../../verifier/report.ts';
import { parseInstant } from '../../verifier/slice.ts';
import type { Verified } from '../../verifier/verify.ts';
import { ApiError } from '../client/client.ts';
import type { Operations } from '../client/operations.ts';
import { readText, type WireAnswer } from '../client/transport.ts';
import type { Context, Given } from '../session/context.ts';
import { codeOf, Failure, usageFailure } from '../session/failure.ts';
import { signedIn } from '../session/host.ts';
import { type Column, tableText } from '../terminal/table.ts';
import { timeCell } from '../terminal/values.ts';
import { given as givenOnly, show } from './show.ts';

type Entry = Operations['listAccountEvents']['answer']['events'][number]['entry'];

const COLUMNS: readonly Column<Entry>[] = [
  { title: 'SEQUENCE', text: ({ sequence }) => String(sequence), right: true },
  { title: 'AT', text: ({ occurred_at }, exact) => timeCell(occurred_at, exact) },
  { title: 'TYPE', text: ({ type }) => type },
  { title: 'STREAM', text: ({ stream }) => stream },
  { title: 'BY', text: ({ actor }) => `${actor.kind} ${actor.id}` },
];

export async function log(context: Context, given: Given): Promise<void> {
  const query = givenOnly({
    after: given.number('after'),
    limit: given.number('limit'),
    type: given.text('type'),
    stream: given.text('stream'),
    repository_id: given.text('repository-id'),
    actor_id: given.text('actor-id'),
    request_id: given.text('request-id'),
    since: given.text('since'),
    until: given.text('until'),
  });
  await show(context, 'listAccountEvents', { query }, ({ events, pagination }) => {
    if (pagination.has_more) context.terminal.say(`There are more: --after ${pagination.next_after}`);
    return tableText(
      context.terminal,
      COLUMNS,
      events.map(({ entry }) => entry),
    );
  });
}

export async function exportLog(context: Context, given: Given): Promise<void> {
  const { client } = await signedIn(context);
  const query = new URLSearchParams(givenOnly({ since: given.text('since'), until: given.text('until') }));
  const target = `/v1/account/events/export${query.size === 0 ? '' : `?${query.toString()}`}`;
  const answer = await client.send({ method: 'GET', target });
  if (answer.status !== 200) {
    throw new ApiError(answer.status, await readText(answer.body), answer.header('x-request-id'));
  }
  const file = resolve(context.folder, given.argument('file'));
  const bytes = await save(answer, file);
  if (context.globals.json) context.terminal.out(`${JSON.stringify({ file, bytes })}\n`);
  else context.terminal.out(`Saved ${bytes} bytes in ${file}\n`);
}

/** The last line of a slice has two lists of hashes, which a log of any length keeps far shorter. */
const LAST_LINE_BYTES_MAX = 64 * 1024;

/** Writes beside the file, and gives it its name when it is complete and on the disk. Returns its size. */
async function save(answer: WireAnswer, file: string): Promise<number> {
  const partial = join(dirname(file), `.${basename(file)}.${randomBytes(6).toString('hex')}`);
  let isSaved = false;
  try {
    const handle = await open(partial, 'wx', 0o600);
    let bytes = 0;
    try {
      let tail = Buffer.alloc(0);
      for await (const chunk of answer.body) {
        await handle.writeFile(chunk);
        bytes += chunk.length;
        tail = Buffer.concat([tail, chunk]).subarray(-LAST_LINE_BYTES_MAX);
      }
      const lines = tail.toString('utf8').split('\n');
      if (lines.pop() !== '' || lines.at(-1)?.startsWith('{"checkpoint":') !== true) {
        throw new Failure(1, 'The export was cut off before its checkpoint', 'Try again');
      }
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(partial, file);
    isSaved = true;
    return bytes;
  } catch (error) {
    throw error instanceof Error && 'syscall' in error
      ? new Failure(1, `${file} cannot be written: ${codeOf(error)}`)
      : error;
  } finally {
    if (!isSaved) await rm(partial, { force: true });
  }
}

export async function verify(context: Context, given: Given): Promise<void> {
  const named = (name: string): string => resolve(context.folder, name);
  const paths = given.several('file');
  if (paths.length === 0) throw usageFailure('No file is named', 'Name exports, or a folder of them');
  const keysFile = given.text('keys');
  const keys = keysFile === undefined ? null : await readingGiven(named(keysFile), readKeys);
  const kept = given.list('checkpoint') ?? [];
  const older = await Promise.all(kept.map((name) => readingGiven(named(name), readCheckpoint)));
  const revoked = revokedOf(given);
  const asked = { since: timeOf(given, 'since'), until: timeOf(given, 'until') };
  const files = await filesOf(paths.map(named));
  const options = { withKeys: keys !== null, isAsked: asked.since !== null || asked.until !== null };
  const all: Judged[] = [];
  for await (const judged of judge(files, { keys, older, asked, revoked })) {
    all.push(judged);
    // The failure at the end names a single one.
    if (files.length > 1 || judged.verified !== null) showJudged(context, judged, options, files.length > 1);
  }
  const { status, unused } = together(all, older);
  for (const { origin } of unused) context.terminal.warn(`No export is of ${origin}, as a given checkpoint is`);
  if (status === 0) return;
  const [first] = all;
  if (all.length === 1 && first?.verified === null) throw new Failure(status, first.why);
  if (all.length === 1) throw new Failure(2, 'Nothing is wrong with it, and it is not verified');
  const count = all.filter((judged) => judged.status === status).length;
  throw new Failure(status, `${count} of ${all.length} exports ${status === 1 ? 'refuted' : 'not decidable'}`);
}

function showJudged({ globals, terminal }: Context, judged: Judged, options: ReportOptions, isNamed: boolean): void {
  const { file, status, verified } = judged;
  if (verified === null) {
    const verdict = status === 1 ? 'refuted' : 'undecided';
    if (globals.json) terminal.out(`${JSON.stringify({ file, verdict, fault: judged.why })}\n`);
    else terminal.warn(judged.why);
    return;
  }
  if (verified.range === null) terminal.warn(`${file}: ${FORM_1_WARNING}`);
  if (globals.json) terminal.out(`${JSON.stringify({ file, ...jsonOf(verified) })}\n`);
  else terminal.out(`${isNamed ? `${file}\n` : ''}${reportText(verified, options)}`);
}

function revokedOf(given: Given): RevokedKey | null {
  const [line, after] = [given.text('revoke'), given.number('after')];
  if (line === undefined && after === undefined) return null;
  if (line === undefined || after === undefined) throw usageFailure('Give --revoke and --after together');
  const key = parseKey(line);
  if (key === null)
    throw usageFailure('--revoke is no key <name>+<hash>+<base64>', "Give a line of the service's list");
  return { key, after };
}

async function filesOf(paths: readonly string[]): Promise<readonly string[]> {
  try {
    return await exportsOf(paths);
  } catch (error) {
    if (error instanceof NoExportError) throw usageFailure(error.message);
    throw error instanceof Error && 'path' in error
      ? usageFailure(`${String(error.path)} cannot be read: ${codeOf(error)}`)
      : error;
  }
}

function timeOf(given: Given, name: string): string | null {
  const text = given.text(name);
  const at = text === undefined ? null : parseInstant(text);
  if (text !== undefined && at === null) throw usageFailure(`${text} is no RFC 3339 time such as 2026-11-21T10:00:00Z`);
  return at;
}

function jsonOf(verified: Verified): object {
  const { checkpoint, from, to, isWhole, openings, guards, range, isSigned, older, undecided } = verified;
  const { account, origin, size } = checkpoint;
  return {
    verdict: isDecided(verified) ? 'verified' : 'undecided',
    account,
    log: origin,
    from,
    entries: to - from - guards,
    guards,
    log_size: size,
    whole: isWhole,
    openings,
    signed: isSigned,
    since: range?.since ?? null,
    until: range?.until ?? null,
    range_proved: range !== null,
    older_checkpoints: older.length,
    open: undecided,
  };
}

/** A file that cannot be used leaves the verdict open. */
async function readingGiven<Content>(file: string, read: (file: string) => Promise<Content>): Promise<Content> {
  try {
    return await read(file);
  } catch (error) {
    if (error instanceof SyntaxError) throw usageFailure(`${file}: ${error.message}`);
    if (error instanceof Error && 'syscall' in error) throw usageFailure(`${file} cannot be read: ${codeOf(error)}`);
    throw error;
  }
}

/** Reads a file; a fault in it, or of the disk, is a failure that names it. */
export async function reading<Content>(file: string, read: (file: string) => Promise<Content>): Promise<Content> {
  try {
    return await read(file);
  } catch (error) {
    if (error instanceof SyntaxError) throw new Failure(1, `${file}: ${error.message}`);
    throw new Failure(1, `${file} cannot be read: ${codeOf(error)}`);
  }
}
