/**
 * The processes that run on the log, and which stored forms each of them reads: what a newer version asks before it
 * takes away what an older one still uses.
 *
 * Invariants: a process is listed before it reads, and for `PROCESS_SPAN_MS` after it was last kept: whoever is not
 * listed reads nothing. The time is that of the database.
 */

/** What a process reads. */
export interface ReadForms {
  /** By type of event: the highest version that it reads. */
  readonly events: Readonly<Record<string, number>>;
  /** By name of read model: the version whose generation it reads. */
  readonly models: Readonly<Record<string, number>>;
}

/**
 * How long a process that is not kept any more counts as running. Internal: only a process that was killed reaches it.
 */
export const PROCESS_SPAN_MS = 10 * 60_000;

/** Each call rejects when the database cannot be reached. */
export interface RunningProcesses {
  /** Lists the process with what it reads, or keeps it listed. Drops those whose span is over. */
  keep(process: string, forms: ReadForms): Promise<void>;
  /** Takes the process off the list, when it has ended. */
  remove(process: string): Promise<void>;
  /** Returns what the listed processes read. */
  list(): Promise<readonly ReadForms[]>;
}
