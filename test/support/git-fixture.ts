/** The Git endpoints over the ports of an API fixture, on a port of the loopback interface. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createRefAnswers } from '../../apps/git-http/advertise.ts';
import type { FinishedRequest, GitHttpContext } from '../../apps/git-http/context.ts';
import { createGitHandler } from '../../apps/git-http/handler.ts';
import type { ApiFixture, TestToken } from './api-fixture.ts';
import { layersIn } from './layers-in.ts';
import { createMemoryLayerStore } from './memory/layer-store.ts';
import { testPastRepositories } from './past-repositories.ts';

export interface GitFixture {
  readonly port: number;
  /** The base URL for git's own client. */
  readonly url: string;
  readonly finished: readonly FinishedRequest[];
  request(method: string, target: string, token: TestToken | null, options?: GitRequestOptions): Promise<GitAnswer>;
  close(): Promise<void>;
}

export interface GitRequestOptions {
  readonly body?: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface GitAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** `parts` replace those of the fixture's context. */
export async function startGit(fixture: ApiFixture, parts: Partial<GitHttpContext> = {}): Promise<GitFixture> {
  const finished: FinishedRequest[] = [];
  const handler = createGitHandler({
    ...fixture.context,
    pastRepositories: testPastRepositories({ ...fixture.context, ...parts }),
    layers: layersIn(createMemoryLayerStore()),
    onLayer: () => undefined,
    refAnswers: createRefAnswers('strata/test'),
    warmClones: { asked: () => undefined },
    onFinished: (request) => finished.push(request),
    ...parts,
  });
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return {
    port,
    url,
    finished,
    request: async (method, target, token, { body, headers = {} } = {}) => {
      const answer = await fetch(url + target, {
        method,
        headers: { ...(token === null ? {} : { authorization: basic(token) }), ...headers },
        ...(body === undefined ? {} : { body: new Uint8Array(body) }),
      });
      return { status: answer.status, headers: answer.headers, text: await answer.text() };
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Credentials as git sends them: a username, which the server ignores, and the token as the password. */
function basic({ secret }: TestToken): string {
  return `Basic ${Buffer.from(`git:${secret}`).toString('base64')}`;
}
