/**
 * Statements over lists: one round trip for any number of rows, prepared once for each connection.
 *
 * Invariants: no text that a user chose can make a statement fail. NUL and lone surrogates, which PostgreSQL's text
 * cannot hold, are replaced by U+FFFD.
 */
import { later, parseTimestamp, plusMs, type Timestamp } from '../../core/kernel/ids.ts';
import type { ListStatement, ProjectionTable, Queryable, Statement, Write } from './projection.ts';

const NAMES = new Map<string, string>();

/** Returns a statement that each connection prepares at its first use. `text` must be one of a bounded set. */
export function prepared(text: string, values: readonly unknown[]): Statement {
  let name = NAMES.get(text);
  if (name === undefined) {
    name = `read-models-${NAMES.size + 1}`;
    NAMES.set(text, name);
  }
  return { name, text, values };
}

/** Runs one list statement, unless its list is empty. */
export async function runForList(database: Queryable, items: readonly unknown[], text: string): Promise<void> {
  if (items.length > 0) await database.query(prepared(text, [storableJson(items)]));
}

/**
 * Joins list statements into one, with `first` before them and without those whose list is empty; null if nothing is
 * left. `first` has its own parameters, from `$1`; its rows are available to its `result` as `done`.
 */
export function joinStatements(
  lists: readonly ListStatement[],
  first: { readonly text: string; readonly values: readonly unknown[]; readonly result: string } | null,
): Statement | null {
  const values: unknown[] = [...(first?.values ?? [])];
  const parts = first === null ? [] : [`done AS (${first.text})`];
  for (const { text, items } of lists) {
    if (items.length === 0) continue;
    values.push(storableJson(items));
    parts.push(`list${parts.length} AS (${text.replaceAll('$1', `$${values.length}`)})`);
  }
  if (parts.length === 0) return null;
  return prepared(`WITH ${parts.join(', ')} SELECT ${first === null ? '' : first.result}`, values);
}

/** Removes the rows of a table that are too old beside these new times (`ProjectionTable.ages`). */
export async function removeAged(
  transaction: Queryable,
  name: string,
  { ages }: ProjectionTable,
  times: readonly string[],
): Promise<void> {
  const newest = times.reduce((latest: Timestamp | null, time) => {
    const at = parseTimestamp(time);
    return at === null ? latest : later(at, latest);
  }, null);
  if (ages === undefined || newest === null) return;
  const cutoff = plusMs(newest, -ages.keptMs);
  await transaction.query(prepared(`DELETE FROM ${name} WHERE ${ages.column} < $1`, [cutoff]));
}

/** Executes a write within a transaction. */
export async function executeWrite(transaction: Queryable, write: Write): Promise<void> {
  await write.before?.(transaction);
  const statement = joinStatements(write.lists, null);
  if (statement !== null) await transaction.query(statement);
}

/** Serializes to JSON whose strings PostgreSQL can hold. */
function storableJson(value: unknown): string {
  const text = JSON.stringify(value);
  // JSON.stringify escapes NUL and lone surrogates this way; no other character has an escape with these prefixes.
  if (!text.includes('\\u0000') && !text.includes('\\ud')) return text;
  return JSON.stringify(value, (_key, member: unknown) => (typeof member === 'string' ? storableText(member) : member));
}

export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD');
}
