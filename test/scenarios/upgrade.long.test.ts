/**
 * An upgrade without an outage, and the way back: nodes of the oldest version that may run beside this one are replaced
 * one by one, while clients push and read through any of them. What they write and read over Git and REST must form a
 * history that could have happened on a single copy, the older nodes must be able to read every event, and the read
 * models must be what the log says.
 *
 * `STRATA_UPGRADE_SEED=<n>` repeats the choices of one run, `STRATA_UPGRADE_ROUNDS=<n>` makes as many upgrades,
 * of which ten fit the time limit of a file on a machine that does other work.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type TestContext, test } from 'vitest';
import type { EventVersions } from '../../core/ports/running-processes.ts';
import { cleanUp } from '../support/cleanup.ts';
import { noteFigure } from '../support/figures.ts';
import { type Answer, checkRegister, createRecorder, type Recorder, type Value } from '../support/linearizability.ts';
import { olderVersion, whyNoOlderVersion } from '../support/older-version.ts';
import { readRegister, setRegister } from '../support/register.ts';
import { createDice, type Dice } from '../support/seeded.ts';
import { skippedFor } from '../support/skipped.ts';
import {
  type Account,
  admin,
  api,
  createAccount,
  createRepository,
  type Strata,
  startStrata,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';

const ROUNDS = Number(process.env['STRATA_UPGRADE_ROUNDS'] ?? 1);
const SEED = Number(process.env['STRATA_UPGRADE_SEED'] ?? Date.now() % 2 ** 31);
/** On a busy machine; alone it takes about a minute. */
const TEST_SPAN_MS = 300_000;
/** Each has a register of its own, so that a history stays short enough to be checked. */
const REGISTERS = 3;
const CLIENTS_PER_REGISTER = 2;
const CLIENT_PAUSE_MS_MAX = 500;
/** How long nodes of the versions run side by side between two steps of the operator. */
const STEP_PAUSE_MS_MAX = 1_000;

for (let round = 0; round < ROUNDS; round += 1) {
  const seed = SEED + round;
  test(`nodes of two versions are replaced one by one, forwards, back and forwards (${round + 1})`, {
    timeout: TEST_SPAN_MS,
    ...skippedFor(whyNoOlderVersion()),
  }, async (context) => {
    try {
      await upgradesAndGoesBack(context, createDice(seed));
    } catch (error) {
      throw new Error(`Repeat it with STRATA_UPGRADE_SEED=${seed}`, { cause: error });
    }
  });
}

const FAULTS = /its stream is parked|"what":"(running-process|projections)"/;

type Version = 'older' | 'newer';

interface Node {
  readonly version: Version;
  readonly strata: Strata;
}

/** Starts and ends the nodes. */
class Operator {
  readonly #dice: Dice;
  readonly #starts: Readonly<Record<Version, () => Promise<Strata>>>;
  #nodes: readonly Node[] = [];
  #started: readonly Strata[] = [];
  readonly counts = { started: 0, stopped: 0, killed: 0 };

  constructor(dice: Dice, starts: Readonly<Record<Version, () => Promise<Strata>>>) {
    this.#dice = dice;
    this.#starts = starts;
  }

  /** The nodes that clients may ask. */
  running(): readonly Node[] {
    return this.#nodes;
  }

  /** What every node logged, also those that have ended. */
  logs(): readonly string[] {
    return this.#started.map((strata) => strata.log());
  }

  async start(version: Version): Promise<Strata> {
    const strata = await this.#starts[version]();
    this.counts.started += 1;
    this.#started = [...this.#started, strata];
    this.#nodes = [...this.#nodes, { version, strata }];
    return strata;
  }

  /** Replaces every node by one of the version, one at a time, so that others go on answering. */
  async replaceAll(version: Version): Promise<void> {
    for (const node of this.#nodes) {
      await this.start(version);
      await this.#pause();
      await this.#end(node);
      await this.#pause();
    }
  }

  async endAll(version: Version): Promise<void> {
    for (const node of this.#nodes) if (node.version === version) await this.#end(node);
  }

  async #end(node: Node): Promise<void> {
    if (this.#dice.chance(0.25)) {
      await node.strata.kill();
      this.counts.killed += 1;
      this.#nodes = this.#nodes.filter((other) => other !== node);
    } else {
      // A proxy takes the node out before it is stopped.
      this.#nodes = this.#nodes.filter((other) => other !== node);
      assert.equal(await node.strata.stop(), 0, node.strata.log());
      this.counts.stopped += 1;
    }
  }

  #pause(): Promise<void> {
    return sleep(this.#dice.below(STEP_PAUSE_MS_MAX));
  }
}

async function replaceForwardsAndBack(operator: Operator): Promise<void> {
  await operator.replaceAll('newer');
  await operator.replaceAll('older');
  await operator.start('newer');
  await operator.endAll('older');
}

async function upgradesAndGoesBack(context: TestContext, dice: Dice): Promise<void> {
  const shared = await sharedParts(context);
  const sources = await olderVersion(context);
  const startOlder = () => startStrata(context, { log: 'postgres', env: shared.env, sources });
  const operator = new Operator(dice, { older: startOlder, newer: () => startNode(context, shared) });
  const first = await operator.start('older');
  await operator.start('older');
  const readByOlder = await eventsReadByAll(context, shared);
  const ada = await createAccount(first, 'ada');
  const names = Array.from({ length: REGISTERS }, (_, register) => `register-${register}`);
  for (const name of names) await createRepository(first, ada, name);

  let over = false;
  const registers = names.map((name) => {
    const recorder = createRecorder();
    const clients = Array.from({ length: CLIENTS_PER_REGISTER }, (_client, client) =>
      runClient({ client, name, ada, recorder, operator, over: () => over, dice: createDice(dice.below(2 ** 31)) }),
    );
    return { recorder, clients };
  });
  const operating = replaceForwardsAndBack(operator).finally(() => {
    over = true;
  });
  const working = [operating, ...registers.flatMap(({ clients }) => clients)];
  // All have ended before the test fails, since its servers end with it.
  await Promise.allSettled(working);
  await Promise.all(working);
  const histories = registers.map(({ recorder }) => recorder.history);
  expectSingleCopy(histories);
  await expectRename(operator, ada, 409);
  await expectEventsReadBy(readByOlder, shared);
  for (const log of operator.logs()) assert.doesNotMatch(log, FAULTS);
  await expectModelsOfTheLog(operator);
  await expectNoOlderVersionAfterFinish(operator, startOlder);
  await operator.start('newer');
  await expectRename(operator, ada, 200);
  const { started, stopped, killed } = operator.counts;
  const nodes = `${started} nodes started, ${stopped} stopped, ${killed} killed`;
  noteFigure(context, `upgrade: ${histories.flat().length} pushes and reads; ${nodes}`);
}

function expectSingleCopy(histories: readonly Recorder['history'][]): void {
  const writes = histories.flat().filter((one) => one.kind === 'compare-and-set' && one.outcome === 'done');
  assert.ok(writes.length >= 20, 'too little happened');
  for (const history of histories) {
    const verdict = checkRegister(history, null);
    if (verdict.linearizable) continue;
    const { order, stuckAt } = verdict;
    assert.fail(`after ${JSON.stringify(order.slice(-10), null, 1)} none can follow: ${JSON.stringify(stuckAt)}`);
  }
}

/** What writers of both versions made of the log, one after the other, is what one of this version makes of it. */
async function expectModelsOfTheLog(operator: Operator): Promise<void> {
  const [node] = operator.running();
  assert.ok(node !== undefined);
  const report = await admin(node.strata, ['projections', 'rebuild', '--verify']);
  const { projections } = report as { projections: { model: string; differences: number }[] };
  assert.deepEqual(
    projections.filter(({ differences }) => differences > 0),
    [],
  );
}

/** What the rows of the processes that run say. */
async function eventsReadByAll(context: TestContext, { env }: SharedParts): Promise<EventVersions> {
  const client = new pg.Client({ connectionString: env['STRATA_DATABASE_OWNER_URL'] });
  cleanUp(context, () => client.end());
  await client.connect();
  const { rows } = await client.query<{ events: EventVersions }>('SELECT DISTINCT events FROM running_processes');
  assert.equal(rows.length, 1);
  return rows[0]?.events ?? {};
}

async function expectEventsReadBy(versions: EventVersions, { log }: SharedParts): Promise<void> {
  const events = await log.since();
  const unread = events.filter(({ type, version }) => version > (versions[type] ?? 0));
  assert.deepEqual(new Set(unread.map(({ type, version }) => `${type} ${version}`)), new Set());
  // Otherwise the test tried nothing: it is among the types whose form has changed.
  assert.ok(events.some(({ type }) => type === 'TransferRecorded'));
}

/** Until then the older version can be started, and afterwards it cannot if it does not read what is written. */
async function expectNoOlderVersionAfterFinish(operator: Operator, startOlder: () => Promise<Strata>): Promise<void> {
  const [node] = operator.running();
  assert.ok(node !== undefined);
  const { written } = (await admin(node.strata, ['upgrade', 'finish', '--yes'])) as { written: readonly unknown[] };
  if (written.length === 0) await (await startOlder()).stop();
  else await assert.rejects(startOlder(), /made by a newer version/);
}

/** The newest node has what is written from its start on. */
async function expectRename(operator: Operator, ada: Account, status: number): Promise<void> {
  const node = operator.running().at(-1);
  assert.ok(node !== undefined);
  const body = { name: `renamed-${status}` };
  const answer = await api(node.strata, ada.token, 'PATCH', '/v1/repos/ada/register-0', body);
  assert.equal(answer.status, status, answer.text);
}

interface Client {
  readonly client: number;
  readonly name: string;
  readonly ada: Account;
  readonly recorder: Recorder;
  readonly operator: Operator;
  readonly dice: Dice;
  readonly over: () => boolean;
}

async function runClient({ client, name, ada, recorder, operator, dice, over }: Client): Promise<void> {
  let seen: Value = null;
  for (let number = 0; !over(); number += 1) {
    const { strata } = dice.pick(operator.running());
    const target = { strata, account: ada, name };
    const answered = recorder.call(client);
    const message = `client ${client} number ${number}`;
    const answer: Answer | null = dice.chance(0.6)
      ? await readRegister(target, dice.chance(0.5) ? 'git' : 'rest')
      : await setRegister(target, seen, message);
    if (answer !== null) {
      answered(answer);
      if (answer.kind === 'read') seen = answer.value;
      else if (answer.outcome === 'done') seen = answer.to;
    }
    await sleep(dice.below(CLIENT_PAUSE_MS_MAX));
  }
}
