/**
 * Colours code with highlight.js: runs of a text, and markup for the code in Markdown, with classes and no styles.
 *
 * Invariants: the library's output is text with every `<`, `>`, `&` and quote escaped, and `span` elements. Runs cover
 * the text as it is, character by character; each line of markup is balanced.
 */
import hljs from 'highlight.js';
import { markInvisible } from './invisible.ts';
import { createRunList, type Runs, styleOfClass } from './runs.ts';

/** The library's scopes that get a colour, and their class in the stylesheet. Other scopes stay plain. */
const CLASSES: Readonly<Record<string, string>> = {
  comment: 'com',
  quote: 'com',
  keyword: 'key',
  'selector-tag': 'key',
  doctag: 'key',
  literal: 'num',
  number: 'num',
  symbol: 'num',
  bullet: 'num',
  string: 'str',
  regexp: 'str',
  link: 'str',
  title: 'def',
  section: 'def',
  name: 'def',
  'selector-class': 'def',
  'selector-id': 'def',
  type: 'typ',
  built_in: 'typ',
  'template-variable': 'typ',
  attr: 'att',
  attribute: 'att',
  'selector-attr': 'att',
  'selector-pseudo': 'att',
  variable: 'att',
  meta: 'met',
  addition: 'plus',
  deletion: 'minus',
  strong: 'strong',
  emphasis: 'em',
};

const PARTS = /<span class="hljs-([\w-]+)[^"]*">|<span[^>]*>|(<\/span>)|(\n)|[^<\n]+/g;
const CLOSE = '</span>';

/** Returns whether the library knows the language, by its name or another name of it. */
export function canColour(language: string): boolean {
  return hljs.getLanguage(language) !== undefined;
}

/** Returns the markup of each line. Throws for a language that the library does not know. */
export function highlightedLines(text: string, language: string): readonly string[] {
  const { value } = hljs.highlight(markInvisible(text), { language, ignoreIllegals: true });
  const lines: string[] = [];
  // The open elements; an empty text stands for one that gets no class and is left out.
  const open: string[] = [];
  let line = '';
  for (const [part, scope, isEnd, isNewline] of value.matchAll(PARTS)) {
    if (isNewline !== undefined) {
      lines.push(line + CLOSE.repeat(open.filter((tag) => tag !== '').length));
      line = open.join('');
    } else if (isEnd !== undefined) {
      if (open.pop() !== '') line += CLOSE;
    } else if (part.startsWith('<span')) {
      const name = CLASSES[scope ?? ''];
      const tag = name === undefined ? '' : `<span class=${name}>`;
      open.push(tag);
      line += tag;
    } else line += part;
  }
  lines.push(line);
  return lines;
}

/** Returns the colours of a text. Throws for a language that the library does not know. */
export function colourRuns(text: string, language: string): Runs {
  const { value } = hljs.highlight(text, { language, ignoreIllegals: true });
  const list = createRunList();
  // The styles around the text: of one in another the inner one counts, and one without a colour changes nothing.
  const styles = [0];
  for (const [part, scope, isEnd] of value.matchAll(PARTS)) {
    if (isEnd !== undefined) styles.pop();
    else if (part.startsWith('<span')) {
      const style = styleOfClass(CLASSES[scope ?? ''] ?? '');
      styles.push(style === 0 ? (styles.at(-1) ?? 0) : style);
    } else list.add(part.replace(ENTITIES, ' ').length, styles.at(-1) ?? 0);
  }
  return list.runs();
}

/** What the library writes for characters that have a meaning in markup. */
const ENTITIES = /&(?:lt|gt|amp|quot|#x27);/g;
