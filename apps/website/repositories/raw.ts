/**
 * The bytes of a file.
 *
 * Invariants: nothing in a file runs on this site's origin. Text is plain text; everything else is an attachment,
 * images too, which pages may show nevertheless. No type is guessed from content, and a sandbox policy stands on top.
 * Every byte sent counts against the account's transfer quota.
 */
import type { Readable } from 'node:stream';
import { decodeUtf8Lossy, isUtf8Text } from '../../../core/git/utf8.ts';
import { type RawFile, readFile } from '../../../core/use-cases/reading/read-contents.ts';
import type { RefPath } from '../../../core/use-cases/reading/ref-path.ts';
import { attachment } from '../../front-door/disposition.ts';
import { type SiteAnswer, showContent } from '../layout/answer.ts';
import { INERT, meteredStream, refusedTransfer } from './metered-stream.ts';
import { type PageRequest, showRefusal } from './page-request.ts';

const IMAGES: Readonly<Record<string, string>> = {
  avif: 'image/avif',
  bmp: 'image/bmp',
  gif: 'image/gif',
  ico: 'image/x-icon',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  png: 'image/png',
  svg: 'image/svg+xml',
  webp: 'image/webp',
};

/** Returns the type of an image by its name; null for other files. */
export function imageType(name: string): string | null {
  const extension = /\.([a-z]+)$/i.exec(name)?.[1]?.toLowerCase() ?? '';
  return Object.hasOwn(IMAGES, extension) ? (IMAGES[extension] ?? null) : null;
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
  const headers = { ...(await typeOf(file, name)), ...POLICY, 'content-length': String(file.sizeBytes) };
  return showContent(bodyOf(asked, file), headers);
}

const POLICY = {
  ...INERT,
  // Styles of the file's own, as SVG images have them, and nothing else.
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
};

async function typeOf({ content }: RawFile, name: string): Promise<Readonly<Record<string, string>>> {
  const image = imageType(name);
  if (image !== null) return { 'content-type': image, 'content-disposition': attachment(name) };
  // A large file is not read twice to learn whether it is text.
  const isText = content.kind === 'held' && (await isUtf8Text([content.bytes]));
  if (isText) return { 'content-type': 'text/plain; charset=utf-8' };
  return { 'content-type': 'application/octet-stream', 'content-disposition': attachment(name) };
}

function bodyOf(asked: PageRequest, { content }: RawFile): Readable {
  if (content.kind === 'held') return meteredStream(asked, [content.bytes], () => undefined);
  return meteredStream(asked, content.chunks(null), content.close);
}
