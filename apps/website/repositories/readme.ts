/** The README below a folder's entries. */
import { fileText } from '../../../core/git/file-text.ts';
import { decodeUtf8Lossy } from '../../../core/git/utf8.ts';
import type { TreeListing } from '../../../core/use-cases/reading/list-tree.ts';
import type { FolderEntry } from '../../../core/use-cases/reading/read-contents.ts';
import { type Html, html, NOTHING } from '../layout/html.ts';
import { bytesOf, textBytes } from '../layout/weight.ts';
import { markInvisible } from '../rendering/invisible.ts';
import { isMarkdown } from '../rendering/language.ts';
import { placeAddress } from './addresses.ts';
import { contentsAt } from './contents-at.ts';
import { PAGE_WHOLE_BYTES_MAX } from './limits.ts';
import type { PageRequest } from './page-request.ts';
import { renderedMarkdown } from './rendered.ts';
import { encodingFacts, shownName } from './shown-text.ts';

/** The names of READMEs, the one to show first. */
const NAMES: readonly RegExp[] = [/^readme\.(md|markdown)$/i, /^readme(\.txt|\.rst|\.adoc)?$/i];
/** Bytes of the longest of these names. Internal: it follows from the names of READMEs. */
const NAME_BYTES_MAX = 'readme.markdown'.length;
/** Below this, only its name is shown. */
export const MARKUP_BYTES_MIN = 2_000;

export async function readmeOf(asked: PageRequest, folder: TreeListing): Promise<Html> {
  const { repository } = asked;
  const entry = readmeEntry(folder.entries.items);
  if (entry === undefined) return NOTHING;
  const names = [...folder.place.names, entry.name];
  const file = await contentsAt(asked, { ref: folder.place.ref, names });
  if ('refused' in file || file.type !== 'file' || file.content.kind !== 'held') return NOTHING;
  const shown = fileText(file.content.bytes);
  if (shown === null) return NOTHING;
  const address = placeAddress(repository, 'blob', folder.place.ref, names);
  const readme = { id: file.id, text: shown.text, ref: folder.place.ref, names };
  const { markup, isWhole } = await shortenedReadme(
    (part) => renderedMarkdown(asked, part),
    readme,
    PAGE_WHOLE_BYTES_MAX,
  );
  return html`<section class="box"><header><h2><bdi><a href="${address}">${shownName(entry.name)}</a></bdi></h2>${encodingFacts(
    shown,
  ).map((fact) => html`<span class="soft end">${fact}</span>`)}</header>${markup}${
    !isWhole && html`<p class="more"><a class="button" href="${address}">Read all of it</a></p>`
  }</section>`;
}

function readmeEntry(entries: readonly FolderEntry[]): FolderEntry | undefined {
  const files = entries.filter(({ type, name }) => type === 'file' && name.length <= NAME_BYTES_MAX);
  return NAMES.map((form) => files.find(({ name }) => form.test(decodeUtf8Lossy(name)))).find(
    (found) => found !== undefined,
  );
}

interface Readme {
  readonly id: FolderEntry['id'];
  readonly text: string;
  readonly ref: string;
  readonly names: readonly Uint8Array[];
}

interface Shortened {
  readonly markup: Html;
  readonly isWhole: boolean;
}

/** A README that weighs too much is cut between two of its paragraphs. */
export async function shortenedReadme(
  render: (part: Readme) => Promise<Html | null>,
  readme: Readme,
  bytesMax: number,
): Promise<Shortened> {
  if (bytesMax < MARKUP_BYTES_MIN) return { markup: NOTHING, isWhole: false };
  const { text } = readme;
  const name = decodeUtf8Lossy(readme.names.at(-1) ?? new Uint8Array());
  const whole = isMarkdown(name) ? await render(readme) : null;
  if (whole === null) return plain(text, bytesMax);
  const bytes = bytesOf(whole);
  if (bytes <= bytesMax) return { markup: article(whole), isWhole: true };
  const part = startOf(text, Math.floor(text.length * (bytesMax / bytes)));
  // The links of the part may be defined at the end of the text.
  const definitions = text.slice(part.length).match(/^ {0,3}\[[^\]\n]+\]:[^\n]*$/gm) ?? [];
  const start = await render({ ...readme, text: [part, '', ...definitions].join('\n') });
  // The start of a text may weigh more than the rest of it.
  if (start === null || bytesOf(start) > bytesMax) return plain(text, bytesMax);
  return { markup: article(start), isWhole: false };
}

function article(markup: Html): Html {
  return html`<article class="prose">${markup}</article>`;
}

function plain(text: string, bytesMax: number): Shortened {
  let start = startOf(text, bytesMax);
  while (textBytes(markInvisible(start)) > bytesMax) start = startOf(text, Math.floor(start.length / 2));
  return {
    markup: html`<pre class="plain" tabindex="0">${markInvisible(start)}</pre>`,
    isWhole: start.length === text.length,
  };
}

function startOf(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text;
  const start = text.slice(0, lengthMax);
  const end = Math.max(start.lastIndexOf('\n\n'), start.lastIndexOf('\n'));
  return end > 0 ? start.slice(0, end) : start;
}
