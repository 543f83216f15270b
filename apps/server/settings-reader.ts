/**
 * How settings are read from the environment: each by its name, with something usable in the place of what is not.
 *
 * Must stay true: everything that cannot be used is noted with the setting's name, so that a start is not a guessing game.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface SettingsReader {
  /** Noted so far, one sentence each. */
  readonly faults: string[];
  /** Notes that the setting is such a value, words for a secret, where something else was expected. */
  fault(name: string, value: string, expected: string): void;
  /** Null when it is not set, or empty. */
  text(name: string): string | null;
  integer(name: string, fallback: number, min: number, max: number): number;
  oneOf<Value extends string>(name: string, values: readonly [Value, ...Value[]], fallback: Value): Value;
  /** Some of the values, separated by commas, in the order of the values; all when it is not set. */
  someOf<Value extends string>(name: string, values: readonly Value[]): readonly Value[];
  /** http or https, without a trailing slash. */
  url(name: string, fallback: string): string;
  /** What the file holds whose path is the setting's, found from the working directory; null when it is not set. */
  file(name: string): Buffer | null;
}

export function createSettingsReader(environment: Environment, workingDirectory: string): SettingsReader {
  const faults: string[] = [];
  const fault = (name: string, value: string, expected: string): void => {
    faults.push(`${name} is ${value}: expected ${expected}`);
  };
  const text = (name: string): string | null => {
    const value = environment[name];
    return value === undefined || value === '' ? null : value;
  };
  const integer = (name: string, fallback: number, min: number, max: number): number => {
    const value = text(name);
    if (value === null) return fallback;
    const parsed = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
    if (parsed >= min && parsed <= max) return parsed;
    fault(name, JSON.stringify(value), `a whole number from ${min} to ${max}`);
    return fallback;
  };
  const oneOf = <Value extends string>(name: string, values: readonly [Value, ...Value[]], fallback: Value): Value => {
    const value = text(name);
    const found = values.find((candidate) => candidate === value);
    if (value !== null && found === undefined) fault(name, JSON.stringify(value), `one of ${values.join(', ')}`);
    return found ?? fallback;
  };
  const someOf = <Value extends string>(name: string, values: readonly Value[]): readonly Value[] => {
    const value = text(name);
    if (value === null) return values;
    const wanted = new Set<string>(value.split(',').map((entry) => entry.trim()));
    const found = values.filter((candidate) => wanted.has(candidate));
    if (found.length === wanted.size) return found;
    fault(name, JSON.stringify(value), `one or more of ${values.join(', ')}, separated by commas`);
    return values;
  };
  const url = (name: string, fallback: string): string => {
    const value = text(name);
    if (value === null) return fallback;
    const parsed = URL.canParse(value) ? new URL(value) : null;
    if (parsed !== null && /^https?:$/.test(parsed.protocol) && parsed.search === '' && parsed.username === '') {
      return value.replace(/\/+$/, '');
    }
    fault(name, JSON.stringify(value), 'an http or https URL such as https://git.example.org');
    return fallback;
  };
  const file = (name: string): Buffer | null => {
    const value = text(name);
    if (value === null) return null;
    try {
      return readFileSync(path.resolve(workingDirectory, value));
    } catch (error) {
      fault(name, JSON.stringify(value), `a readable file (${error instanceof Error ? error.message : 'unreadable'})`);
      return null;
    }
  };
  return { faults, fault, text, integer, oneOf, someOf, url, file };
}
