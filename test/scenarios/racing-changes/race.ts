/**
 * What a race knows of the changes that it asked for: those that were acknowledged, and those that may have been made.
 *
 * Invariants: a refused change is in neither. Each change has a value of its own: the commit that it makes or, where
 * only the service knows that, the commit's message.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer, Recorder } from '../../support/linearizability.ts';
import { isConnectionFault } from '../../support/register.ts';
import type { Dice } from '../../support/seeded.ts';
import type { Account, Strata } from '../../support/strata.ts';

/** The branch that all of them change. */
export const REGISTER = 'refs/heads/register';
/** Refs with names so long that a change of all of them is stored in parts. */
export const WIDE_NAMES = Array.from({ length: 200 }, (_, n) => `refs/heads/z${`${'long'.repeat(60)}/`.repeat(8)}${n}`);

/** What a change made of the branch. */
export interface Move {
  readonly before: string;
  readonly after: string;
}

/** Records, for the history, what became of a change. */
type Answered = (answer: Answer) => void;

/** A request that was acknowledged, and whose repeats must have the same answer. */
export interface Keyed {
  readonly path: string;
  readonly body: object;
  readonly key: string;
  readonly event: string;
}

export interface Race {
  readonly account: Account;
  readonly name: string;
  /** The nodes that answer, as far as anybody knows. */
  readonly serving: ReadonlySet<Strata>;
  readonly recorder: Recorder;
  /** Whether changes of the refs are so wide that they are stored in parts. */
  readonly wide: boolean;
  readonly over: () => boolean;
  /** What the branch names before the race. */
  readonly begun: string;
  /** Commits that the branch has named. */
  readonly values: string[];
  /** The changes over REST that were acknowledged, by the ids of their events. */
  readonly made: Map<string, Move>;
  readonly keyed: Keyed[];
  /** The commits of the pushes that were acknowledged. */
  readonly pushed: Set<string>;
  readonly unanswered: {
    /** By the commit that is pushed. */
    readonly pushes: Map<string, Answered>;
    /** By the message. */
    readonly commits: Map<string, Answered>;
    readonly restorations: { readonly target: string; readonly answered: Answered }[];
  };
  refused: number;
}

export interface Sent {
  readonly status: number;
  readonly repeated: boolean;
  readonly body: {
    readonly event_id?: string | null;
    readonly code?: string;
    readonly head?: string;
    readonly before?: string;
    readonly after?: string;
    readonly updates?: readonly (Move & { readonly ref: string })[];
  };
}

/** Sends a change to a node. Null: nobody knows what became of it. */
export async function send(
  { account, name }: Race,
  node: Pick<Strata, 'url'>,
  path: string,
  body: object,
  key: string | null = null,
): Promise<Sent | null> {
  try {
    const response = await fetch(`${node.url}/v1/repos/${account.username}/${name}/${path}`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${account.token}`,
        'Content-Type': 'application/json',
        ...(key === null ? {} : { 'Idempotency-Key': key }),
      },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (response.status === 503) return null;
    const repeated = response.headers.get('idempotent-replayed') === 'true';
    return { status: response.status, repeated, body: JSON.parse(text) as Sent['body'] };
  } catch (error) {
    if (!isConnectionFault(error)) throw error;
    return null;
  }
}

/** Sends a change under its key, to one of the nodes and another, until what became of it is known. */
export async function sendUntilKnown(
  race: Race,
  pick: () => Pick<Strata, 'url'>,
  { path, body, key }: Omit<Keyed, 'event'>,
): Promise<Sent> {
  for (;;) {
    const sent = await send(race, pick(), path, body, key);
    if (sent !== null && sent.body.code !== 'key-in-use') return sent;
    await sleep(20);
  }
}

/** Repeats a change whose answer is known: it must be answered from its event. */
export async function repeat(race: Race, pick: () => Pick<Strata, 'url'>, keyed: Keyed): Promise<void> {
  const { repeated, body } = await sendUntilKnown(race, pick, keyed);
  assert.deepEqual([repeated, body.event_id], [true, keyed.event], `${keyed.key} was not answered from its event`);
}

/** Returns any node that answers. */
export function anyOf({ serving }: Race, dice: Dice): Strata {
  return dice.pick([...serving]);
}

/** Notes a change that was acknowledged. */
export function note(race: Race, event: string, move: Move): Answer {
  assert.ok(!race.made.has(event), `two changes were answered with the event ${event}`);
  race.made.set(event, move);
  race.values.push(move.after);
  return { kind: 'compare-and-set', from: move.before, to: move.after, outcome: 'done' };
}

/** What became of a change that nobody answered, if the log has it. */
export function mayHaveBeenMade({ before, after }: Move): Answer {
  return { kind: 'compare-and-set', from: before, to: after, outcome: 'unknown' };
}
