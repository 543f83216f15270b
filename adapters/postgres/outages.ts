/**
 * Tells callers of an outage of PostgreSQL in the error of the port that they use.
 *
 * Invariants: only failures that a retry can overcome become that error. Any other is thrown as it is, since it is
 * a fault of the statement or of the server's state.
 */
import type pg from 'pg';
import { failureOf } from './failures.ts';

/** Makes the port's error from the failure that `pg` threw. */
type Unavailable = (cause: unknown) => Error;

/** Returns what makes the port's error of this class and code. */
export function unavailable<Code extends string>(
  PortError: new (code: Code, message: string, options: { cause: unknown }) => Error,
  code: Code,
  message = 'PostgreSQL cannot be reached',
): Unavailable {
  return (cause) => new PortError(code, message, { cause });
}

/** Runs the work; an outage rejects with the port's error. */
export async function reportingOutage<Result>(outage: Unavailable, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (failureOf(error) === 'other') throw error;
    throw outage(error);
  }
}

/** Returns a function that runs one statement in this way. */
export function queryReporting(outage: Unavailable) {
  return <Row extends pg.QueryResultRow>(
    pool: pg.Pool,
    text: string,
    values: readonly unknown[],
  ): Promise<pg.QueryResult<Row>> => reportingOutage(outage, () => pool.query<Row>(text, [...values]));
}
