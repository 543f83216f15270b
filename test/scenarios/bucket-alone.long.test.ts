/**
 * The store of a real server, on a file system and in a bucket, is a repository without the server: the script of
 * docs/bucket-layout.md makes what `git ls-remote` shows, within a minute of every change, whatever was killed.
 */
import assert from 'node:assert/strict';
import { cp } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, test } from 'vitest';
import type { RebuildReport } from '../../apps/admin/rebuild-from-store.ts';
import type { StorageReport } from '../../apps/admin/storage.ts';
import { LAYERS_AT_REST_MAX } from '../../core/repository/compaction.ts';
import { rebuildByScript } from '../support/bucket-script.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { needs } from '../support/optional-suites.ts';
import {
  type Account,
  admin,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startS3Server } from '../support/versitygw.ts';

/** The promise is a minute; the machine may be busy. */
const SPAN_MS = 100_000;
const LIVES = { STRATA_FAILPOINT: '' };

interface Place {
  readonly env: Readonly<Record<string, string>>;
  /** The folder that holds the objects. */
  readonly folder: string;
}

const onFileSystem = async (shared: SharedParts): Promise<Place> => ({ env: {}, folder: shared.layersDir });

function inBucket(ending: ReturnType<typeof suiteEnding>): () => Promise<Place> {
  return async () => {
    const s3 = await startS3Server(ending);
    const env = {
      STRATA_STORAGE: 's3',
      STRATA_S3_ENDPOINT: s3.url,
      STRATA_S3_REGION: s3.region,
      STRATA_S3_BUCKET: s3.bucket,
      STRATA_S3_PREFIX: 'git',
      STRATA_S3_ACCESS_KEY_ID: s3.accessKeyId,
      STRATA_S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
    };
    return { env, folder: path.join(s3.folder, 'git') };
  };
}

function suite(
  placed: string,
  options: ReturnType<typeof needs> | object,
  placeOf: (ending: ReturnType<typeof suiteEnding>) => (shared: SharedParts) => Promise<Place>,
): void {
  describe(`A store ${placed}`, options, () => {
    const ending = suiteEnding();
    let shared: SharedParts;
    let place: Place;
    let strata: Strata;
    let ada: Account;
    let url: string;
    let work: string;
    let id: string;

    beforeAll(async () => {
      shared = await sharedParts(ending);
      place = await placeOf(ending)(shared);
      strata = await startNode(ending, shared, place.env);
      ada = await createAccount(strata, 'ada');
      url = await createRepository(strata, ada, 'engine');
      work = await newWorkTree(ending);
      const answer = await api(strata, ada.token, 'GET', '/v1/repos/ada/engine');
      id = (answer.body as { id: string }).id;
    });

    const refsOf = async (repository: string): Promise<readonly string[]> =>
      (await git(work, ['ls-remote', repository])).trim().split('\n').sort();

    /** Returns the refs that the script makes of a copy of the store, or why it fails. */
    async function refsByScript(): Promise<readonly string[] | string> {
      const copy = await tempDir(ending);
      try {
        await cp(path.join(place.folder, 'repositories', id), path.join(copy, 'store'), { recursive: true });
        await rebuildByScript(path.join(copy, 'store'), path.join(copy, 'made.git'));
      } catch (error) {
        return String(error);
      }
      await git(path.join(copy, 'made.git'), ['fsck', '--full', '--strict', '--no-dangling']);
      return refsOf(path.join(copy, 'made.git'));
    }

    /** Waits until the script makes what the server shows. Resolves with how long that took. */
    async function untilEqual(): Promise<number> {
      const wanted = await refsOf(url);
      for (const since = Date.now(); ; await sleep(1_000)) {
        const made = await refsByScript();
        if (JSON.stringify(made) === JSON.stringify(wanted)) return Date.now() - since;
        assert.ok(Date.now() - since < SPAN_MS, `The script makes ${String(made)} instead of ${String(wanted)}`);
      }
    }

    test('is the repository, after pushes, a forced push, deletions and another default branch', async () => {
      const first = await commitFile(work, 'first', 'first\n');
      await git(work, ['tag', '-a', '-m', 'one', 'v1', first]);
      await git(work, ['push', '--quiet', url, 'main', 'v1', 'HEAD:refs/heads/topic', 'HEAD:refs/heads/gone']);
      await commitFile(work, 'second', 'second\n');
      await git(work, ['push', '--quiet', url, 'HEAD:refs/heads/main']);
      await git(work, ['commit', '--quiet', '--amend', '-m', 'forced']);
      await git(work, ['push', '--quiet', '--force', url, 'HEAD:refs/heads/main', ':refs/heads/gone']);
      const changed = await api(strata, ada.token, 'PATCH', '/v1/repos/ada/engine', { default_branch: 'topic' });
      assert.equal(changed.status, 200);
      await untilEqual();
    });

    test('is the repository after many pushes and their compaction', async () => {
      for (let n = 0; n < 2 * LAYERS_AT_REST_MAX; n += 1) {
        await commitFile(work, `file-${n}`, `${n}\n`);
        await git(work, ['push', '--quiet', url, 'HEAD:refs/heads/many']);
      }
      await untilEqual();
      const { fault_count } = (await admin(strata, ['storage', 'verify'])) as StorageReport;
      assert.equal(fault_count, 0);
    });

    test('is the repository after kills between the refs, the manifest, and the removal of old ones', async () => {
      for (const point of ['manifest-refs-stored', 'manifest-stored', 'manifest-removed'] as const) {
        await commitFile(work, point, 'x\n');
        await git(work, ['push', '--quiet', url, 'HEAD:refs/heads/many']);
        // A manifest that is due already may end it before it is ready.
        const armed = await strata.restart({ STRATA_FAILPOINT: point }).catch(() => null);
        if (armed !== null) {
          const code = await Promise.race([armed.exited(), sleep(SPAN_MS, 'runs', { ref: false })]);
          assert.notEqual(code, 'runs', `The server did not reach ${point}`);
        }
        strata = await strata.restart(LIVES);
      }
      await untilEqual();
    });

    test('makes a new repository, by strata-admin', async () => {
      const words = ['storage', 'rebuild', 'platform', '--username', 'ada', '--name', 'again', '--repository', id];
      const report = (await admin(strata, words)) as RebuildReport;
      assert.equal(report.source.repository_id, id);
      const again = url.replace('/engine', '/again');
      assert.deepEqual(await refsOf(again), await refsOf(url));
    });
  });
}

suite('on the file system', {}, () => onFileSystem);
suite('in a bucket', needs('versitygw'), inBucket);
