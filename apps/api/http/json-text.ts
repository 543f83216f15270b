/**
 * Answers with JSON that is made as text, in parts.
 *
 * Invariants: what the text is made of is let go as soon as the text is whole, however slowly the client reads. Only
 * a text too long to be held is sent while it is made, and then for a bounded time. `close` is called once, whatever
 * happens.
 */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { MIB } from '../../../core/kernel/byte-units.ts';
import type { TextAnswer } from '../../../core/use-cases/auditing/account-states.ts';
import { type Answer, JSON_TYPE } from './answer.ts';

/**
 * A text in parts of at most this length is made whole before it is sent, so that what it is made of can be let go. A
 * longer one is sent while it is made, within `TEXT_SENDING_SPAN_MS`. Internal: both ways send the same bytes.
 */
const TEXT_HELD_LENGTH_MAX = 8 * MIB;
/** How long an answer may take that is sent while it is made. */
export const TEXT_SENDING_SPAN_MS = 10 * 60_000;

const HEADERS = { 'cache-control': 'no-store', 'content-type': JSON_TYPE };

export interface TextLimits {
  readonly lengthHeldMax: number;
  readonly sendingSpanMs: number;
}

const LIMITS: TextLimits = { lengthHeldMax: TEXT_HELD_LENGTH_MAX, sendingSpanMs: TEXT_SENDING_SPAN_MS };

/** Rejects if the beginning of the text, or all of a short one, cannot be made. */
export async function jsonText(
  { method }: Pick<IncomingMessage, 'method'>,
  { chunks, close }: TextAnswer,
  { lengthHeldMax, sendingSpanMs }: TextLimits = LIMITS,
): Promise<Answer> {
  if (method === 'HEAD') {
    close();
    return { status: 200, headers: HEADERS, body: { kind: 'none' } };
  }
  const rest = chunks[Symbol.asyncIterator]();
  const held: string[] = [];
  let length = 0;
  try {
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) {
      const { value } = next;
      held.push(value);
      length += value.length;
      if (length > lengthHeldMax)
        return { status: 200, headers: HEADERS, body: streamed(held, rest, close, sendingSpanMs) };
    }
  } catch (error) {
    close();
    throw error;
  }
  close();
  const bytes = Buffer.from(held.join(''));
  return {
    status: 200,
    headers: { ...HEADERS, 'content-length': String(bytes.length) },
    body: { kind: 'bytes', bytes },
  };
}

function streamed(
  held: readonly string[],
  rest: AsyncIterator<string>,
  close: () => void,
  sendingSpanMs: number,
): Answer['body'] {
  const stream = Readable.from(encoded(held, rest), { objectMode: false });
  const timer = setTimeout(() => stream.destroy(), sendingSpanMs).unref();
  // 'close' follows a complete, an aborted and a failed stream alike.
  stream.once('close', () => {
    clearTimeout(timer);
    close();
  });
  return { kind: 'stream', stream };
}

async function* encoded(held: readonly string[], rest: AsyncIterator<string>): AsyncGenerator<Buffer> {
  for (const text of held) yield Buffer.from(text);
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield Buffer.from(next.value);
}
