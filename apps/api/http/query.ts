/** Query strings: each parameter's values, so that one given twice is seen and refused where it must be single. */

export type Query = Readonly<Record<string, string | readonly string[]>>;

export function parseQuery(text: string): Record<string, unknown> {
  const values: Record<string, string | string[]> = Object.create(null);
  if (text === '') return values;
  for (const [name, value] of new URLSearchParams(text)) {
    const before = values[name];
    if (before === undefined) values[name] = value;
    else if (Array.isArray(before)) before.push(value);
    else values[name] = [before, value];
  }
  return values;
}
