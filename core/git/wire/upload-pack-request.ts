/**
 * The body of a POST to git-upload-pack, in any protocol version: gitprotocol-http(5), gitprotocol-v2(5).
 *
 * Invariants: the parser skips nothing that git would act on. A body holds one request. A body with further bytes
 * is refused, so that no other reader of the same bytes can find a second request in them.
 */
import { FETCH_REQUEST_BYTES_MAX } from '../../kernel/limits.ts';
import type { NextTurn } from '../../kernel/turns.ts';
import { decodeUtf8, utf8Length } from '../utf8.ts';
import { parseFetchBody } from './fetch-body.ts';
import { createFetchArguments, type FetchRefusalCode, type FetchRequest } from './fetch-request.ts';
import { createLsRefsArguments, type LsRefsRefusal, type LsRefsRequest } from './ls-refs.ts';
import { createTurnedPackets, type TurnedPackets } from './packet-turns.ts';
import {
  type CommandArguments,
  lineOf,
  type PacketReader,
  type PacketRefusalCode,
  type ProtocolRefusal,
  TRUNCATED,
} from './pkt-line.ts';
import { excerpt } from './safe-line.ts';

/** Lines of a request of protocol v2 before its arguments; git sends three, and its server options. */
export const REQUEST_CAPABILITIES_MAX = 1_000;
/** Server options of one request of protocol v2, and the size of each. */
export const SERVER_OPTIONS_MAX = 100;
export const SERVER_OPTION_BYTES_MAX = 4_096;

export type UploadPackRequest =
  /** Only a flush, which a client sends before a long request to test its access: answer 200 without a body. */
  | { readonly kind: 'probe' }
  | { readonly kind: 'ls-refs'; readonly request: LsRefsRequest; readonly serverOptions: readonly string[] }
  | { readonly kind: 'fetch'; readonly request: FetchRequest; readonly serverOptions: readonly string[] };

export type UploadPackRefusalCode =
  | PacketRefusalCode
  | FetchRefusalCode
  | LsRefsRefusal['refused']
  | 'command-missing'
  | 'command-repeated'
  | 'command-unknown'
  | 'capability-unknown'
  | 'too-many-capabilities'
  | 'too-many-server-options'
  | 'request-trailing-bytes';
export type UploadPackRefusal = ProtocolRefusal<UploadPackRefusalCode>;

/** Parses a complete inflated body of at most 32 MiB, in turns. */
export async function parseUploadPackRequest(
  body: Uint8Array,
  version: 0 | 1 | 2,
  nextTurn: NextTurn,
): Promise<UploadPackRequest | UploadPackRefusal> {
  if (body.length > FETCH_REQUEST_BYTES_MAX) {
    const detail = `the request takes more than ${FETCH_REQUEST_BYTES_MAX} bytes`;
    return { refused: 'packets-too-large', detail };
  }
  const packets = createTurnedPackets(body, nextTurn);
  const request = isProbe(body)
    ? readProbe(packets)
    : version === 2
      ? await readV2(packets)
      : await readV0(packets, version);
  return 'refused' in request ? request : ((await trailing(packets)) ?? request);
}

function isProbe(body: Uint8Array): boolean {
  return body.length >= 4 && body.subarray(0, 4).every((byte) => byte === 0x30);
}

function readProbe(packets: PacketReader): UploadPackRequest {
  packets.next();
  return { kind: 'probe' };
}

async function readV0(packets: TurnedPackets, version: 0 | 1): Promise<UploadPackRequest | UploadPackRefusal> {
  const request = await parseFetchBody(packets, version);
  return 'refused' in request ? request : { kind: 'fetch', request, serverOptions: [] };
}

/** Refuses anything but flushes after the request: some clients end a body with a further flush. */
async function trailing(packets: TurnedPackets): Promise<UploadPackRefusal | null> {
  for (;;) {
    const turn = packets.turn();
    if (turn !== null) await turn;
    const packet = packets.next();
    if (packet === 'end') return null;
    if ('refused' in packet || packet.kind !== 'flush') {
      return { refused: 'request-trailing-bytes', detail: 'the body holds more than one request' };
    }
  }
}

async function readV2(packets: TurnedPackets): Promise<UploadPackRequest | UploadPackRefusal> {
  const head = readHead(packets);
  if ('refused' in head) return head;
  const { command, serverOptions, argumentsFollow } = head;
  switch (command) {
    case 'ls-refs': {
      const request = await readArguments(packets, argumentsFollow, createLsRefsArguments());
      return 'refused' in request ? request : { kind: 'ls-refs', request, serverOptions };
    }
    case 'fetch': {
      const request = await readArguments(packets, argumentsFollow, createFetchArguments());
      return 'refused' in request ? request : { kind: 'fetch', request, serverOptions };
    }
    case null:
      return { refused: 'command-missing', detail: 'no command requested' };
    default:
      return { refused: 'command-unknown', detail: `invalid command '${excerpt(command)}'` };
  }
}

interface Head {
  command: string | null;
  serverOptions: string[];
  lines: number;
  argumentsFollow: boolean;
}

/**
 * Reads the command and the client's capabilities, up to the delimiter, or the flush of a command without arguments.
 */
function readHead(packets: PacketReader): Head | UploadPackRefusal {
  const head: Head = { command: null, serverOptions: [], lines: 0, argumentsFollow: false };
  for (;;) {
    const packet = packets.next();
    if (packet === 'end') return TRUNCATED;
    if ('refused' in packet) return packet;
    switch (packet.kind) {
      case 'flush':
        return head;
      case 'delimiter':
        head.argumentsFollow = true;
        return head;
      case 'response-end':
        return { refused: 'packet-malformed', detail: 'unexpected response end packet' };
      case 'data': {
        const refusal = readHeadLine(head, decodeUtf8(lineOf(packet.payload)));
        if (refusal !== null) return refusal;
      }
    }
  }
}

function readHeadLine(head: Head, line: string | null): UploadPackRefusal | null {
  if (line === null) return { refused: 'capability-unknown', detail: 'a line is not valid UTF-8' };
  head.lines += 1;
  if (head.lines > REQUEST_CAPABILITIES_MAX) {
    return { refused: 'too-many-capabilities', detail: `more than ${REQUEST_CAPABILITIES_MAX} capabilities` };
  }
  const equals = line.indexOf('=');
  const key = equals === -1 ? line : line.slice(0, equals);
  const value = equals === -1 ? '' : line.slice(equals + 1);
  switch (key) {
    case 'command':
      if (head.command !== null) return { refused: 'command-repeated', detail: 'more than one command requested' };
      head.command = value;
      return null;
    case 'agent':
      return null;
    case 'object-format':
      if (value === 'sha1') return null;
      return { refused: 'object-format-unsupported', detail: `unsupported object format '${excerpt(value)}'` };
    case 'server-option':
      head.serverOptions.push(value);
      if (head.serverOptions.length <= SERVER_OPTIONS_MAX && utf8Length(value) <= SERVER_OPTION_BYTES_MAX) return null;
      return {
        refused: 'too-many-server-options',
        detail: `at most ${SERVER_OPTIONS_MAX} server options of ${SERVER_OPTION_BYTES_MAX} bytes are accepted`,
      };
    default:
      return { refused: 'capability-unknown', detail: `unknown capability '${excerpt(line)}'` };
  }
}

async function readArguments<Request, Refusal extends UploadPackRefusal>(
  packets: TurnedPackets,
  argumentsFollow: boolean,
  args: CommandArguments<Request, Refusal>,
): Promise<Request | UploadPackRefusal> {
  for (let packet = argumentsFollow ? packets.next() : null; packet !== null; packet = packets.next()) {
    const turn = packets.turn();
    if (turn !== null) await turn;
    if (packet === 'end') return TRUNCATED;
    if ('refused' in packet) return packet;
    if (packet.kind === 'flush') break;
    if (packet.kind !== 'data') {
      return { refused: 'packet-malformed', detail: 'expected flush after the arguments' };
    }
    const refusal = args.read(lineOf(packet.payload));
    if (refusal !== null) return refusal;
  }
  return args.end();
}
