/**
 * Three servers that answer from memory under leases of 50 ms, each with ways of its own to PostgreSQL and to
 * EventStoreDB, while they are killed, stopped, cut off from the database or from the log, and their clocks are set:
 * what clients write and read over Git and REST must form a history that could have happened on a single copy.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { type TestContext, test } from 'vitest';
import { cleanUp, type Ending } from '../support/cleanup.ts';
import { noteFigure } from '../support/figures.ts';
import { type Answer, checkRegister, createRecorder, type Recorder, type Value } from '../support/linearizability.ts';
import { startPostgresProxy } from '../support/postgres-proxy.ts';
import { readRegister, setRegister } from '../support/register.ts';
import { createDice, type Dice } from '../support/seeded.ts';
import { type Account, createAccount, createRepository, type LogKind, type Strata } from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

const NODES = 3;
const SPAN_MS = Number(process.env['STRATA_READ_LEASES_SECONDS'] ?? 40) * 1_000;
/** Each has registers of its own, so that a history stays short enough to be checked. */
const REGISTERS = 4;
const CLIENTS_PER_REGISTER = 3;
const FAULT_PAUSE_MS_MAX = 600;
const CLOCK = pathToFileURL(path.join(import.meta.dirname, '../support/machine-clock.ts')).href;

interface Node {
  strata: Strata;
  /** To the database, and to a log that does not lie in it. */
  readonly ways: readonly TcpProxy[];
}

async function start(ending: Ending, shared: SharedParts): Promise<Node> {
  const toDatabase = await startPostgresProxy(shared.env['STRATA_DATABASE_URL'] ?? '');
  const ways: TcpProxy[] = [toDatabase];
  cleanUp(ending, async () => void (await Promise.all(ways.map((way) => way.close()))));
  const env: Record<string, string> = {
    STRATA_DATABASE_URL: toDatabase.connectionString,
    STRATA_READ_LEASE_MS: '50',
    NODE_OPTIONS: `--import=${CLOCK}`,
  };
  const address = shared.env['STRATA_EVENTSTORE_URL'];
  if (address !== undefined) {
    const url = new URL(address);
    const toLog = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
    ways.push(toLog);
    url.host = `127.0.0.1:${toLog.port}`;
    env['STRATA_EVENTSTORE_URL'] = url.href;
  }
  return { strata: await startNode(ending, shared, env), ways };
}

const FAULTS: Readonly<Record<string, (node: Node, dice: Dice) => Promise<void>>> = {
  killed: async (node) => {
    node.strata = await node.strata.restart();
  },
  stopped: async ({ strata }, dice) => {
    strata.process.kill('SIGSTOP');
    await sleep(20 + dice.below(400));
    strata.process.kill('SIGCONT');
  },
  'cut off': async ({ ways }, dice) => {
    const goOn = dice.pick(ways).freeze();
    await sleep(20 + dice.below(400));
    goOn();
  },
  'set to another time': async ({ strata }) => {
    strata.process.kill('SIGUSR2');
    await sleep(100);
    strata.process.kill('SIGUSR2');
  },
};

const LOGS: readonly LogKind[] = ['postgres', 'eventstoredb'];

for (const kind of LOGS) {
  test(`three nodes on ${kind} with leases of 50 ms, under every fault, answer as a single copy would`, (context) =>
    answersAsOneCopy(context, kind));
}

async function answersAsOneCopy(context: TestContext, kind: LogKind): Promise<void> {
  const shared = await sharedParts(context, kind);
  const nodes = await Promise.all(Array.from({ length: NODES }, () => start(context, shared)));
  const [first] = nodes;
  assert.ok(first !== undefined);
  const ada = await createAccount(first.strata, 'ada');
  const seed = Math.floor(Math.random() * 2 ** 31);
  await context.annotate(`seed ${seed}`);
  const endMs = performance.now() + SPAN_MS;
  const over = (): boolean => performance.now() > endMs;

  // Before the first fault: a kill would end the requests that prepare the test.
  const names = Array.from({ length: REGISTERS }, (_, register) => `register-${register}`);
  for (const name of names) await createRepository(first.strata, ada, name);

  const counts = new Map<string, number>();
  const disturbing = (async () => {
    const dice = createDice(seed);
    while (!over()) {
      await sleep(dice.below(FAULT_PAUSE_MS_MAX));
      const [name, fault] = dice.pick(Object.entries(FAULTS));
      await fault(dice.pick(nodes), dice);
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  })();
  const recorders = names.map((name, register) => {
    const recorder = createRecorder();
    const clients = Array.from({ length: CLIENTS_PER_REGISTER }, (_client, client) =>
      runClient({ client, name, nodes, ada, recorder, over, dice: createDice(seed + 100 * register + client + 1) }),
    );
    return { recorder, clients };
  });
  await Promise.all([disturbing, ...recorders.flatMap(({ clients }) => clients)]);

  const histories = recorders.map(({ recorder }) => recorder.history);
  const reads = histories.flat().filter(({ kind }) => kind === 'read').length;
  const faults = [...counts].map(([name, count]) => `${count} ${name}`).join(', ');
  noteFigure(context, `read leases on ${kind}: ${reads} reads, ${histories.flat().length - reads} writes; ${faults}`);
  assert.ok(reads >= 100, 'too little happened');
  for (const history of histories) {
    const verdict = checkRegister(history, null);
    if (verdict.linearizable) continue;
    const { order, stuckAt } = verdict;
    assert.fail(`after ${JSON.stringify(order.slice(-10), null, 1)} none can follow: ${JSON.stringify(stuckAt)}`);
  }
}

interface Client {
  readonly client: number;
  readonly name: string;
  readonly nodes: readonly Node[];
  readonly ada: Account;
  readonly recorder: Recorder;
  readonly dice: Dice;
  readonly over: () => boolean;
}

async function runClient({ client, name, nodes, ada, recorder, dice, over }: Client): Promise<void> {
  let seen: Value = null;
  for (let number = 0; !over(); number += 1) {
    const target = { strata: dice.pick(nodes).strata, account: ada, name };
    const answered = recorder.call(client);
    const message = `client ${client} number ${number}`;
    const answer: Answer | null = dice.chance(0.7)
      ? await readRegister(target, dice.chance(0.5) ? 'git' : 'rest')
      : await setRegister(target, seen, message);
    // Searching all orders of many operations takes long, so that a client rests between two.
    await sleep(dice.below(60));
    if (answer === null) continue;
    answered(answer);
    if (answer.kind === 'read') seen = answer.value;
    else if (answer.outcome === 'done') seen = answer.to;
  }
}
