/**
 * Reads a body of the type `multipart/form-data` (RFC 7578) part by part, while it arrives.
 *
 * Invariants: nothing is read before it is asked for, and no more is in memory than the head of a part or a piece of
 * its bytes. The parser of the website's forms (apps/website/layout/sent-parts.ts) gets bodies that are whole: of one
 * that arrives it would keep up to 1,000 small parts that its reader has not come to. The body is not closed at the
 * end, since who refuses a part may have to read on.
 */
import { decodeUtf8 } from '../../core/git/utf8.ts';
import { KIB } from '../../core/kernel/byte-units.ts';

/** What a part says of itself: its name, and what else clients tell of it. */
export const PART_HEAD_BYTES_MAX = 16 * KIB;
/** What stands before the first delimiter and behind the last one, which nobody reads. Internal: clients send none. */
const UNREAD_BYTES_MAX = 16 * KIB;

export interface FormPart {
  readonly name: string;
  /** To be read before the next part is asked for; what is left of them is skipped. */
  readonly bytes: AsyncGenerator<Uint8Array, void, undefined>;
}

/** The body has not the form that its type says. */
export class MalformedParts extends Error {
  override readonly name = 'MalformedParts';
  constructor() {
    super('The body is not well-formed multipart/form-data');
  }
}

/** Returns the boundary that a content type names, as it stands in the bytes of the body; null if it names none. */
export function boundaryOf(contentType: string): string | null {
  // 70 characters are the most of RFC 2046.
  const named = /;\s*boundary\s*=\s*(?:"([^"]{1,70})"|([^;"\s]{1,70}))\s*(?:;|$)/i.exec(contentType);
  return named?.[1] ?? named?.[2] ?? null;
}

const LINE_END = '\r\n';
const HEAD_END = '\r\n\r\n';
/** What stands behind the last delimiter. */
const LAST = '--';

/** Throws `MalformedParts`, and the errors of the body. */
export async function* readFormParts(
  boundary: string,
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<FormPart, void, undefined> {
  const arriving = new Arriving(boundary, body);
  await readUnread(arriving.bytes());
  while (!(await arriving.isLast())) {
    const name = nameIn(await arriving.head());
    yield { name, bytes: arriving.bytes() };
    for await (const _ of arriving.bytes());
  }
  await readUnread(arriving.rest());
}

/** Readers ignore what stands around the parts (RFC 2046, 5.1.1). */
async function readUnread(bytes: AsyncIterable<Uint8Array>): Promise<void> {
  let sizeBytes = 0;
  for await (const piece of bytes) {
    sizeBytes += piece.length;
    if (sizeBytes > UNREAD_BYTES_MAX) throw new MalformedParts();
  }
}

class Arriving {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #delimiter: Buffer;
  /** What has arrived and was not taken. The first delimiter has no line end of its own before it. */
  #buffer = Buffer.from(LINE_END);
  /** Whether the delimiter behind the bytes of this part is still to come. */
  #isInPart = true;

  constructor(boundary: string, body: AsyncIterable<Uint8Array>) {
    this.#source = body[Symbol.asyncIterator]();
    this.#delimiter = Buffer.from(`${LINE_END}--${boundary}`, 'latin1');
  }

  /** Yields what is left of the bytes of this part. */
  async *bytes(): AsyncGenerator<Uint8Array, void, undefined> {
    while (this.#isInPart) {
      const at = this.#buffer.indexOf(this.#delimiter);
      // The end of what has arrived may be the start of a delimiter.
      const length = at < 0 ? Math.max(0, this.#buffer.length - this.#delimiter.length + 1) : at;
      const piece = this.#take(length);
      if (at >= 0) {
        this.#take(this.#delimiter.length);
        this.#isInPart = false;
      }
      if (piece.length > 0) yield piece;
      if (this.#isInPart) await this.#fill();
    }
  }

  /** Whether the delimiter was the last one. */
  async isLast(): Promise<boolean> {
    while (this.#buffer.length < LAST.length) await this.#fill();
    if (this.#buffer.toString('latin1', 0, LAST.length) !== LAST) return false;
    this.#take(LAST.length);
    return true;
  }

  /** Returns the lines of the head of a part, in UTF-8, which its bytes follow. */
  async head(): Promise<readonly string[]> {
    let at = this.#buffer.indexOf(HEAD_END);
    while (at < 0 && this.#buffer.length <= PART_HEAD_BYTES_MAX + HEAD_END.length) {
      await this.#fill();
      at = this.#buffer.indexOf(HEAD_END);
    }
    if (at < 0 || at > PART_HEAD_BYTES_MAX) throw new MalformedParts();
    const text = decodeUtf8(this.#take(at));
    this.#take(HEAD_END.length);
    this.#isInPart = true;
    // What is left of the line of the delimiter comes first.
    const [rest, ...lines] = text?.split(LINE_END) ?? [];
    if (rest === undefined || !/^[ \t]*$/.test(rest)) throw new MalformedParts();
    return lines;
  }

  /** Yields what is left of the body, to its end. */
  async *rest(): AsyncGenerator<Uint8Array, void, undefined> {
    yield this.#take(this.#buffer.length);
    for (let next = await this.#source.next(); next.done !== true; next = await this.#source.next()) yield next.value;
  }

  #take(length: number): Buffer {
    const taken = this.#buffer.subarray(0, length);
    this.#buffer = this.#buffer.subarray(length);
    return taken;
  }

  async #fill(): Promise<void> {
    const next = await this.#source.next();
    if (next.done === true) throw new MalformedParts();
    this.#buffer = Buffer.concat([this.#buffer, next.value]);
  }
}

/** A name is in quotes, or a word. */
const PARAMETER = /;[ \t]*([-!#$%&'*+.^_`|~\w]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^;"\s]*))[ \t]*/y;

/** A part whose bytes are those of its content. */
const AS_THEY_ARE: ReadonlySet<string> = new Set(['7bit', '8bit', 'binary']);

/** Returns the name that the head of a part gives it. */
function nameIn(lines: readonly string[]): string {
  const codings = lines.flatMap((line) => /^content-transfer-encoding:[ \t]*(.*?)[ \t]*$/i.exec(line)?.[1] ?? []);
  if (!codings.every((coding) => AS_THEY_ARE.has(coding.toLowerCase()))) throw new MalformedParts();
  const dispositions = lines.flatMap((line) => /^content-disposition:[ \t]*(.*)$/i.exec(line)?.[1] ?? []);
  const [disposition = '', ...others] = dispositions;
  const kind = /^form-data[ \t]*/i.exec(disposition)?.[0] ?? '';
  if (kind === '' || others.length > 0) throw new MalformedParts();
  const names: string[] = [];
  const pattern = new RegExp(PARAMETER);
  for (let at = kind.length; at < disposition.length; at = pattern.lastIndex) {
    pattern.lastIndex = at;
    const found = pattern.exec(disposition);
    if (found === null) throw new MalformedParts();
    const [, parameter = '', quoted, word = ''] = found;
    if (parameter.toLowerCase() === 'name') names.push(quoted?.replaceAll(/\\(["\\])/g, '$1') ?? word);
  }
  const [name] = names;
  if (name === undefined || names.length > 1) throw new MalformedParts();
  return name;
}
