/**
 * Renders Markdown as GitHub does: tables, strikethrough, autolinks, task lists, alerts, footnotes, anchors of
 * headings, and the harmless part of HTML that READMEs use for their layout.
 *
 * Invariants: nothing in a text runs, and a page that shows it loads nothing from another origin. HTML that is not
 * entirely harmless comes out as text. All output passes an allow-list last, which also closes what was left open, so a
 * text cannot break out of its place. Relative links and images lead into the repository at the text's own commit.
 */
import MarkdownIt, { type Token } from 'markdown-it';
import footnotes from 'markdown-it-footnote';
import sanitizeHtml from 'sanitize-html';
import { canColour, highlightedLines } from './code.ts';
import { markInvisible } from './invisible.ts';
import type { MarkdownPlace } from './rendering-job.ts';

/** Before the id of a heading that would be the id of a part of the page. */
const ANCHOR_PREFIX = 'md-';
/** The ids of the parts of a repository's pages. */
const PAGE_IDS: ReadonlySet<string> = new Set(
  [
    'clone content could count did errors files found from icon-file icon-folder kept message moment-at name-typed',
    'new_branch path picked previewed q ref text theirs to written',
  ].flatMap((names) => names.split(' ')),
);
/** The other ids of such pages: of forms and their tabs, of files of a diff, and what begins with the prefix itself. */
const PAGE_ID = /^(?:md-|tab-|where|d\d+$)/;
/** The ids of footnotes and of the references to them. */
const FOOTNOTE_ID = /^fn(?:ref)?\d/;

/** Returns the id that a place of the text has on a page. */
export function anchorOf(name: string): string {
  return PAGE_IDS.has(name) || PAGE_ID.test(name) ? `${ANCHOR_PREFIX}${name}` : name;
}

const HTML_TAGS =
  'a|b|blockquote|br|center|code|dd|del|details|div|dl|dt|em|h[1-6]|hr|i|img|ins|kbd|li|ol|p|picture|pre|q|s|samp|small|' +
  'source|span|strong|sub|summary|sup|table|tbody|td|tfoot|th|thead|tr|u|ul';
const HTML_ATTRIBUTES = 'align|alt|height|href|media|name|open|src|srcset|title|type|valign|width';
/** One tag with nothing but such attributes, or a comment. */
const HARMLESS = new RegExp(
  `</?(?:${HTML_TAGS})(?:\\s+(?:${HTML_ATTRIBUTES})(?:=(?:"[^"<>]*"|'[^'<>]*'|[\\w./:%#?&=+-]+))?)*\\s*/?>|<!--[^<>]*-->`,
  'gi',
);

const markdown = new MarkdownIt({ html: true, linkify: true, highlight: coloured }).use(footnotes);
// The library's own rules write HTML as it stands.
markdown.renderer.rules['html_block'] = (tokens, index) => harmlessOrText(tokens[index]?.content ?? '', true);
markdown.renderer.rules['html_inline'] = (tokens, index) => harmlessOrText(tokens[index]?.content ?? '', false);
markdown.renderer.rules['table_open'] = () =>
  '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>\n';
markdown.renderer.rules['table_close'] = () => '</table></div>\n';
markdown.core.ruler.push('anchors', ({ tokens }) => anchorHeadings(tokens));
markdown.core.ruler.push('tasks', ({ tokens }) => markTasks(tokens));
markdown.core.ruler.push('alerts', (state) => {
  state.tokens = withAlerts(state.tokens);
});

/** Returns markup whose headings begin at the third level, below those of the page. */
export function renderMarkdown(text: string, place: MarkdownPlace): string {
  return allowed(markdown.render(markInvisible(text)), place);
}

function coloured(code: string, language: string): string {
  const name = language.toLowerCase();
  return canColour(name) ? highlightedLines(code, name).join('\n') : '';
}

function harmlessOrText(html: string, isBlock: boolean): string {
  if (!html.replaceAll(HARMLESS, '').includes('<')) return html;
  const text = markdown.utils.escapeHtml(html);
  return isBlock ? `<p>${text}</p>\n` : text;
}

function anchorHeadings(tokens: readonly Token[]): void {
  /** The slugs that are taken, and how often a number was put behind each. */
  const taken = new Map<string, number>();
  for (const [index, token] of tokens.entries()) {
    if (token.type !== 'heading_open') continue;
    const slug = slugOf(tokens[index + 1]?.children ?? []);
    let own = slug;
    while (taken.has(own)) {
      const times = (taken.get(slug) ?? 0) + 1;
      taken.set(slug, times);
      own = `${slug}-${times}`;
    }
    taken.set(own, 0);
    token.attrSet('id', FOOTNOTE_ID.test(own) ? `${ANCHOR_PREFIX}${own}` : anchorOf(own));
  }
}

function slugOf(children: readonly Token[]): string {
  const text = children.map(({ type, content }) => (type === 'text' || type === 'code_inline' ? content : '')).join('');
  return text
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{M}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');
}

/** `[ ]` and `[x]` at the start of a list's item. */
function markTasks(tokens: readonly Token[]): void {
  for (const [index, token] of tokens.entries()) {
    if (token.type !== 'inline' || tokens[index - 2]?.type !== 'list_item_open') continue;
    const first = token.children?.[0];
    if (first?.type !== 'text' || !TASK.test(first.content)) continue;
    first.content = first.content.replace(TASK, (_, mark: string) => (mark === ' ' ? '☐' : '☑'));
    tokens[index - 2]?.attrSet('class', 'task');
  }
}

const TASK = /^\[([ xX])\](?=\s)/;

const ALERTS = ['note', 'tip', 'important', 'warning', 'caution'];

/** A quotation whose first line is `[!NOTE]`, and so on. */
function withAlerts(tokens: readonly Token[]): Token[] {
  const shown: Token[] = [];
  let isAlert = false;
  for (const [index, token] of tokens.entries()) {
    shown.push(token);
    if (token.level !== 0) continue;
    if (token.type === 'blockquote_open') {
      const kind = alertOf(tokens, index);
      isAlert = kind !== null;
      if (kind === null) continue;
      token.tag = 'div';
      token.attrSet('class', `alert ${kind}`);
      shown.push(...titleOf(kind));
    } else if (token.type === 'blockquote_close' && isAlert) token.tag = 'div';
  }
  return shown;
}

/** Returns the kind of alert, and takes its mark out of the text. */
function alertOf(tokens: readonly Token[], index: number): string | null {
  const [paragraph, inline, end, next] = tokens.slice(index + 1, index + 5);
  const children = inline?.children ?? [];
  const [mark, lineEnd] = children;
  if (paragraph?.type !== 'paragraph_open' || mark?.type !== 'text') return null;
  const kind = /^\[!(\w+)\]\s*$/.exec(mark.content)?.[1]?.toLowerCase() ?? '';
  const endsLine = lineEnd === undefined || lineEnd.type === 'softbreak' || lineEnd.type === 'hardbreak';
  // A mark alone is a quotation.
  if (!ALERTS.includes(kind) || !endsLine || (lineEnd === undefined && next?.type === 'blockquote_close')) return null;
  children.splice(0, 2);
  const isEmpty = children.length === 0;
  for (const token of [paragraph, end]) if (token !== undefined) token.hidden = isEmpty;
  return kind;
}

function titleOf(kind: string): readonly Token[] {
  const [open, inline, close] = markdown.parse(`${kind.charAt(0).toUpperCase()}${kind.slice(1)}`, {});
  if (open === undefined || inline === undefined || close === undefined) return [];
  open.attrSet('class', 'alert-title');
  return [open, inline, close];
}

const ALIGNED = { name: 'align', values: ['left', 'right', 'center'] };
const ALLOWED: sanitizeHtml.IOptions = {
  allowedTags: [
    ...'a b blockquote br code dd del details div dl dt em hr h3 h4 h5 h6 i img ins kbd li ol p pre q s samp small'.split(
      ' ',
    ),
    ...'section span strong sub summary sup table tbody td tfoot th thead tr u ul'.split(' '),
  ],
  allowedAttributes: {
    a: ['id', 'href', 'title', 'rel', 'class'],
    code: [],
    details: ['open'],
    div: ['class', 'tabindex', 'role', 'aria-label', ALIGNED],
    h3: ['id', ALIGNED],
    h4: ['id'],
    h5: ['id'],
    h6: ['id'],
    img: ['src', 'alt', 'title', 'width', 'height', 'loading'],
    ol: ['start'],
    li: ['id', 'class'],
    p: ['class', ALIGNED],
    pre: ['tabindex'],
    section: ['class'],
    span: ['class', 'title'],
    td: ['class'],
    th: ['class'],
  },
  allowedSchemes: ['http', 'https', 'mailto'],
  allowedSchemesAppliedToAttributes: ['href', 'src'],
  allowProtocolRelative: false,
  nestingLimit: 100,
};

/** Passes the allow-list. Links lead where they may, and an image of another origin becomes a link that names it. */
function allowed(html: string, place: MarkdownPlace): string {
  let linksOpen = 0;
  return sanitizeHtml(html, {
    ...ALLOWED,
    onOpenTag: (name) => {
      if (name === 'a') linksOpen += 1;
    },
    onCloseTag: (name) => {
      if (name === 'a') linksOpen -= 1;
    },
    transformTags: {
      ...headingsInOrder(),
      a: (tagName, { href, ...attribs }) => ({ tagName, attribs: { ...attribs, ...linkTo(href, place) } }),
      img: (tagName, { src, alt, ...attribs }) => imageOf({ tagName, src, alt, attribs }, place, linksOpen > 0),
      pre: (tagName) => ({ tagName, attribs: { tabindex: '0' } }),
      th: (tagName, attribs) => ({ tagName, attribs: aligned(attribs) }),
      td: (tagName, attribs) => ({ tagName, attribs: aligned(attribs) }),
    },
  });
}

/** The level of the page's own heading above a text. */
const LEVEL_ABOVE = 2;
/** The deepest heading that HTML has. Internal: it is the form of HTML. */
const LEVEL_MAX = 6;

/** Headings begin below those of the page, and go down one level at a time, whatever the text skips. */
function headingsInOrder(): Record<string, sanitizeHtml.Transformer> {
  let last = LEVEL_ABOVE;
  const below = (level: number): sanitizeHtml.Transformer => {
    return (_, attribs) => {
      last = Math.min(level + LEVEL_ABOVE, last + 1, LEVEL_MAX);
      return { tagName: `h${last}`, attribs };
    };
  };
  return Object.fromEntries([1, 2, 3, 4, 5, 6].map((level) => [`h${level}`, below(level)]));
}

/** The library writes a column's alignment as a style, which the page's policy refuses. */
function aligned({ style, align }: sanitizeHtml.Attributes): sanitizeHtml.Attributes {
  const side = /^(?:text-align:)?(right|center)$/.exec(style ?? align ?? '')?.[1];
  if (side === undefined) return {};
  return { class: side === 'right' ? 'number' : 'middle' };
}

function linkTo(href: string | undefined, place: MarkdownPlace): sanitizeHtml.Attributes {
  if (href === undefined || href === '') return {};
  if (href.startsWith('#')) return { href: `#${anchorOf(href.slice(1))}` };
  if (/^(https?|mailto):/i.test(href)) return { href, rel: 'nofollow noopener noreferrer' };
  const inside = inRepository(href, place);
  if (inside === null) return {};
  const isText = /\.(md|markdown)$/i.test(inside.pathname);
  const hash = isText && inside.hash.length > 1 ? `#${anchorOf(inside.hash.slice(1))}` : inside.hash;
  return { href: `${place.blobs}${inside.pathname}${place.query ?? ''}${hash}` };
}

interface WantedImage {
  readonly tagName: string;
  readonly src: string | undefined;
  readonly alt: string | undefined;
  readonly attribs: sanitizeHtml.Attributes;
}

function imageOf({ tagName, src = '', alt = '', attribs }: WantedImage, place: MarkdownPlace, isInLink: boolean) {
  const inside = inRepository(src, place);
  if (inside !== null && src !== '') {
    return {
      tagName,
      attribs: { ...attribs, src: `${place.raw}${inside.pathname}${place.query ?? ''}`, alt, loading: 'lazy' },
    };
  }
  const elsewhere = /^https?:/i.test(src) ? src : null;
  const text = alt.trim() === '' ? `image${elsewhere === null ? '' : ` at ${hostOf(elsewhere)}`}` : alt;
  if (isInLink || elsewhere === null) return { tagName: 'span', attribs: { class: 'image' }, text };
  const rel = 'nofollow noopener noreferrer';
  return { tagName: 'a', attribs: { class: 'image', href: elsewhere, rel }, text };
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : 'another site';
}

const REPOSITORY = 'https://repository.invalid';

/** Returns where a relative link leads, from the repository's root; null for one that leaves the repository. */
function inRepository(href: string, { folder }: MarkdownPlace): URL | null {
  if (/^[a-z][a-z\d+.-]*:/i.test(href)) return null;
  const base = `${REPOSITORY}/${folder === '' ? '' : `${folder}/`}`;
  if (!URL.canParse(href, base)) return null;
  const url = new URL(href, base);
  return url.origin === REPOSITORY ? url : null;
}
