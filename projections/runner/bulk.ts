/**
 * Statements over lists: one round trip however many rows, prepared once for each connection.
 *
 * Must stay true: no text that a user chose can fail a statement. What PostgreSQL's text cannot hold, NUL and
 * lone surrogates, is replaced by U+FFFD on its way.
 */
import type { Queryable, Row } from './projection.ts';

const NAMES = new Map<string, string>();

/** A statement that each connection prepares at its first use. Its text must come from a bounded set. */
export function prepared(text: string, values: readonly unknown[]): { name: string; text: string; values: unknown[] } {
  let name = NAMES.get(text);
  if (name === undefined) {
    name = `read-models-${NAMES.size + 1}`;
    NAMES.set(text, name);
  }
  return { name, text, values: [...values] };
}

/** Runs a statement whose `$1` is the list as a JSON array, for `json_to_recordset`; not at all when it is empty. */
export async function forAll(
  database: Queryable,
  items: readonly unknown[],
  text: string,
  values: readonly unknown[] = [],
): Promise<readonly Row[]> {
  if (items.length === 0) return [];
  const { rows } = await database.query(prepared(text, [storableJson(items), ...values]));
  return rows;
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
