/**
 * Canonical JSON: RFC 8785.
 *
 * Invariants: a value has one canonical text. So a line that is not equal to the canonical text of what it says was
 * changed, even if a JSON parser reads the same from it.
 */

export type Json = string | number | boolean | null | readonly Json[] | JsonObject;
export type JsonObject = { readonly [name: string]: Json };

/** What is nested deeper is refused, before it could use up the stack. No entry comes near it. */
export const DEPTH_MAX = 100;

/** Throws SyntaxError for what has no canonical text: infinite numbers, lone surrogates, and what nests too deep. */
export function canonicalText(value: Json, depth = 0): string {
  if (depth > DEPTH_MAX) throw new SyntaxError(`it nests deeper than ${DEPTH_MAX}`);
  if (typeof value === 'string') return quoted(value);
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new SyntaxError('it holds a number that JSON has not');
    return JSON.stringify(value);
  }
  if (value === null || typeof value === 'boolean') return String(value);
  if (isArray(value)) {
    let text = '[';
    for (const item of value) text += (text.length > 1 ? ',' : '') + canonicalText(item, depth + 1);
    return `${text}]`;
  }
  let text = '{';
  // The default order is that of UTF-16 code units, which section 3.2.3 asks for.
  for (const name of Object.keys(value).sort()) {
    text += `${text.length > 1 ? ',' : ''}${quoted(name)}:${canonicalText(value[name] ?? null, depth + 1)}`;
  }
  return `${text}}`;
}

/** JSON.stringify writes strings as section 3.2.2.2 says; it escapes a lone surrogate, which has no canonical text. */
function quoted(text: string): string {
  const json = JSON.stringify(text);
  if (json.includes('\\ud')) {
    // Not an escaped backslash before the letters.
    const escapes = json.replaceAll('\\\\', '');
    if (escapes.includes('\\ud')) throw new SyntaxError('it holds half of a surrogate pair');
  }
  return json;
}

export function isArray(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Parses JSON; throws SyntaxError. */
export function parseJson(text: string): Json {
  return JSON.parse(text) as Json;
}
