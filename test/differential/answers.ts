/**
 * Reads what a side answered to a request into what must be equal on both sides. Shares no code with the server.
 *
 * Invariants: of a refusal nothing counts but that it was one and that it was told: its words may differ.
 */
import type { Answer } from './sides.ts';

/** What both sides must have in common, by the name of the thing. */
export type Observation = Readonly<Record<string, readonly string[]>>;

interface Packet {
  /** Null: flush, delimiter or response end. */
  readonly payload: Buffer | null;
}

/** Packets up to bytes that are no packet, and those bytes: a pack without a side band. */
interface Packets {
  readonly packets: readonly Packet[];
  readonly rest: Buffer;
}

function packetsOf(bytes: Buffer): Packets {
  const packets: Packet[] = [];
  let at = 0;
  while (at + 4 <= bytes.length) {
    const head = bytes.toString('latin1', at, at + 4);
    const length = /^[0-9a-f]{4}$/.test(head) ? Number.parseInt(head, 16) : Number.NaN;
    if (Number.isNaN(length) || length === 3 || at + length > bytes.length) break;
    packets.push({ payload: length < 4 ? null : bytes.subarray(at + 4, at + length) });
    at += Math.max(length, 4);
  }
  return { packets, rest: bytes.subarray(at) };
}

/** The text of the first ERR packet of an answer, or of what the side band says of an error. */
export function toldBy({ body }: Answer): string {
  const payloads = packetsOf(body).packets.flatMap(({ payload }) => payload?.toString() ?? []);
  const [, told = ''] = payloads.flatMap((text) => /^(?:ERR |\u0003)(.*)/s.exec(text) ?? []);
  return told;
}

export function observed(answer: Answer, objectsOf: (pack: Buffer) => readonly string[]): Observation {
  const { status, body, endedEarly } = answer;
  if (status === null) return { outcome: ['a cut connection'] };
  if (status >= 500) return { outcome: [`status ${status}`] };
  if (status !== 200) return { outcome: ['refused'], status: [`${Math.floor(status / 100)}xx`] };
  const { packets, rest } = packetsOf(body);
  const bands: Record<number, Buffer[]> = { 1: [], 2: [], 3: [] };
  const texts: string[] = [];
  for (const { payload } of packets) {
    const band = payload === null ? undefined : bands[payload[0] ?? 0];
    if (payload !== null && band !== undefined) band.push(payload.subarray(1));
    else if (payload !== null) texts.push(payload.toString().replace(/\n$/, ''));
  }
  const isTold = (bands[3] ?? []).length > 0 || texts.some((text) => text.startsWith('ERR '));
  if (isTold || endedEarly) return { outcome: ['refused'], status: ['2xx'] };
  const isPack = rest.subarray(0, 4).toString('latin1') === 'PACK';
  if (rest.length > 0 && !isPack) return { outcome: ['a broken answer'] };
  const pack = isPack ? rest : Buffer.concat(bands[1] ?? []);
  return {
    outcome: ['served'],
    status: ['2xx'],
    // Version 0 tells its capabilities behind the first ref.
    texts: texts
      .map(withoutCapabilities)
      .filter((text) => text !== '')
      .toSorted(),
    symref: texts.flatMap((text) => [...text.matchAll(/\bsymref=(\S+)/g)].map(([, target = '']) => target)),
    objects: pack.length === 0 ? [] : objectsOf(pack),
  };
}

/** Lines that only say what a server offers: refs, acks and shallow lines begin with none of these words. */
const OFFERS = /^(agent|ls-refs|fetch|server-option|object-format|object-info|bundle-uri|session-id)(=|$)/;

function withoutCapabilities(text: string): string {
  if (OFFERS.test(text)) return '';
  return text.replace(/\0.*$/s, '').trimEnd();
}
