/** What every client must read: from the answers that `recorded.json` holds, and from its calls. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { cleanUp, type Ending } from '../support/cleanup.ts';
import recorded from './recorded.json' with { type: 'json' };

/** Numbers that 32 bits cannot hold, one of alternatives, and null: beside a type, beside a reference, and always. */
export const RECORDED = {
  size_bytes: 3_221_225_472,
  used: 3_221_225_472,
  quota: null,
  type: 'submodule',
  size: null,
  tagger: null,
  author: 'Ada',
};

/** What the calls answer to the owner of a repository `engine`, whose README is `hello` and a line feed. */
export function liveCalls(username: string): object {
  return {
    repos: 2,
    full_name: `${username}/made`,
    description: 'changed',
    again: 'changed',
    total: 2,
    scope: 'ALL_REPO',
    content: 'hello\n',
    bytes: 6,
    taken: 409,
    written: { ref: 'refs/heads/main', kind: 'create', annotated: true },
    left: 1,
  };
}

/** Starts a server that answers what was recorded, by path, and returns its address. */
export async function startRecorded(ending: Ending): Promise<string> {
  const answers = new Map<string, object>(Object.entries(recorded));
  const server = createServer((request, response) => {
    const answer = answers.get(request.url?.split('?', 1)[0] ?? '');
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json; charset=utf-8' });
    response.end(JSON.stringify(answer ?? { detail: 'Not recorded' }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUp(ending, async () => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
