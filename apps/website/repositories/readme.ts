/** The README below a folder's entries. */
import type { FolderContents, FolderEntry } from '../../../core/use-cases/reading/read-contents.ts';
import { readContents } from '../../../core/use-cases/reading/read-contents.ts';
import { decodeUtf8Lossy, encodeUtf8 } from '../../../core/git/utf8.ts';
import { PAGE_TEXT_LENGTH_MAX } from '../../../core/kernel/limits.ts';
import { html, type Html, NOTHING } from '../layout/html.ts';
import { isMarkdown } from '../rendering/language.ts';
import { placeAddress } from './addresses.ts';
import type { Asked } from './asked.ts';
import { renderedMarkdown } from './rendered.ts';
import { shownName } from './shown-text.ts';

/** The names of READMEs, the one to show first. */
const NAMES: readonly RegExp[] = [/^readme\.(md|markdown)$/i, /^readme(\.txt|\.rst|\.adoc)?$/i];
/** Beside a folder's entries a README has this much of the page. */
const MARKUP_LENGTH_MAX = Math.floor(PAGE_TEXT_LENGTH_MAX / 2);

export async function readmeOf(asked: Asked, folder: FolderContents): Promise<Html> {
  const { context, repository } = asked;
  const entry = readmeEntry(folder.entries.items);
  if (entry === undefined) return NOTHING;
  const names = [...folder.place.names, entry.name];
  const wanted = { ref: folder.place.ref, path: { names, folder: false }, entries: NO_ENTRIES, judgeStreamed: false };
  const file = await readContents(context, repository, wanted);
  if ('refused' in file || file.type !== 'file' || !file.isText || file.content.kind !== 'held') return NOTHING;
  const address = placeAddress(repository, 'blob', folder.place.ref, names);
  const text = decodeUtf8Lossy(file.content.bytes);
  const { markup, isWhole } = await shortened(asked, { id: file.id, text, ref: folder.place.ref, names });
  return html`<section class="box"><header><h2><bdi><a href="${address}">${shownName(entry.name)}</a></bdi></h2></header>${markup}${
    !isWhole && html`<p class="more"><a class="button" href="${address}">Read all of it</a></p>`
  }</section>`;
}

const NO_ENTRIES = { offset: 0, limit: 0 };

function readmeEntry(entries: readonly FolderEntry[]): FolderEntry | undefined {
  const files = entries.filter(({ type }) => type === 'file');
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

/** A README that weighs too much is cut between two of its paragraphs. */
async function shortened(asked: Asked, readme: Readme): Promise<{ readonly markup: Html; readonly isWhole: boolean }> {
  const name = decodeUtf8Lossy(readme.names.at(-1) ?? encodeUtf8(''));
  if (!isMarkdown(name)) return plain(readme.text);
  const whole = await renderedMarkdown(asked, readme);
  if (whole === null) return plain(readme.text);
  if (whole.markup().length <= MARKUP_LENGTH_MAX) return { markup: article(whole), isWhole: true };
  const share = readme.text.length * (MARKUP_LENGTH_MAX / whole.markup().length);
  const start = await renderedMarkdown(asked, { ...readme, text: startOf(readme.text, Math.floor(share)) });
  return start === null ? plain(readme.text) : { markup: article(start), isWhole: false };
}

function article(markup: Html): Html {
  return html`<article class="prose">${markup}</article>`;
}

function plain(text: string): { readonly markup: Html; readonly isWhole: boolean } {
  const start = startOf(text, MARKUP_LENGTH_MAX);
  return { markup: html`<pre class="plain" tabindex="0">${start}</pre>`, isWhole: start.length === text.length };
}

function startOf(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text;
  const start = text.slice(0, lengthMax);
  const end = Math.max(start.lastIndexOf('\n\n'), start.lastIndexOf('\n'));
  return end > 0 ? start.slice(0, end) : start;
}
