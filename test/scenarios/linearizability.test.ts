/**
 * A branch is one register, however many servers serve it: compare-and-set pushes and reads on two servers, over git
 * and over REST, through lost connections and a killed server, must form a history that could have happened on a single
 * copy.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { type Answer, checkRegister, createRecorder, type Recorder, type Value } from '../support/linearizability.ts';
import { readRegister, setRegister } from '../support/register.ts';
import { createDice, type Dice } from '../support/seeded.ts';
import { type Account, createAccount, createRepository, type Strata } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

const CLIENTS = 8;
const OPERATIONS_PER_CLIENT = 40;
/**
 * One push in `IMPATIENT_ONE_IN` is aborted by its client after at most this long: it may or may not have taken effect.
 */
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
  await context.annotate(`seed ${seed}`);

  let operations = 0;
  const onOperation = (): void => void (operations += 1);
  const clients = Array.from({ length: CLIENTS }, (_, client) =>
    runClient({ client, nodes, ada, recorder, dice: createDice(seed + client), onOperation }),
  );
  // Halfway through, one server is killed during whatever it does, and restarted.
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
  await context.annotate(JSON.stringify(counts));
  assert.ok(counts.done >= 10 && counts.refused >= 5 && reads >= 50, `too little happened: ${JSON.stringify(counts)}`);
  const verdict = checkRegister(history, null);
  if (verdict.linearizable) return;
  const { order, stuckAt } = verdict;
  assert.fail(
    `after ${JSON.stringify(order.slice(-10), null, 1)} none of these can follow: ${JSON.stringify(stuckAt)}`,
  );
});

interface Client {
  readonly client: number;
  readonly nodes: readonly Strata[];
  readonly ada: Account;
  readonly recorder: Recorder;
  readonly dice: Dice;
  readonly onOperation: () => void;
}

async function runClient({ client, nodes, ada, recorder, dice, onOperation }: Client): Promise<void> {
  let seen: Value = null;
  let wasRefused = false;
  for (let number = 0; number < OPERATIONS_PER_CLIENT; number += 1) {
    const strata = dice.pick(nodes);
    const target = { strata, account: ada, name: 'register' };
    // A client that was refused reads first, so that most compare-and-sets can succeed.
    const reads = wasRefused || dice.chance(0.5);
    const answered = recorder.call(client);
    let answer: Answer | null;
    if (reads) answer = await readRegister(target, dice.chance(0.5) ? 'git' : 'rest');
    else answer = await setRegister(target, seen, `client ${client} number ${number}`, impatience(dice));
    onOperation();
    if (answer === null) {
      // The server is down: try again soon, perhaps on the other one.
      await sleep(20);
      continue;
    }
    answered(answer);
    wasRefused = answer.kind === 'compare-and-set' && answer.outcome !== 'done';
    if (answer.kind === 'read') seen = answer.value;
    else if (answer.outcome === 'done') seen = answer.to;
  }
}

function impatience(dice: Dice): AbortSignal | undefined {
  return dice.chance(1 / IMPATIENT_ONE_IN) ? AbortSignal.timeout(1 + dice.below(IMPATIENCE_MS_MAX)) : undefined;
}
