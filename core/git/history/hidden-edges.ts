/**
 * Removes commits of the client's shallow boundary (its `shallow` lines) from the body of a fetch.
 *
 * Invariants: without these lines upload-pack takes the client's history for complete, so it must not rely on any
 * object of it. So every `have` becomes an unknown id, and the answer needs no object that the client has. Every other
 * packet keeps its bytes.
 */
import type { ObjectId } from '../../kernel/ids.ts';
import { OBJECT_ID_DIGITS, OBJECT_ID_PATTERN, parseObjectId } from '../../kernel/ids.ts';
import type { NextTurn } from '../../kernel/turns.ts';
import { decodeUtf8Lossy } from '../utf8.ts';
import { createTurnedPackets } from '../wire/packet-turns.ts';
import { concatBytes, DELIMITER_PACKET, dataPacket, FLUSH_PACKET, lineOf } from '../wire/pkt-line.ts';

/** The id of no object: git skips such a `have`. Without any `have`, git would answer a request of another form. */
const UNKNOWN_HAVE = dataPacket(`have ${'f'.repeat(OBJECT_ID_DIGITS)}\n`);

const BOUNDARY_OR_HAVE = new RegExp(`^(shallow|have) (${OBJECT_ID_PATTERN})$`);

/**
 * Returns the body without the `shallow` lines of the commits in `hidden`; the same body if there are none. Throws
 * TypeError for a body that the parsers of fetches refuse.
 */
export async function withoutEdges(
  body: Uint8Array,
  hidden: ReadonlySet<ObjectId>,
  nextTurn: NextTurn,
): Promise<Uint8Array> {
  if (hidden.size === 0) return body;
  const packets = createTurnedPackets(body, nextTurn);
  const kept: Uint8Array[] = [];
  for (let packet = packets.next(); packet !== 'end'; packet = packets.next()) {
    const turn = packets.turn();
    if (turn !== null) await turn;
    if ('refused' in packet) throw new TypeError(`The fetch has a malformed packet: ${packet.detail}`);
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
  const [, word, text = ''] = BOUNDARY_OR_HAVE.exec(decodeUtf8Lossy(lineOf(payload))) ?? [];
  const id = parseObjectId(text);
  if (word === 'have') return [UNKNOWN_HAVE];
  return id !== null && hidden.has(id) ? [] : [dataPacket(payload)];
}
