/**
 * A real server that is killed with SIGKILL at random moments, while git pushes, forces and deletes branches in random
 * order: no acknowledged push is lost, and each ref's closure is readable, on a node with an empty cache too.
 *
 * `STRATA_LAYER_LIFE_SEED=<n>` repeats the choices of one run, `STRATA_LAYER_LIFE_MS=<n>` sets how long it takes.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type TestContext, test } from 'vitest';
import { noteFigure } from '../support/figures.ts';
import { createDice, type Dice } from '../support/seeded.ts';
import {
  type Account,
  commitFile,
  createAccount,
  createRepository,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
  tryGit,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

const SPAN_MS = Number(process.env['STRATA_LAYER_LIFE_MS'] ?? 300_000);
const SEED = Number(process.env['STRATA_LAYER_LIFE_SEED'] ?? Date.now() % 2 ** 31);
const BRANCHES = ['a', 'b', 'c', 'd', 'e'];
/** Steps between two clones, and between two clones from a node with an empty cache. */
const CLONE_STEPS = 20;
const COLD_STEPS = 120;

class Clients {
  readonly counts = { pushes: 0, kills: 0, clones: 0, cold: 0 };
  readonly #context: TestContext;
  readonly #dice: Dice;
  readonly #shared: SharedParts;
  readonly #ada: Account;
  readonly #work: string;
  readonly #refs = new Map<string, string>();
  readonly #commits: string[] = [];
  #strata: Strata;

  constructor(context: TestContext, parts: { shared: SharedParts; strata: Strata; ada: Account; work: string }) {
    this.#context = context;
    this.#dice = createDice(SEED);
    this.#shared = parts.shared;
    this.#strata = parts.strata;
    this.#ada = parts.ada;
    this.#work = parts.work;
  }

  async step(n: number): Promise<void> {
    const branch = this.#dice.pick(BRANCHES);
    const after = this.#refs.has(branch) && this.#dice.chance(0.15) ? null : await this.#commit(branch, n);
    const push = this.#push(branch, after);
    if (this.#dice.chance(0.04)) await this.#killDuring(push, branch, after);
    else assert.equal(await push, true, 'a push failed beside no fault');
    if (n % CLONE_STEPS === 0) await this.#assertWhole(this.#strata);
    if (n % COLD_STEPS === 0) await this.#assertWholeCold();
  }

  /** A child of the branch's tip, or of any other commit: then the push is forced. */
  async #commit(branch: string, n: number): Promise<string> {
    const forced = this.#commits.length > 0 && this.#dice.chance(0.2);
    const parent = forced ? this.#dice.pick(this.#commits) : this.#refs.get(branch);
    if (parent !== undefined) await git(this.#work, ['reset', '--quiet', '--soft', parent]);
    const commit = await commitFile(this.#work, `file-${n % 7}`, `${n}\n`.repeat(1 + this.#dice.below(200)));
    this.#commits.push(commit);
    return commit;
  }

  /** Resolves whether git said that the push was accepted. */
  async #push(branch: string, after: string | null): Promise<boolean> {
    this.counts.pushes += 1;
    const refspec = `+${after ?? ''}:refs/heads/${branch}`;
    const { code } = await tryGit(this.#work, ['push', '--quiet', gitUrl(this.#strata, this.#ada, 'life'), refspec]);
    if (code === 0) this.#moved(branch, after);
    return code === 0;
  }

  #moved(branch: string, after: string | null): void {
    if (after === null) this.#refs.delete(branch);
    else this.#refs.set(branch, after);
  }

  /** For a push that was not acknowledged, either is right: that it is there, and that it is not. */
  async #killDuring(push: Promise<boolean>, branch: string, after: string | null): Promise<void> {
    this.counts.kills += 1;
    await Promise.all([push, sleep(this.#dice.below(400)).then(() => this.#strata.kill())]);
    this.#strata = await this.#strata.restart();
    const there = (await this.#listed()).get(branch) ?? null;
    if (there === after) this.#moved(branch, after);
    await this.#assertRefs();
  }

  async #listed(): Promise<Map<string, string>> {
    const listed = await git(this.#work, ['ls-remote', gitUrl(this.#strata, this.#ada, 'life'), 'refs/heads/*']);
    const lines = listed.trim().split('\n');
    return new Map(
      lines.flatMap((line): [string, string][] => {
        const [id = '', ref = ''] = line.split('\t');
        return id === '' ? [] : [[ref.slice('refs/heads/'.length), id]];
      }),
    );
  }

  async #assertRefs(): Promise<void> {
    const byBranch = (refs: Map<string, string>) => Object.fromEntries(refs);
    assert.deepEqual(byBranch(await this.#listed()), byBranch(this.#refs));
  }

  async #assertWhole(node: Strata): Promise<void> {
    this.counts.clones += 1;
    await this.#assertRefs();
    const clone = path.join(await tempDir(this.#context), 'clone.git');
    await git(this.#work, ['clone', '--quiet', '--mirror', gitUrl(node, this.#ada, 'life'), clone]);
    await git(clone, ['fsck', '--connectivity-only', '--no-dangling']);
  }

  async #assertWholeCold(): Promise<void> {
    this.counts.cold += 1;
    const cold = await startNode(this.#context, this.#shared);
    try {
      await this.#assertWhole(cold);
    } finally {
      await cold.stop();
    }
  }
}

test('A server killed at any moment keeps every acknowledged push whole', {
  timeout: SPAN_MS + 180_000,
}, async (context) => {
  const shared = await sharedParts(context);
  const strata = await startNode(context, shared);
  const ada = await createAccount(strata, 'ada');
  await createRepository(strata, ada, 'life');
  const clients = new Clients(context, { shared, strata, ada, work: await newWorkTree(context) });
  const end = performance.now() + SPAN_MS;
  try {
    let n = 1;
    for (; performance.now() < end; n += 1) await clients.step(n);
    noteFigure(context, `seed ${SEED}, ${n} steps: ${JSON.stringify(clients.counts)}`);
  } catch (error) {
    throw new Error(`Repeat it with STRATA_LAYER_LIFE_SEED=${SEED}`, { cause: error });
  }
});
