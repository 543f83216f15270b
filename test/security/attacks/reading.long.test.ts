/**
 * The attacks: a 20 KB push of 100 commits with very many parents made each list of commits 86 MB; folders of hundreds
 * of thousands of files stalled the server for 27 s and took 3.1 GB when they were listed; pages of commits between
 * them took gigabytes of git's memory.
 */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { type Stage, setStage, underAttack } from '../../support/attack.ts';
import { suiteEnding } from '../../support/cleanup.ts';
import { NO_PROC } from '../../support/git-below.ts';
import { wirePush } from '../../support/git-wire.ts';
import { packOfLargeCommits } from '../../support/hostile-packs.ts';
import { rawEntry, rawId, rawPack } from '../../support/raw-pack.ts';
import { signIn } from '../../support/site-browser.ts';
import { skippedFor } from '../../support/skipped.ts';
import { api, createRepository } from '../../support/strata.ts';

const MIB = 1024 * 1024;
const FILES = 450_000;
const REQUESTS = 100;
const AT_ONCE = 20;
const LONG_NAMES = 100;
const LONG_COMMITS = 24;

describe('Histories and folders that are dear to read', skippedFor(NO_PROC), () => {
  const ending = suiteEnding();
  let stage: Stage;
  /** The ids of the two commits whose folders have no file in common. */
  let tips: readonly string[];
  /** The ids of commits whose folders have a hundred long names each. */
  let longTips: readonly string[];

  const get = (path: string) => api(stage.strata, stage.attacker.token, 'GET', `/v1/repos/mallory/${path}`);

  async function push(name: string, tip: string, pack: Buffer): Promise<void> {
    await createRepository(stage.strata, stage.attacker, name);
    const target = { strata: stage.strata, account: stage.attacker, name };
    const pushed = await wirePush(target, [{ ref: 'refs/heads/master', after: tip }], pack);
    assert.equal(pushed.refs.get('refs/heads/master'), 'ok', pushed.remote);
  }

  beforeAll(async () => {
    stage = await setStage(ending);
    const large = packOfLargeCommits({ commits: 100, parents: 900, messageBytes: 900_000 });
    await push('commits', large.tip, large.bytes);
    const folders = historyOf(
      ['a', 'b'].map((letter) => Array.from({ length: FILES }, (_, n) => `${letter}${String(n).padStart(6, '0')}`)),
    );
    tips = folders.tips;
    await push('folders', tips.at(-1) ?? '', folders.pack);
    const names = Array.from({ length: LONG_NAMES }, (_, n) => `${String(n).padStart(3, '0')}${'x'.repeat(150_000)}`);
    const long = historyOf(Array.from({ length: LONG_COMMITS }, (_, n) => names.map((name) => `${n + 10}${name}`)));
    longTips = long.tips;
    await push('long', longTips.at(-1) ?? '', long.pack);
  });

  /** Sends the requests, some at the same time, and checks each answer. */
  async function ask(paths: readonly string[], statuses: readonly number[], bytesMax: number): Promise<void> {
    const left = [...paths];
    const client = async (): Promise<void> => {
      for (let path = left.pop(); path !== undefined; path = left.pop()) {
        const { status, text } = await get(path);
        assert.ok(statuses.includes(status), `${path}: ${status} ${text.slice(0, 300)}`);
        assert.ok(text.length <= bytesMax, `${path}: ${text.length} bytes`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, client));
  }

  const bounds = { diskBytesMax: 256 * MIB, processesMax: 64, eventsMax: 20 };

  test('have lists of commits of bounded size', async (context) => {
    const paths = Array.from({ length: REQUESTS }, (_, index) => `commits/commits?limit=100&page=${index % 2}`);
    await underAttack(context, stage, 'lists of large commits', () => ask(paths, [200, 429], 16 * MIB), bounds);
  });

  test('have folders listed in pages', async (context) => {
    const paths = Array.from({ length: REQUESTS }, (_, index) => `folders/contents?limit=1000&page=${index * 4}`);
    await underAttack(context, stage, 'folders of 450,000 files', () => ask(paths, [200, 429], 2 * MIB), bounds);
  });

  test('have comparisons cut, with a mark', async (context) => {
    const paths = Array.from({ length: REQUESTS }, (_, index) => `folders/commits/${tips[index % 2]}`);
    await underAttack(context, stage, 'commits between them', () => ask(paths, [200, 429, 503], 4 * MIB), bounds);
  });

  test('have names of any length, and what the website keeps of them is bounded', async (context) => {
    // Each look at another commit kept 30 MB of names, of which a pack of 400 KB holds as many as one likes. Over REST
    // they were 30 MB, and 180 MB where each byte takes six.
    const browser = await signIn(stage.strata, stage.attacker);
    const look = async (): Promise<void> => {
      for (const tip of longTips) {
        const page = await browser.get(`/mallory/long/tree/${tip}`);
        assert.equal(page.status, 200);
        assert.ok(page.bytes.length < MIB, `${page.bytes.length} bytes`);
        const all = await get(`long/contents?limit=100&ref=${tip}`);
        assert.equal(all.status, 422);
        assert.match(all.text, /names and paths of these entries take more than 2 MiB: ask for fewer with limit/);
        assert.equal((await get(`long/contents?limit=5&ref=${tip}`)).status, 200);
      }
    };
    await underAttack(context, stage, `${LONG_COMMITS} folders of names of 150 KB`, look, bounds);
  });
});

/** Commits one after another, whose folders have these names of an empty file. */
function historyOf(folders: readonly (readonly string[])[]): { readonly tips: string[]; readonly pack: Buffer } {
  const blob = Buffer.alloc(0);
  const id = Buffer.from(rawId('blob', blob), 'hex');
  const trees = folders.map((names) =>
    Buffer.concat(names.map((name) => Buffer.concat([Buffer.from(`100644 ${name}\0`), id]))),
  );
  const commits: Buffer[] = [];
  for (const tree of trees) {
    const parent = commits.map((before) => `parent ${rawId('commit', before)}\n`).at(-1) ?? '';
    const person = 'A U Thor <author@example.org> 1700000000 +0000';
    commits.push(Buffer.from(`tree ${rawId('tree', tree)}\n${parent}author ${person}\ncommitter ${person}\n\nfiles\n`));
  }
  const entries = [
    rawEntry({ type: 'blob', bytes: blob }),
    ...trees.map((bytes) => rawEntry({ type: 'tree', bytes })),
    ...commits.map((bytes) => rawEntry({ type: 'commit', bytes })),
  ];
  return { tips: commits.map((bytes) => rawId('commit', bytes)), pack: rawPack(entries) };
}
