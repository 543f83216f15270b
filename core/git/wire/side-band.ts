/**
 * The side band: data, progress and a fatal error in one stream of packets, told apart by their first byte
 * (gitprotocol-pack(5), "Packfile Data").
 *
 * Must stay true: no packet is longer than the side band that was negotiated allows: 1,000 bytes or 65,520.
 */
import { encodeUtf8 } from '../utf8.ts';
import { FLUSH_PACKET, packetHeader } from './pkt-line.ts';

/** 1 carries the answer itself, 2 text that the client shows after `remote: `, 3 an error that ends it. */
export type Band = 1 | 2 | 3;
/** `side-band` has packets of at most 1,000 bytes, `side-band-64k` of 65,520. */
export type SideBandKind = 'side-band' | 'side-band-64k';

const HEADER_BYTES = 5;
const PACKET_BYTES_MAX = { 'side-band': 1_000, 'side-band-64k': 65_520 } as const;

/** An empty packet of band 1: git's own sign of life while a client waits. */
export const KEEP_ALIVE_PACKET = encodeUtf8('0005\u0001');

/** The payload in as many packets of the band as it needs; none when it is empty. */
export function sideBandPackets(band: Band, payload: Uint8Array, kind: SideBandKind = 'side-band-64k'): Uint8Array {
  const room = PACKET_BYTES_MAX[kind] - HEADER_BYTES;
  const count = Math.ceil(payload.length / room);
  const packets = new Uint8Array(payload.length + count * HEADER_BYTES);
  let at = 0;
  for (let from = 0; from < payload.length; from += room) {
    const part = payload.subarray(from, from + room);
    packets.set(encodeUtf8(packetHeader(part.length + 1)), at);
    packets[at + HEADER_BYTES - 1] = band;
    packets.set(part, at + HEADER_BYTES);
    at += HEADER_BYTES + part.length;
  }
  return packets;
}

/** A stream of bytes on band 1, chunk by chunk as they come, and the flush that ends the side band. */
export async function* sideBandStream(
  chunks: AsyncIterable<Uint8Array>,
  kind: SideBandKind = 'side-band-64k',
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of chunks) {
    if (chunk.length > 0) yield sideBandPackets(1, chunk, kind);
  }
  yield FLUSH_PACKET;
}

/** Lines the client shows after `remote: `, made safe for a terminal. */
export function progressPackets(lines: readonly string[], kind: SideBandKind = 'side-band-64k'): Uint8Array {
  return sideBandPackets(2, encodeUtf8(lines.map((line) => `${oneSafeLine(line)}\n`).join('')), kind);
}

/** The error that ends a side band; clients show it and exit. No flush follows: nothing is read after it. */
export function fatalPackets(message: string, kind: SideBandKind = 'side-band-64k'): Uint8Array {
  return sideBandPackets(3, encodeUtf8(`${oneSafeLine(message)}\n`), kind);
}

/**
 * A text as one line without anything a terminal would act on: control characters of ASCII and Latin-1, line and
 * paragraph separators and the marks that turn the direction of writing become spaces.
 */
export function oneSafeLine(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]+/gu, ' ')
    .trim();
}

/** A client's own text in a message to it, cut short. */
export function shown(text: string): string {
  return oneSafeLine(text.slice(0, 100));
}
