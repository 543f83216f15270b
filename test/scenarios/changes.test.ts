/**
 * A plan's changes of a month on a real service of two nodes: what counts as one, who is refused beyond them and how,
 * and that neither a restart nor a rebuild gives any back.
 */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import { person } from '../support/person.ts';
import {
  type Account,
  admin,
  api,
  createAccount,
  createRefs,
  createRepository,
  createToken,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
  tryGit,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

const UNLIMITED = { repos: null, storage_bytes: null, transfer_bytes: null, ingress_bytes: null, byo_storage: true };
/** Tokens leave 1,000 to the person. */
const QUOTA = 1_008;
/** They leave the person all of a smaller quota. */
const SMALL = 3;
const PASSWORD = 'correct horse battery';

interface Figure {
  readonly used: number;
  readonly quota: number | null;
}

describe('The changes of a month', () => {
  const ending = suiteEnding();
  let shared: SharedParts;
  let one: Strata;
  let two: Strata;

  beforeAll(async () => {
    const plans = path.join(await tempDir(ending), 'plans.json');
    const FREE = { ...UNLIMITED, changes_per_month: QUOTA };
    const PRO = { ...UNLIMITED, changes_per_month: SMALL };
    await writeFile(plans, JSON.stringify({ FREE, PRO, PLATFORM: UNLIMITED }));
    shared = await sharedParts(ending);
    const env = { STRATA_PLANS: plans };
    [one, two] = await Promise.all([startNode(ending, shared, env), startNode(ending, shared, env)]);
  });

  async function changesOf(account: Account, strata: Strata = one): Promise<Figure> {
    const answer = await api(strata, account.token, 'GET', '/v1/account/usage');
    assert.equal(answer.status, 200, answer.text);
    return (answer.body as { readonly changes: Figure }).changes;
  }

  test('are requests and pushes that append to the record: one each, however many events and streams', async (context) => {
    const ann = await createAccount(one, 'ann', 'PLATFORM');
    assert.deepEqual(await changesOf(ann), { used: 0, quota: null }, 'strata-admin made the account and its token');
    const counts = async (changes: number, what: string, change: () => Promise<unknown>): Promise<void> => {
      const { used: before } = await changesOf(ann);
      await change();
      assert.equal((await changesOf(ann)).used - before, changes, what);
    };
    const url = gitUrl(one, ann, 'counted');
    const work = await newWorkTree(context);
    const ok = async (method: string, target: string, body?: unknown) => {
      const answer = await api(one, ann.token, method, target, body);
      assert.ok(answer.status < 300, `${method} ${target}: ${answer.status} ${answer.text}`);
      return answer.body as { readonly id: string };
    };
    await counts(1, 'a repository', () => createRepository(one, ann, 'counted'));
    await counts(1, 'a push of branches that chooses the default one', () =>
      git(work, ['push', '-q', url, 'main', 'main:other']),
    );
    const head = (await git(work, ['rev-parse', 'HEAD'])).trim();
    const names = Array.from({ length: 500 }, (_, n) => `refs/heads/wide${`/${'n'.repeat(240)}`.repeat(11)}/${n}`);
    await createRefs(work, names, head);
    const log = await shared.log.head();
    await counts(1, 'a push that needs several events', () => git(work, ['push', '-q', '--all', url]));
    const streams = new Set(
      (await shared.log.since(log)).filter(({ isRecord }) => isRecord).map(({ stream }) => stream),
    );
    assert.ok(streams.size > 1, 'the push was wide');
    await counts(1, 'a change in two streams', () =>
      ok('PATCH', '/v1/repos/ann/counted', { description: 'Counted', default_branch: 'other' }),
    );
    await counts(0, 'a change to what is', () => ok('PATCH', '/v1/repos/ann/counted', { description: 'Counted' }));
    await counts(0, 'a read', () => ok('GET', '/v1/repos/ann/counted'));
    await counts(0, 'a push that moves nothing', () => tryGit(work, ['push', '-q', url, 'main']));
    await counts(0, 'a refused request', () => api(one, ann.token, 'POST', '/v1/repositories', { name: 'counted' }));
    await counts(0, 'commands of the operator', () => createToken(one, 'ann'));
    const webhook = { url: 'https://receiver.example/hook', events: ['push'] };
    let hook = '';
    await counts(1, 'a webhook', async () => {
      hook = (await ok('POST', '/v1/webhooks', webhook)).id;
    });
    await counts(0, 'a ping, whose delivery is operational', () => ok('POST', `/v1/webhooks/${hook}/ping`));
    const { id } = await ok('GET', '/v1/repos/ann/counted');
    await counts(1, 'a deletion, which appends to two streams', () => ok('DELETE', '/v1/repos/ann/counted'));
    await counts(1, 'an undeletion', () => ok('POST', `/v1/repositories/${id}/restore`));
    const ledger = (await api(one, ann.token, 'GET', '/v1/account/usage/ledger')).text;
    assert.doesNotMatch(ledger, /"changes"/);
  });

  test('are refused to tokens beyond them on every node, by name and with the time, and their pushes on the side band', async (context) => {
    const bob = await createAccount(one, 'bob', 'FREE');
    const url = await createRepository(one, bob, 'kept');
    const work = await newWorkTree(context);
    await git(work, ['push', '-q', url, 'main', 'main:leaked']);
    const { id: repository } = (await api(one, bob.token, 'GET', '/v1/repos/bob/kept')).body as { readonly id: string };
    const extra = await api(one, bob.token, 'POST', '/v1/access-tokens', {
      name: 'extra',
      scope: 'ALL_REPO',
      grants: ['ALL'],
    });
    assert.equal(extra.status, 201, extra.text);
    for (let n = 0; (await changesOf(bob)).used < QUOTA - 1_000; n += 1) await createRepository(two, bob, `spent-${n}`);
    assert.deepEqual(await changesOf(bob, two), { used: QUOTA - 1_000, quota: QUOTA });

    for (const strata of [one, two]) {
      const refused = await api(strata, bob.token, 'POST', '/v1/repositories', { name: 'beyond' });
      assert.equal(refused.status, 429, refused.text);
      assert.match(refused.text, /changes_per_month/);
      const now = new Date();
      const monthEnds = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1);
      const wait = Number(refused.headers.get('retry-after')) * 1_000;
      assert.ok(Math.abs(now.getTime() + wait - monthEnds) < 60_000, `${wait} ms until the month ends`);
      assert.equal((await api(strata, bob.token, 'GET', '/v1/repositories')).status, 200);
    }
    const before = await git(work, ['ls-remote', url]);
    const pushed = await tryGit(work, ['push', url, 'main:beyond']);
    assert.notEqual(pushed.code, 0);
    assert.match(
      pushed.stderr,
      /changes of this month \(changes_per_month of its plan\): try again in \d+ (days|hours|minutes)/,
    );
    assert.equal(await git(work, ['ls-remote', url]), before);

    await git(work, ['push', '-q', url, ':leaked']);
    const passes = async (method: string, target: string) => {
      const answer = await api(one, bob.token, method, target);
      assert.ok(answer.status < 300, `${method} ${target}: ${answer.status} ${answer.text}`);
    };
    await passes('DELETE', `/v1/access-tokens/${(extra.body as { readonly id: string }).id}`);
    await passes('POST', `/v1/repositories/${repository}/purge`);
    await passes('DELETE', '/v1/repos/bob/spent-0');
    assert.equal((await changesOf(bob)).used, QUOTA - 1_000 + 4, 'what passes counts all the same');
    assert.equal((await api(one, bob.token, 'POST', `/v1/repositories/${repository}/restore`)).status, 429);
    await createToken(one, 'bob');

    const bobInPerson = person();
    await bobInPerson.submit(two, '/sign-in', { login: 'bob', password: PASSWORD });
    const made = await bobInPerson.submit(two, '/new', { name: 'in-person', default_branch: 'main' });
    assert.equal(made.status, 303, made.html);
  });

  test('are not given back by a restart or a rebuild, and follow the plan that an account has now', async () => {
    const cid = await createAccount(one, 'cid', 'FREE');
    for (const name of ['a', 'b', 'c', 'd']) await createRepository(one, cid, name);
    one = await one.restart();
    const four = { used: 4, quota: QUOTA };
    assert.deepEqual(await changesOf(cid), four);
    const { projections } = (await admin(one, ['projections', 'rebuild', '--verify'])) as {
      projections: { model: string; differences: number }[];
    };
    assert.equal(projections.find(({ model }) => model === 'changes')?.differences, 0);
    await admin(one, ['projections', 'rebuild']);
    assert.deepEqual([await changesOf(cid), await changesOf(cid, two)], [four, four]);

    await admin(one, ['account', 'set-plan', '--username', 'cid', '--plan', 'PRO']);
    assert.deepEqual(await changesOf(cid), { used: 4, quota: SMALL });
    const create = (name: string) => api(one, cid.token, 'POST', '/v1/repositories', { name });
    assert.equal((await create('e')).status, 429);
    const cidInPerson = person();
    await cidInPerson.submit(one, '/sign-in', { login: 'cid', password: PASSWORD });
    const refused = await cidInPerson.submit(one, '/new', { name: 'e', default_branch: 'main' });
    assert.equal(refused.status, 429);
    assert.match(refused.html, /changes_per_month/);
    const fields = {
      current_password: PASSWORD,
      new_password: 'a longer password',
      new_password_again: 'a longer password',
    };
    assert.equal((await cidInPerson.submit(one, '/settings/password', fields)).status, 303);
    assert.match(
      await cidInPerson.read(one, '/usage'),
      /Changes this month<\/h2><p><b>5<\/b> <span class="soft">of 3</,
    );
    await admin(one, ['account', 'set-plan', '--username', 'cid', '--plan', 'PLATFORM']);
    assert.equal((await create('e')).status, 201);
    assert.equal((await create('f')).status, 201);
  });
});
