/** Query strings: each parameter's values, so that one given twice is seen and refused where it must be single. */

export function parseQuery(text: string): Record<string, unknown> {
  if (text === '') return {};
  // A map first: a parameter may be called like a member of every object.
  const values = new Map<string, string | string[]>();
  for (const [name, value] of new URLSearchParams(text)) {
    const before = values.get(name);
    if (before === undefined) values.set(name, value);
    else if (Array.isArray(before)) before.push(value);
    else values.set(name, [before, value]);
  }
  return Object.fromEntries(values);
}
