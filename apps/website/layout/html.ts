/**
 * The templates of pages: `html` escapes every value but other templates.
 *
 * Invariants: a text from a person, a repository or a machine becomes part of a page only through `html`. Only the
 * files that test/architecture/templates.test.ts lists may declare other markup trusted. Every attribute's value is
 * quoted in the template, because escaping holds only between quotes. No value goes into a script or a style. The lint
 * rule strata/templates-place-values-safely holds the last two.
 */
import { html as escaping } from 'ghtml';

/** Markup that is made while it is sent, since it may be long. */
export interface Pieces {
  /** What the pieces are made from: so much memory is held until the last one is sent. */
  readonly heldBytes: number;
  /** Each takes a few milliseconds at most. Called once for each answer. */
  readonly make: () => Iterable<Html>;
}

class Markup {
  readonly #parts: readonly (string | Pieces)[];
  constructor(parts: readonly (string | Pieces)[]) {
    this.#parts = parts;
  }
  /** Returns the markup, for the answer's body. Throws for markup that is made while it is sent. */
  markup(): string {
    return this.#parts.map((part) => (typeof part === 'string' ? part : fail())).join('');
  }
  parts(): readonly (string | Pieces)[] {
    return this.#parts;
  }
}

function fail(): never {
  throw new TypeError('This markup is made while it is sent');
}

/** Markup. Only `html` and `trustedHtml` make it, so no text can be taken for it. */
export type Html = Markup;

/** What a template takes: null and false are left out. */
export type Content = Html | string | number | null | false | readonly Content[];

export const NOTHING = new Markup([]);

/** Makes markup of a template. Texts are escaped, markup is kept, lists are joined. */
export function html(literals: TemplateStringsArray, ...values: readonly Content[]): Html {
  const parts: (string | Pieces)[] = [literals[0] ?? ''];
  for (let index = 0; index < values.length; index += 1) {
    add(parts, values[index] ?? null);
    join(parts, literals[index + 1] ?? '');
  }
  return new Markup(parts);
}

/** Markup that is made while it is sent. Only a page may hold it. */
export function laterHtml(pieces: Pieces): Html {
  return new Markup([pieces]);
}

function add(parts: (string | Pieces)[], value: Content): void {
  if (value === null || value === false) return;
  if (value instanceof Markup) for (const part of value.parts()) join(parts, part);
  else if (typeof value === 'object') for (const each of value) add(parts, each);
  // The library escapes & < > " ' and =.
  else join(parts, escaping`${value}`);
}

function join(parts: (string | Pieces)[], part: string | Pieces): void {
  const last = parts.at(-1);
  if (typeof part === 'string' && typeof last === 'string') parts[parts.length - 1] = last + part;
  else parts.push(part);
}

/** Declares markup trusted that a library made and made safe, such as a sanitised README. */
export function trustedHtml(markup: string): Html {
  return new Markup([markup]);
}
