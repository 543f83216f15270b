/**
 * git's own HTTP server over one folder of repositories, for tests that compare with git's answers to real clients. It
 * records every request body, inflated.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer, text } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';

export interface RecordedRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly protocol: string;
  readonly body: Buffer;
}

export interface GitHttpBackend {
  readonly url: string;
  readonly requests: RecordedRequest[];
  close(): Promise<void>;
}

export async function startGitHttpBackend(projectRoot: string): Promise<GitHttpBackend> {
  const requests: RecordedRequest[] = [];
  const server = createServer((request, response) => {
    answer(projectRoot, request, response, requests).catch((error: unknown) => response.destroy(error as Error));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The server has no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function answer(
  projectRoot: string,
  request: IncomingMessage,
  response: ServerResponse,
  requests: RecordedRequest[],
): Promise<void> {
  const raw = await buffer(request);
  const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(raw) : raw;
  const method = request.method ?? 'GET';
  const target = request.url ?? '/';
  const protocol = request.headers['git-protocol'];
  requests.push({ method, target, protocol: typeof protocol === 'string' ? protocol : '', body });
  const cgi = await runHttpBackend(projectRoot, {
    method,
    target,
    protocol,
    body,
    type: request.headers['content-type'],
  });
  response.writeHead(cgi.status, cgi.headers);
  response.end(cgi.body);
}

interface CgiRequest {
  readonly method: string;
  readonly target: string;
  readonly protocol?: string | string[] | undefined;
  readonly body?: Uint8Array;
  readonly type?: string | undefined;
}

export interface CgiAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Whether git ended well: HTTP does not tell its client when git ends in the middle of an answer. */
  readonly endedWell: boolean;
  /** What git wrote to its standard error: a server keeps it in its log. */
  readonly messages: string;
}

/** Runs `git http-backend` for one request, without an HTTP server. */
export async function runHttpBackend(projectRoot: string, request: CgiRequest): Promise<CgiAnswer> {
  const [path = '/', query = ''] = request.target.split('?');
  const child = spawn('git', ['http-backend'], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_PROJECT_ROOT: projectRoot,
      GIT_HTTP_EXPORT_ALL: '1',
      PATH_INFO: path,
      QUERY_STRING: query,
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: request.type ?? '',
      GIT_PROTOCOL: String(request.protocol ?? ''),
    },
  });
  child.stdin.on('error', () => child.stdin.destroy());
  child.stdin.end(request.body ?? '');
  const [output, messages, [code]] = await Promise.all([
    buffer(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  const end = output.indexOf('\r\n\r\n');
  const headers: Record<string, string> = {};
  for (const line of output.subarray(0, end).toString().split('\r\n')) {
    const colon = line.indexOf(': ');
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 2);
  }
  const { status = '200', ...others } = headers;
  const body = output.subarray(end + 4);
  return { status: Number.parseInt(status, 10), headers: others, body, endedWell: code === 0, messages };
}
