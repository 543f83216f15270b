/**
 * The processes that run on the log, and which stored forms each of them reads: what a newer version asks before it
 * takes away what an older one still uses, and before it writes what an older one cannot read.
 *
 * Invariants: a process is listed before it reads, and for `PROCESS_SPAN_MS` after it was last kept: whoever is not
 * listed reads nothing. A version of an event is written from the moment on at which every process of the last
 * `PROCESS_SPAN_MS` read it, those that have ended among them, or an operator said so. It never goes back. An event of
 * a new type is not written at all until then, as if in version 0. A process is listed, and a version becomes the
 * written one, under one lock: either the switch sees the process, or the process sees the switch. The time is that of
 * the database.
 */

/** By type of event. */
export type EventVersions = Readonly<Record<string, number>>;

/** Which version of each type of event is written now. */
export interface WrittenForms {
  /** Returns the highest version of the type that may be written; 0 for a new type that must not be written yet. */
  versionOf(type: string): number;
}

/**
 * Returns the version of the type that is written, for a program that can write no older ones than `oldest`. A type
 * that is missing in `written` has its first version; a new one has 0.
 */
export function writtenVersion(type: string, written: EventVersions, oldest: EventVersions): number {
  return written[type] ?? Math.min(1, oldest[type] ?? 1);
}

/** Where no program from before runs: every event is written in its current version. */
export const NEWEST_FORMS: WrittenForms = { versionOf: () => Number.POSITIVE_INFINITY };

/** What a process reads. */
export interface ReadForms {
  /** The highest version that it reads. */
  readonly events: EventVersions;
  /** By name of read model: the version whose generation it reads. */
  readonly models: Readonly<Record<string, number>>;
}

/**
 * How long a process that is not kept any more counts as running. Internal: only a process that was killed reaches it.
 */
export const PROCESS_SPAN_MS = 10 * 60_000;

export interface Raised {
  /** The versions that are written now. */
  readonly written: EventVersions;
  /** The versions that were given and not written before. */
  readonly raised: EventVersions;
  /** How many listed processes do not read all of these. */
  readonly olderProcesses: number;
}

/** Each call rejects when the database cannot be reached. */
export interface RunningProcesses {
  /**
   * Lists the process with what it reads, or keeps it listed. Drops those whose span is over. Then each version that
   * this process and every other one of the span read becomes the written one. No version stays below that of `oldest`:
   * the oldest versions that this process can write, 0 of a type that it can do without. Returns the written versions
   * (`writtenVersion` says what a missing type means). A process that does not read what is written changes nothing, is
   * not listed, and must end.
   */
  keep(process: string, forms: ReadForms, oldest: EventVersions): Promise<EventVersions>;
  /**
   * Makes these versions the written ones where older ones are. Does nothing while a listed process does not read one
   * of them, unless `whoeverRuns`. `oldest` is as for `keep`.
   */
  write(versions: EventVersions, oldest: EventVersions, whoeverRuns: boolean): Promise<Raised>;
  /** Takes the process off the list, when it has ended. */
  remove(process: string): Promise<void>;
  /** Returns what the listed processes read. */
  list(): Promise<readonly ReadForms[]>;
}
