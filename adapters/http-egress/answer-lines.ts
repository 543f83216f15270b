/**
 * Rewrites the lines of an answer's heads in the one form that undici's parser takes, where RFC 9112 gives them the
 * same meaning: a line may end with a bare line feed (section 2.2), and Content-Length may be repeated with one value
 * (section 6.3).
 *
 * Invariants: everything else passes unchanged, so that the parser refuses what it refused before, different lengths
 * and a length beside Transfer-Encoding among it. No byte behind the last head is touched, and a line that is held
 * back for its end is bounded.
 */
import { Duplex } from 'node:stream';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const CRLF = Buffer.from('\r\n');
/** What each head begins with; anything else is not HTTP/1, and passes without a wait for the end of its line. */
const STATUS_LINE_START = Buffer.from('HTTP/');
/** A head behind which another one follows. 101 ends the exchange. */
const INFORMATIONAL = /^HTTP\/\d\.\d 1(?!01)\d\d(?: |$)/;
const CONTENT_LENGTH = /^content-length:[ \t]*(\d+(?:[ \t]*,[ \t]*\d+)*)[ \t]*$/i;

/** Takes the bytes of a connection in the order of their arrival. */
class AnswerLines {
  readonly #lineBytesMax: number;
  /** The line whose end has not arrived. */
  #held: Buffer[] = [];
  #heldBytes = 0;
  #stage: 'status-line' | 'fields' | 'passing' = 'status-line';
  #isInformational = false;
  /** The value of the head's Content-Length; null before one. */
  #length: string | null = null;

  constructor(lineBytesMax: number) {
    this.#lineBytesMax = lineBytesMax;
  }

  /** Returns what may be parsed now; it may be empty. */
  take(chunk: Buffer): Buffer {
    const taken: Buffer[] = [];
    let rest = chunk;
    while (this.#stage !== 'passing') {
      const end = rest.indexOf(LINE_FEED);
      this.#hold(end === -1 ? rest : rest.subarray(0, end));
      rest = end === -1 ? rest.subarray(rest.length) : rest.subarray(end + 1);
      if (end !== -1) taken.push(this.#line(Buffer.concat(this.#release())));
      else if (this.#isNoLine()) taken.push(...this.#pass());
      if (end === -1) break;
    }
    return Buffer.concat([...taken, rest]);
  }

  /** Returns what was held back when the connection ended. */
  end(): Buffer {
    return Buffer.concat(this.#pass());
  }

  /** The first part has at least the bytes that tell a status line, if they have arrived. */
  #hold(part: Buffer): void {
    if (this.#heldBytes < STATUS_LINE_START.length) this.#held = [Buffer.concat([...this.#held, part])];
    else this.#held.push(part);
    this.#heldBytes += part.length;
  }

  #release(): readonly Buffer[] {
    const held = this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    return held;
  }

  #pass(): readonly Buffer[] {
    this.#stage = 'passing';
    return this.#release();
  }

  #isNoLine(): boolean {
    if (this.#heldBytes > this.#lineBytesMax) return true;
    if (this.#stage !== 'status-line') return false;
    const start = (this.#held[0] ?? Buffer.alloc(0)).subarray(0, STATUS_LINE_START.length);
    return !start.equals(STATUS_LINE_START.subarray(0, start.length));
  }

  /** Returns the line with its end; nothing for a length that is known already. */
  #line(ended: Buffer): Buffer {
    const line = ended.at(-1) === CARRIAGE_RETURN ? ended.subarray(0, -1) : ended;
    if (this.#stage === 'status-line') {
      this.#isInformational = INFORMATIONAL.test(line.toString('latin1'));
      this.#stage = 'fields';
      this.#length = null;
    } else if (line.length === 0) {
      this.#stage = this.#isInformational ? 'status-line' : 'passing';
    } else {
      return this.#field(line);
    }
    return Buffer.concat([line, CRLF]);
  }

  #field(line: Buffer): Buffer {
    const whole = Buffer.concat([line, CRLF]);
    const values = CONTENT_LENGTH.exec(line.toString('latin1'))?.[1]?.split(/[ \t]*,[ \t]*/);
    const [length, ...repeats] = values ?? [];
    if (length === undefined || repeats.some((repeat) => repeat !== length)) return whole;
    if (this.#length === length) return Buffer.alloc(0);
    if (this.#length !== null) return whole;
    this.#length = length;
    return Buffer.from(`Content-Length: ${length}\r\n`);
  }
}

/** The socket as a stream whose answers have their lines rewritten. Destroying one of the two destroys the other. */
export function withAnswerLines(socket: Duplex, lineBytesMax: number): Duplex {
  const lines = new AnswerLines(lineBytesMax);
  const stream = new Duplex({
    read: () => socket.resume(),
    write: (chunk: Buffer, _encoding, onWritten) => socket.write(chunk, onWritten),
    writev: (chunks: readonly { readonly chunk: Buffer }[], onWritten) =>
      socket.write(Buffer.concat(chunks.map(({ chunk }) => chunk)), onWritten),
    destroy: (error, onDestroyed) => {
      socket.destroy();
      onDestroyed(error);
    },
  });
  const push = (bytes: Buffer): void => {
    if (bytes.length > 0 && !stream.push(bytes)) socket.pause();
  };
  socket.on('data', (chunk: Buffer) => push(lines.take(chunk)));
  socket.on('end', () => {
    push(lines.end());
    stream.push(null);
  });
  socket.on('error', (error) => stream.destroy(error));
  // What arrived before the end is still to be read.
  socket.on('close', () => socket.readableEnded || stream.destroy());
  return stream;
}
