/**
 * Fills a running server with the demo: one account, three repositories and their pushes, a deleted one, tokens,
 * webhooks with deliveries of every status, storage buckets and a trust rule. It uses what a person would: the API, and
 * git over HTTP.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { type Account, admin, api, git, gitUrl, type Strata } from '../support/strata.ts';
import type { History } from './history.ts';
import { dotfiles, handbook, lantern } from './repositories.ts';

export const DEMO = { username: 'ada', email: 'ada@example.org', password: 'correct horse battery' } as const;

type Server = Pick<Strata, 'env' | 'url'>;

export interface Receivers {
  /** An address that answers 204, and one where nobody answers. */
  readonly kind: string;
  readonly dead: string;
}

const CREATED = z.object({ id: z.string() });
const TOKEN = z.object({ id: z.string(), token: z.string() });
const DELIVERIES = z.object({ deliveries: z.array(z.object({ status: z.string(), attempts: z.number() })) });

export async function fillDemo(server: Server, receivers: Receivers): Promise<void> {
  const account = await createAccount(server);
  const call = async (method: string, target: string, body?: unknown): Promise<unknown> => {
    const answer = await api(server, account.token, method, target, body);
    if (answer.status >= 300) throw new Error(`${method} ${target}: ${answer.status} ${answer.text}`);
    return answer.body;
  };
  const repositories = new Map<string, string>();
  for (const [name, description] of [
    ['lantern', 'Knows when to light a lantern, how bright, and in which colour'],
    ['handbook', 'How we work together'],
    ['dotfiles', null],
  ] as const) {
    const created = CREATED.parse(await call('POST', '/v1/repositories', { name, description }));
    repositories.set(name, created.id);
  }
  await call('POST', '/v1/repositories', { name: 'sketches', description: null });
  await call('DELETE', `/v1/repos/${account.username}/sketches`);
  const selected = [repositories.get('lantern') ?? ''];
  const ci = TOKEN.parse(
    await call('POST', '/v1/access-tokens', {
      ...{ name: 'build server', grants: ['GIT_HTTP_WRITE', 'API_COMMITS_READ'], scope: 'SELECTED_REPO' },
      ...{ repository_ids: selected, expires_at: '2030-01-01T00:00:00.000Z' },
    }),
  );
  const reader = { name: 'backup', grants: ['GIT_HTTP_READ'], scope: 'ALL_REPO' };
  await call('POST', '/v1/access-tokens', reader);
  const hook = async (url: string, events: readonly string[]): Promise<string> =>
    CREATED.parse(await call('POST', '/v1/webhooks', { url, events })).id;
  const kind = await hook(receivers.kind, ['push', 'create', 'delete']);
  const failing = await hook(`${receivers.dead}/build`, ['create']);
  await makeBuckets(server, account);
  await call('POST', '/v1/oidc/trust-rules', {
    ...{
      name: 'Lantern releases',
      issuer: 'https://token.actions.githubusercontent.com',
      claims: { ref_protected: 'true' },
    },
    ...{ subject: 'repo:ada/lantern:ref:refs/heads/*', grants: ['GIT_HTTP_WRITE'], scope: 'SELECTED_REPO' },
    repository_ids: selected,
  });
  await pushAll(server, account, { ...account, token: ci.token });
  await call('POST', `/v1/webhooks/${kind}/ping`);
  await failDeliveries(call, failing);
  const waiting = await hook(`${receivers.dead}/chat`, ['push']);
  await call('POST', `/v1/webhooks/${waiting}/ping`);
}

/** One is pending and the other failed: no provider of the demo has a bucket. */
async function makeBuckets(server: Server, { token }: Account): Promise<void> {
  const create = async (body: object) =>
    CREATED.parse((await api(server, token, 'POST', '/v1/storage-buckets', body)).body).id;
  await create({
    ...{ name: 'Archive', provider: 'S3', auth_mode: 'OIDC', bucket_name: 'ada-archive', key_prefix: 'strata' },
    role_arn: 'arn:aws:iam::123456789012:role/strata',
  });
  const attic = await create({
    ...{ name: 'Attic', provider: 'MINIO', auth_mode: 'STATIC_KEYS', bucket_name: 'attic', region: 'us-east-1' },
    ...{ endpoint_url: 'https://minio.invalid:9000', access_key_id: 'demo', secret_access_key: 'demo' },
  });
  await api(server, token, 'POST', `/v1/storage-buckets/${attic}/verify`);
}

async function createAccount(server: Server): Promise<Account> {
  const { username, email, password } = DEMO;
  const args = ['account', 'create', '--username', username, '--email', email, '--password-stdin'];
  const { id } = CREATED.parse(await admin(server, args, `${password}\n`));
  const token = TOKEN.parse(await admin(server, ['token', 'create', '--username', username, '--name', 'laptop']));
  return { id, username, token: token.token };
}

/** Deliveries fail without another attempt once their webhook is inactive, which the next attempt looks at. */
async function failDeliveries(call: (method: string, target: string, body?: unknown) => Promise<unknown>, id: string) {
  const deliveries = async () => DELIVERIES.parse(await call('GET', `/v1/webhooks/${id}/deliveries`)).deliveries;
  while ((await deliveries()).every(({ attempts }) => attempts === 0)) await sleep(100);
  await call('PUT', `/v1/webhooks/${id}`, { active: false });
  while ((await deliveries()).some(({ status }) => status === 'PENDING')) await sleep(200);
  await call('PUT', `/v1/webhooks/${id}`, { active: true });
}

async function pushAll(server: Server, person: Account, build: Account): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'strata-demo-'));
  try {
    await withHistory(path.join(folder, 'lantern'), lantern(), async (run) => {
      const remote = gitUrl(server, person, 'lantern');
      const push = (...refs: readonly string[]) => run(['push', '--quiet', '--force', remote, ...refs]);
      await push('refs/stages/begun:refs/heads/main');
      await push('add-clamp', 'add-ease');
      await push('refs/stages/after-ease:refs/heads/main', 'refs/tags/v0.1.0');
      await push('refs/stages/after-glow:refs/heads/main', 'refs/tags/v0.3.0', 'add-glow');
      await run(['push', '--quiet', gitUrl(server, build, 'lantern'), 'refs/stages/after-schedule:refs/heads/main']);
      await push('refs/tags/v0.5.0', ':refs/heads/add-clamp');
      await push('refs/stages/moonlight-first:refs/heads/moonlight');
      await push('moonlight-again:refs/heads/moonlight');
      await push('main');
    });
    await withHistory(path.join(folder, 'handbook'), handbook(), async (run) => {
      await run(['push', '--quiet', gitUrl(server, person, 'handbook'), 'main~6:refs/heads/main']);
      await run(['push', '--quiet', gitUrl(server, person, 'handbook'), 'main']);
    });
    await withHistory(path.join(folder, 'dotfiles'), dotfiles(), async (run) => {
      await run(['push', '--quiet', gitUrl(server, person, 'dotfiles'), 'master']);
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

type Run = (args: readonly string[]) => Promise<string>;

async function withHistory(folder: string, history: History, use: (run: Run) => Promise<void>): Promise<void> {
  await git(path.dirname(folder), ['init', '--quiet', '--bare', folder]);
  await git(folder, ['fast-import', '--quiet', '--done'], history.toString());
  await use((args) => git(folder, args));
}
