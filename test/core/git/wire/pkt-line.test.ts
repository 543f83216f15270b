/** Packets and side bands: round trips in chunks of any size, git's own bytes, and hostile lengths. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import {
  concatBytes,
  createPacketDecoder,
  DELIMITER_PACKET,
  dataPacket,
  errorPacket,
  FLUSH_PACKET,
  lineOf,
  PACKET_PAYLOAD_BYTES_MAX,
  type Packet,
  type PacketRefusal,
  RESPONSE_END_PACKET,
} from '../../../../core/git/wire/pkt-line.ts';
import { oneSafeLine } from '../../../../core/git/wire/safe-line.ts';
import {
  fatalPackets,
  KEEP_ALIVE_PACKET,
  progressPackets,
  sideBandPackets,
  sideBandStream,
} from '../../../../core/git/wire/side-band.ts';

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1');
const bytes = (latin1: string) => new Uint8Array(Buffer.from(latin1, 'latin1'));

/** Decodes these chunks, draining the decoder after each. Returns all packets and refusals, and the bytes left. */
function decode(chunks: readonly Uint8Array[], bytesMax = 1e9) {
  const decoder = createPacketDecoder({ bytesMax });
  const results: (Packet | PacketRefusal)[] = [];
  for (const chunk of chunks) {
    decoder.push(chunk);
    for (let next = decoder.next(); next !== null; next = decoder.next()) {
      results.push(next);
      if ('refused' in next) return { results, rest: decoder.rest() };
    }
  }
  return { results, rest: decoder.rest() };
}

/** Splits bytes at these places; each chunk is a copy. */
function cut(whole: Uint8Array, places: readonly number[]): Uint8Array[] {
  const at = [...new Set(places.map((place) => place % (whole.length + 1)))].sort((a, b) => a - b);
  return [0, ...at].map((from, index) => whole.slice(from, at[index] ?? whole.length));
}

function encode(packet: Packet): Uint8Array {
  switch (packet.kind) {
    case 'data':
      return dataPacket(packet.payload);
    case 'flush':
      return FLUSH_PACKET;
    case 'delimiter':
      return DELIMITER_PACKET;
    case 'response-end':
      return RESPONSE_END_PACKET;
  }
}

describe('Packets', () => {
  test('have the bytes of gitprotocol-common(5)', () => {
    assert.equal(text(dataPacket('a\n')), '0006a\n');
    assert.equal(text(dataPacket('foobar\n')), '000bfoobar\n');
    assert.equal(text(dataPacket('')), '0004');
    assert.equal(text(dataPacket('é')), '0006Ã©');
    assert.equal(text(errorPacket('no')), '000aERR no');
    assert.equal(text(errorPacket('no\n\u001b[31mx')), '0010ERR no [31mx');
    assert.ok(errorPacket('x'.repeat(PACKET_PAYLOAD_BYTES_MAX)).length < 2_000);
    assert.equal(text(concatBytes([FLUSH_PACKET, DELIMITER_PACKET, RESPONSE_END_PACKET])), '000000010002');
    assert.equal(text(lineOf(bytes('a\n\n'))), 'a\n');
  });

  test('hold 65,516 bytes and not one more', () => {
    assert.equal(text(dataPacket(new Uint8Array(PACKET_PAYLOAD_BYTES_MAX)).subarray(0, 4)), 'fff0');
    assert.throws(() => dataPacket(new Uint8Array(PACKET_PAYLOAD_BYTES_MAX + 1)), RangeError);
    assert.equal(decode([bytes('fff0'), new Uint8Array(PACKET_PAYLOAD_BYTES_MAX)]).results.length, 1);
    assert.deepEqual(decode([bytes('fff1')]).results, [
      { refused: 'packet-malformed', detail: 'a packet cannot be 65521 bytes long' },
    ]);
  });

  test('are decoded from chunks of any size, and no byte after them is consumed', () => {
    const packet: fc.Arbitrary<Packet> = fc.oneof(
      fc.uint8Array({ maxLength: 40 }).map((payload): Packet => ({ kind: 'data', payload })),
      fc.constantFrom<Packet>({ kind: 'flush' }, { kind: 'delimiter' }, { kind: 'response-end' }),
    );
    fc.assert(
      fc.property(fc.array(packet), fc.uint8Array(), fc.array(fc.nat()), (packets, pack, places) => {
        const stream = concatBytes([...packets.map(encode), FLUSH_PACKET]);
        const decoder = createPacketDecoder({ bytesMax: stream.length });
        const found: Packet[] = [];
        const left: Uint8Array[] = [];
        for (const chunk of cut(concatBytes([stream, pack]), places)) {
          decoder.push(chunk);
          while (found.length <= packets.length) {
            const next = decoder.next();
            if (next === null) break;
            assert.ok('kind' in next);
            found.push(next);
          }
          if (found.length > packets.length) left.push(decoder.rest());
        }
        assert.deepEqual(found, [...packets, { kind: 'flush' }]);
        assert.deepEqual(concatBytes(left), pack);
      }),
    );
  });

  test('are refused if their length is invalid, for chunks of any size', () => {
    for (const hostile of ['0003', '000g', '    ', '-001', '+00a', '0x10', 'fff1', 'ffff', '00é0']) {
      for (const chunks of [[bytes(hostile)], [...bytes(hostile)].map((byte) => Uint8Array.of(byte))]) {
        const [refusal] = decode(chunks).results;
        assert.ok(refusal !== undefined && 'refused' in refusal && refusal.refused === 'packet-malformed', hostile);
      }
    }
    assert.equal(decode([bytes('000A123456')]).results.length, 1, 'git accepts upper-case digits too');
  });

  test('of any bytes never make the decoder throw or invent bytes', () => {
    const soup = fc.array(fc.constantFrom('0000', '0001', '0005', '00', '0', 'a', 'f', 'PACK', '\n', '\0', '0004'));
    fc.assert(
      fc.property(soup, fc.array(fc.nat()), (parts, places) => {
        const whole = bytes(parts.join(''));
        const { results, rest } = decode(cut(whole, places));
        const packets = results.filter((each) => 'kind' in each);
        const consumed = concatBytes(packets.map(encode));
        assert.deepEqual(whole.subarray(0, consumed.length), consumed);
        assert.ok(consumed.length + rest.length <= whole.length);
        assert.deepEqual(decode([whole]).results, results);
      }),
    );
  });

  test('are accepted up to a total size, and refused one byte past it', () => {
    const two = bytes('0006ab00050');
    assert.deepEqual(
      decode([two], 11).results.map((results) => 'kind' in results),
      [true, true],
    );
    const [, refusal] = decode([two], 10).results;
    assert.deepEqual(refusal, { refused: 'packets-too-large', detail: 'the request takes more than 10 bytes' });
  });

  test('attack: a long packet sent byte by byte costs no more than a few copies of it', () => {
    const decoder = createPacketDecoder({ bytesMax: 1e6 });
    const original = Uint8Array.prototype.set;
    let copied = 0;
    Uint8Array.prototype.set = function (this: Uint8Array, source: ArrayLike<number>, offset?: number) {
      copied += source.length;
      original.call(this, source, offset);
    };
    try {
      for (const byte of dataPacket(new Uint8Array(PACKET_PAYLOAD_BYTES_MAX))) {
        assert.equal(decoder.next(), null);
        decoder.push(Uint8Array.of(byte));
      }
    } finally {
      Uint8Array.prototype.set = original;
    }
    assert.ok(copied < 5 * 65_520, `${copied} bytes copied`);
    assert.equal(decoder.next() !== null, true);
  });

  test('keep their payload when later bytes arrive', () => {
    const decoder = createPacketDecoder({ bytesMax: 1e6 });
    for (const part of ['00', '06ab00', '06cd0', '006ef']) decoder.push(bytes(part));
    const payloads: Uint8Array[] = [];
    for (let next = decoder.next(); next !== null; next = decoder.next()) {
      if ('kind' in next && next.kind === 'data') payloads.push(next.payload);
      decoder.push(bytes('0000'));
      if (payloads.length === 3) break;
    }
    assert.deepEqual(payloads.map(text), ['ab', 'cd', 'ef']);
  });
});

describe('The side band', () => {
  test('splits at 65,520 bytes, or at 1,000 for clients that chose `side-band`', () => {
    const long = sideBandPackets(1, new Uint8Array(65_515 + 1));
    assert.equal(text(long.subarray(0, 5)), 'fff0\u0001');
    assert.equal(text(long.subarray(65_520)), '0006\u0001\0');
    const short = sideBandPackets(2, new Uint8Array(995 + 1), 'side-band');
    assert.equal(text(short.subarray(0, 5)), '03e8\u0002');
    assert.equal(text(short.subarray(1_000)), '0006\u0002\0');
    assert.equal(sideBandPackets(1, new Uint8Array(0)).length, 0);
    assert.equal(text(KEEP_ALIVE_PACKET), '0005\u0001');
  });

  test('carries a whole stream and ends it with a flush', async () => {
    const whole = new Uint8Array(200_000).map((_, index) => index);
    async function* chunks() {
      yield whole.subarray(0, 0);
      yield whole.subarray(0, 3);
      yield whole.subarray(3);
    }
    const packets: Uint8Array[] = [];
    for await (const packet of sideBandStream(chunks())) packets.push(packet);
    const { results, rest } = decode([concatBytes(packets)]);
    assert.equal(rest.length, 0);
    assert.deepEqual(results.at(-1), { kind: 'flush' });
    const payloads = results.flatMap((each) => ('kind' in each && each.kind === 'data' ? [each.payload] : []));
    assert.ok(payloads.every((payload) => payload[0] === 1));
    assert.deepEqual(concatBytes(payloads.map((payload) => payload.subarray(1))), whole);
  });

  test('attack: removes from messages what would rewrite the terminal or forge a second line', () => {
    assert.equal(oneSafeLine('a\n\u001b[2Jok refs\u0085b\u2028c\u202ed\u0000'), 'a [2Jok refs b c d');
    assert.equal(oneSafeLine('lone \ud800'), 'lone \ufffd');
    assert.equal(text(progressPackets(['one', 'two\r\nthree'])), '0013\u0002one\ntwo three\n');
    assert.equal(text(fatalPackets('no\u0007')), '0008\u0003no\n');
  });
});
