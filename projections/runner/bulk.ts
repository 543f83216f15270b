/**
 * Statements over lists: one round trip however many rows, prepared once for each connection.
 *
 * Must stay true: no text that a user chose can fail a statement. What PostgreSQL's text cannot hold, NUL and
 * lone surrogates, is replaced by U+FFFD on its way.
 */
import type { ListStatement, Queryable, Statement, Write } from './projection.ts';

const NAMES = new Map<string, string>();

/** A statement that each connection prepares at its first use. Its text must come from a bounded set. */
export function prepared(text: string, values: readonly unknown[]): Statement {
  let name = NAMES.get(text);
  if (name === undefined) {
    name = `read-models-${NAMES.size + 1}`;
    NAMES.set(text, name);
  }
  return { name, text, values };
}

/** Runs a list statement by itself; not at all when the list is empty. */
export async function forAll(database: Queryable, items: readonly unknown[], text: string): Promise<void> {
  if (items.length > 0) await database.query(prepared(text, [storableJson(items)]));
}

/**
 * One statement that does what several list statements say, those with empty lists left out, and `first` before
 * them; null when there is nothing to do. `first` has parameters of its own, from `$1`, and gives rows as `done`.
 */
export function joined(
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

/** Does all that a write says, within a transaction. */
export async function carryOut(transaction: Queryable, write: Write): Promise<void> {
  await write.before?.(transaction);
  const statement = joined(write.lists, null);
  if (statement !== null) await transaction.query(statement);
}

/** JSON whose strings PostgreSQL can hold. */
function storableJson(value: unknown): string {
  const text = JSON.stringify(value);
  // JSON.stringify writes NUL and lone surrogates, and of their kind only those, as these escapes.
  if (!text.includes('\\u0000') && !text.includes('\\ud')) return text;
  return JSON.stringify(value, (_key, member: unknown) => (typeof member === 'string' ? storableText(member) : member));
}

export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD');
}
