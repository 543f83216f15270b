/** A client with an account of its own that clones, pushes and reads, as long as the inputs come. */
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Ending } from '../support/cleanup.ts';
import {
  type Account,
  api,
  commitFile,
  createAccount,
  createRepository,
  newWorkTree,
  tryGit,
} from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';
import type { Served } from './scene.ts';

const PAUSE_MS = 3_000;
const REPOSITORY = 'work';

export interface Honest {
  /** How often it has pushed, cloned and read, and the longest of these rounds in milliseconds. */
  readonly rounds: number;
  readonly longestMs: number;
  /** Does one round now; throws when something of it failed. */
  round(): Promise<void>;
  /** Repeats rounds until the end; faults are reported. */
  start(onFault: (what: string) => void): { end(): Promise<void> };
}

export async function createHonest(ending: Ending, served: Served): Promise<Honest> {
  const account = await createAccount(served, 'honest', 'FREE');
  const url = await createRepository(served, account, REPOSITORY);
  const workTree = await newWorkTree(ending);
  const clones = await tempDir(ending);
  let [rounds, longestMs] = [0, 0];

  async function round(): Promise<void> {
    const since = performance.now();
    const tip = await commitFile(workTree, 'README', `round ${rounds}\n`);
    await run(workTree, ['push', '--quiet', url, 'HEAD:refs/heads/main']);
    const clone = path.join(clones, `${rounds}`);
    await run(clones, ['clone', '--quiet', url, clone]);
    const cloned = (await run(clone, ['rev-parse', 'HEAD'])).trim();
    if (cloned !== tip) throw new Error(`a clone holds ${cloned}, not the pushed ${tip}`);
    await readTip(served, account, tip);
    rounds += 1;
    longestMs = Math.max(longestMs, performance.now() - since);
  }

  return {
    get rounds() {
      return rounds;
    },
    get longestMs() {
      return longestMs;
    },
    round,
    start(onFault) {
      const stopping = new AbortController();
      const running = (async () => {
        while (!stopping.signal.aborted) {
          await round().catch((error: unknown) => onFault(error instanceof Error ? error.message : String(error)));
          await sleep(PAUSE_MS, null, { signal: stopping.signal }).catch(() => null);
        }
      })();
      return {
        async end() {
          stopping.abort();
          await running;
        },
      };
    },
  };
}

async function run(directory: string, args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await tryGit(directory, args);
  if (code !== 0) throw new Error(`git ${args[0]} ended with ${code}: ${stderr.trim()}`);
  return stdout;
}

async function readTip(served: Served, account: Account, tip: string): Promise<void> {
  const answer = await api(served, account.token, 'GET', `/v1/repos/${account.username}/${REPOSITORY}/branches/main`);
  if (!answer.text.includes(tip))
    throw new Error(`the API answers ${answer.status} and does not show the pushed ${tip}`);
}
