/**
 * The bytes of a file.
 *
 * Invariants: nothing in a file runs on this site's origin. Text is plain text; bitmap images, audio and video by a
 * fixed list have the type of their name; everything else is an attachment, SVG images too, which pages may show
 * nevertheless. No type is guessed from content, and a sandbox policy stands on top. Every byte sent counts against
 * the account's transfer quota.
 */
import type { Readable } from 'node:stream';
import { decodeUtf8Lossy, isUtf8Text } from '../../../core/git/utf8.ts';
import type { ByteRange } from '../../../core/ports/layer-store.ts';
import { type RawFile, readFile } from '../../../core/use-cases/reading/read-contents.ts';
import type { RefPath } from '../../../core/use-cases/reading/ref-path.ts';
import { noneMatchNames } from '../../front-door/conditional.ts';
import { attachment } from '../../front-door/disposition.ts';
import { requestedRange } from '../../front-door/ranges.ts';
import { type SiteAnswer, showContent } from '../layout/answer.ts';
import { INERT, meteredStream, refusedTransfer } from './metered-stream.ts';
import { type PageRequest, showRefusal } from './page-request.ts';

/** What a browser shows and cannot run. */
const SHOWN: Readonly<Record<string, string>> = {
  aac: 'audio/aac',
  apng: 'image/apng',
  avif: 'image/avif',
  bmp: 'image/bmp',
  flac: 'audio/flac',
  gif: 'image/gif',
  ico: 'image/x-icon',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  m4a: 'audio/mp4',
  m4v: 'video/mp4',
  mov: 'video/quicktime',
  mp3: 'audio/mpeg',
  mp4: 'video/mp4',
  oga: 'audio/ogg',
  ogg: 'audio/ogg',
  ogv: 'video/ogg',
  opus: 'audio/ogg',
  png: 'image/png',
  wav: 'audio/wav',
  weba: 'audio/webm',
  webm: 'video/webm',
  webp: 'image/webp',
};

/** A drawing may hold scripts: pages show it as an image, and as a document of its own it is an attachment. */
const DRAWING = 'image/svg+xml';

export type MediaKind = 'image' | 'audio' | 'video';

/** Returns what a browser shows a file as, by its name; null for other files. */
export function mediaKind(name: string): MediaKind | null {
  const [kind] = typeByName(name)?.split('/') ?? [];
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : null;
}

function typeByName(name: string): string | null {
  const extension = /\.([a-z\d]+)$/i.exec(name)?.[1]?.toLowerCase() ?? '';
  if (extension === 'svg') return DRAWING;
  return Object.hasOwn(SHOWN, extension) ? (SHOWN[extension] ?? null) : null;
}

export async function showRaw(asked: PageRequest, { ref, names }: RefPath): Promise<SiteAnswer> {
  const { context, repository } = asked;
  const refused = await refusedTransfer(asked);
  if (refused !== null) return refused;
  const file = await readFile(context, repository, { ref, path: { names, folder: false } });
  if ('refused' in file) return showRefusal(asked, file.refused);
  // The blob of a tag has no name, and gets that of the tag.
  const [own] = names.slice(-1);
  const name = own === undefined ? ref.slice(ref.lastIndexOf('/') + 1) : decodeUtf8Lossy(own);
  return answerOf(asked, file, { ...POLICY, ...(await typeOf(file, name)) });
}

/** Answers all of the file, a part of it, or that the browser has it. */
function answerOf(asked: PageRequest, file: RawFile, common: Readonly<Record<string, string>>): SiteAnswer {
  const { conditions } = asked.visit;
  const { id, sizeBytes, content } = file;
  const etag = `"${id}"`;
  const headers = { ...common, etag, 'accept-ranges': 'bytes' };
  const range = requestedRange(conditions, etag, sizeBytes);
  const isKnown = noneMatchNames(conditions['if-none-match'], etag);
  if (isKnown || range.kind === 'unsatisfiable') {
    if (content.kind === 'streamed') content.close();
    if (isKnown) return showContent('', { etag, 'cache-control': POLICY['cache-control'] }, 304);
    return showContent('', { ...POLICY, 'content-range': `bytes */${sizeBytes}` }, 416);
  }
  if (range.kind === 'whole') {
    return showContent(bodyOf(asked, file, null), { ...headers, 'content-length': String(sizeBytes) });
  }
  const { start, end } = range;
  const ofPart = { 'content-range': `bytes ${start}-${end - 1}/${sizeBytes}`, 'content-length': String(end - start) };
  return showContent(bodyOf(asked, file, { start, end }), { ...headers, ...ofPart }, 206);
}

/** Styles of the file's own, as SVG images have them. */
const LOADED = "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'";
const POLICY = { ...INERT, 'content-security-policy': `${LOADED}; sandbox` };
/** The player that a browser makes loads the file itself, which it may only as this origin. No script runs in it. */
const PLAYER_POLICY = `${LOADED}; media-src 'self'; sandbox allow-same-origin`;

async function typeOf({ content }: RawFile, name: string): Promise<Readonly<Record<string, string>>> {
  const type = typeByName(name);
  if (type === DRAWING) return { 'content-type': type, 'content-disposition': attachment(name) };
  if (type !== null) {
    return { 'content-type': type, ...(type.startsWith('image/') ? {} : { 'content-security-policy': PLAYER_POLICY }) };
  }
  // A large file is not read twice to learn whether it is text.
  const isText = content.kind === 'held' && (await isUtf8Text([content.bytes]));
  if (isText) return { 'content-type': 'text/plain; charset=utf-8' };
  return { 'content-type': 'application/octet-stream', 'content-disposition': attachment(name) };
}

function bodyOf(asked: PageRequest, { content }: RawFile, range: ByteRange | null): Readable {
  return content.kind === 'held'
    ? meteredStream(asked, [content.bytes.subarray(range?.start, range?.end)], () => undefined)
    : meteredStream(asked, content.chunks(range), content.close);
}
