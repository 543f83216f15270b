/**
 * The body of a POST to git-upload-pack, in any protocol version: gitprotocol-http(5), gitprotocol-v2(5).
 *
 * Must stay true: the parser skips nothing that git would act on. A body holds one request. A body with further bytes
 * is refused, so that no other reader of the same bytes can find a second request in them.
 */
import { FETCH_REQUEST_BYTES_MAX, SERVER_OPTION_BYTES_MAX, SERVER_OPTIONS_MAX } from '../../kernel/limits.ts';
import { parseFetchBody } from './fetch-body.ts';
import { type FetchRefusalCode, type FetchRequest, parseFetchArguments } from './fetch-request.ts';
import { type LsRefsRequest, parseLsRefs } from './ls-refs.ts';
import {
  createPacketReader,
  lineOf,
  type PacketReader,
  type PacketRefusalCode,
  type ProtocolRefusal,
  TRUNCATED,
} from './pkt-line.ts';
import { excerpt } from './side-band.ts';
import { decodeUtf8, utf8Length } from '../utf8.ts';

export type UploadPackRequest =
  /** Only a flush, which a client sends before a long request to test its access: answer 200 without a body. */
  | { readonly kind: 'probe' }
  | { readonly kind: 'ls-refs'; readonly request: LsRefsRequest; readonly serverOptions: readonly string[] }
  | { readonly kind: 'fetch'; readonly request: FetchRequest; readonly serverOptions: readonly string[] };

export type UploadPackRefusalCode =
  | PacketRefusalCode
  | FetchRefusalCode
  | 'command-missing'
  | 'command-repeated'
  | 'command-unknown'
  | 'capability-unknown'
  | 'too-many-server-options'
  | 'request-trailing-bytes';
export type UploadPackRefusal = ProtocolRefusal<UploadPackRefusalCode>;

/** Parses a complete inflated body of at most 32 MiB. */
export function parseUploadPackRequest(body: Uint8Array, version: 0 | 1 | 2): UploadPackRequest | UploadPackRefusal {
  if (body.length > FETCH_REQUEST_BYTES_MAX) {
    const detail = `the request takes more than ${FETCH_REQUEST_BYTES_MAX} bytes`;
    return { refused: 'packets-too-large', detail };
  }
  const packets = createPacketReader(body);
  const request = isProbe(body) ? readProbe(packets) : version === 2 ? readV2(packets) : readV0(packets, version);
  return 'refused' in request ? request : (trailing(packets) ?? request);
}

function isProbe(body: Uint8Array): boolean {
  return body.length >= 4 && body.subarray(0, 4).every((byte) => byte === 0x30);
}

function readProbe(packets: PacketReader): UploadPackRequest {
  packets.next();
  return { kind: 'probe' };
}

function readV0(packets: PacketReader, version: 0 | 1): UploadPackRequest | UploadPackRefusal {
  const request = parseFetchBody(packets, version);
  return 'refused' in request ? request : { kind: 'fetch', request, serverOptions: [] };
}

/** Refuses anything but flushes after the request: some clients end a body with a further flush. */
function trailing(packets: PacketReader): UploadPackRefusal | null {
  for (;;) {
    const packet = packets.next();
    if (packet === 'end') return null;
    if ('refused' in packet || packet.kind !== 'flush') {
      return { refused: 'request-trailing-bytes', detail: 'the body holds more than one request' };
    }
  }
}

function readV2(packets: PacketReader): UploadPackRequest | UploadPackRefusal {
  const head = readHead(packets);
  if ('refused' in head) return head;
  const args = head.argumentsFollow ? readArguments(packets) : [];
  if ('refused' in args) return args;
  const { command, serverOptions } = head;
  switch (command) {
    case 'ls-refs': {
      const request = parseLsRefs(args);
      return 'refused' in request ? request : { kind: 'ls-refs', request, serverOptions };
    }
    case 'fetch': {
      const request = parseFetchArguments(args);
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
  argumentsFollow: boolean;
}

/**
 * Reads the command and the client's capabilities, up to the delimiter, or the flush of a command without arguments.
 */
function readHead(packets: PacketReader): Head | UploadPackRefusal {
  const head: Head = { command: null, serverOptions: [], argumentsFollow: false };
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

function readArguments(packets: PacketReader): Uint8Array[] | UploadPackRefusal {
  const args: Uint8Array[] = [];
  for (;;) {
    const packet = packets.next();
    if (packet === 'end') return TRUNCATED;
    if ('refused' in packet) return packet;
    if (packet.kind === 'flush') return args;
    if (packet.kind !== 'data') {
      return { refused: 'packet-malformed', detail: 'expected flush after the arguments' };
    }
    args.push(lineOf(packet.payload));
  }
}
