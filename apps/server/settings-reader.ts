/**
 * Reads settings from the environment, and substitutes a default for each unusable value.
 *
 * Invariants: every unusable value is recorded with its setting's name, so that one start reports all of them.
 */
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import path from 'node:path';

/** Lists every fault of the settings. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

export type Environment = Readonly<Record<string, string | undefined>>;

export interface SettingsReader {
  /** The faults recorded so far, one sentence each. */
  readonly faults: string[];
  /** The settings that were read so far, whether they were set or not. */
  readonly known: ReadonlySet<string>;
  /** Records a fault: the setting's name, its value (for a secret a description of it), and the expected value. */
  fault(name: string, value: string, expected: string): void;
  /** Returns null if the setting is absent or empty. */
  text(name: string): string | null;
  integer(name: string, fallback: number, min: number, max: number): number;
  oneOf<Value extends string>(name: string, values: readonly Value[], fallback: Value): Value;
  /** Takes some of the values, separated by commas; returns them in the order of `values`. All if it is not set. */
  someOf<Value extends string>(name: string, values: readonly Value[]): readonly Value[];
  /** Takes addresses and CIDR ranges, separated by commas; none if it is not set. */
  addresses(name: string): readonly string[];
  /** Takes an http or https URL; returns it without a trailing slash. */
  url(name: string, fallback: string): string;
  /** Takes such a URL without a path: the service answers at the root of its host only. */
  origin(name: string, fallback: string): string;
  /**
   * Returns the content of the file that the setting names, relative to the working directory; null if it is not set.
   */
  file(name: string): Buffer | null;
  /** Returns the absolute path of that file, which need not exist; null if it is not set. */
  filePath(name: string): string | null;
}

export function createSettingsReader(environment: Environment, workingDirectory: string): SettingsReader {
  const faults: string[] = [];
  const known = new Set<string>();
  const fault = (name: string, value: string, expected: string): void => {
    faults.push(`${name} is ${value}: expected ${expected}`);
  };
  const text = (name: string): string | null => {
    known.add(name);
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
  const oneOf = <Value extends string>(name: string, values: readonly Value[], fallback: Value): Value => {
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
  const addresses = (name: string): readonly string[] => {
    const entries = (text(name) ?? '').split(',').flatMap((entry) => entry.trim() || []);
    for (const entry of entries) {
      if (!isAddressOrRange(entry)) fault(name, JSON.stringify(entry), 'addresses or ranges such as 10.0.0.0/8');
    }
    return entries.filter(isAddressOrRange);
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
  const origin = (name: string, fallback: string): string => {
    const value = text(name);
    if (value === null || /^https?:\/\/[^/?#@\\\s]+\/*$/i.test(value)) return url(name, fallback);
    fault(name, JSON.stringify(value), 'an http or https URL without a path, such as https://git.example.org');
    return fallback;
  };
  const filePath = (name: string): string | null => {
    const value = text(name);
    return value === null ? null : path.resolve(workingDirectory, value);
  };
  const file = (name: string): Buffer | null => {
    const found = filePath(name);
    const refuse = (why: string): void => fault(name, JSON.stringify(text(name)), `a readable file (${why})`);
    return found === null ? null : contentOf(found, refuse);
  };
  return { faults, known, fault, text, integer, oneOf, someOf, addresses, url, origin, file, filePath };
}

/** Returns null after it has said why the file cannot be read. */
function contentOf(file: string, refuse: (why: string) => void): Buffer | null {
  try {
    return readFileSync(file);
  } catch (error) {
    refuse(error instanceof Error ? error.message : 'unreadable');
    return null;
  }
}

function isAddressOrRange(entry: string): boolean {
  const [address = '', prefix = '0', ...more] = entry.split('/');
  const bitsMax = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  return more.length === 0 && /^\d{1,3}$/.test(prefix) && Number(prefix) <= bitsMax;
}
