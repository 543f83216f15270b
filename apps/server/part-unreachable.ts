/**
 * A part that a start needs and that cannot be reached. The server waits for it (waiting-start.ts); a command ends with
 * the message.
 */
import { failureOf } from '../../adapters/postgres/failures.ts';

/** The parts as `/readyz` names them while the server waits. */
export type NeededPart = 'postgres' | 'eventstoredb' | 'layers';

export class PartUnreachable extends Error {
  override readonly name = 'PartUnreachable';
  readonly part: NeededPart;
  constructor(part: NeededPart, message: string, options: { readonly cause: unknown }) {
    super(message, options);
    this.part = part;
  }
}

/** Returns what to throw for an error of a step that talks to an operator's own PostgreSQL. */
export function unlessPostgresIsAway(error: unknown, setting: string): unknown {
  if (failureOf(error) !== 'connection-lost') return error;
  const why = error instanceof Error ? error.message : String(error);
  return new PartUnreachable('postgres', `${setting} cannot be reached: ${why}`, { cause: error });
}
