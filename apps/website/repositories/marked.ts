/** Marks what was searched for in a text. */
import { type Content, html } from '../layout/html.ts';

/** Returns what finds a text exactly, or its letters in any case. */
export function finding(text: string, inAnyCase: boolean): RegExp {
  const literal = text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
  return new RegExp(`(${literal})`, inAnyCase ? 'iu' : 'u');
}

/** Returns the text with a mark around each place that the expression finds; null finds none. */
export function marked(text: string, wanted: RegExp | null): Content {
  if (wanted === null) return text;
  return text.split(wanted).map((part, index) => (index % 2 === 0 ? part : html`<mark>${part}</mark>`));
}
