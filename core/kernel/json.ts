/**
 * The JSON that events may hold, and its canonical text (RFC 8785).
 *
 * Invariants: `canonicalJson(JSON.parse(canonicalJson(v))) === canonicalJson(v)`. The hashes of events are computed
 * over this text and never change. So `canonicalJson` rejects values whose text could differ between readers:
 * fractions, integers beyond 2^53, lone surrogates, undefined, holes in arrays, and objects that are not plain.
 */

export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;
export type JsonObject = { readonly [key: string]: JsonValue };

/** Printable ASCII that no JSON escapes. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** Quotes a string. Throws TypeError for a lone surrogate, which has no UTF-8: RFC 8785, section 3.2.2.2. */
function checkedString(text: string): string {
  // Most texts are ids and names, and a push may bring a million of them.
  if (PLAIN.test(text)) return `"${text}"`;
  if (!text.isWellFormed()) throw new TypeError('A string with a lone surrogate has no canonical JSON');
  return JSON.stringify(text);
}

/**
 * Returns the canonical text of a value: keys sorted by UTF-16 code units, no white space.
 * Throws TypeError for numbers that are not safe integers, -0, undefined, functions, lone surrogates, and objects that
 * are neither arrays nor plain: a Map or a Date has no members, and would be written as `{}`.
 */
export function canonicalJson(value: JsonValue): string {
  switch (typeof value) {
    case 'string':
      return checkedString(value);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'number':
      if (!Number.isSafeInteger(value) || Object.is(value, -0)) {
        throw new TypeError(`Events hold safe integers only, not ${value}`);
      }
      return String(value);
    case 'object':
      break;
    case 'bigint':
    case 'function':
    case 'symbol':
    case 'undefined':
      throw new TypeError(`Events cannot hold a ${typeof value}`);
  }
  if (value === null) return 'null';
  if (isJsonArray(value)) {
    // Uses the iterator, because `map` skips holes.
    const items: string[] = [];
    for (const item of value) items.push(canonicalJson(item));
    return `[${items.join(',')}]`;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) throw new TypeError('Events hold plain objects only');
  const members: string[] = [];
  for (const key of sortedKeys(value)) {
    const member = value[key];
    if (member === undefined) throw new TypeError(`Events cannot hold undefined (at ${key})`);
    members.push(`${checkedString(key)}:${canonicalJson(member)}`);
  }
  return `{${members.join(',')}}`;
}

export function isJsonArray(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}

/** By UTF-16 code units, which is how `sort` compares strings: RFC 8785, section 3.2.3. */
function sortedKeys(value: JsonObject): readonly string[] {
  const keys = Object.keys(value);
  return keys.length < 2 ? keys : keys.sort();
}

export function isJsonObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !isJsonArray(value);
}

/** Yields every string in a value, at any depth, but not the keys. */
export function* textsIn(value: JsonValue): Generator<string> {
  if (typeof value === 'string') yield value;
  else if (typeof value === 'object' && value !== null) {
    for (const member of isJsonArray(value) ? value : Object.values(value)) yield* textsIn(member);
  }
}
