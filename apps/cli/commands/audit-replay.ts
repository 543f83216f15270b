/**
 * `strata audit replay`: rebuilds the account from an export, and compares it with what the service shows.
 *
 * Invariants: without --compare no request is sent. What the service answers is compared byte by byte, not by the
 * digest that it names.
 */
import { createHash } from 'node:crypto';
import { digestIn, parseMoment, type Replayed, replayFile } from '../../replay/replay.ts';
import type { Context, Given } from '../session/context.ts';
import { codeOf, Failure, usageFailure } from '../session/failure.ts';
import { signedIn } from '../session/host.ts';
import { fieldsText } from '../terminal/table.ts';

export async function auditReplay(context: Context, given: Given): Promise<void> {
  const { terminal, globals } = context;
  const text = given.text('at');
  const at = text === undefined ? null : parseMoment(text);
  if (text !== undefined && at === null) throw usageFailure(`${text} is no RFC 3339 time such as 2026-11-21T10:00:00Z`);
  const file = given.argument('file');
  const replayed = await replay(file, () => replayFile(file, at, globals.json ? terminal.out : () => undefined));
  if (replayed === null) throw new Failure(1, 'There was no account yet at this moment');
  if (globals.json) {
    terminal.out('\n');
  } else {
    const fields = [
      ['entries', String(replayed.sequence)],
      ['last entry', replayed.logTime ?? ''],
      ['digest', replayed.digest],
    ] as const;
    terminal.out(fieldsText(terminal, fields));
  }
  const service = given.text('compare');
  if (service !== undefined) await compare(context, service, replayed, at ?? replayed.logTime ?? '');
}

async function replay<Result>(file: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Error && 'syscall' in error) throw new Failure(1, `${file} cannot be read: ${codeOf(error)}`);
    if (error instanceof Error && (error.name === 'ReplayError' || error instanceof TypeError)) {
      throw new Failure(1, `${file}: ${error.message}`, 'strata audit verify names what is wrong with an export');
    }
    throw error;
  }
}

/** The digest is in the last characters of the answer. */
const TAIL_LENGTH = 100;

async function compare(context: Context, service: string, replayed: Replayed, at: string): Promise<void> {
  const { client, host } = await signedIn({ ...context, globals: { ...context.globals, baseUrl: service } });
  const query = new URLSearchParams({ at }).toString();
  const answer = await client.send({ method: 'GET', target: `/v1/account/state?${query}` });
  const hash = createHash('sha256');
  let tail = '';
  for await (const bytes of answer.body) {
    hash.update(bytes);
    tail = `${tail}${Buffer.from(bytes).toString('latin1')}`.slice(-TAIL_LENGTH);
  }
  if (answer.status !== 200) throw new Failure(1, `${host.baseUrl} answered with status ${answer.status}`);
  if (hash.digest('hex') === replayed.textDigest) {
    context.terminal.say(`${host.baseUrl} shows the same account`);
    return;
  }
  const named = digestIn(tail) ?? 'none';
  throw new Failure(1, `${host.baseUrl} shows another account: its digest is ${named}`);
}
