/**
 * The commands of a push, before its pack: gitprotocol-pack(5), "Reference Update Request and Packfile Transfer".
 *
 * Invariants: reading stops exactly where the pack starts. An ambiguous list is refused as a whole. A ref with an
 * invalid name only fails its own update, as in git.
 */
import { KIB } from '../../kernel/byte-units.ts';
import type { ObjectId } from '../../kernel/ids.ts';
import { OBJECT_ID_DIGITS, parseObjectId, ZERO_OBJECT_ID } from '../../kernel/ids.ts';
import { PUSH_COMMANDS_BYTES_MAX, PUSH_COMMANDS_MAX } from '../../kernel/limits.ts';
import {
  newNameRefusal,
  parseRefName,
  type RefName,
  type RefNameRefusal,
  type RefNameRefusalCode,
} from '../ref-name.ts';
import { decodeUtf8, decodeUtf8Lossy } from '../utf8.ts';
import { SHALLOW_LINES_MAX } from './limits.ts';
import {
  createPacketDecoder,
  lineOf,
  type Packet,
  type PacketRefusalCode,
  type ProtocolRefusal,
  TRUNCATED,
} from './pkt-line.ts';
import { excerpt } from './safe-line.ts';

/**
 * Memory for each byte of a list of commands: a short command takes 3.4 times its bytes, and half as much to be read.
 * Internal: it is a part of how the memory of a push is counted.
 */
export const COMMAND_LIST_HELD_FACTOR = 4;
/** Options of one push. */
export const PUSH_OPTIONS_MAX = 100;
/** The size of all options of one push together. */
export const PUSH_OPTIONS_BYTES_MAX = 4 * KIB;

/**
 * The update of one ref. `before` is null if the push creates the ref, `after` if it deletes it. Both are null for the
 * deletion of a ref that is not there, as git sends it: it succeeds and changes nothing.
 */
export interface PushCommand {
  readonly ref: RefName;
  readonly before: ObjectId | null;
  readonly after: ObjectId | null;
}

/** An update of a ref with a name that Strata does not accept: report `ng` with the detail. */
export interface RefusedCommand {
  /** The name's bytes as received: the client finds its ref in the report by them. */
  readonly name: Uint8Array;
  readonly refused: RefNameRefusalCode;
  readonly detail: string;
}

/** The capabilities that the client chose from the advertisement; unknown names are ignored. */
export interface PushCapabilities {
  readonly reportStatus: 'none' | 'report-status' | 'report-status-v2';
  readonly sideBand64k: boolean;
  readonly quiet: boolean;
  readonly atomic: boolean;
  readonly pushOptions: boolean;
}

export interface CommandList {
  /** In the order received, no ref twice. Without commands, accepted or refused, it is a probe: answer 200, no body. */
  readonly commands: readonly PushCommand[];
  readonly refusedCommands: readonly RefusedCommand[];
  /** The client's shallow boundary: commits whose parents it lacks. */
  readonly shallow: readonly ObjectId[];
  readonly capabilities: PushCapabilities;
  readonly pushOptions: readonly string[];
  /** Whether a pack follows: a push that only deletes refs has none. */
  readonly packFollows: boolean;
}

export type CommandListRefusalCode =
  | PacketRefusalCode
  | 'command-malformed'
  | 'ref-twice'
  | 'too-many-commands'
  | 'shallow-malformed'
  | 'too-many-shallow-lines'
  /** A signed push, which the server does not offer. */
  | 'push-cert'
  | 'object-format-unsupported'
  | 'push-option-malformed'
  | 'push-options-too-large'
  | 'too-many-push-options'
  /** There is no memory for it now. */
  | 'list-not-held'
  | CutCode;

/** Why the client of a push is not read on: it sends too slowly, or slowly beside too many others. */
export type CutCode = 'push-too-slow' | 'too-many-slow-pushes';

/** Why the whole push is refused. The answer's form depends on `capabilities`; null if they were not read yet. */
export interface CommandListRefusal extends ProtocolRefusal<CommandListRefusalCode> {
  readonly capabilities: PushCapabilities | null;
  /** The names of the commands that were read before, as the client sent them, for the report. */
  readonly names: readonly (RefName | Uint8Array)[];
}

/** Holds this many more bytes of memory for the list. Returns why not, a line for the client, if there is no room. */
export type HoldList = (bytes: number) => string | null;

/** Returns why the list is refused that this error of its source has ended; null if the error passes through. */
export type CutOf = (error: unknown) => ProtocolRefusal<CutCode> | null;

/** The command list and the rest of the body. */
export interface PushBody {
  readonly list: CommandList | CommandListRefusal;
  /** Every byte after the list, starting with the pack. Read it at most once, and not if the push is refused. */
  readonly rest: AsyncIterable<Uint8Array>;
}

/**
 * Reads an inflated body up to the end of its command list. Errors of the source pass through, but for those of
 * `cutOf`. If the caller stops reading `rest` early, the source is closed: to answer after that, pass a source that can
 * be closed without closing the connection.
 */
export async function readCommandList(
  body: AsyncIterable<Uint8Array>,
  hold: HoldList,
  cutOf: CutOf = () => null,
): Promise<PushBody> {
  const source = body[Symbol.asyncIterator]();
  const parser = createCommandListParser();
  let list = parser.result();
  let received = 0;
  let heldFor = 0;
  while (list === null) {
    const chunk = await nextOf(source, cutOf);
    if ('refused' in chunk) {
      list = parser.cut(chunk);
      break;
    }
    if (chunk.done === true) {
      list = parser.end();
      continue;
    }
    received += chunk.value.length;
    list = parser.push(chunk.value);
    if (list !== null && 'refused' in list) break;
    // What follows the list is not held with it.
    const ofList = list === null ? received : parser.takenBytes();
    const full = hold((ofList - heldFor) * COMMAND_LIST_HELD_FACTOR);
    heldFor = ofList;
    if (full !== null) list = parser.refuse(full);
  }
  return { list, rest: restOf(parser.rest(), source) };
}

async function nextOf(
  source: AsyncIterator<Uint8Array>,
  cutOf: CutOf,
): Promise<IteratorResult<Uint8Array> | ProtocolRefusal<CutCode>> {
  try {
    return await source.next();
  } catch (error) {
    const cut = cutOf(error);
    if (cut === null) throw error;
    return cut;
  }
}

async function* restOf(first: Uint8Array, source: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    if (first.length > 0) yield first;
    for (let chunk = await source.next(); chunk.done !== true; chunk = await source.next()) yield chunk.value;
  } finally {
    await source.return?.();
  }
}

const NO_CAPABILITIES: PushCapabilities = {
  reportStatus: 'none',
  sideBand64k: false,
  quiet: false,
  atomic: false,
  pushOptions: false,
};

export interface CommandListParser {
  /** Parses the next bytes; returns null until the list has ended. */
  push(chunk: Uint8Array): CommandList | CommandListRefusal | null;
  /** Returns what the last `push` or `end` returned; null before the first. */
  result(): CommandList | CommandListRefusal | null;
  /** Call it at the end of the body: a list that has not ended is refused as truncated. */
  end(): CommandList | CommandListRefusal;
  /** Refuses the list, since there is no memory for it: `detail` is a line for the client. */
  refuse(detail: string): CommandListRefusal;
  /** Refuses the list, since its client is not read on. */
  cut(refusal: ProtocolRefusal<CutCode>): CommandListRefusal;
  /** Returns the size of the list as far as it was read. */
  takenBytes(): number;
  /** Returns the pushed bytes that are after the list. */
  rest(): Uint8Array;
}

/** A list while it is being read. */
interface Draft {
  readonly commands: PushCommand[];
  readonly refusedCommands: RefusedCommand[];
  readonly names: Set<string>;
  readonly shallow: ObjectId[];
  readonly pushOptions: string[];
  pushOptionsBytes: number;
  capabilities: PushCapabilities | null;
  packFollows: boolean;
  section: 'commands' | 'push-options' | 'ended';
}

type Refusal = ProtocolRefusal<CommandListRefusalCode>;

export function createCommandListParser(): CommandListParser {
  const decoder = createPacketDecoder({ bytesMax: PUSH_COMMANDS_BYTES_MAX });
  const draft: Draft = {
    commands: [],
    refusedCommands: [],
    names: new Set(),
    shallow: [],
    pushOptions: [],
    pushOptionsBytes: 0,
    capabilities: null,
    packFollows: false,
    section: 'commands',
  };
  let result: CommandList | CommandListRefusal | null = null;
  const refuse = (refusal: Refusal, names = namesOf(draft)): CommandListRefusal => {
    const refused = { ...refusal, capabilities: draft.capabilities, names };
    result = refused;
    return refused;
  };
  return {
    push(chunk) {
      decoder.push(chunk);
      while (result === null) {
        const packet = decoder.next();
        if (packet === null) return null;
        const refusal = 'refused' in packet ? packet : readPacket(draft, packet);
        if (refusal !== null) return refuse(refusal);
        if (draft.section === 'ended') result = finished(draft);
      }
      return result;
    },
    result: () => result,
    end: () => result ?? refuse(TRUNCATED),
    // There is no memory for the names either.
    refuse: (detail) => refuse({ refused: 'list-not-held', detail }, []),
    cut: (refusal) => refuse(refusal),
    takenBytes: () => decoder.takenBytes(),
    rest: () => decoder.rest(),
  };
}

function namesOf({ commands, refusedCommands }: Draft): CommandListRefusal['names'] {
  return [...commands.map(({ ref }) => ref), ...refusedCommands.map(({ name }) => name)];
}

function finished(draft: Draft): CommandList {
  const { commands, refusedCommands, shallow, pushOptions, packFollows } = draft;
  const capabilities = draft.capabilities ?? NO_CAPABILITIES;
  return { commands, refusedCommands, shallow, capabilities, pushOptions, packFollows };
}

function readPacket(draft: Draft, packet: Packet): Refusal | null {
  if (packet.kind === 'flush') {
    // Push options follow even if the push only deletes refs. A probe has no capabilities and ends here.
    const more = draft.section === 'commands' && draft.capabilities?.pushOptions === true;
    draft.section = more ? 'push-options' : 'ended';
    return null;
  }
  if (packet.kind !== 'data') return { refused: 'packet-malformed', detail: 'the command list holds a packet of v2' };
  const line = lineOf(packet.payload);
  return draft.section === 'push-options' ? readPushOption(draft, line) : readLine(draft, line);
}

function readLine(draft: Draft, line: Uint8Array): Refusal | null {
  const nul = line.indexOf(0);
  const command = nul === -1 ? line : line.subarray(0, nul);
  // Decodes ids and name separately: a part of one string would keep the whole string in memory as long as the ref.
  const head = decodeUtf8Lossy(command.subarray(0, HEAD_BYTES));
  if (head.startsWith('shallow ')) return readShallow(draft, head.slice('shallow '.length));
  if (draft.capabilities === null) {
    const refusal = readCapabilities(draft, nul === -1 ? '' : decodeUtf8Lossy(line.subarray(nul + 1)));
    if (refusal !== null) {
      // The report names the command.
      readCommand(draft, head, command.subarray(HEAD_BYTES));
      return refusal;
    }
  } else if (nul !== -1) {
    return { refused: 'command-malformed', detail: 'only the first command may name capabilities' };
  }
  if (head === 'push-cert') return { refused: 'push-cert', detail: 'signed pushes are not supported here' };
  return readCommand(draft, head, command.subarray(HEAD_BYTES));
}

function readShallow(draft: Draft, text: string): Refusal | null {
  const id = parseObjectId(text);
  if (id === null) return { refused: 'shallow-malformed', detail: `expected shallow sha, got '${excerpt(text)}'` };
  draft.shallow.push(id);
  if (draft.shallow.length <= SHALLOW_LINES_MAX) return null;
  return { refused: 'too-many-shallow-lines', detail: `more than ${SHALLOW_LINES_MAX} shallow lines` };
}

function readCapabilities(draft: Draft, text: string): Refusal | null {
  const names = new Set(text.split(/[ \t\r\n]+/));
  const reportStatus = names.has('report-status-v2') ? 'report-status-v2' : 'report-status';
  draft.capabilities = {
    reportStatus: names.has(reportStatus) ? reportStatus : 'none',
    sideBand64k: names.has('side-band-64k'),
    quiet: names.has('quiet'),
    atomic: names.has('atomic'),
    pushOptions: names.has('push-options'),
  };
  for (const name of names) {
    if (name.startsWith('object-format=') && name !== 'object-format=sha1') {
      return { refused: 'object-format-unsupported', detail: `unsupported object format '${excerpt(name)}'` };
    }
  }
  return null;
}

/** The length of `<old> `, and of `<old> <new> `. The rest of the line is the name. */
const BEFORE_BYTES = OBJECT_ID_DIGITS + 1;
const HEAD_BYTES = 2 * BEFORE_BYTES;

function readCommand(draft: Draft, head: string, nameBytes: Uint8Array): Refusal | null {
  const before = parseObjectId(head.slice(0, OBJECT_ID_DIGITS));
  const after = parseObjectId(head.slice(BEFORE_BYTES, HEAD_BYTES - 1));
  const areApart = head[BEFORE_BYTES - 1] === ' ' && head[HEAD_BYTES - 1] === ' ';
  if (before === null || after === null || !areApart || nameBytes.length === 0) {
    return { refused: 'command-malformed', detail: `expected old/new/ref, got '${excerpt(head)}'` };
  }
  const name = decodeUtf8(nameBytes);
  if (name !== null && draft.names.has(name)) {
    return { refused: 'ref-twice', detail: `more than one command for '${excerpt(name)}'` };
  }
  if (name !== null) draft.names.add(name);
  const creates = before === ZERO_OBJECT_ID && after !== ZERO_OBJECT_ID;
  const ref = name === null ? NOT_UTF8 : parseCommandName(name, creates);
  if (typeof ref === 'string') draft.commands.push({ ref, before: orNull(before), after: orNull(after) });
  else draft.refusedCommands.push({ name: nameBytes.slice(), ...ref });
  if (after !== ZERO_OBJECT_ID) draft.packFollows = true;
  if (draft.commands.length + draft.refusedCommands.length <= PUSH_COMMANDS_MAX) return null;
  return { refused: 'too-many-commands', detail: `more than ${PUSH_COMMANDS_MAX} commands in one push` };
}

/** Some names may move and be deleted, but not be created. */
function parseCommandName(text: string, creates: boolean): RefName | RefNameRefusal {
  const name = parseRefName(text);
  return creates && typeof name === 'string' ? (newNameRefusal(name) ?? name) : name;
}

const NOT_UTF8 = { refused: 'ref-name-malformed', detail: 'the name is not valid UTF-8' } as const;

function orNull(id: ObjectId): ObjectId | null {
  return id === ZERO_OBJECT_ID ? null : id;
}

function readPushOption(draft: Draft, line: Uint8Array): Refusal | null {
  draft.pushOptionsBytes += line.length;
  if (draft.pushOptionsBytes > PUSH_OPTIONS_BYTES_MAX) {
    const detail = `push options of more than ${PUSH_OPTIONS_BYTES_MAX} bytes in sum`;
    return { refused: 'push-options-too-large', detail };
  }
  const text = decodeUtf8(line);
  if (text === null || /\p{Cc}/u.test(text)) {
    return { refused: 'push-option-malformed', detail: 'push options are lines of text in UTF-8' };
  }
  draft.pushOptions.push(text);
  if (draft.pushOptions.length <= PUSH_OPTIONS_MAX) return null;
  return { refused: 'too-many-push-options', detail: `more than ${PUSH_OPTIONS_MAX} push options` };
}
