/**
 * What the inputs are made over: accounts with repositories, sessions, forms and ids, and packs that git made.
 *
 * Invariants: the accounts belong to the fuzz run alone. An account that inputs have closed, emptied or locked out
 * is made ready again or replaced, so that later inputs still get past the first check.
 */
import { execFileSync } from 'node:child_process';
import { pino } from 'pino';
import { composeFoundation } from '../../apps/server/foundation.ts';
import { readSettings } from '../../apps/server/settings.ts';
import type { Plan } from '../../core/account/plans.ts';
import { newAccount, newToken } from '../support/accounts.ts';
import type { Ending } from '../support/cleanup.ts';
import { csrfTokenOf, type SiteBrowser } from '../support/form-browser.ts';
import { wirePush } from '../support/git-wire.ts';
import { createSampleRepository } from '../support/sample-repository.ts';
import { browserOf } from '../support/site-browser.ts';
import { api, type Strata } from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';
import { EMPTY, FILLED, type FuzzAccount, PUSHED, type Scene } from './making.ts';
import { partsOf } from './packs.ts';
import { operationsOf } from './rest-inputs.ts';
import { cookieOf, crawl, NO_SITE, siteOf } from './site.ts';

/** The password of every account that `newAccount` makes. */
const PASSWORD = 'correct horse battery';
export type Served = Pick<Strata, 'url' | 'env'>;

/** Makes an account of each of these plans, filled and signed in. */
export async function makeScene(ending: Ending, served: Served, plans: readonly Plan[]): Promise<Scene> {
  const repository = createSampleRepository(await tempDir(ending));
  const run = (...args: string[]): Buffer => execFileSync('git', args, { cwd: repository, maxBuffer: 2 ** 26 });
  const listed = run('cat-file', '--batch-all-objects', '--batch-check').toString().trim().split('\n');
  const idsOf = (type: string): string[] =>
    listed.filter((line) => line.includes(` ${type} `)).map((line) => line.slice(0, 40));
  const whole = execFileSync('git', ['pack-objects', '--all', '--stdout', '--quiet'], { cwd: repository, input: '' });
  const thin = execFileSync('git', ['pack-objects', '--revs', '--thin', '--stdout', '--quiet', '--delta-base-offset'], {
    cwd: repository,
    input: 'main\n^main~3\n',
  });
  const refs = run('for-each-ref', '--format=%(objectname) %(refname)').toString().trim().split('\n');
  const document = await (await fetch(`${served.url}/v1/openapi.json`)).text();
  const content: Content = { pack: whole, refs };
  const opened = await openAccounts(served, plans);
  const made: FuzzAccount[] = [];
  let first: FuzzAccount | null = null;
  for (const account of opened) {
    const furnished = await furnish(served, content, account, first);
    first ??= furnished;
    made.push(furnished);
  }
  return {
    accounts: made,
    operations: operationsOf(document),
    packs: [partsOf(whole), partsOf(thin)],
    objects: { commit: idsOf('commit'), tree: idsOf('tree'), blob: idsOf('blob'), tag: idsOf('tag') },
    refs: refs.map((line) => line.slice(41)),
  };
}

interface Content {
  readonly pack: Buffer;
  /** `<id> <name>` each. */
  readonly refs: readonly string[];
}

type OpenedAccount = Pick<FuzzAccount, 'username' | 'plan' | 'id' | 'token'>;

async function openAccounts({ env }: Served, plans: readonly Plan[]): Promise<readonly OpenedAccount[]> {
  const foundation = await composeFoundation(readSettings(env, process.cwd()), pino({ level: 'silent' }), {
    besideServer: true,
    entitiesSizeBytesMax: 1024 * 1024,
    onFault: (what, cause) => {
      throw new Error(`A fault of ${what}`, { cause });
    },
  });
  try {
    const { context } = foundation;
    await context.entities.barrier();
    const opened: OpenedAccount[] = [];
    for (const [n, plan] of plans.entries()) {
      const username = `fuzz-${n}`;
      const id = await newAccount(context, username, plan);
      const { secret } = await newToken(context, id, { name: 'fuzz' });
      opened.push({ username, plan, id, token: secret });
    }
    return opened;
  } finally {
    await foundation.close();
  }
}

/** The pages of one account are found by following links; those of the others are the same but for ids and names. */
async function furnish(
  served: Served,
  content: Content,
  account: OpenedAccount,
  first: FuzzAccount | null,
): Promise<FuzzAccount> {
  const { username, token } = account;
  for (const name of [FILLED, EMPTY, PUSHED]) await call(served, token, 'POST', '/v1/repositories', { name });
  const commands = content.refs.map((line) => ({ after: line.slice(0, 40), ref: line.slice(41) }));
  const target = { strata: served, account, name: FILLED };
  const pushed = await wirePush(target, commands, content.pack);
  if (pushed.unpack !== 'ok') throw new Error(`The first push was refused: ${pushed.status} ${pushed.remote}`);
  const ids = await fill(served, token, username);
  const browser = await signedIn(served, username);
  const page = await browser.get('/new');
  const furnished = { ...account, ids, site: first === null ? await crawl(browser, username) : NO_SITE };
  if (first === null) return furnished;
  const names = new Map([[first.username, username], ...pairsOf(first.ids, ids)]);
  return { ...furnished, site: siteOf(first.site, names, cookieOf(browser), csrfTokenOf(page)) };
}

async function signedIn(served: Served, username: string): Promise<SiteBrowser> {
  const browser = browserOf(served.url);
  const page = await browser.submit('/sign-in', { login: username, password: PASSWORD });
  if (page.location !== `/${username}`) throw new Error(`${username} cannot sign in: ${page.status} ${page.html}`);
  return browser;
}

function pairsOf(from: FuzzAccount['ids'], to: FuzzAccount['ids']): readonly (readonly [string, string])[] {
  return Object.entries(from).flatMap(([kind, ids]) => ids.map((id, at) => [id, to[kind]?.[at] ?? id] as const));
}

/** Makes one of everything that the API can make without an outside server. */
async function fill(served: Served, token: string, username: string): Promise<Readonly<Record<string, string[]>>> {
  const idOf = (answer: unknown): string => (answer as { readonly id?: string }).id ?? '';
  const make = async (path: string, body: object): Promise<string> =>
    idOf(await call(served, token, 'POST', path, body));
  const repository = idOf(await call(served, token, 'GET', `/v1/repos/${username}/${FILLED}`));
  const gone = await make('/v1/repositories', { name: 'gone' });
  await call(served, token, 'DELETE', `/v1/repos/${username}/gone`);
  const hook = { url: 'https://127.0.0.1:9/hook', events: ['push'] };
  const rule = {
    name: 'spare',
    issuer: 'https://127.0.0.1:9',
    subject: 'job',
    grants: ['GIT_HTTP_READ'],
    scope: 'ALL_REPO',
  };
  const bucket = {
    ...{ name: 'spare', provider: 'S3', auth_mode: 'OIDC', bucket_name: 'layers' },
    role_arn: 'arn:aws:iam::123456789012:role/strata',
  };
  const settings = { name: 'spare', scope: 'ALL_REPO', grants: ['ALL'] };
  return {
    repository: [repository],
    repositories: [gone],
    webhooks: [await make('/v1/webhooks', hook)],
    'access-tokens': [await make('/v1/access-tokens', settings)],
    'trust-rules': [await make('/v1/oidc/trust-rules', rule)],
    'storage-buckets': [await make('/v1/storage-buckets', bucket)],
  };
}

async function call(served: Served, token: string, method: string, path: string, body?: object): Promise<unknown> {
  const answer = await api(served, token, method, path, body);
  if (answer.status >= 400) throw new Error(`${method} ${path} was answered ${answer.status}: ${answer.text}`);
  return answer.body;
}

/**
 * Looks at each account as its owner, and gives back what an input took: its session, its token's repositories. An
 * account that is beyond this is left as it is, since the others remain.
 */
export async function keepUsable(served: Served, scene: Scene): Promise<void> {
  for (const account of scene.accounts) {
    const page = await fetch(`${served.url}/new`, { headers: { Cookie: account.site.cookie }, redirect: 'manual' });
    await page.text();
    if (page.status === 200) continue;
    const browser = await signedIn(served, account.username).catch(() => null);
    if (browser === null) continue;
    const csrf = csrfTokenOf(await browser.get('/new'));
    Object.assign(account.site, siteOf(account.site, new Map(), cookieOf(browser), csrf));
  }
}
