/**
 * The forms of JSON Schema in which the OpenAPI document is written: those that generators of clients share.
 *
 * Invariants: a value fits a schema exactly if it fitted the schema from which this one was made.
 */

/** Generators read a whole number that names no format into 32 bits. */
const LARGEST_INT32 = 2 ** 31 - 1;

export interface Node {
  readonly [keyword: string]: unknown;
}

export function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns the document with every object in it replaced, the inner ones first. `key` is the name of its place. */
export function rewritten(document: object, replace: (node: Node, key: string) => unknown): Node {
  const made: unknown = JSON.parse(JSON.stringify(document), (key, value: unknown) =>
    isNode(value) ? replace(value, key) : value,
  );
  if (!isNode(made)) throw new TypeError('The document is an object');
  return made;
}

/** Returns the first of two choices if the other is null, and null for any other choice. */
export function besideNull(choices: unknown): Node | null {
  const [one, none, ...rest] = listIn(choices);
  return isNode(one) && isNode(none) && none['type'] === 'null' && rest.length === 0 ? one : null;
}

/** Writes every schema in the shared forms: `[T, "null"]`, int64 by name, and inclusive bounds. */
export function inSharedForms(document: object): Node {
  return rewritten(document, (node) => inclusive(nullable(node)));
}

/** Turns a choice of a schema and null into the schema with null among its types, unless a reference holds the type. */
function nullable(node: Node): Node {
  const { anyOf, ...others } = node;
  const one = besideNull(anyOf);
  if (one === null) return node;
  if (typeof one['type'] !== 'string') return { ...others, oneOf: anyOf };
  const { type, enum: values, ...bounds } = one;
  const listed = values === undefined ? {} : { enum: [...listIn(values), null] };
  return { type: [type, 'null'], ...bounds, ...listed, ...others };
}

function inclusive(node: Node): Node {
  const { type, exclusiveMinimum, ...others } = node;
  if (![type].flat().includes('integer')) return node;
  const { minimum = 0, maximum = Number.POSITIVE_INFINITY } = others;
  const isShort = Number(minimum) >= -LARGEST_INT32 && Number(maximum) <= LARGEST_INT32;
  const least = typeof exclusiveMinimum === 'number' ? { minimum: exclusiveMinimum + 1 } : {};
  return { type, ...(isShort ? {} : { format: 'int64' }), ...others, ...least };
}
