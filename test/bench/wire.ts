/**
 * Reads HTTP/1.1 answers from a connection as cheaply as possible, since the generator shares the machine with the
 * servers.
 *
 * Invariants: one reader reads the answers of one connection in order; bytes beyond an answer are an error, since
 * requests are never pipelined (RFC 9112, sections 6 and 7).
 */

export interface Answer {
  readonly status: number;
  readonly bodyBytes: number;
  /** The last 4 bytes of the body, latin1: a Git answer ends in the flush packet `0000`. */
  readonly tail: string;
  /** Null unless the caller requested it or the server refused. */
  readonly body: Buffer | null;
  /** Whether the server will close the connection. */
  readonly closes: boolean;
}

export interface AnswerReader {
  /** Discards the previous answer and waits for the next. */
  begin(keepBody: boolean): void;
  /** Reads the socket's bytes, which are valid only during the call; returns the answer when it is complete. */
  take(bytes: Buffer): Answer | null;
  /** Handles the end of the connection, which completes an answer that has neither length nor chunks. */
  takeEnd(): Answer | null;
}

type Phase = 'head' | 'sized' | 'until-end' | 'chunk-size' | 'chunk' | 'chunk-end' | 'trailer' | 'done';

const HEAD_BYTES_MAX = 65_536;

export function createAnswerReader(): AnswerReader {
  let phase: Phase = 'done';
  let text = '';
  let remaining = 0;
  let status = 0;
  let closes = false;
  let bodyBytes = 0;
  let tail = '';
  let kept: Buffer[] | null = null;

  /**
   * Collects header bytes up to and including `end`. Returns where the rest starts, or null while `end` has not
   * arrived.
   */
  const takeText = (bytes: Buffer, from: number, end: string): number | null => {
    const before = text.length;
    text += bytes.toString('latin1', from);
    const found = text.indexOf(end, Math.max(0, before - end.length));
    if (found < 0) {
      if (text.length > HEAD_BYTES_MAX) throw new Error('The answer has a header without end');
      return null;
    }
    const past = found + end.length;
    text = text.slice(0, found);
    return from + past - before;
  };

  const takeBody = (bytes: Buffer, from: number, length: number): void => {
    const to = from + length;
    bodyBytes += length;
    tail = length >= 4 ? bytes.toString('latin1', to - 4, to) : (tail + bytes.toString('latin1', from, to)).slice(-4);
    if (kept !== null) kept.push(Buffer.from(bytes.subarray(from, to)));
  };

  const readHead = (): void => {
    status = Number(text.slice(9, 12));
    // The body of a refusal is shown in the error.
    if (status >= 400) kept ??= [];
    closes = /\r\nconnection: *close/i.test(text);
    const length = /\r\ncontent-length: *(\d+)/i.exec(text)?.[1];
    if (/\r\ntransfer-encoding: *chunked/i.test(text)) phase = 'chunk-size';
    else if (length !== undefined) {
      remaining = Number(length);
      phase = remaining === 0 ? 'done' : 'sized';
    } else if (status === 204 || status === 304) phase = 'done';
    else phase = 'until-end';
    text = '';
  };

  const answer = (): Answer => ({
    status,
    bodyBytes,
    tail,
    body: kept === null ? null : Buffer.concat(kept),
    closes,
  });

  /** Makes one step of the state machine; returns the position reached, or null to wait for more bytes. */
  const step = (bytes: Buffer, position: number): number | null => {
    switch (phase) {
      case 'head': {
        const next = takeText(bytes, position, '\r\n\r\n');
        if (next !== null) readHead();
        return next;
      }
      case 'chunk-size': {
        const next = takeText(bytes, position, '\r\n');
        if (next === null) return null;
        remaining = Number.parseInt(text, 16);
        phase = remaining === 0 ? 'trailer' : 'chunk';
        text = '';
        return next;
      }
      case 'chunk-end':
      case 'trailer': {
        const next = takeText(bytes, position, '\r\n');
        if (next === null) return null;
        if (phase === 'chunk-end') phase = 'chunk-size';
        else if (text === '') phase = 'done';
        text = '';
        return next;
      }
      case 'sized':
      case 'chunk': {
        const length = Math.min(remaining, bytes.length - position);
        takeBody(bytes, position, length);
        remaining -= length;
        if (remaining === 0) phase = phase === 'chunk' ? 'chunk-end' : 'done';
        return position + length;
      }
      case 'until-end':
        takeBody(bytes, position, bytes.length - position);
        return bytes.length;
      case 'done':
        throw new Error('The server sent bytes that no request asked for');
    }
  };

  return {
    begin(keepBody) {
      phase = 'head';
      text = '';
      bodyBytes = 0;
      tail = '';
      kept = keepBody ? [] : null;
    },
    take(bytes) {
      let position: number | null = 0;
      while (position !== null && position < bytes.length) position = step(bytes, position);
      return phase === 'done' ? answer() : null;
    },
    takeEnd() {
      if (phase !== 'until-end') return null;
      phase = 'done';
      closes = true;
      return answer();
    },
  };
}
