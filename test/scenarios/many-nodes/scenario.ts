/**
 * Three servers behind a round-robin proxy, clients of every kind, and one server killed every few seconds: no
 * acknowledged write is lost, no answer is stale, and every failure is a broken connection or a 503.
 *
 * STRATA_MANY_NODES_SECONDS sets the duration; for two minutes:
 *
 *     STRATA_MANY_NODES_SECONDS=120 npm run test:long -- many-nodes
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import type { Ending } from '../../support/cleanup.ts';
import { startRoundRobin } from '../../support/round-robin.ts';
import { createDice } from '../../support/seeded.ts';
import { type Account, createAccount, createRepository, git, newWorkTree, type Strata } from '../../support/strata.ts';
import { sharedParts, startNode } from '../../support/strata-on-postgres.ts';
import { changeTokens, pushAndClone, type Surroundings, useRegister } from './clients.ts';
import { newTally, type Tally } from './tally.ts';

/** The event log of the nodes. */
export interface ScenarioLog {
  readonly name: string;
  /**
   * Starts the log, which ends with the test, and returns the settings that each server needs besides those of the
   * shared database.
   */
  start(ending: Ending): Promise<Readonly<Record<string, string>>>;
}

/** Where the repositories of the scenario have their layers. */
export interface ScenarioLayers {
  readonly name: string;
  /** Starts what the layers need, and returns the settings of the servers. */
  start(ending: Ending): Promise<{
    readonly env: Readonly<Record<string, string>>;
    /** Returns a function that creates a repository of the account, and returns its URL for git. */
    of(strata: Pick<Strata, 'url'>, account: Account): Promise<(name: string) => Promise<string>>;
  }>;
}

const ON_PLATFORM: ScenarioLayers = {
  name: 'files',
  start: async () => ({
    env: {},
    of: async (strata, account) => (name) => createRepository(strata, account, name),
  }),
};

const NODES = 3;
const SECONDS_DEFAULT = 15;
const KILL_PAUSE_MS_MIN = 1_000;
const KILL_PAUSE_MS_MORE = 2_000;

export function manyNodesOn(log: ScenarioLog, layers: ScenarioLayers = ON_PLATFORM): void {
  const seconds = Number(process.env['STRATA_MANY_NODES_SECONDS'] ?? SECONDS_DEFAULT);
  test(`three nodes on ${log.name} and ${layers.name}, one of them killed every few seconds, lose no write and return nothing stale`, async (context) => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    await context.annotate(`seed ${seed}, ${seconds} s`);
    const shared = await sharedParts(context);
    const storage = await layers.start(context);
    const settings = { ...(await log.start(context)), ...storage.env };
    const starting = Array.from({ length: NODES }, () => startNode(context, shared, settings));
    const nodes = await Promise.all(starting);
    const proxy = await startRoundRobin(
      context,
      nodes.map(({ url }) => url),
    );
    const [anyone] = nodes;
    assert.ok(anyone !== undefined);
    // The log may be shared with other runs.
    const account = await createAccount(anyone, `ada-${randomBytes(4).toString('hex')}`);
    const work = await Promise.all([newWorkTree(context), newWorkTree(context)]);
    const create = await storage.of(proxy, account);
    for (const name of ['register-0', 'register-1']) await create(name);
    for (const [index, tree] of work.entries()) {
      await git(tree, ['push', '--quiet', await create(`pushed-${index}`), 'main']);
    }

    const tally = newTally();
    const endMs = performance.now() + seconds * 1_000;
    let broken = false;
    const over = (): boolean => broken || performance.now() > endMs;
    const around: Surroundings = { strata: proxy, account, tally, over };
    const killing = killInTurn(nodes, tally, over, seed);
    const clients = Promise.all([
      useRegister(around, 'register-0', createDice(seed + 1)),
      useRegister(around, 'register-1', createDice(seed + 2)),
      ...work.map((tree, index) => pushAndClone(around, `pushed-${index}`, tree)),
      changeTokens(around, 'pushed-0'),
    ]);
    clients.catch(() => {
      // When one client fails, all stop.
      broken = true;
    });
    await Promise.allSettled([clients, killing]);
    for (const { check } of await clients) await check(nodes);
    assert.deepEqual(proxy.denied, [], 'credentials that were good all the time were denied');
    const { written, read, unanswered, killed } = tally;
    const counts = `writes acknowledged ${written}, lost 0; reads ${read}, stale 0; kills survived ${killed}`;
    await context.annotate(`${counts}; unanswered ${unanswered}; requests to the nodes ${proxy.requests.join(', ')}`);
    assert.ok(killed >= 1 && written >= 10 && read >= 30, `too little happened: ${counts}`);
  });
}

/** Kills servers with SIGKILL in a random order and restarts each on the same data directory. */
async function killInTurn(nodes: Strata[], tally: Tally, over: () => boolean, seed: number): Promise<void> {
  const dice = createDice(seed);
  for (;;) {
    await sleep(KILL_PAUSE_MS_MIN + dice.below(KILL_PAUSE_MS_MORE));
    if (over()) return;
    const index = dice.below(nodes.length);
    const node = nodes[index];
    if (node === undefined) throw new TypeError('There is no node of this index');
    nodes[index] = await node.restart();
    tally.killed += 1;
  }
}
