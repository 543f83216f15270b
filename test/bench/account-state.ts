/**
 * A part of `npm run bench -- --only audit`: the state of an account with a long log, at moments all over it.
 *
 * Invariants: each state is folded by a node that has nothing in memory. `snapshots` are those that the worker would
 * keep; `after deleting them` has none and leaves new ones, so only its first state is folded from the first entry.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { digest } from '../../adapters/node/digest.ts';
import type { createPool } from '../../adapters/postgres/pool.ts';
import { createPostgresSnapshots } from '../../adapters/postgres/snapshots.ts';
import type { Timestamp } from '../../core/kernel/ids.ts';
import type { AccountLogReader } from '../../core/ports/account-log.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import { type AccountStates, createAccountStates } from '../../core/use-cases/auditing/account-states.ts';
import { appendLongAccount } from '../support/long-account.ts';
import { Appender } from '../support/read-models.ts';
import { formatFigure, renderTable } from './table.ts';

/** Parts of the log, and null for its end. */
const MOMENTS = [0.02, 0.19, 0.37, 0.5, 0.81, 0.97, null];

export interface StateFigures {
  readonly entries: number;
  readonly what: 'making the snapshots' | 'cold' | 'warm' | 'after deleting them, at the end';
  /** The time of the slowest state. */
  readonly seconds: number;
  /** Processor time of this process, PostgreSQL's not in it, of the dearest. */
  readonly coreSeconds: number;
}

export interface StateBenchContext {
  readonly events: EventStore;
  readonly readModels: AccountLogReader;
  readonly database: ReturnType<typeof createPool>;
  /** Resolves when the read models have the whole log. */
  readonly caughtUp: () => Promise<void>;
}

export async function benchAccountState(
  { events, readModels, database, caughtUp }: StateBenchContext,
  entries: number,
): Promise<readonly StateFigures[]> {
  const append = new Appender(events);
  const { account, momentAt } = await appendLongAccount(append, entries);
  await caughtUp();
  const { size: logged } = await readModels.logPrefix(account, null);
  const past = {
    repositoryAt: async (): Promise<never> => {
      throw new Error('The fold keeps all refs');
    },
  };
  const node = (): AccountStates =>
    createAccountStates({
      ...{ events, readModels, past, digest, complete: async (event) => event },
      clock: { now: () => append.now, nextTurn: () => nextTurn() },
      snapshots: createPostgresSnapshots(database),
      onFault: (_what, cause) => {
        throw cause;
      },
    });
  const signal = new AbortController().signal;
  const stateAt = async (states: AccountStates, at: Timestamp | null): Promise<void> => {
    const state = await states.stateAt(account, at, { seen: append.last, signal });
    if ('refused' in state) throw new Error(`The state was refused: ${state.refused.code}`);
    for await (const _part of state.chunks);
    state.close();
  };
  const moments = MOMENTS.map((part) => (part === null ? null : momentAt(part)));
  const figures: StateFigures[] = [];
  const keep = (what: StateFigures['what'], costs: readonly Cost[]): void => {
    const seconds = Math.max(...costs.map((cost) => cost.seconds));
    figures.push({ entries: logged, what, seconds, coreSeconds: Math.max(...costs.map((cost) => cost.coreSeconds)) });
  };
  keep('making the snapshots', [await costOf(() => node().keepSnapshots(signal))]);
  const cold: Cost[] = [];
  const warm: Cost[] = [];
  for (const at of moments) {
    const states = node();
    cold.push(await costOf(() => stateAt(states, at)));
    warm.push(await costOf(() => stateAt(states, at)));
  }
  keep('cold', cold);
  keep('warm', warm);
  await database.query('DELETE FROM snapshots');
  keep('after deleting them, at the end', [await costOf(() => stateAt(node(), null))]);
  return figures;
}

interface Cost {
  readonly seconds: number;
  readonly coreSeconds: number;
}

async function costOf(work: () => Promise<void>): Promise<Cost> {
  const [start, cpu] = [performance.now(), process.cpuUsage()];
  await work();
  const { user, system } = process.cpuUsage(cpu);
  return { seconds: (performance.now() - start) / 1_000, coreSeconds: (user + system) / 1_000_000 };
}

export function renderStateFigures(figures: readonly StateFigures[]): string {
  const rows = figures.map(({ entries, what, seconds, coreSeconds }) => [
    ...[`state: ${what}`, String(entries), formatFigure(seconds), formatFigure(coreSeconds)],
  ]);
  return renderTable(['what', 'entries', 'seconds', 'seconds of a core'], rows);
}
