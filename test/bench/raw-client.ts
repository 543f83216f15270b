/**
 * The requests of git commands, written by hand over one kept connection: for pushes whose packs no git made.
 *
 * Invariants: an operation is all requests that git sends for the command, and every answer is checked.
 */
import { createConnection } from './connection.ts';
import { perform } from './load.ts';
import type { Operation } from './operation.ts';
import type { SmallCommit } from './small-commits.ts';

const ZERO_ID = '0'.repeat(40);
const UPLOAD = 'git-upload-pack';
const VERSION = 'Git-Protocol: version=2\r\n';
const CAPABILITIES = ' report-status side-band-64k quiet object-format=sha1 agent=git/2.39.5';

export interface RawRef {
  readonly name: string;
  readonly before: string | null;
  readonly after: string;
}

export interface RawClient {
  /** Moves or creates refs. Resolves with the milliseconds that it took. */
  push(repository: string, refs: readonly RawRef[], pack: Buffer): Promise<number>;
  lsRemote(repository: string): Promise<number>;
  /** Clones one commit, as `git clone --depth=1` of its branch does. */
  shallowClone(repository: string, tip: string): Promise<number>;
  close(): void;
}

export function createRawClient(
  port: number,
  account: { readonly username: string; readonly token: string },
): RawClient {
  const connection = createConnection(port);
  const basic = Buffer.from(`${account.username}:${account.token}`).toString('base64');
  const headers = `Host: 127.0.0.1:${port}\r\nAuthorization: Basic ${basic}\r\nUser-Agent: git/2.39.5\r\n`;
  const get = (path: string, service: string, more = ''): Buffer =>
    Buffer.from(`GET ${path}/info/refs?service=${service} HTTP/1.1\r\n${headers}${more}\r\n`);
  const post = (path: string, service: string, body: Buffer, more = ''): readonly Buffer[] => [
    Buffer.from(
      `POST ${path}/${service} HTTP/1.1\r\n${headers}${more}Content-Type: application/x-${service}-request\r\n` +
        `Content-Length: ${body.length}\r\n\r\n`,
    ),
    body,
  ];
  const pathOf = (repository: string): string => `/r/${account.username}/${repository}.git`;
  const listing = (path: string, prefixes: readonly string[]): Operation => {
    const body = command('ls-refs', ['peel\n', 'symrefs\n', ...prefixes]);
    return [
      { parts: [get(path, UPLOAD, VERSION)], check: 'flush' },
      { parts: post(path, UPLOAD, body, VERSION), check: 'flush' },
    ];
  };
  const timed = async (operation: Operation): Promise<number> => {
    const since = performance.now();
    await perform(connection, operation);
    return performance.now() - since;
  };
  return {
    push(repository, refs, pack) {
      const path = pathOf(repository);
      const lines = refs.map(({ name, before, after }, index) =>
        packet(`${before ?? ZERO_ID} ${after} ${name}${index === 0 ? `\0${CAPABILITIES}` : ''}`),
      );
      const body = Buffer.concat([Buffer.from(`${lines.join('')}0000`, 'latin1'), pack]);
      return timed([
        { parts: [get(path, 'git-receive-pack')], check: 'flush' },
        { parts: post(path, 'git-receive-pack', body), check: 'report' },
      ]);
    },
    lsRemote: (repository) => timed(listing(pathOf(repository), [])),
    shallowClone(repository, tip) {
      const path = pathOf(repository);
      const lines = [`want ${tip}\n`, 'deepen 1\n', 'done\n'];
      const body = command('fetch', ['thin-pack\n', 'no-progress\n', 'include-tag\n', 'ofs-delta\n', ...lines]);
      const prefixes = ['ref-prefix HEAD\n', 'ref-prefix refs/heads/main\n'];
      return timed([...listing(path, prefixes), { parts: post(path, UPLOAD, body, VERSION), check: 'flush' }]);
    },
    close: () => connection.close(),
  };
}

/** The body of a command of protocol version 2 (gitprotocol-v2(5)). */
function command(name: string, args: readonly string[]): Buffer {
  const words = [`command=${name}\n`, 'object-format=sha1'].map(packet).join('');
  return Buffer.from(`${words}0001${args.map(packet).join('')}0000`);
}

/** Pushes some commits of a chain to one branch, one after the other. Resolves with the milliseconds of each. */
export async function pushChain(
  client: RawClient,
  repository: string,
  next: () => SmallCommit,
  until: { readonly pushesMax: number; readonly deadline: number },
): Promise<readonly number[]> {
  const took: number[] = [];
  while (took.length < until.pushesMax && (took.length === 0 || performance.now() < until.deadline)) {
    const { id, parent, pack } = next();
    took.push(await client.push(repository, [{ name: 'refs/heads/main', before: parent, after: id }], pack));
  }
  return took;
}

/** pkt-line (gitprotocol-common(5)): four hex digits of the length, which includes them. */
function packet(text: string): string {
  return (text.length + 4).toString(16).padStart(4, '0') + text;
}
