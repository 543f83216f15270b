/**
 * PostgreSQL dies, vanishes or freezes while pushes are at every stage: each push ends with words that say what became
 * of it, and the words are true.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { cleanUp, type Ending } from '../support/cleanup.ts';
import { databaseOn, startTestCluster } from '../support/postgres.ts';
import { startPostgresProxy } from '../support/postgres-proxy.ts';
import { familyOf } from '../support/process-family.ts';
import {
  commitFile,
  createAccount,
  createRepository,
  type Finished,
  git,
  newWorkTree,
  startStrata,
  tryGit,
} from '../support/strata.ts';

const PUSHES = 14;
const STAGGER_MS = 90;
/** While the server appends this push, those before it are done, and those after it are under way at every stage. */
const FAULTY_APPEND = 4;
/** Longer than an append is repeated. */
const OUTAGE_MS = 26_000;
const RESUME_SPAN_MS = 30_000;

/** What a push may end with. The status of an HTTP error is all that git shows of it. */
const UNCHANGED = /nothing (was|is) changed|HTTP 503|requested URL returned error: 503/;
const UNKNOWN = /may have been committed/;

function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
    }
  }
}

async function service(context: Ending) {
  const cluster = await startTestCluster();
  cleanUp(context, () => cluster.stop());
  const database = await databaseOn(cluster.connectionString);
  const proxy = await startPostgresProxy(database.connectionString);
  cleanUp(context, () => proxy.close());
  const env = { STRATA_DATABASE_URL: proxy.connectionString };
  const strata = await startStrata(context, { log: 'postgres', env });
  const ada = await createAccount({ env: { ...strata.env, STRATA_DATABASE_URL: database.connectionString } }, 'ada');
  const urls: string[] = [];
  for (let n = 0; n < PUSHES; n += 1) urls.push(await createRepository(strata, ada, `project-${n}`));
  const appending = new Promise<void>((resolve) => {
    let appends = 0;
    proxy.onQuery = (data) => {
      if (data.includes('RefsUpdated')) appends += 1;
      if (appends === FAULTY_APPEND) resolve();
      return data;
    };
  });
  return { cluster, proxy, strata, urls, appending };
}

type Service = Awaited<ReturnType<typeof service>>;

const FAULTS: Readonly<Record<string, (parts: Service) => Promise<void>>> = {
  'is killed and starts again': async ({ cluster }) => signalAll(familyOf(cluster.embedded.pid() ?? 0), 'SIGKILL'),
  'takes no connections for a while': async ({ proxy }) => {
    let away = true;
    proxy.onQuery = (data, link) => {
      if (!away) return data;
      link.cut();
      return null;
    };
    proxy.cutAll();
    await sleep(OUTAGE_MS);
    away = false;
  },
  'freezes for a while': async ({ cluster }) => {
    const pids = familyOf(cluster.embedded.pid() ?? 0);
    signalAll(pids, 'SIGSTOP');
    await sleep(OUTAGE_MS);
    signalAll(pids, 'SIGCONT');
  },
  'answers nothing any more to who has appended': async ({ proxy }) => {
    let away = true;
    proxy.onAnswer = (data, link) => {
      if (!away) return data;
      link.cut();
      return null;
    };
    await sleep(OUTAGE_MS);
    away = false;
  },
};

describe('When PostgreSQL', () => {
  for (const [what, fault] of Object.entries(FAULTS)) {
    test(`${what}, every push under way ends with words, and they are true`, async (context) => {
      const parts = await service(context);
      const { strata, urls } = parts;
      const work = await newWorkTree(context);
      const tip = await commitFile(work, 'noise', randomBytes(2_000_000).toString('base64'));
      const failing = parts.appending.then(() => fault(parts));
      const pushes = await Promise.all(
        urls.map(async (url, n): Promise<Finished> => {
          await sleep(n * STAGGER_MS);
          return tryGit(work, ['push', url, 'main']);
        }),
      );
      await failing;
      for (const deadline = Date.now() + RESUME_SPAN_MS; (await fetch(`${strata.url}/readyz`)).status !== 200; ) {
        assert.ok(Date.now() < deadline, 'the service did not resume');
        await sleep(100);
      }
      for (const [n, { code, stderr }] of pushes.entries()) {
        const isThere = (await git(work, ['ls-remote', urls[n] ?? '', 'refs/heads/main'])).startsWith(tip);
        if (code === 0) assert.ok(isThere, `an acknowledged push is gone: ${stderr}`);
        else if (!UNKNOWN.test(stderr)) {
          assert.match(stderr, UNCHANGED, 'a push ended without words');
          assert.equal(isThere, false, `it was committed: ${stderr}`);
        }
      }
    });
  }
});
