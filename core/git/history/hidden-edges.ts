/**
 * A fetch's body without some of the commits that it names as the edge of the client's history.
 *
 * Must stay true: upload-pack, which then believes that the client's history is whole, must not rely on any of it:
 * what the client has is made unknown, so that the answer is complete by itself. Every other byte stays as it came.
 */
import type { ObjectId } from '../../kernel/ids.ts';
import { parseObjectId } from '../../kernel/ids.ts';
import {
  concatBytes,
  createPacketReader,
  dataPacket,
  DELIMITER_PACKET,
  FLUSH_PACKET,
  lineOf,
} from '../wire/pkt-line.ts';
import { decodeUtf8Lossy } from '../utf8.ts';

/** No object's id: a `have` of it is passed over. Left out altogether, git would answer another form of request. */
const UNKNOWN_HAVE = dataPacket(`have ${'f'.repeat(40)}\n`);

/** The body itself when nothing is hidden. Throws TypeError on a body that the parsers of fetches refuse. */
export function withoutEdges(body: Uint8Array, hidden: ReadonlySet<ObjectId>): Uint8Array {
  if (hidden.size === 0) return body;
  const packets = createPacketReader(body);
  const kept: Uint8Array[] = [];
  for (let packet = packets.next(); packet !== 'end'; packet = packets.next()) {
    if ('refused' in packet) throw new TypeError(`A body that was parsed is malformed: ${packet.detail}`);
    switch (packet.kind) {
      case 'data':
        kept.push(...withoutEdge(packet.payload, hidden));
        break;
      case 'flush':
        kept.push(FLUSH_PACKET);
        break;
      case 'delimiter':
        kept.push(DELIMITER_PACKET);
        break;
      case 'response-end':
        throw new TypeError('A fetch holds no response end packet');
    }
  }
  return concatBytes(kept);
}

function withoutEdge(payload: Uint8Array, hidden: ReadonlySet<ObjectId>): readonly Uint8Array[] {
  const [, word, text = ''] = /^(shallow|have) ([0-9a-f]{40})$/.exec(decodeUtf8Lossy(lineOf(payload))) ?? [];
  const id = parseObjectId(text);
  if (word === 'have') return [UNKNOWN_HAVE];
  return id !== null && hidden.has(id) ? [] : [dataPacket(payload)];
}
