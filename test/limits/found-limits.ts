/**
 * The limits of the service, read from its sources: constants at the top of a file whose name ends with `_MAX` or
 * `_MIN`, all constants of files that are called `limits.ts`, and those that test/limits/judged.ts or their own comment
 * judges.
 *
 * Invariants: a limit's figure is computed from its expression as the source has it, or shown as it stands there; it is
 * never guessed. A comment belongs to the constants that follow it without another comment or a blank line between.
 */
import { posix } from 'node:path';
import { modulesOf, type SourceTree } from '../architecture/source-tree.ts';

export interface Limit {
  readonly name: string;
  readonly path: string;
  /** The expression after the `=`. */
  readonly expression: string;
  /** Its number; null if it is a list, or computed while the service runs. */
  readonly figure: number | null;
  /** What its comment says; empty without one. */
  readonly why: string;
  /** Why no caller can reach it: the words after `Internal:` in its comment; null if the comment does not say so. */
  readonly internal: string | null;
}

/** Packages of their own, whose limits are those of a client. */
const OTHER_PACKAGES = /^apps\/(cli|launcher|verifier)\//;
const STATEMENT =
  /^\/\*\*(?<comment>[^]*?)\*\/|^(?:export )?const (?<name>[A-Z][A-Z\d_]*)(?:: [\w<>[\] ]+)? = (?<expression>[^;]*);|^(?<other>.*)/gm;

function sourcesOf(tree: SourceTree): SourceTree {
  const ours = /^(core|adapters|projections|workflows|apps)\//;
  return new Map([...modulesOf(tree)].filter(([path]) => ours.test(path) && !OTHER_PACKAGES.test(path)));
}

interface Constant {
  readonly name: string;
  readonly expression: string;
  readonly comment: string;
}

function constantsOf(text: string): Constant[] {
  const found: Constant[] = [];
  let comment = '';
  for (const { groups = {} } of text.matchAll(STATEMENT)) {
    if (groups['name'] !== undefined) {
      const { name, expression = '' } = groups;
      found.push({ name, expression: expression.replaceAll(/\s+/g, ' '), comment });
    } else if (groups['comment'] !== undefined) comment = groups['comment'].replaceAll(/\s*\n \* ?|\s+/g, ' ').trim();
    else comment = '';
  }
  return found;
}

const TOKEN =
  /\s*(?:(?<number>0x[\da-f]+|[\d_]+(?:\.\d+)?)|(?<name>[A-Z][A-Z\d_]*)(?![\w.(])|(?<mark>\*\*|[-+*/()]))/giy;

/** Computes sums, products and powers of numbers and constants; null for any other expression. */
export function figureOf(expression: string, constant: (name: string) => number | null): number | null {
  const text = expression.replace(/ as const$/, '').trim();
  const found = [...text.matchAll(TOKEN)];
  if (found.reduce((length, [token]) => length + token.length, 0) < text.length) return null;
  const tokens: string[] = [];
  for (const { groups = {} } of found) {
    const { number, name, mark } = groups;
    const value = name === undefined ? number?.replaceAll('_', '') : constant(name);
    if (value === null) return null;
    tokens.push(mark ?? String(Number(value)));
  }
  let at = 0;
  const operand = (): number => {
    if (tokens[at] !== '(') return Number(tokens[at++]);
    at += 1;
    const value = sum();
    at += 1;
    return value;
  };
  const power = (): number => {
    const base = operand();
    if (tokens[at] !== '**') return base;
    at += 1;
    return base ** power();
  };
  const product = (): number => {
    let value = power();
    while (tokens[at] === '*' || tokens[at] === '/') value = tokens[at++] === '*' ? value * power() : value / power();
    return value;
  };
  const sum = (): number => {
    let value = product();
    while (tokens[at] === '+' || tokens[at] === '-') value += tokens[at++] === '+' ? product() : -product();
    return value;
  };
  const value = sum();
  return at === tokens.length && Number.isFinite(value) ? value : null;
}

/** Returns what computes a constant as a file sees it: its own, or one that it imports. */
function figures(sources: SourceTree): (path: string, name: string) => number | null {
  const constants = new Map([...sources].map(([path, text]) => [path, constantsOf(text)]));
  const figure = (path: string, name: string): number | null => {
    const own = constants.get(path)?.find((constant) => constant.name === name);
    if (own !== undefined) return figureOf(own.expression, (other) => figure(path, other));
    const imported = new RegExp(`^import \\{[^}]*\\b${name}\\b[^}]*\\} from '([^']+)';`, 'm').exec(
      sources.get(path) ?? '',
    );
    const target = posix.join(posix.dirname(path), imported?.[1] ?? '');
    return imported === null || !constants.has(target) ? null : figure(target, name);
  };
  return figure;
}

/** Returns every limit in the order of paths and lines. `judged` names those that count whatever they are called. */
export function limitsOf(tree: SourceTree, judged: ReadonlySet<string>): Limit[] {
  const sources = sourcesOf(tree);
  const figure = figures(sources);
  return [...sources].flatMap(([path, text]) =>
    constantsOf(text).flatMap(({ comment, ...constant }) => {
      const [, why = '', internal = null] = /^(.*?)(?:\s*Internal: (.*))?$/.exec(comment) ?? [];
      const isNamed = /_(MAX|MIN)$/.test(constant.name) || path.endsWith('/limits.ts');
      if (!isNamed && internal === null && !judged.has(constant.name)) return [];
      return [{ ...constant, path, why, internal, figure: figure(path, constant.name) }];
    }),
  );
}
