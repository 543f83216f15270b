/**
 * Compactions beside real clients: many small pushes leave few layers, whatever is killed in between, and nothing that
 * was pushed is lost.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, test } from 'vitest';
import type { ListedStorage, StorageReport } from '../../apps/admin/storage.ts';
import { LAYERS_MAX } from '../../core/kernel/limits.ts';
import type { FailpointName } from '../../core/ports/failpoints.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { filesBelow } from '../support/files-below.ts';
import {
  type Account,
  admin,
  commitFile,
  createAccount,
  createRepository,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
  tryAdmin,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

const LIVES = { STRATA_FAILPOINT: '' };
const CLIENTS = 4;
const SPAN_MS = 120_000;

describe('Many small pushes', () => {
  const ending = suiteEnding();
  let shared: SharedParts;
  let strata: Strata;
  let ada: Account;

  beforeAll(async () => {
    shared = await sharedParts(ending);
    strata = await startNode(ending, shared);
    ada = await createAccount(strata, 'ada');
  });

  /** Pushes commits of its own from several clients at the same time, each to its branch. */
  async function pushMany(url: string, pushes: number): Promise<Map<string, string>> {
    const tips = new Map<string, string>();
    const one = async (client: number): Promise<void> => {
      const work = await newWorkTree(ending);
      const branch = `refs/heads/client-${client}`;
      for (let n = 0; n < pushes / CLIENTS; n += 1) {
        const commit = await commitFile(work, `file-${n % 5}`, `${client} ${n}\n`);
        await git(work, ['push', '--quiet', url, `HEAD:${branch}`]);
        tips.set(branch, commit);
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, (_, client) => one(client)));
    return tips;
  }

  async function assertWhole(node: Strata, name: string, tips: ReadonlyMap<string, string>): Promise<void> {
    const clone = path.join(await tempDir(ending), 'clone.git');
    await git(path.dirname(clone), ['clone', '--quiet', '--mirror', gitUrl(node, ada, name), clone]);
    await git(clone, ['fsck', '--strict', '--no-dangling']);
    const refs = (await git(clone, ['for-each-ref', '--format=%(refname) %(objectname)'])).trim().split('\n');
    assert.deepEqual(
      refs.filter((line) => line.includes('client-')).sort(),
      [...tips].map(([ref, id]) => `${ref} ${id}`).sort(),
    );
  }

  /** Returns how many layers a server with an empty cache fetches for a clone. */
  async function fetchedByCold(name: string, tips: ReadonlyMap<string, string>): Promise<number> {
    const cold = await startNode(ending, shared);
    try {
      await assertWhole(cold, name, tips);
      const cache = path.join(cold.dataDir, 'cache', 'repositories');
      const manifests = (await filesBelow(cache)).filter((file) => file.endsWith('layers.jsonl'));
      const texts = await Promise.all(manifests.map((file) => readFile(path.join(cache, file), 'utf8')));
      return texts.join('').trim().split('\n').length;
    } finally {
      await cold.stop();
    }
  }

  async function verify(): Promise<StorageReport> {
    const { code, stdout } = await tryAdmin(strata, ['--json', 'storage', 'verify']);
    assert.equal(code, 0, stdout);
    return JSON.parse(stdout) as StorageReport;
  }

  async function untilCompacted(name: string, tips: ReadonlyMap<string, string>): Promise<void> {
    for (const deadline = Date.now() + SPAN_MS; ; await sleep(1_000)) {
      const layers = await fetchedByCold(name, tips);
      if (layers <= LAYERS_MAX / 2) return;
      assert.ok(Date.now() < deadline, `${layers} layers`);
    }
  }

  test('leave few layers, on every node, while clients clone and push', async () => {
    const url = await createRepository(strata, ada, 'busy');
    const other = await startNode(ending, shared);
    const tips = await pushMany(url, 2 * LAYERS_MAX);
    await untilCompacted('busy', tips);
    await assertWhole(strata, 'busy', tips);
    await assertWhole(other, 'busy', tips);
    const { unnamed_count, fault_count } = await verify();
    assert.deepEqual([fault_count, unnamed_count], [0, 0]);
    const { repositories } = (await admin(strata, ['storage', 'list'])) as { repositories: ListedStorage[] };
    const stored = repositories.find(({ repository }) => repository === 'ada/busy')?.layers ?? 0;
    assert.ok(stored > 2 * LAYERS_MAX, 'the replaced layers stay in storage');
    await other.stop();
  });

  for (const point of ['compaction-layer-stored', 'compaction-appended'] satisfies FailpointName[]) {
    test(`are all there after a kill at ${point}, and the next server compacts`, async () => {
      const url = await createRepository(strata, ada, point);
      const tips = await pushMany(url, LAYERS_MAX - CLIENTS);
      strata = await strata.restart({ STRATA_FAILPOINT: point });
      const work = await newWorkTree(ending);
      // Each of these may be the push after which the server dies. On a slow machine it has compacted before. The
      // pushes hold the compaction's processes back for a while.
      const deadline = Date.now() + SPAN_MS;
      for (let n = 0; strata.process.signalCode === null; n += 1) {
        assert.ok(Date.now() < deadline, 'no compaction began');
        const commit = await commitFile(work, 'last', `${n}\n`);
        const pushed = await git(work, [
          'push',
          '--quiet',
          gitUrl(strata, ada, point),
          `HEAD:refs/heads/client-x`,
        ]).then(
          () => true,
          () => false,
        );
        if (pushed) tips.set('refs/heads/client-x', commit);
      }
      await strata.exited();
      assert.equal(strata.process.signalCode, 'SIGKILL');
      strata = await strata.restart(LIVES);
      await assertKept(point, tips);
      await untilCompacted(point, await refsOf(point));
      assert.equal((await verify()).fault_count, 0);
    });
  }

  /** A push whose answer was cut off may be there; every acknowledged one is. */
  async function assertKept(name: string, tips: ReadonlyMap<string, string>): Promise<void> {
    const refs = await refsOf(name);
    for (const [ref, id] of tips) if (ref !== 'refs/heads/client-x') assert.equal(refs.get(ref), id);
    const acknowledged = tips.get('refs/heads/client-x');
    const clone = path.join(await tempDir(ending), 'clone.git');
    await git(path.dirname(clone), ['clone', '--quiet', '--mirror', gitUrl(strata, ada, name), clone]);
    if (acknowledged !== undefined) {
      await git(clone, ['merge-base', '--is-ancestor', acknowledged, 'refs/heads/client-x']);
    }
  }

  async function refsOf(name: string): Promise<Map<string, string>> {
    const lines = (await git(shared.layersDir, ['ls-remote', gitUrl(strata, ada, name), 'refs/heads/client-*'])).trim();
    return new Map(
      lines.split('\n').map((line): [string, string] => {
        const [id = '', ref = ''] = line.split('\t');
        return [ref, id];
      }),
    );
  }
});
