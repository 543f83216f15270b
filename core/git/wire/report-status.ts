/**
 * The answer to a push: gitprotocol-pack(5), "Report Status", in the side band if the client chose one.
 *
 * Invariants: each packet fits its limit, whatever names and reasons it holds, and neither can inject another line.
 * The report is a list of packets that ends with a flush. It is sent within the side band, which ends with another
 * flush.
 */
import { REF_NAME_BYTES_MAX } from '../../kernel/limits.ts';
import { encodeUtf8 } from '../utf8.ts';
import type { PushCapabilities } from './command-list.ts';
import { concatBytes, createLineWriter, errorPacket, FLUSH_PACKET, PACKET_PAYLOAD_BYTES_MAX } from './pkt-line.ts';
import { oneSafeLine } from './safe-line.ts';
import { fatalPackets, progressPackets, sideBandPackets } from './side-band.ts';

/** The result of one command. */
export interface RefReport {
  /** The ref as the client named it. */
  readonly name: string | Uint8Array;
  /** Null if the ref was updated, else why it was not. */
  readonly refused: string | null;
}

export interface PushReport {
  /** Null if the pack was accepted, or none was needed; else why it was refused. */
  readonly unpackFailed: string | null;
  /** One for each command, even if the pack was refused. */
  readonly refs: readonly RefReport[];
}

/** UTF-16 code units of the reason of a refusal; the rest is cut. */
export const REASON_LENGTH_MAX = 1_000;

const CONTROLS = /\p{Cc}/u;

/** Returns the report's packets and their flush. `report-status-v2` has the same lines if the server renames no ref. */
export function reportStatus(report: PushReport): Uint8Array {
  const writer = createLineWriter();
  writer.line(`unpack ${report.unpackFailed === null ? 'ok' : reason(report.unpackFailed)}`);
  for (const { name, refused } of report.refs) {
    // Fast path: a push may report 100,000 refs, and names without control characters need no conversion to bytes.
    if (typeof name === 'string' && name.length <= REF_NAME_BYTES_MAX && !CONTROLS.test(name)) {
      writer.line(refused === null ? `ok ${name}` : `ng ${name} ${reason(refused)}`);
    } else {
      writer.packet(hostileLine(typeof name === 'string' ? encodeUtf8(name) : name, refused));
    }
  }
  writer.flush();
  return writer.bytes();
}

/** Returns the end of the answer to a push. `messages` are lines for the user, sent only if there is a side band. */
export function pushAnswer(
  report: PushReport,
  capabilities: PushCapabilities,
  messages: readonly string[] = [],
): Uint8Array {
  const status = capabilities.reportStatus === 'none' ? new Uint8Array(0) : reportStatus(report);
  if (!capabilities.sideBand64k) return status;
  return concatBytes([progressPackets(messages), sideBandPackets(1, status), FLUSH_PACKET]);
}

/**
 * Returns the answer to a push that is refused as a whole, in a form whose reason the client displays: a report that
 * nothing was unpacked, an error on the side band, or an error packet. (Of an HTTP error, git displays only the
 * status.) Git shows each of its commands that the report does not name as one without a result.
 */
export function pushRefusal(
  detail: string,
  capabilities: PushCapabilities | null,
  refs: readonly RefReport[],
): Uint8Array {
  if (capabilities !== null && capabilities.reportStatus !== 'none') {
    return pushAnswer({ unpackFailed: detail, refs }, capabilities);
  }
  return capabilities?.sideBand64k === true ? fatalPackets(reason(detail)) : errorPacket(reason(detail));
}

/** Returns the line for a name that may hold control characters, or be so long that the line is cut to fit a packet. */
function hostileLine(name: Uint8Array, refused: string | null): Uint8Array {
  const safe = name.map((byte) => (byte < 0x20 || byte === 0x7f ? 0x3f : byte));
  const parts =
    refused === null ? [encodeUtf8('ok '), safe] : [encodeUtf8('ng '), safe, encodeUtf8(` ${reason(refused)}`)];
  return concatBytes([concatBytes(parts).subarray(0, PACKET_PAYLOAD_BYTES_MAX - 1), encodeUtf8('\n')]);
}

function reason(text: string): string {
  const line = oneSafeLine(text.slice(0, REASON_LENGTH_MAX));
  return line === '' ? 'refused' : line;
}
