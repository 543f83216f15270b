/**
 * Packets (pkt-lines), the frames of Git's protocol: gitprotocol-common(5), "pkt-line Format".
 *
 * Invariants: a decoder buffers at most one incomplete packet (64 KiB) in addition to the last chunk, however the
 * bytes are split. It consumes no byte after the packet that it returns, because a raw pack may follow.
 */
import { encodeUtf8, utf8Length } from '../utf8.ts';
import { oneSafeLine } from './safe-line.ts';

/** The largest payload of one packet: 65,520 bytes less the four digits of the length. */
export const PACKET_PAYLOAD_BYTES_MAX = 65_516;

export type Packet =
  | { readonly kind: 'data'; readonly payload: Uint8Array }
  | { readonly kind: 'flush' }
  | { readonly kind: 'delimiter' }
  | { readonly kind: 'response-end' };

export type PacketRefusalCode =
  /** An invalid length: not four hex digits, `0003`, or above 65,520. */
  | 'packet-malformed'
  /** The bytes end within a packet, or before the packet that ends the message. */
  | 'packet-truncated'
  /** The message has more bytes than it may. */
  | 'packets-too-large';

/** Why a message is refused; `detail` is one line for the client that sent it. */
export interface ProtocolRefusal<Code extends string> {
  readonly refused: Code;
  readonly detail: string;
}
export type PacketRefusal = ProtocolRefusal<PacketRefusalCode>;

/** Reads the arguments of a command of protocol v2, one for each packet, without line feeds. */
export interface CommandArguments<Request, Refusal> {
  read(argument: Uint8Array): Refusal | null;
  /** Call it after the last argument, if none was refused. */
  end(): Request | Refusal;
}

const HEADER_BYTES = 4;
const FLUSH: Packet = { kind: 'flush' };
const DELIMITER: Packet = { kind: 'delimiter' };
const RESPONSE_END: Packet = { kind: 'response-end' };

/** `0000`: ends a message or one of its sections. */
export const FLUSH_PACKET = encodeUtf8('0000');
/** `0001`: separates the sections of a message in protocol v2. */
export const DELIMITER_PACKET = encodeUtf8('0001');
/** `0002`: ends a response over a stateless connection in protocol v2. */
export const RESPONSE_END_PACKET = encodeUtf8('0002');

function headerOf(payloadBytes: number): string {
  return (payloadBytes + HEADER_BYTES).toString(16).padStart(HEADER_BYTES, '0');
}

/** The headers of all but very long ref lines, computed once. */
const SHORT_HEADERS = Array.from({ length: 512 }, (_, payloadBytes) => headerOf(payloadBytes));

/** Returns the four hex digits of the whole packet's length. Throws RangeError for a payload above the maximum. */
export function packetHeader(payloadBytes: number): string {
  if (payloadBytes > PACKET_PAYLOAD_BYTES_MAX) throw new RangeError(`A packet cannot hold ${payloadBytes} bytes`);
  return SHORT_HEADERS[payloadBytes] ?? headerOf(payloadBytes);
}

/** Returns a packet with this payload; text is encoded as UTF-8. Throws RangeError above 65,516 bytes. */
export function dataPacket(payload: string | Uint8Array): Uint8Array {
  const bytes = typeof payload === 'string' ? encodeUtf8(payload) : payload;
  return concatBytes([encodeUtf8(packetHeader(bytes.length)), bytes]);
}

/** How many lines are encoded in one call: joining short strings is cheap, and calls of the encoder are not. */
const LINES_A_BATCH = 64;

/** Writes packets of text, each a line with its line feed. It is fast for tens of thousands of refs. */
export interface LineWriter {
  line(text: string): void;
  /** Writes a packet of these bytes, without adding a line feed. */
  packet(payload: Uint8Array): void;
  flush(): void;
  /** Returns everything that was written. */
  bytes(): Uint8Array;
}

export function createLineWriter(): LineWriter {
  const written: Uint8Array[] = [];
  let batch: string[] = [];
  const endBatch = () => {
    written.push(framedLines(batch));
    batch = [];
  };
  return {
    line(text) {
      batch.push(text);
      if (batch.length === LINES_A_BATCH) endBatch();
    },
    packet(payload) {
      endBatch();
      written.push(dataPacket(payload));
    },
    flush() {
      endBatch();
      written.push(FLUSH_PACKET);
    },
    bytes() {
      endBatch();
      return concatBytes(written);
    },
  };
}

/** Assumes ASCII for the lengths first, and counts UTF-8 bytes only if the encoded batch is longer than that. */
function framedLines(lines: readonly string[]): Uint8Array {
  let ascii = '';
  for (const line of lines) ascii += `${packetHeader(line.length + 1)}${line}\n`;
  const bytes = encodeUtf8(ascii);
  if (bytes.length === ascii.length) return bytes;
  return encodeUtf8(lines.map((line) => `${packetHeader(utf8Length(line) + 1)}${line}\n`).join(''));
}

/** What a client displays of an error. Internal: the messages are shorter, and quote at most 100 characters. */
const ERROR_LENGTH_MAX = 1_000;

/**
 * Returns an error instead of an answer, or of the rest of one: `ERR <message>`, which every client displays
 * (gitprotocol-pack(5)). The message becomes one safe line.
 */
export function errorPacket(message: string): Uint8Array {
  return dataPacket(`ERR ${oneSafeLine(message.slice(0, ERROR_LENGTH_MAX))}`);
}

export function concatBytes(parts: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const part of parts) length += part.length;
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Returns a payload without its final line feed, if it has one. */
export function lineOf(payload: Uint8Array): Uint8Array {
  return payload.at(-1) === 0x0a ? payload.subarray(0, -1) : payload;
}

export interface PacketDecoder {
  /** Adds the next bytes. They are not copied as long as whole packets can be read from them. */
  push(chunk: Uint8Array): void;
  /** Returns the next whole packet, or null if more bytes are needed. After a refusal, always returns that refusal. */
  next(): Packet | PacketRefusal | null;
  /** Returns the pushed bytes that are in no returned packet. Do not use the decoder after this call. */
  rest(): Uint8Array;
  /** Returns the size of all returned packets. */
  takenBytes(): number;
}

/** Decodes packets of at most `bytesMax` bytes together, including headers. */
export function createPacketDecoder(options: { readonly bytesMax: number }): PacketDecoder {
  const held = createHeldBytes();
  let taken = 0;
  let failed: PacketRefusal | null = null;
  return {
    push: (chunk) => held.append(chunk),
    next() {
      if (failed !== null) return failed;
      const bytes = held.view();
      if (bytes.length < HEADER_BYTES) return null;
      const length = packetLength(bytes);
      if (typeof length !== 'number') {
        failed = length;
        return failed;
      }
      const size = Math.max(length, HEADER_BYTES);
      if (taken + size > options.bytesMax) {
        failed = { refused: 'packets-too-large', detail: `the request takes more than ${options.bytesMax} bytes` };
        return failed;
      }
      if (bytes.length < size) return null;
      taken += size;
      held.take(size);
      if (length === 0) return FLUSH;
      if (length === 1) return DELIMITER;
      if (length === 2) return RESPONSE_END;
      return { kind: 'data', payload: bytes.subarray(HEADER_BYTES, size) };
    },
    rest() {
      const bytes = held.view();
      held.take(bytes.length);
      return bytes;
    },
    takenBytes: () => taken,
  };
}

/** The packets of a complete message: `next` returns `end` after the last packet, or a refusal if bytes are missing. */
export interface PacketReader {
  next(): Packet | PacketRefusal | 'end';
  /** Returns the size of all returned packets. */
  takenBytes(): number;
}

export function createPacketReader(message: Uint8Array): PacketReader {
  const decoder = createPacketDecoder({ bytesMax: message.length });
  decoder.push(message);
  return {
    next() {
      const packet = decoder.next();
      if (packet !== null && 'refused' in packet && packet.refused === 'packets-too-large') return TRUNCATED;
      if (packet !== null) return packet;
      return decoder.rest().length === 0 ? 'end' : TRUNCATED;
    },
    takenBytes: () => decoder.takenBytes(),
  };
}

export const TRUNCATED: PacketRefusal = { refused: 'packet-truncated', detail: 'the request ends too early' };

/** Parses a packet's length from its first four bytes, hex digits in either case. */
function packetLength(bytes: Uint8Array): number | PacketRefusal {
  let length = 0;
  for (let at = 0; at < HEADER_BYTES; at++) {
    const digit = hexDigit(bytes[at] ?? 0);
    if (digit === -1) return { refused: 'packet-malformed', detail: 'a packet has no length of four hex digits' };
    length = length * 16 + digit;
  }
  if (length === 3 || length > PACKET_PAYLOAD_BYTES_MAX + HEADER_BYTES) {
    return { refused: 'packet-malformed', detail: `a packet cannot be ${length} bytes long` };
  }
  return length;
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/**
 * Buffers bytes that were received and not yet taken. Bytes that `view` has returned are never overwritten, so the
 * views stay valid. The buffer grows by doubling, so that a packet received byte by byte costs time linear in its
 * length.
 */
function createHeldBytes() {
  let buffer: Uint8Array = new Uint8Array(0);
  let start = 0;
  let end = 0;
  return {
    view: (): Uint8Array => buffer.subarray(start, end),
    take(count: number): void {
      start += count;
    },
    append(chunk: Uint8Array): void {
      if (start === end) {
        buffer = chunk;
        start = 0;
        end = chunk.length;
        return;
      }
      const kept = end - start;
      // A buffer that is the caller's chunk is always full, so the bytes are only written to a buffer made here.
      if (end + chunk.length > buffer.length) {
        const grown = new Uint8Array(2 * (kept + chunk.length));
        grown.set(buffer.subarray(start, end));
        buffer = grown;
        start = 0;
        end = kept;
      }
      buffer.set(chunk, end);
      end += chunk.length;
    },
  };
}
