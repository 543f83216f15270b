/**
 * The templates of pages: `html` escapes every value but other templates.
 *
 * Invariants: a text from a person, a repository or a machine becomes part of a page only through `html`. Only the
 * files that test/architecture/templates.test.ts lists may declare other markup trusted. Every attribute's value is
 * quoted in the template, because escaping holds only between quotes. No value goes into a script or a style. The lint
 * rule strata/templates-place-values-safely holds the last two.
 */
import { html as escaping } from 'ghtml';

class Markup {
  readonly #markup: string;
  constructor(markup: string) {
    this.#markup = markup;
  }
  /** Returns the markup, for the answer's body. */
  markup(): string {
    return this.#markup;
  }
}

/** Markup. Only `html` and `trustedHtml` make it, so no text can be taken for it. */
export type Html = Markup;

/** What a template takes: null and false are left out. */
export type Content = Html | string | number | null | false | readonly Content[];

export const NOTHING = new Markup('');

/** Makes markup of a template. Texts are escaped, markup is kept, lists are joined. */
export function html(literals: TemplateStringsArray, ...values: readonly Content[]): Html {
  let markup = literals[0] ?? '';
  for (let index = 0; index < values.length; index += 1) {
    markup += markupOf(values[index] ?? null) + (literals[index + 1] ?? '');
  }
  return new Markup(markup);
}

function markupOf(value: Content): string {
  if (value === null || value === false) return '';
  if (value instanceof Markup) return value.markup();
  if (typeof value === 'object') return value.map(markupOf).join('');
  // The library escapes & < > " ' and =.
  return escaping`${value}`;
}

/** Declares markup trusted that a library made and made safe, such as a sanitised README. */
export function trustedHtml(markup: string): Html {
  return new Markup(markup);
}
