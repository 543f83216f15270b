/**
 * Runs the commands of a case against one side, and tells what the client then has.
 *
 * Invariants: a client's commits have fixed dates, so that the same commands make the same ids on both sides.
 */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Finished, git, tryGit } from '../support/strata.ts';
import type { Observation } from './answers.ts';
import type { ClientCase } from './cases.ts';
import type { Side } from './sides.ts';

const DATE = '1700100000 +0000';
const VARIABLES = { GIT_AUTHOR_DATE: DATE, GIT_COMMITTER_DATE: DATE };
/** No promised object may be fetched by looking. */
const LOOKING = { GIT_NO_LAZY_FETCH: '1' };
/** What git writes when its connection was cut, or when it got a status of an outage. */
const OUTAGE = /error: 5\d\d|early EOF|hung up|unexpected disconnect|RPC failed/;
/** What git writes when it was refused by an ERR packet; it can then say as well that the remote hung up. */
const REFUSED = /remote error: (.*)/;
/** What git writes when it ends an exchange itself: the helper that speaks HTTP then says that the remote hung up. */
const ENDED_ITSELF = /fatal: (?:error in object|object not found): (?:un)?shallow /;

export interface Ran {
  readonly observation: Observation;
  /** What the client was told, for a person who reads a difference. */
  readonly messages: string;
  /** The text of the first ERR packet. */
  readonly told: string;
  readonly isOutage: boolean;
}

export async function runClient(folder: string, side: Side, { protocol, repository, steps }: ClientCase): Promise<Ran> {
  const own = await mkdtemp(join(folder, 'client-'));
  const [url, work] = [side.url(repository), join(own, 'repo')];
  const observation: Record<string, readonly string[]> = {};
  let messages = '';
  try {
    for (const [at, step] of steps.entries()) {
      const command = step.map((word) => (word === 'URL' ? url : word));
      const isFirst = step[0] === 'clone' || step[0] === 'ls-remote';
      // A client whose clone was refused or left out begins with nothing.
      if (!isFirst) await beginWithNothing(work);
      const finished = await tryGit(
        isFirst ? own : work,
        ['-c', `protocol.version=${protocol}`, ...command],
        undefined,
        VARIABLES,
      );
      observation[`exit status of command ${at + 1}`] = [String(finished.code)];
      if (step[0] === 'ls-remote') observation[`output of command ${at + 1}`] = linesOf(finished);
      messages += finished.stderr;
    }
    Object.assign(observation, await stateOf(work));
  } finally {
    // A helper of a git that ended itself may still clean up there.
    await rm(own, { recursive: true, force: true, maxRetries: 5 });
  }
  const [, told = ''] = REFUSED.exec(messages) ?? [];
  return {
    observation,
    messages: messages.replaceAll(url, 'URL'),
    isOutage: OUTAGE.test(messages) && told === '' && !ENDED_ITSELF.test(messages),
    told,
  };
}

/** The folder that git writes to; null if there is no repository. */
function gitFolder(work: string): string | null {
  const bare = existsSync(join(work, 'HEAD')) ? work : null;
  return existsSync(join(work, '.git')) ? join(work, '.git') : bare;
}

async function beginWithNothing(work: string): Promise<void> {
  if (gitFolder(work) !== null) return;
  await mkdir(work, { recursive: true });
  await git(work, ['init', '--quiet', '--initial-branch=main']);
}

async function stateOf(work: string): Promise<Observation> {
  const folder = gitFolder(work);
  if (folder === null) return {};
  const run = async (...args: readonly string[]): Promise<readonly string[]> =>
    linesOf(await tryGit(work, args, undefined, LOOKING));
  const shallow = await readFile(join(folder, 'shallow'), 'utf8').catch(() => '');
  return {
    refs: await run('for-each-ref', '--format=%(objectname) %(refname) %(symref)'),
    HEAD: await run('symbolic-ref', 'HEAD'),
    shallow: shallow.split('\n').filter(Boolean).toSorted(),
    objects: await run('cat-file', '--batch-all-objects', '--batch-check=%(objectname)'),
  };
}

function linesOf({ stdout }: Finished): readonly string[] {
  return stdout.split('\n').filter(Boolean);
}
