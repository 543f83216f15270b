/**
 * Work that belongs to a request, but that its answer does not wait for.
 *
 * Invariants: the server waits for the work before it stops; a failure is reported, and nothing else depends on it.
 */

export interface Background {
  /** Begins the work. `what` names it in the report of a failure. */
  run(what: string, work: () => Promise<void>): void;
}
