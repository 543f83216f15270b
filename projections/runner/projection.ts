/**
 * The runner's view of a read model: its tables, the events it wants, and how it writes them.
 *
 * Invariants: a model's rows are a function of the events alone, however the events are split into batches. So an
 * applier keeps nothing between batches except what it could read back from its own tables. Each row is decided by one
 * stream, and queries join rows of several streams: therefore a parked stream can be replayed later.
 */
import type { RecordedEvent } from '../../core/kernel/envelope.ts';

/** The part of a connection or transaction that the runner uses; `pg` clients and pools have this shape. */
export interface Queryable {
  query(statement: Statement): Promise<{ readonly rows: readonly Row[]; readonly rowCount: number | null }>;
}

export interface Statement {
  /** The connection prepares the statement under this name at its first use. */
  readonly name?: string;
  readonly text: string;
  readonly values?: readonly unknown[];
}

/** A row as the driver returns it: int8 as a string, json parsed, bytea as a Buffer. */
export type Row = { readonly [column: string]: unknown };

/** Returns the qualified name of one of the model's tables, in the generation that is read or written. */
export type TableOf = (table: string) => string;

export interface ProjectionTable {
  /** Lower-case letters and underscores. */
  readonly name: string;
  /** Returns the statements that create the table and its indexes under this qualified name. */
  readonly create: (table: string) => readonly string[];
  /** The columns that identify a row. */
  readonly key: readonly string[];
  /**
   * `leftovers` if the live table may hold rows that a rebuild no longer finds, such as commits whose objects have left
   * storage; every row that a rebuild does find must exist and be equal.
   */
  readonly compare: 'exact' | 'leftovers';
  /**
   * For a table that would only grow: rows whose time in this column is so much earlier than the newest one may be
   * gone. The applier removes them (`removeAged`), and a comparison leaves them out.
   */
  readonly ages?: { readonly column: string; readonly keptMs: number };
}

/** A statement over a list: `$1`, its only parameter, is the list as JSON, for `json_to_recordset`. */
export interface ListStatement {
  readonly text: string;
  readonly items: readonly unknown[];
}

/** What a batch changes. */
export interface Write {
  /**
   * Independent statements: they run as one statement together with the checkpoint, and all see the tables as they were
   * before. So no two may touch the same row.
   */
  readonly lists: readonly ListStatement[];
  /** Work that must run before `lists`, or needs several statements; runs in the checkpoint's transaction. */
  readonly before?: (transaction: Queryable) => Promise<void>;
  /** Called after the commit: stores what the applier may keep for the next batch. */
  readonly committed?: () => void;
}

/**
 * Writes one generation of a model in this process. It may cache what it wrote: the runner opens a new applier after
 * any transaction that failed, and whenever another process has moved the checkpoint.
 */
export interface Applier {
  /**
   * Reads what it needs, in the database or elsewhere, and returns what to write. Events are in log order. Throws
   * `StreamFault` for a failure that concerns one stream only and, unless `patient`, for work that would make every
   * other stream wait too long.
   */
  prepare(events: readonly RecordedEvent[], database: Queryable, mode: PrepareMode): Promise<Write>;
}

export interface PrepareMode {
  /** True if nobody waits for the work: a rebuild, or the replay of one stream beside the writer. */
  readonly patient: boolean;
}

export interface Projection {
  /** Lower-case letters and underscores. */
  readonly name: string;
  /** Raised whenever the tables or the meaning of their content change: the model is then built again from the log. */
  readonly version: number;
  /** Categories of the streams it wants. */
  readonly categories: readonly string[];
  readonly tables: readonly ProjectionTable[];
  /** What to do with an event that cannot be applied: halt the model, or park the event's stream and continue. */
  readonly onPoison: 'halt' | 'park';
  /** How much an event counts towards a transaction's limit; the default is 1. */
  readonly weight?: (event: RecordedEvent) => number;
  /** True for a model of the events as the log holds them: without the data that they keep in other streams. */
  readonly asStored?: true;
  readonly open: (table: TableOf) => Applier;
}
