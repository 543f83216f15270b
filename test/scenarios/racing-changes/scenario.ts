/**
 * Pushes, commits and moves over REST, some of them repeated under keys, and restorations race on three nodes, and
 * nodes are killed at each step of a change: one event for each acknowledged change, none for a refused one, and what
 * is read could have happened on a single copy.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { beforeAll, describe, test } from 'vitest';
import { FAILPOINTS, type FailpointName } from '../../../core/ports/failpoints.ts';
import { suiteEnding } from '../../support/cleanup.ts';
import { killSample } from '../../support/kill-sample.ts';
import { createRecorder } from '../../support/linearizability.ts';
import { eventually } from '../../support/processes.ts';
import { setRegister } from '../../support/register.ts';
import { createDice, type Dice } from '../../support/seeded.ts';
import { type Account, createAccount, createRepository, type LogKind, type Strata } from '../../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../../support/strata-on-postgres.ts';
import { CLIENTS } from './clients.ts';
import { judge } from './judging.ts';
import type { Race } from './race.ts';

const NODES = 3;
const KILLS = 2;
/** More changes than any account makes in an hour. */
const ENV = { STRATA_RATE_FACTOR: '1000' };
const POINTS = FAILPOINTS.filter((point) => point.startsWith('push-') || point === 'refs-restored');

export function racingChangesOn(kind: LogKind): void {
  describe(`Changes that race on three nodes, with the log on ${kind}`, () => {
    const ending = suiteEnding();
    const nodes: Strata[] = [];
    let shared: SharedParts;
    let ada: Account;

    beforeAll(async () => {
      shared = await sharedParts(ending, kind);
      nodes.push(...(await Promise.all(Array.from({ length: NODES }, () => startNode(ending, shared, ENV)))));
      // A log may be shared with other runs.
      ada = await createAccount(nodeAt(nodes, 0), `ada-${randomBytes(4).toString('hex')}`);
    });

    const sample = killSample(POINTS);
    for (const point of POINTS) {
      const title = `are each made once if they are acknowledged, and not if they are refused, with kills at ${point}`;
      test(title, sample(point), async (context) => {
        const seed = Number(process.env['STRATA_RACE_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
        await context.annotate(`STRATA_RACE_SEED=${seed}`);
        await createRepository(nodeAt(nodes, 0), ada, point);
        const target = { strata: nodeAt(nodes, 0), account: ada, name: point };
        const begun = await setRegister(target, null, 'begun');
        assert.ok(begun?.kind === 'compare-and-set' && begun.outcome === 'done' && begun.to !== null);
        const start = await shared.log.head();

        const serving = new Set(nodes);
        let over = false;
        const race = begin(
          { account: ada, name: point, serving, wide: point === 'push-parts-appended', begun: begun.to },
          () => over,
        );
        const clients = Promise.all(CLIENTS.map((run, client) => run(race, client, createDice(seed + client))));
        clients.catch(() => {
          // When one client fails, all stop.
          over = true;
        });
        try {
          await killAt(nodes, serving, point, createDice(seed - 1), () => over);
        } finally {
          over = true;
          await Promise.allSettled([clients]);
        }
        await clients;

        const counts = {
          rest: race.made.size,
          pushes: race.pushed.size,
          keys: race.keyed.length,
          refused: race.refused,
        };
        const { pushes, commits, restorations } = race.unanswered;
        const unanswered = pushes.size + commits.size + restorations.length;
        await context.annotate(JSON.stringify({ ...counts, unanswered, operations: race.recorder.history.length }));
        assert.ok(Math.min(...Object.values(counts)) >= 2, `too little happened: ${JSON.stringify(counts)}`);
        await judge(context, race, nodes, () => shared.log.since(start));
      });
    }
  });
}

function begin(of: Pick<Race, 'account' | 'name' | 'serving' | 'wide' | 'begun'>, over: () => boolean): Race {
  return {
    ...of,
    over,
    recorder: createRecorder(),
    values: [of.begun],
    made: new Map(),
    keyed: [],
    pushed: new Set(),
    unanswered: { pushes: new Map(), commits: new Map(), restorations: [] },
    refused: 0,
  };
}

/** Restarts a node so that it dies at the point, waits until a client has led it there, and starts it as it was. */
async function killAt(
  nodes: Strata[],
  serving: Set<Strata>,
  point: FailpointName,
  dice: Dice,
  over: () => boolean,
): Promise<void> {
  for (let kills = 0; kills < KILLS && !over(); kills += 1) {
    const index = dice.below(nodes.length);
    const restarted = async (env: string): Promise<Strata> => {
      const node = nodeAt(nodes, index);
      serving.delete(node);
      const next = await node.restart({ STRATA_FAILPOINT: env });
      nodes[index] = next;
      serving.add(next);
      return next;
    };
    const dying = await restarted(point);
    try {
      await eventually(`a server reaches ${point}`, () => dying.process.signalCode === 'SIGKILL' || over());
    } finally {
      await restarted('');
    }
  }
}

function nodeAt(nodes: readonly Strata[], index: number): Strata {
  const node = nodes[index];
  if (node === undefined) throw new TypeError('There is no node of this index');
  return node;
}
