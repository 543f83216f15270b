/**
 * A branch is one register, however many servers serve it: compare-and-set pushes and reads on two servers, over
 * git and over REST, through lost connections and a killed server, could have happened on a single copy.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { commit, type WireTarget, wirePush, wireRefs } from '../support/git-wire.ts';
import { type Answer, checkRegister, createRecorder, type Recorder, type Value } from '../support/linearizability.ts';
import { type Account, api, createAccount, createRepository, type Strata } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

const CLIENTS = 8;
const OPERATIONS_PER_CLIENT = 40;
const BRANCH = 'refs/heads/register';
/** A push is given up by its client after at most this long, in one of this many: it may or may not have happened. */
const IMPATIENCE_MS_MAX = 60;
const IMPATIENT_ONE_IN = 12;

test('a recorded history of pushes and reads on two servers is linearizable', async (context) => {
  const shared = await sharedParts(context);
  const [first, second] = await Promise.all([startNode(context, shared), startNode(context, shared)]);
  const nodes: [Strata, Strata] = [first, second];
  const ada = await createAccount(first, 'ada');
  await createRepository(first, ada, 'register');
  const recorder = createRecorder();
  const seed = Math.floor(Math.random() * 2 ** 31);
  context.diagnostic(`seed ${seed}`);

  let operations = 0;
  const onOperation = (): void => void (operations += 1);
  const clients = Array.from({ length: CLIENTS }, (_, client) =>
    runClient({ client, nodes, ada, recorder, random: randomFrom(seed + client), onOperation }),
  );
  // Half way through, one server dies with whatever it was doing, and comes back.
  const killing = (async () => {
    while (operations < (CLIENTS * OPERATIONS_PER_CLIENT) / 2) await sleep(5);
    nodes[1] = await nodes[1].restart();
  })();
  await Promise.all([...clients, killing]);

  const { history } = recorder;
  const count = (outcome: string): number =>
    history.filter((operation) => operation.kind === 'compare-and-set' && operation.outcome === outcome).length;
  const reads = history.filter(({ kind }) => kind === 'read').length;
  const counts = { done: count('done'), refused: count('refused'), unknown: count('unknown'), reads };
  context.diagnostic(JSON.stringify(counts));
  assert.ok(counts.done >= 10 && counts.refused >= 5 && reads >= 50, `too little happened: ${JSON.stringify(counts)}`);
  const verdict = checkRegister(history, null);
  if (verdict.linearizable) return;
  const { order, stuckAt } = verdict;
  assert.fail(`after ${JSON.stringify(order.slice(-10), null, 1)} none of these can come: ${JSON.stringify(stuckAt)}`);
});

interface Client {
  readonly client: number;
  readonly nodes: readonly Strata[];
  readonly ada: Account;
  readonly recorder: Recorder;
  readonly random: () => number;
  readonly onOperation: () => void;
}

async function runClient({ client, nodes, ada, recorder, random, onOperation }: Client): Promise<void> {
  let seen: Value = null;
  let behind = false;
  for (let number = 0; number < OPERATIONS_PER_CLIENT; number += 1) {
    const strata = nodes[random() < 0.5 ? 0 : 1] ?? nodes[0];
    if (strata === undefined) throw new Error('There is no server');
    const target = { strata, account: ada, name: 'register' };
    // Who was refused looks first: most compare-and-sets should have a chance.
    const kind = behind ? 0.5 + random() / 2 : random();
    const answered = recorder.call(client);
    let answer: Answer | null;
    if (kind < 0.5) answer = await set(target, seen, `client ${client} number ${number}`, random);
    else if (kind < 0.75) answer = await read(async () => (await wireRefs(target)).get(BRANCH) ?? null);
    else answer = await read(() => readOverRest(strata, ada));
    onOperation();
    if (answer === null) {
      // The server is away: ask again soon, perhaps the other one.
      await sleep(20);
      continue;
    }
    answered(answer);
    behind = answer.kind === 'compare-and-set' && answer.outcome !== 'done';
    if (answer.kind === 'read') seen = answer.value;
    else if (answer.outcome === 'done') seen = answer.to;
  }
}

/** A forced push from exactly `from`: the commits share no history, only the comparison decides. */
async function set(target: WireTarget, from: Value, message: string, random: () => number): Promise<Answer | null> {
  const next = commit(message);
  const command = { ref: BRANCH, after: next.id, ...(from === null ? {} : { before: from }) };
  const impatient = random() * IMPATIENT_ONE_IN < 1;
  const signal = impatient ? AbortSignal.timeout(Math.ceil(random() * IMPATIENCE_MS_MAX)) : undefined;
  const about = { kind: 'compare-and-set', from, to: next.id } as const;
  try {
    const report = await wirePush(target, [command], [next], signal === undefined ? {} : { signal });
    const word = report.refs.get(BRANCH);
    if (word === 'ok') return { ...about, outcome: 'done' };
    if (report.status === 200 && /moved it first|exists already|not exist here any more/.test(word ?? '')) {
      return { ...about, outcome: 'refused' };
    }
    assert.ok(report.status === 503, `${report.status} ${report.unpack} ${word} ${report.remote}`);
    return { ...about, outcome: 'unknown' };
  } catch (error) {
    if (!isConnectionFault(error)) throw error;
    return wasNeverSent(error) ? null : { ...about, outcome: 'unknown' };
  }
}

/** Null when there was no answer: a read without one says nothing. */
async function read(ask: () => Promise<Value>): Promise<Answer | null> {
  try {
    return { kind: 'read', value: await ask() };
  } catch (error) {
    if (!isConnectionFault(error)) throw error;
    return null;
  }
}

async function readOverRest(strata: Strata, ada: Account): Promise<Value> {
  const answer = await api(strata, ada.token, 'GET', '/v1/repos/ada/register/branches');
  assert.equal(answer.status, 200, answer.text);
  const { branches } = answer.body as { branches: { commit: { hexsha: string } }[] };
  return branches[0]?.commit.hexsha ?? null;
}

/** fetch says of every broken connection `TypeError`, with the reason as its cause; of a timeout `TimeoutError`. */
function isConnectionFault(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof DOMException && error.name === 'TimeoutError');
}

function wasNeverSent(error: unknown): boolean {
  const cause = error instanceof TypeError ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED';
}

/** A generator of numbers from 0 to 1 that a seed repeats: mulberry32. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
