/**
 * Finds variables that somebody probably meant as settings of the server, so that a typing mistake does not leave a
 * default in force without a word.
 *
 * Invariants: only a name that is close to a setting's counts. Others may be another program's, such as those that
 * Kubernetes sets for a service named `strata`.
 */
import type { Environment } from './settings-reader.ts';

/** Letters to add, remove or change. Internal: only the operator sets variables. */
const MISTAKES_MAX = 3;

const PREFIX = 'STRATA_';

export interface MisspeltSetting {
  readonly name: string;
  /** The setting that is spelt most alike. */
  readonly nearest: string;
}

export function misspeltSettings(environment: Environment, known: ReadonlySet<string>): readonly MisspeltSetting[] {
  return Object.keys(environment).flatMap((name) => {
    if (!name.startsWith(PREFIX) || known.has(name)) return [];
    const [nearest] = [...known]
      .map((setting) => ({ setting, mistakes: mistakesBetween(name, setting) }))
      .toSorted((a, b) => a.mistakes - b.mistakes);
    return nearest !== undefined && isClose(nearest) ? { name, nearest: nearest.setting } : [];
  });
}

/** Half of the letters of a short name, such as STRATA_PORT, must be right: STRATA_URL is no mistake for it. */
function isClose({ setting, mistakes }: { readonly setting: string; readonly mistakes: number }): boolean {
  return mistakes <= Math.min(MISTAKES_MAX, (setting.length - PREFIX.length) / 2);
}

/** The Levenshtein distance, row by row of its table. */
function mistakesBetween(left: string, right: string): number {
  let above = Array.from({ length: right.length + 1 }, (_, at) => at);
  for (const [row, letter] of [...left].entries()) {
    const current = [row + 1];
    for (const [at, other] of [...right].entries()) {
      const changed = (above[at] ?? 0) + (letter === other ? 0 : 1);
      current.push(Math.min(changed, (above[at + 1] ?? 0) + 1, (current[at] ?? 0) + 1));
    }
    above = current;
  }
  return above.at(-1) ?? 0;
}
