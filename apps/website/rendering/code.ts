/**
 * Colours code with highlight.js: markup for each line, with classes and no styles.
 *
 * Invariants: the library's output is text with every `<`, `>`, `&` and quote escaped, and `span` elements; each
 * line that this file returns is balanced, so a page may show any of them alone.
 */
import hljs from 'highlight.js';
import { markInvisible } from './invisible.ts';
import { lineWindow } from './line-window.ts';
import type { CodeJob, CodeLines } from './rendering-job.ts';

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

/** Returns the lines that fit, with the number of all lines. A line feed ends a line: nothing follows the last. */
export function codeLines({ text, language, from, bytesMax }: CodeJob): CodeLines {
  const lines = language === null ? escapedText(markInvisible(text)).split('\n') : highlightedLines(text, language);
  const all = text === '' || text.endsWith('\n') ? lines.slice(0, -1) : lines;
  const window = lineWindow(all, from, bytesMax);
  return { ...window, lines: all.slice(window.from - 1, window.to) };
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escapedText(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ESCAPES[character] ?? '');
}
