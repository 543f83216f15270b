/**
 * The body of a fetch in protocol v0 or v1, which are equal over HTTP: gitprotocol-pack(5), "Packfile Negotiation". It
 * holds wants and boundaries, a flush, haves, and then `done`, a flush or the end of the body.
 *
 * Invariants: as for v2 (fetch-request.ts), the result names every object that upload-pack will act on.
 */
import { decodeUtf8 } from '../utf8.ts';
import {
  type FetchDraft,
  type FetchRefusal,
  type FetchRequest,
  finishFetch,
  NOT_TEXT,
  newFetchDraft,
  readBoundary,
  readHave,
  readWant,
} from './fetch-request.ts';
import type { TurnedPackets } from './packet-turns.ts';
import { lineOf, type PacketRefusal, TRUNCATED } from './pkt-line.ts';
import { excerpt } from './safe-line.ts';

const DONE_BYTES = 'done'.length;

const FILTER_NOT_NEGOTIATED: FetchRefusal = {
  refused: 'filter-not-negotiated',
  detail: 'filtering capability not negotiated',
};

/** Parses the packets of a body that does not start with a flush. */
export async function parseFetchBody(
  packets: TurnedPackets,
  version: 0 | 1,
): Promise<FetchRequest | FetchRefusal | PacketRefusal> {
  const draft = newFetchDraft(null);
  return (await readWants(draft, packets)) ?? (await readHaves(draft, packets)) ?? finishFetch(draft, version);
}

async function readWants(draft: FetchDraft, packets: TurnedPackets): Promise<FetchRefusal | PacketRefusal | null> {
  let filterNegotiated = false;
  for (;;) {
    const turn = packets.turn();
    if (turn !== null) await turn;
    const packet = packets.next();
    if (packet === 'end') return TRUNCATED;
    if ('refused' in packet) return packet;
    if (packet.kind === 'flush') return null;
    const line = packet.kind === 'data' ? decodeUtf8(lineOf(packet.payload)) : null;
    // git reads lines as C strings, so it would ignore what this parser reads after a NUL.
    if (line === null || line.includes('\0')) return NOT_TEXT;
    // git reads line by line: a filter that stands before the capability ends it.
    if (line.startsWith('filter ') && !filterNegotiated) return FILTER_NOT_NEGOTIATED;
    const names = line.startsWith('want ') ? capabilityNames(line) : [];
    if (names.includes('filter')) filterNegotiated = true;
    const refusal = readWantOrBoundary(draft, line) ?? readCapabilities(draft, names);
    if (refusal !== null) return refusal;
  }
}

function readWantOrBoundary(draft: FetchDraft, line: string): FetchRefusal | null {
  return line.startsWith('want ') ? readWant(draft, line.split(/[ \t\r\n]/)[1] ?? '') : readBoundary(draft, line);
}

/** Returns the capability names after the id of a want line. As in git, a name may have a value. */
function capabilityNames(line: string): string[] {
  const [, , ...capabilities] = line.split(/[ \t\r\n]+/);
  return capabilities.map((text) => (text.startsWith('object-format=') ? text : text.replace(/=.*/s, '')));
}

/** Reads the capabilities that the client chose, from any want line. Ignores unknown ones, as git does. */
function readCapabilities(draft: FetchDraft, names: readonly string[]): FetchRefusal | null {
  const { flags } = draft;
  for (const name of names) {
    if (name === 'multi_ack_detailed') flags.multiAck = 'multi_ack_detailed';
    else if (name === 'multi_ack' && flags.multiAck === 'none') flags.multiAck = 'multi_ack';
    else if (name === 'no-done') flags.noDone = true;
    else if (name === 'thin-pack') flags.thinPack = true;
    else if (name === 'ofs-delta') flags.ofsDelta = true;
    else if (name === 'include-tag') flags.includeTag = true;
    else if (name === 'no-progress') flags.noProgress = true;
    else if (name === 'deepen-relative') draft.relative = true;
    else if (name === 'side-band-64k') flags.sideBand = 'side-band-64k';
    else if (name === 'side-band') flags.sideBand ??= 'side-band';
    else if (name.startsWith('object-format=') && name !== 'object-format=sha1') {
      return { refused: 'object-format-unsupported', detail: `unsupported object format '${excerpt(name)}'` };
    }
  }
  return null;
}

async function readHaves(draft: FetchDraft, packets: TurnedPackets): Promise<FetchRefusal | PacketRefusal | null> {
  for (;;) {
    const turn = packets.turn();
    if (turn !== null) await turn;
    const packet = packets.next();
    // A client that only wants the new shallow boundary ends its body here. After a `have` git would wait for more.
    if (packet === 'end') return draft.haveCount === 0 || draft.wants.size === 0 ? null : TRUNCATED;
    if ('refused' in packet) return packet;
    if (packet.kind === 'flush') return null;
    if (packet.kind !== 'data') return NOT_TEXT;
    const bytes = lineOf(packet.payload);
    if (bytes.length === DONE_BYTES && decodeUtf8(bytes) === 'done') {
      draft.flags.done = true;
      return null;
    }
    const refusal = readHave(draft, bytes);
    if (refusal !== null) return refusal;
  }
}
