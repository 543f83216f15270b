/**
 * What a forced push or a deletion leaves, fetched by its id with the real git: a partial clone that lacks a file of
 * the old branch, and a job that was queued before. Two servers on one log, since a purge on one ends it on both.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { beforeAll, describe, type TestContext, test } from 'vitest';
import { objectId } from '../../core/kernel/ids.ts';
import { type Ending, suiteEnding } from '../support/cleanup.ts';
import { blob, commit, pack, tree, type WireTarget, wireFetch } from '../support/git-wire.ts';
import {
  type Account,
  api,
  commitFile,
  createAccount,
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
import { pushUnchecked } from '../support/unchecked-push.ts';
import { activity } from '../support/undoing.ts';

const VERSIONS = ['0', '1', '2'] as const;

describe('What was forced away or deleted', () => {
  const ending = suiteEnding();
  let shared: SharedParts;
  let nodes: readonly [Strata, Strata];
  let ada: Account;
  let names = 0;
  let files = 0;

  beforeAll(async () => {
    shared = await sharedParts(ending);
    nodes = await Promise.all([startNode(ending, shared), startNode(ending, shared)]);
    ada = await createAccount(nodes[0], 'ada');
  });

  /** A repository with a branch that was forced away and a tag that was deleted. */
  async function forcedAway(context: Ending, name = `forced-${++names}`): Promise<Forced> {
    const [node] = nodes;
    const exists = (await api(node, ada.token, 'GET', `/v1/repos/ada/${name}`)).status === 200;
    const url = exists ? gitUrl(node, ada, name) : await createRepository(node, ada, name);
    const work = await newWorkTree(context);
    const id = async (text: string) => (await git(work, ['rev-parse', text])).trim();
    await git(work, ['push', '--quiet', '--force', url, 'main']);
    await git(work, ['checkout', '--quiet', '-b', 'feature']);
    await commitFile(work, 'below', `below the tip ${++files}\n`);
    await commitFile(work, 'secret', `secret ${++files}\n`);
    await git(work, ['tag', '-a', 'v1', '-m', 'one', 'HEAD~1']);
    await git(work, ['push', '--quiet', '--force', url, 'feature', 'v1']);
    const clone = async (version: string) => {
      const made = path.join(await tempDir(context), 'clone');
      const partial = ['clone', '--quiet', '--filter=blob:none', '--no-checkout'];
      await git(work, ['-c', `protocol.version=${version}`, ...partial, url, made]);
      return made;
    };
    const clones = new Map(
      await Promise.all(VERSIONS.map(async (version) => [version, await clone(version)] as const)),
    );
    const ids = {
      ...{ tip: await id('feature'), below: await id('feature~1'), tag: await id('v1') },
      ...{ tree: await id('feature^{tree}'), blob: await id('feature:secret') },
    };
    await git(work, ['reset', '--quiet', '--hard', 'main']);
    await commitFile(work, 'other', `other ${++files}\n`);
    await git(work, ['push', '--quiet', '--force', url, 'feature', ':refs/tags/v1']);
    return { name, url, work, ids, clones };
  }

  const target = (node: Strata, name: string): WireTarget => ({ strata: node, account: ada, name });

  /** Returns what both servers answer for an id, in the two forms that a request has. */
  async function answers(name: string, wanted: string): Promise<readonly string[]> {
    const said: string[] = [];
    for (const node of nodes) {
      for (const version of [0, 2] as const) {
        const answer = await wireFetch(target(node, name), wanted, version);
        said.push('pack' in answer ? 'served' : answer.refused.replaceAll(wanted, 'ID'));
      }
    }
    return said;
  }

  async function assertServed({ name, ids }: Forced): Promise<void> {
    for (const [what, id] of Object.entries(ids)) {
      assert.deepEqual(new Set(await answers(name, id)), new Set(['served']), what);
    }
  }

  async function assertRefused(name: string, wanted: Readonly<Record<string, string>>): Promise<void> {
    const never = await answers(name, 'd'.repeat(40));
    for (const said of never) assert.match(said, /not our ref ID/);
    for (const [what, id] of Object.entries(wanted)) assert.deepEqual(await answers(name, id), never, what);
  }

  async function repositoryId(name: string): Promise<string> {
    const { body } = await api(nodes[0], ada.token, 'GET', `/v1/repos/ada/${name}`);
    return (body as { readonly id: string }).id;
  }

  async function purge(name: string, node: Strata): Promise<void> {
    const purged = await api(node, ada.token, 'POST', `/v1/repositories/${await repositoryId(name)}/purge`, {});
    assert.equal(purged.status, 202, purged.text);
  }

  for (const version of VERSIONS) {
    test(`is checked out of a partial clone over protocol version ${version}`, async (context) => {
      const { clones, ids } = await forcedAway(context);
      const clone = clones.get(version) ?? assert.fail();
      await git(clone, ['-c', `protocol.version=${version}`, 'checkout', '--quiet', 'origin/feature']);
      assert.equal((await git(clone, ['rev-parse', 'HEAD'])).trim(), ids.tip);
      assert.equal(await git(clone, ['status', '--porcelain']), '');
    });

    test(`is fetched by a job that knows its id over protocol version ${version}`, async (context) => {
      const forced = await forcedAway(context);
      for (const node of nodes) {
        const job = await tempDir(context);
        await git(job, ['init', '--quiet']);
        const fetch = ['-c', `protocol.version=${version}`, 'fetch', '--quiet'];
        const url = gitUrl(node, ada, forced.name);
        await git(job, [...fetch, '--depth=1', url, forced.ids.tip]);
        await git(job, ['checkout', '--quiet', 'FETCH_HEAD', '--', 'secret']);
        for (const id of Object.values(forced.ids)) {
          await git(job, [...fetch, url, id]);
          await git(job, ['cat-file', '-e', id]);
        }
        await git(job, ['fsck', '--connectivity-only']);
      }
    });
  }

  test('is served by both servers as any object is, and what was never there is not', async (context) => {
    const [forced, other] = [await forcedAway(context), await forcedAway(context)];
    await assertServed(forced);
    await assertServed(other);
    await assertRefused(forced.name, { ...other.ids, tree: 'e'.repeat(40) });
  });

  test('is served by neither server from a purge on, and again what is forced away later', async (context) => {
    const forced = await forcedAway(context);
    await assertServed(forced);
    await purge(forced.name, nodes[1]);
    await assertRefused(forced.name, forced.ids);
    for (const version of VERSIONS) {
      const clone = forced.clones.get(version) ?? assert.fail();
      const checkout = ['-c', `protocol.version=${version}`, 'checkout', '--quiet', 'origin/feature'];
      assert.match((await tryGit(clone, checkout)).stderr, /not our ref/);
    }
    const later = await commitFile(forced.work, 'later', 'later\n');
    await git(forced.work, ['push', '--quiet', '--force', forced.url, 'feature']);
    await git(forced.work, ['push', '--quiet', forced.url, ':feature']);
    await assertServed({
      ...forced,
      ids: { ...forced.ids, tip: later, below: later, tag: later, tree: later, blob: later },
    });
    await assertRefused(forced.name, forced.ids);
  });

  test('is not served to a token that may not read', async (context) => {
    const { name, ids } = await forcedAway(context);
    const { token } = await createToken(nodes[0], 'ada', ['--grants', 'API_REPOS_READ']);
    for (const node of nodes) {
      const url = gitUrl(node, { username: 'ada', token }, name);
      for (const id of [ids.tip, ids.blob, 'd'.repeat(40)]) {
        const job = await tempDir(context);
        await git(job, ['init', '--quiet']);
        assert.match((await tryGit(job, ['fetch', '--quiet', url, id])).stderr, /GIT_HTTP_READ/);
      }
    }
  });

  test('is not shown over REST, and no clone as of a moment has it that did not then', async (context) => {
    const { name, ids } = await forcedAway(context);
    for (const read of ['commits', 'contents', 'archive']) {
      const place = {
        commits: `commits/${ids.tip}`,
        contents: `contents?ref=${ids.tip}`,
        archive: `archive/${ids.tip}.zip`,
      }[read];
      const answer = await api(nodes[0], ada.token, 'GET', `/v1/repos/ada/${name}/${place}`);
      assert.equal(answer.status, 404, `${read}: ${answer.text}`);
    }
    const changes = await activity(nodes[0], ada, name);
    const [newest, first] = [changes.at(0)?.id ?? assert.fail(), changes.at(-1)?.id ?? assert.fail()];
    for (const moment of [newest, first]) {
      for (const id of [ids.below, ids.blob]) {
        const answer = await wireFetch(target(nodes[0], `${name}@${moment}`), id, 2);
        assert.ok('refused' in answer && /not our ref/.test(answer.refused), `${moment} serves ${id}`);
      }
    }
  });

  test('of a repository with a layer of an older version is served only after a purge has rewritten it', async (context) => {
    const name = `old-${++names}`;
    const url = await createRepository(nodes[0], ada, name);
    const file = blob('of an older version\n');
    const folder = tree([{ mode: '100644', name: 'file', id: file.id }]);
    const old = commit('old', folder.id);
    const lone = blob('a secret that no ref ever reached\n');
    const bytes = pack([old, folder, file, lone]);
    const repository = await repositoryId(name);
    await pushUnchecked(shared, {
      account: ada.id,
      repository,
      ref: 'refs/heads/old',
      tip: objectId(old.id),
      pack: bytes,
    });
    const before = await forcedAway(context, name);
    const { tip: _, ...notTips } = before.ids;
    await assertRefused(name, { ...notTips, tag: before.ids.tree, lone: lone.id });
    await assertCompletedWithoutWhatWasForced(context, url);
    await purge(name, nodes[0]);
    const after = await forcedAway(context, name);
    await assertServed(after);
    await assertRefused(name, { ...notTips, lone: lone.id });
    assert.deepEqual(new Set(await answers(name, file.id)), new Set(['served']));
  });
});

/** Forces a branch away below the edges of shallow clones, which get the whole new one, and nothing behind an edge. */
async function assertCompletedWithoutWhatWasForced(context: TestContext, url: string): Promise<void> {
  const work = await newWorkTree(context);
  const behind = await commitFile(work, 'behind', 'left behind\n');
  await commitFile(work, 'edge', 'the edge of the clones\n');
  await commitFile(work, 'tip', 'their tip\n');
  await git(work, ['push', '--quiet', url, 'HEAD:shallow']);
  const clones = await tempDir(context);
  for (const version of VERSIONS) {
    await git(clones, ['clone', '--quiet', '--depth=2', '--branch=shallow', url, version]);
  }
  await git(work, ['reset', '--quiet', '--hard', 'HEAD~3']);
  const kept = await commitFile(work, 'kept', 'kept\n');
  await git(work, ['push', '--quiet', '--force', url, 'HEAD:shallow']);
  for (const version of VERSIONS) {
    const shallow = path.join(clones, version);
    await git(shallow, ['-c', `protocol.version=${version}`, 'fetch', '--quiet', '--unshallow']);
    assert.equal((await git(shallow, ['rev-list', '--first-parent', 'origin/shallow'])).split('\n', 1)[0], kept);
    assert.notEqual((await tryGit(shallow, ['cat-file', '-e', behind])).code, 0, 'no ref reaches it any more');
    await git(shallow, ['fsck', '--full']);
  }
}

interface Forced {
  readonly name: string;
  readonly url: string;
  readonly work: string;
  /** The objects that only the branch that was forced away, or the deleted tag, reached. */
  readonly ids: Readonly<Record<'tip' | 'below' | 'tag' | 'tree' | 'blob', string>>;
  /** Partial clones from before, by the version of their protocol. */
  readonly clones: ReadonlyMap<string, string>;
}
