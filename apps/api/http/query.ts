/** Parses query strings. A repeated parameter becomes an array, so that the schema of a single value refuses it. */

export function parseQuery(text: string): Record<string, unknown> {
  if (text === '') return {};
  // A map, not an object: a parameter may have the name of an inherited property, such as `constructor`.
  const values = new Map<string, string | string[]>();
  for (const [name, value] of new URLSearchParams(text)) {
    const before = values.get(name);
    if (before === undefined) values.set(name, value);
    else if (Array.isArray(before)) before.push(value);
    else values.set(name, [before, value]);
  }
  return Object.fromEntries(values);
}
