/**
 * Which files can be edited in a form, and the bytes of what was edited.
 *
 * Invariants: what nobody edits keeps its bytes. Browsers send every line end as CRLF, so that a text is offered only
 * where all its lines end alike; the form holds how. NUL and what is not UTF-8 would not come back.
 */
import { decodeUtf8, encodeUtf8 } from '../../../core/git/utf8.ts';
import { MIB } from '../../../core/kernel/byte-units.ts';
import type { FileBytes } from '../../../core/use-cases/reading/read-contents.ts';
import { sizeText } from '../layout/sizes.ts';

/** A text that is edited, before it and after it. */
export const EDITED_TEXT_BYTES_MAX = MIB;

export type LineEnds = 'lf' | 'crlf';

export interface EditableText {
  /** With line feeds. */
  readonly text: string;
  readonly lineEnds: LineEnds;
}

/** `why` completes a sentence about the file. */
export type NotEditable = { readonly why: string };

const TOO_LARGE: NotEditable = { why: `it is larger than ${sizeText(EDITED_TEXT_BYTES_MAX)}` };

export function editableText(content: FileBytes): EditableText | NotEditable {
  if (content.kind !== 'held' || content.bytes.length > EDITED_TEXT_BYTES_MAX) return TOO_LARGE;
  if (content.bytes.includes(0)) return { why: 'it is not text' };
  const text = decodeUtf8(content.bytes);
  if (text === null) return { why: 'it is not in UTF-8' };
  const returns = countOf(text, '\r');
  if (returns === 0) return { text, lineEnds: 'lf' };
  const isCrlf = returns === countOf(text, '\r\n') && returns === countOf(text, '\n');
  return isCrlf
    ? { text: text.replaceAll('\r\n', '\n'), lineEnds: 'crlf' }
    : { why: 'its lines end in different ways' };
}

/** Returns the bytes of a text with line feeds. */
export function bytesOfText({ text, lineEnds }: EditableText): Uint8Array {
  return encodeUtf8(lineEnds === 'crlf' ? text.replaceAll('\n', '\r\n') : text);
}

function countOf(text: string, part: string): number {
  let count = 0;
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) count += 1;
  return count;
}
