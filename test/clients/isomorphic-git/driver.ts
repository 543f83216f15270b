/** Drives isomorphic-git: git in JavaScript, which shares no code with git. */
import fs from 'node:fs';
import { text } from 'node:stream/consumers';
import git, { Errors } from 'isomorphic-git';
import http from 'isomorphic-git/http/node';
import type { DriverAnswer, DriverRequest } from '../driver-protocol.ts';

/** The largest depth that the protocol knows means the whole history (shallow.h of git, INFINITE_DEPTH). */
const WHOLE_HISTORY = 0x7fffffff;

const request = JSON.parse(await text(process.stdin)) as DriverRequest;
const said: string[] = [];
process.stdout.write(`${JSON.stringify(await answerTo(request))}\n`);

async function answerTo(asked: DriverRequest): Promise<DriverAnswer> {
  if (asked.operation === 'version') return { outcome: 'ok', version: git.version() };
  try {
    await carryOut(asked);
    return { outcome: 'ok' };
  } catch (error) {
    return { outcome: 'refused', words: [...said, wordsOf(error)].join('\n') };
  }
}

/** An HTTP error holds the body of the answer beside its message. */
function wordsOf(error: unknown): string {
  if (error instanceof Errors.HttpError) return `${error.message} ${error.data.response}`;
  return error instanceof Error ? error.message : String(error);
}

async function carryOut(asked: Exclude<DriverRequest, { readonly operation: 'version' }>): Promise<void> {
  const { url, username, token, folder } = asked;
  const repository = {
    fs,
    http,
    dir: folder,
    url,
    onAuth: () => ({ username, password: token }),
    onMessage: (message: string) => void said.push(message),
  };
  switch (asked.operation) {
    case 'clone':
      await git.clone({ ...repository, ...(asked.depth === undefined ? {} : { depth: asked.depth }) });
      return;
    case 'fetch':
      await git.fetch({ ...repository, remote: 'origin', tags: true });
      return;
    case 'unshallow':
      await git.fetch({ ...repository, remote: 'origin', tags: true, depth: WHOLE_HISTORY });
      return;
    case 'push': {
      const { force, source, target } = partsOf(asked.refspec);
      // It wants a ref of the clone also for a deletion, and does not use it then.
      const refs = { ref: source === '' ? 'HEAD' : source, remoteRef: target };
      const pushed = await git.push({ ...repository, ...refs, force, delete: source === '' });
      if (!pushed.ok) throw new Error(JSON.stringify(pushed));
    }
  }
}

function partsOf(refspec: string): { readonly force: boolean; readonly source: string; readonly target: string } {
  const [source = '', target = ''] = refspec.replace(/^\+/, '').split(':');
  return { force: refspec.startsWith('+'), source, target };
}
