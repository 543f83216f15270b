/**
 * The two servers of the same repositories: this service, and `git http-backend`, which is configured as this service
 * means to behave (docs/git-path.md, Fetch).
 *
 * Invariants: both are on the loopback interface, and end with the run.
 */
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { startService } from '../fuzz/service.ts';
import { cleanUp, type Ending } from '../support/cleanup.ts';
import { runGit } from '../support/git.ts';
import { runHttpBackend, startGitHttpBackend } from '../support/git-http-backend.ts';
import { basicAuthorization } from '../support/git-wire.ts';
import { api, createAccount, gitUrl } from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';
import { bodyOf, type RequestCase } from './cases.ts';
import { REPOSITORIES, type RepositoryName, type Source } from './repository.ts';

export interface Answer {
  /** Null: the connection was cut. */
  readonly status: number | null;
  readonly body: Buffer;
  /** Whether git is known to have ended in the middle: over HTTP its client can see only that something is missing. */
  readonly endedEarly: boolean;
}

export interface Side {
  readonly name: string;
  /** The address for clients, with credentials. */
  url(repository: RepositoryName): string;
  send(request: RequestCase): Promise<Answer>;
  /** What it has logged since the last call that tells of a fault of its own. */
  takeFaults(): readonly string[];
}

/** What the service allows, as settings of upload-pack. */
const CONFIG = [
  ...[
    ['uploadpack.allowAnySHA1InWant', 'true'],
    ['uploadpack.allowFilter', 'true'],
    ['uploadpackfilter.allow', 'false'],
  ],
  ...['blob:none', 'blob:limit', 'tree'].map((filter) => [`uploadpackfilter.${filter}.allow`, 'true']),
  ...[
    ['uploadpackfilter.tree.maxDepth', '16'],
    ['http.receivepack', 'true'],
    ['gc.auto', '0'],
  ],
] as const;

export async function startBackend(ending: Ending, source: Source): Promise<Side> {
  const root = await tempDir(ending);
  const backend = await startGitHttpBackend(root);
  cleanUp(ending, () => backend.close());
  const url: Side['url'] = (repository) => `${backend.url}/${repository}.git`;
  for (const name of REPOSITORIES) {
    const path = join(root, `${name}.git`);
    runGit(['init', '--quiet', '--bare', '--initial-branch=main', path]);
    for (const [key, value] of CONFIG) runGit(['config', key ?? '', value ?? ''], { cwd: path });
    source.push(name, path);
  }
  return {
    name: 'git http-backend',
    url,
    async send({ repository, protocol, target, lines }) {
      const { status, body, endedWell } = await runHttpBackend(root, {
        method: lines === null ? 'GET' : 'POST',
        target: `/${repository}.git/${target}`,
        ...(protocol === null ? {} : { protocol }),
        ...(lines === null ? {} : { body: bodyOf(lines), type: REQUEST_TYPE }),
      });
      return { status, body, endedEarly: !endedWell };
    },
    takeFaults: () => [],
  };
}

const REQUEST_TYPE = 'application/x-git-upload-pack-request';

export async function startOurs(ending: Ending, source: Source): Promise<Side> {
  const service = await startService(ending, { STRATA_RATE_FACTOR: '100000' });
  const account = await createAccount(service, 'ada');
  for (const name of REPOSITORIES) {
    const wanted = { name, default_branch: 'main' };
    const { status, text } = await api(service, account.token, 'POST', '/v1/repositories', wanted);
    if (status !== 201) throw new Error(`The repository was not created: ${status} ${text}`);
    source.push(name, gitUrl(service, account, name));
  }
  return {
    name: 'this service',
    url: (repository) => gitUrl(service, account, repository),
    async send({ repository, protocol, target, lines }) {
      const body = lines === null ? null : bodyOf(lines);
      // Git sends what is longer than a KiB in gzip.
      const isZipped = body !== null && body.length > 1_024;
      const headers = {
        Authorization: basicAuthorization(account),
        ...(protocol === null ? {} : { 'Git-Protocol': protocol }),
        ...(body === null ? {} : { 'Content-Type': REQUEST_TYPE }),
        ...(isZipped ? { 'Content-Encoding': 'gzip' } : {}),
      };
      try {
        const response = await fetch(`${service.url}/r/${account.username}/${repository}.git/${target}`, {
          method: body === null ? 'GET' : 'POST',
          headers,
          ...(body === null ? {} : { body: new Uint8Array(isZipped ? gzipSync(body) : body) }),
        });
        return { status: response.status, body: Buffer.from(await response.arrayBuffer()), endedEarly: false };
      } catch {
        return { status: null, body: Buffer.alloc(0), endedEarly: true };
      }
    },
    takeFaults: () => service.takeFaults(),
  };
}
