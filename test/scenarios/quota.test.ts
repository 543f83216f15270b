/**
 * A plan's quotas: counts of repositories are exact, pushes beyond a quota are refused with its name before or after
 * the pack is received, and reads beyond the transfer quota get 403 over REST, and an error packet over Git.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import { leftovers } from '../support/leftovers.ts';
import {
  type Account,
  admin,
  api,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
  tryGit,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

const MIB = 1024 * 1024;
const REPOSITORIES = 3;
const UNLIMITED = { repos: null, storage_bytes: null, transfer_bytes: null, ingress_bytes: null, byo_storage: true };
const PLANS = {
  FREE: { ...UNLIMITED, repos: REPOSITORIES, storage_bytes: 2 * MIB },
  PRO: { ...UNLIMITED, ingress_bytes: 2 * MIB },
  PLATFORM: { ...UNLIMITED, transfer_bytes: 2 * MIB },
};

interface Figure {
  readonly used: number;
  readonly quota: number | null;
}

interface Usage {
  readonly repos: Figure;
  readonly waiting_storage_bytes: Figure;
  readonly storage_bytes: Figure;
  readonly transfer_bytes: Figure;
  readonly ingress_bytes: Figure;
}

describe('A quota', () => {
  const ending = suiteEnding();
  let shared: SharedParts;
  let strata: Strata;

  beforeAll(async () => {
    const plans = path.join(await tempDir(ending), 'plans.json');
    await writeFile(plans, JSON.stringify(PLANS));
    shared = await sharedParts(ending);
    strata = await startNode(ending, shared, { STRATA_PLANS: plans });
  });

  async function usageOf(account: Account): Promise<Usage> {
    const answer = await api(strata, account.token, 'GET', '/v1/account/usage');
    assert.equal(answer.status, 200, answer.text);
    return answer.body as Usage;
  }

  const create = (account: Account, name: string) => api(strata, account.token, 'POST', '/v1/repositories', { name });

  test('of repositories is exact, however many are created at the same time, and a deleted one no longer counts', async () => {
    const fay = await createAccount(strata, 'fay', 'FREE');
    const answers = await Promise.all(Array.from({ length: 10 }, (_, n) => create(fay, `repository-${n}`)));
    const [made, refused] = [201, 422].map((code) => answers.filter(({ status }) => status === code));
    assert.deepEqual([made?.length, refused?.length], [REPOSITORIES, 10 - REPOSITORIES]);
    for (const { body, text } of refused ?? [])
      assert.equal(typeof (body as { detail: unknown }).detail, 'string', text);
    assert.deepEqual((await usageOf(fay)).repos, { used: REPOSITORIES, quota: REPOSITORIES });
    const [first] = (made ?? []).map(({ body }) => (body as { name: string }).name);
    assert.equal((await api(strata, fay.token, 'DELETE', `/v1/repos/fay/${first}`)).status, 204);
    assert.equal((await create(fay, 'in-its-place')).status, 201);
    assert.equal((await create(fay, 'one-more')).status, 422);
    await admin(strata, ['account', 'set-plan', '--username', 'fay', '--plan', 'PRO']);
    assert.equal((await create(fay, 'one-more')).status, 201);
  });

  test('of storage refuses a push with its name, counts the stored bytes until they are purged, and allows deletions', async (context) => {
    const sam = await createAccount(strata, 'sam', 'FREE');
    const url = await createRepository(strata, sam, 'stored');
    const work = await newWorkTree(context);
    await addBytes(work, MIB);
    await git(work, ['push', '--quiet', url, 'main']);
    const { storage_bytes: stored } = await usageOf(sam);
    assert.ok(stored.used > MIB && stored.used < 1.5 * MIB, `${stored.used} bytes`);
    assert.equal(stored.quota, 2 * MIB);

    const log = (await shared.log.since()).length;
    const left = Math.ceil((2 * MIB - stored.used) / 1_024).toLocaleString('en-US');
    const sizes = (least: number): RegExp =>
      new RegExp(`remote: storage quota reached: ${left} KiB are left, and this push brings ${least},\\d{3} KiB;`);
    await addBytes(work, 1.5 * MIB);
    await isRefused(work, url, sizes(1));
    await addBytes(work, 8 * MIB);
    await isRefused(work, url, sizes(9));
    assert.equal((await shared.log.since()).length, log);
    assert.deepEqual(await leftovers(strata), []);

    await git(work, ['reset', '--quiet', '--hard', 'HEAD~2']);
    await git(work, ['push', '--quiet', url, 'main:kept']);
    await git(work, ['push', '--quiet', url, ':kept']);
    const { body } = await api(strata, sam.token, 'GET', '/v1/repos/sam/stored');
    const { id } = body as { readonly id: string };
    const before = (await usageOf(sam)).storage_bytes.used;
    assert.equal((await api(strata, sam.token, 'DELETE', '/v1/repos/sam/stored')).status, 204);
    assert.equal((await usageOf(sam)).storage_bytes.used, before, 'it can still be restored');
    assert.equal((await api(strata, sam.token, 'POST', `/v1/repositories/${id}/purge`)).status, 202);
    assert.equal((await usageOf(sam)).storage_bytes.used, 0);
    const again = await createRepository(strata, sam, 'again');
    await git(work, ['push', '--quiet', again, 'main']);
  });

  // The attack: 430 bytes of a push, and a whole repository is written again, whose replaced copy stays for an hour.
  test('of purges lets a repository be rewritten once an hour, on every node, and shows what waits', async (context) => {
    const pia = await createAccount(strata, 'pia', 'FREE');
    const url = await createRepository(strata, pia, 'purged');
    const other = await startNode(context, shared, { STRATA_PLANS: strata.env['STRATA_PLANS'] ?? assert.fail() });
    const { body } = await api(strata, pia.token, 'GET', '/v1/repos/pia/purged');
    const { id } = body as { readonly id: string };
    const work = await newWorkTree(context);
    await addBytes(work, MIB);
    await git(work, ['push', '--quiet', url, 'main']);
    const leave = async () => {
      await addBytes(work, 100);
      await git(work, ['push', '--quiet', url, 'main:gone']);
      await git(work, ['push', '--quiet', url, ':gone']);
    };
    const purge = (node: Strata, sent: object = {}) =>
      api(node, pia.token, 'POST', `/v1/repositories/${id}/purge`, sent);
    const waiting = async () => (await usageOf(pia)).waiting_storage_bytes;
    const quota = 1_024 * MIB;
    assert.deepEqual(await waiting(), { used: 0, quota });
    await leave();
    assert.equal((await purge(strata)).status, 202);
    const { used } = await waiting();
    assert.ok(used > MIB && used < 1.2 * MIB, `${used} bytes`);
    assert.deepEqual((await purge(other)).body, { event_id: null, freed_bytes: 0 });
    await leave();
    assert.equal((await purge(other, { dry_run: true })).status, 200);
    for (const node of [strata, other]) {
      const refused = await purge(node);
      assert.equal(refused.status, 429, refused.text);
      assert.match(refused.text, /A purge rewrites a repository once an hour: try again in \d+ minutes/);
      const seconds = Number(refused.headers.get('retry-after'));
      assert.ok(seconds > 3_000 && seconds <= 3_600, `${seconds} seconds`);
    }
    assert.deepEqual(await waiting(), { used, quota });
    const { projections } = (await admin(strata, ['projections', 'rebuild', '--verify'])) as {
      readonly projections: readonly { readonly differences: number }[];
    };
    assert.ok(projections.every(({ differences }) => differences === 0));
    assert.deepEqual(await waiting(), { used, quota });
    const { used: stored } = (await usageOf(pia)).storage_bytes;
    assert.equal((await api(strata, pia.token, 'DELETE', '/v1/repos/pia/purged')).status, 204);
    assert.equal((await purge(strata)).status, 202, 'the purge of a deleted one');
    assert.deepEqual(await waiting(), { used: used + stored, quota });
    await admin(strata, ['storage', 'expire']);
    assert.deepEqual(await waiting(), { used: used + stored, quota }, 'its hour is not over');
  });

  test('of ingress refuses a push with its name, and refused bytes do not count', async (context) => {
    const ira = await createAccount(strata, 'ira', 'PRO');
    const url = await createRepository(strata, ira, 'brought');
    const work = await newWorkTree(context);
    await addBytes(work, MIB);
    await git(work, ['push', '--quiet', url, 'main']);
    const { used } = (await usageOf(ira)).ingress_bytes;
    assert.ok(used > MIB, `${used} bytes`);
    await addBytes(work, 4 * MIB);
    await isRefused(
      work,
      url,
      /remote: ingress quota of this month reached: [\d,]+ KiB are left, and this push brings 4,\d{3} KiB; it is reset/,
    );
    assert.equal((await usageOf(ira)).ingress_bytes.used, used);
  });

  test('of transfer refuses clones in words and file reads with 403, but neither pushes nor lists', async (context) => {
    const tess = await createAccount(strata, 'tess', 'PLATFORM');
    const url = await createRepository(strata, tess, 'sent');
    const work = await newWorkTree(context);
    await addBytes(work, MIB);
    await git(work, ['push', '--quiet', url, 'main']);
    const clones = await tempDir(context);
    let cloned = 0;
    for (; cloned < 5; cloned += 1) {
      const clone = await tryGit(clones, ['clone', '--quiet', url, `copy-${cloned}`]);
      if (clone.code === 0) continue;
      assert.match(clone.stderr, /remote error: the transfer quota of this month is used up: it is reset next month/);
      break;
    }
    assert.equal(cloned, 2, 'two clones of a little over 1 MiB pass 2 MiB, the third is refused');
    const contents = await api(strata, tess.token, 'GET', '/v1/repos/tess/sent/contents/large');
    assert.equal(contents.status, 403, contents.text);
    assert.match(contents.text, /transfer/i);
    assert.equal((await api(strata, tess.token, 'GET', '/v1/repos/tess/sent/branches')).status, 200);
    await git(work, ['ls-remote', url]);
    await git(work, ['push', '--quiet', url, 'main:other']);
    await admin(strata, ['account', 'set-plan', '--username', 'tess', '--plan', 'PRO']);
    await git(clones, ['clone', '--quiet', url, 'after']);
  });
});

/** Commits this many random bytes, which do not compress. */
async function addBytes(work: string, sizeBytes: number): Promise<void> {
  const blob = (await git(work, ['hash-object', '-w', '--stdin'], randomBytes(sizeBytes))).trim();
  await git(work, ['update-index', '--add', '--cacheinfo', `100644,${blob},large`]);
  await git(work, ['commit', '--quiet', '-m', 'Large']);
}

async function isRefused(work: string, url: string, reason: RegExp): Promise<void> {
  const before = await git(work, ['ls-remote', url]);
  const pushed = await tryGit(work, ['push', url, 'main']);
  assert.notEqual(pushed.code, 0);
  assert.match(pushed.stderr, reason);
  assert.equal(await git(work, ['ls-remote', url]), before);
}
