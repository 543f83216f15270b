/**
 * What a read model is to the runner: its tables, the events it wants, and how it writes them.
 *
 * Must stay true: a model's rows are a function of the events alone, whatever batches they come in. So it
 * keeps nothing between batches but what it could read back from its own tables, and each of its rows is
 * decided by one stream (others are joined when it is read): a parked stream can then be replayed later.
 */
import type { RecordedEvent } from '../../core/kernel/envelope.ts';

/** What the runner's connections and transactions can do; `pg` clients and pools fit. */
export interface Queryable {
  query(statement: Statement): Promise<{ readonly rows: readonly Row[]; readonly rowCount: number | null }>;
}

export interface Statement {
  /** Prepared once for each connection under this name. */
  readonly name?: string;
  readonly text: string;
  readonly values?: readonly unknown[];
}

/** A row as the driver gives it: int8 as a string, json parsed, bytea as a Buffer. */
export type Row = { readonly [column: string]: unknown };

/** The qualified name of one of the model's tables, in the generation that is worked on. */
export type TableOf = (table: string) => string;

export interface ProjectionTable {
  /** Lower-case letters and underscores. */
  readonly name: string;
  /** Statements that create the table, and its indexes, under the given qualified name. */
  readonly create: (table: string) => readonly string[];
  /** Columns that name a row. */
  readonly key: readonly string[];
  /**
   * `leftovers` where the live table may hold rows that a rebuild no longer finds, such as commits whose
   * objects left storage meanwhile; each row that a rebuild does find must be there and equal.
   */
  readonly compare: 'exact' | 'leftovers';
}

/** A statement over a list: its `$1`, the only parameter, is the list as JSON, for `json_to_recordset`. */
export interface ListStatement {
  readonly text: string;
  readonly items: readonly unknown[];
}

/** What a batch changes. */
export interface Write {
  /**
   * Statements that do not depend on one another: they run as one, at once with the checkpoint, and see the
   * tables as they were before. So no two may touch the same row.
   */
  readonly lists: readonly ListStatement[];
  /** Work that must come before them, or that one statement cannot do; within the checkpoint's transaction. */
  readonly before?: (transaction: Queryable) => Promise<void>;
  /** After the commit: what the applier may keep for the next batch. */
  readonly committed?: () => void;
}

/**
 * One generation of a model being written by this process. It may cache what it wrote: the runner opens a new
 * one after any transaction that failed, and whenever somebody else has moved the checkpoint.
 */
export interface Applier {
  /**
   * Reads what it needs, in the database or elsewhere, and returns what to write. Events are in log order.
   * Throws `StreamFault` for what it knows to be one stream's trouble, and, unless it may be `patient`, for what
   * would hold up every other stream.
   */
  prepare(events: readonly RecordedEvent[], database: Queryable, mode: PrepareMode): Promise<Write>;
}

export interface PrepareMode {
  /** Nobody waits for it: a rebuild, or the replay of one stream beside the others. */
  readonly patient: boolean;
}

export interface Projection {
  /** Lower-case letters and underscores. */
  readonly name: string;
  /** Raised whenever tables or their content change meaning: the model is then built anew. */
  readonly version: number;
  /** Categories of the streams it wants. */
  readonly categories: readonly string[];
  readonly tables: readonly ProjectionTable[];
  /** What to do with an event that cannot be applied: stop, or set its stream aside and go on. */
  readonly onPoison: 'halt' | 'park';
  /** How much of a transaction's bound an event takes; the default is 1. */
  readonly weight?: (event: RecordedEvent) => number;
  readonly open: (table: TableOf) => Applier;
}
