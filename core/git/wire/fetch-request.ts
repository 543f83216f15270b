/**
 * A fetch request, in any protocol version, and the arguments of protocol v2: gitprotocol-v2(5).
 *
 * Invariants: a `FetchRequest` names every object and every argument that upload-pack will act on, because
 * upload-pack gets the same bytes and checks nobody's access. A request that git would refuse is refused, with git's
 * message.
 */
import type { ObjectId } from '../../kernel/ids.ts';
import { OBJECT_ID_DIGITS, parseObjectId } from '../../kernel/ids.ts';
import { REF_NAME_BYTES_MAX } from '../../kernel/limits.ts';
import { decodeUtf8, encodeUtf8, utf8Length } from '../utf8.ts';
import { SHALLOW_LINES_MAX } from './limits.ts';
import { type ObjectFilter, parseObjectFilter } from './object-filter.ts';
import type { CommandArguments, ProtocolRefusal } from './pkt-line.ts';
import { excerpt } from './safe-line.ts';
import { type SideBandKind } from './side-band.ts';

/**
 * Wants of one fetch: a clone wants as many as there are refs, and a checkout of a partial clone each file of a tree.
 */
export const FETCH_WANTS_MAX = 524_288;
/**
 * Haves of one fetch. Git begins with 16, doubles them up to 16,384, and then sends a tenth more each time
 * (fetch-pack.c, next_flush): with nothing in common, it has sent more than a million commits before one request holds
 * that many.
 */
export const FETCH_HAVES_MAX = 131_072;
/** Refs to exclude in a shallow fetch: upload-pack resolves and walks each of them. */
export const FETCH_DEEPEN_NOT_MAX = 100;

export type FetchRefusalCode =
  | 'want-malformed'
  | 'too-many-wants'
  | 'have-malformed'
  | 'too-many-haves'
  | 'shallow-malformed'
  | 'too-many-shallow-lines'
  | 'deepen-malformed'
  | 'too-many-deepen-not-lines'
  /** A depth together with `deepen-since` or `deepen-not`. */
  | 'deepen-conflict'
  | 'filter-unsupported'
  | 'filter-repeated'
  /** v0 and v1: a filter, although the client did not choose the capability `filter`. */
  | 'filter-not-negotiated'
  | 'argument-unknown'
  | 'object-format-unsupported';
export type FetchRefusal = ProtocolRefusal<FetchRefusalCode>;

/** The depth that means "all": upload-pack then sends the parents of every commit that the client named as shallow. */
export const DEPTH_OF_ALL = 0x7fff_ffff;

/** Where the requested history ends. */
export type Deepening =
  /** `commits` commits from the wants, or from the client's shallow boundary if `relative`. */
  | { readonly kind: 'depth'; readonly commits: number; readonly relative: boolean }
  /** Commits newer than `sinceSeconds` (since the epoch) that the refs in `not` do not reach. */
  | { readonly kind: 'limits'; readonly sinceSeconds: number | null; readonly not: readonly string[] };

export interface FetchRequest {
  readonly version: 0 | 1 | 2;
  /**
   * Each once, in the order received. The caller must authorise all. Empty: the client wants no objects, or only acks.
   */
  readonly wants: readonly ObjectId[];
  /** How many objects the client says that it has. Only upload-pack looks at them: unknown ids are normal. */
  readonly haveCount: number;
  /** Whether the client ended the negotiation: the answer is then a pack. */
  readonly done: boolean;
  /** v2: the server must not send a pack before `done`, however many objects are common. */
  readonly waitForDone: boolean;
  /** The client's shallow boundary: commits whose parents it lacks. */
  readonly shallow: readonly ObjectId[];
  readonly deepen: Deepening | null;
  readonly filter: ObjectFilter | null;
  readonly thinPack: boolean;
  readonly ofsDelta: boolean;
  readonly includeTag: boolean;
  readonly noProgress: boolean;
  /** v0 and v1: the form of acks. v2 has only one form. */
  readonly multiAck: 'none' | 'multi_ack' | 'multi_ack_detailed';
  /** v0 and v1: the server may send the pack as soon as it is ready. */
  readonly noDone: boolean;
  /** How the pack is framed; null for a pack without frames, which only v0 and v1 have. */
  readonly sideBand: SideBandKind | null;
}

type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] };

/** A request while it is being read, line by line. */
export interface FetchDraft {
  readonly wants: Set<ObjectId>;
  haveCount: number;
  readonly shallow: Set<ObjectId>;
  readonly deepenNot: string[];
  depth: number | null;
  relative: boolean;
  sinceSeconds: number | null;
  readonly flags: Mutable<Omit<FetchRequest, 'version' | 'wants' | 'haveCount' | 'shallow' | 'deepen'>>;
}

export function newFetchDraft(sideBand: SideBandKind | null): FetchDraft {
  const off = { done: false, waitForDone: false, thinPack: false, ofsDelta: false, includeTag: false };
  return {
    wants: new Set(),
    haveCount: 0,
    shallow: new Set(),
    deepenNot: [],
    depth: null,
    relative: false,
    sinceSeconds: null,
    flags: { ...off, noProgress: false, noDone: false, filter: null, multiAck: 'none', sideBand },
  };
}

/** Reads the arguments of the v2 command `fetch`: one for each packet, without line feeds. */
export function createFetchArguments(): CommandArguments<FetchRequest, FetchRefusal> {
  const draft = newFetchDraft('side-band-64k');
  return {
    read(bytes) {
      if (isHave(bytes)) return readHave(draft, bytes);
      const line = decodeUtf8(bytes);
      return line === null ? NOT_TEXT : readArgument(draft, line);
    },
    end: () => finishFetch(draft, 2),
  };
}

function readArgument(draft: FetchDraft, line: string): FetchRefusal | null {
  switch (line) {
    case 'done':
      draft.flags.done = true;
      return null;
    case 'wait-for-done':
      draft.flags.waitForDone = true;
      return null;
    case 'thin-pack':
      draft.flags.thinPack = true;
      return null;
    case 'ofs-delta':
      draft.flags.ofsDelta = true;
      return null;
    case 'include-tag':
      draft.flags.includeTag = true;
      return null;
    case 'no-progress':
      draft.flags.noProgress = true;
      return null;
    case 'deepen-relative':
      draft.relative = true;
      return null;
  }
  if (line.startsWith('want ')) return readWant(draft, line.slice('want '.length));
  return readBoundary(draft, line);
}

/** Reads the id of a `want` line. */
export function readWant(draft: FetchDraft, text: string): FetchRefusal | null {
  const id = parseObjectId(text);
  if (id === null) {
    return { refused: 'want-malformed', detail: `protocol error, expected to get object ID, not '${excerpt(text)}'` };
  }
  draft.wants.add(id);
  if (draft.wants.size <= FETCH_WANTS_MAX) return null;
  return { refused: 'too-many-wants', detail: `more than ${FETCH_WANTS_MAX} wants in one request` };
}

const HAVE = encodeUtf8('have ');

function isHave(line: Uint8Array): boolean {
  return HAVE.every((byte, at) => line[at] === byte);
}

/** Reads a whole `have` line. A request holds many, and nobody but upload-pack needs the ids: so none is decoded. */
export function readHave(draft: FetchDraft, line: Uint8Array): FetchRefusal | null {
  if (!isHave(line) || !isObjectId(line, HAVE.length)) {
    const text = decodeUtf8(line);
    if (text === null) return NOT_TEXT;
    return { refused: 'have-malformed', detail: `expected SHA1 object, got '${excerpt(text)}'` };
  }
  draft.haveCount += 1;
  if (draft.haveCount <= FETCH_HAVES_MAX) return null;
  return { refused: 'too-many-haves', detail: `more than ${FETCH_HAVES_MAX} haves in one request` };
}

/** Whether the bytes from `start` to the end are an id, as `parseObjectId` has it. */
function isObjectId(bytes: Uint8Array, start: number): boolean {
  if (bytes.length !== start + OBJECT_ID_DIGITS) return false;
  for (let at = start; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    const isDigit = byte >= 0x30 && byte <= 0x39;
    if (!isDigit && (byte < 0x61 || byte > 0x66)) return false;
  }
  return true;
}

/** Reads a `shallow`, `deepen…` or `filter` line; refuses any other. */
export function readBoundary(draft: FetchDraft, line: string): FetchRefusal | null {
  const space = line.indexOf(' ');
  const value = line.slice(space + 1);
  switch (line.slice(0, Math.max(space, 0))) {
    case 'shallow':
      return readShallow(draft, value);
    case 'deepen':
      draft.depth = decimal(value, DEPTH_OF_ALL);
      return draft.depth === null ? deepenMalformed(line) : null;
    case 'deepen-since':
      // Since the epoch means all commits, to git as well.
      draft.sinceSeconds = value === '0' ? 0 : decimal(value, Number.MAX_SAFE_INTEGER);
      return draft.sinceSeconds === null ? deepenMalformed(line) : null;
    case 'deepen-not':
      return readDeepenNot(draft, value, line);
    case 'filter':
      return readFilter(draft, value);
    default:
      return { refused: 'argument-unknown', detail: `unexpected line: '${excerpt(line)}'` };
  }
}

function readShallow(draft: FetchDraft, value: string): FetchRefusal | null {
  const id = parseObjectId(value);
  if (id === null) return { refused: 'shallow-malformed', detail: `invalid shallow line: '${excerpt(value)}'` };
  draft.shallow.add(id);
  if (draft.shallow.size <= SHALLOW_LINES_MAX) return null;
  return { refused: 'too-many-shallow-lines', detail: `more than ${SHALLOW_LINES_MAX} shallow lines` };
}

function readDeepenNot(draft: FetchDraft, value: string, line: string): FetchRefusal | null {
  // The name of a ref. upload-pack resolves it among the refs that this client may see, so here only its form matters.
  if (value === '' || utf8Length(value) > REF_NAME_BYTES_MAX || /\p{Cc}/u.test(value)) return deepenMalformed(line);
  draft.deepenNot.push(value);
  if (draft.deepenNot.length <= FETCH_DEEPEN_NOT_MAX) return null;
  return { refused: 'too-many-deepen-not-lines', detail: `more than ${FETCH_DEEPEN_NOT_MAX} deepen-not lines` };
}

function readFilter(draft: FetchDraft, value: string): FetchRefusal | null {
  if (draft.flags.filter !== null) {
    return { refused: 'filter-repeated', detail: 'multiple filter-specs cannot be combined' };
  }
  const filter = parseObjectFilter(value);
  if ('refused' in filter) return filter;
  draft.flags.filter = filter;
  return null;
}

/** Returns the complete request, or a refusal if its lines contradict each other. */
export function finishFetch(draft: FetchDraft, version: 0 | 1 | 2): FetchRequest | FetchRefusal {
  const limited = draft.sinceSeconds !== null || draft.deepenNot.length > 0;
  if (draft.depth !== null && limited) {
    const detail = 'deepen and deepen-since (or deepen-not) cannot be used together';
    return { refused: 'deepen-conflict', detail };
  }
  let deepen: Deepening | null = null;
  if (draft.depth !== null) deepen = { kind: 'depth', commits: draft.depth, relative: draft.relative };
  else if (limited) deepen = { kind: 'limits', sinceSeconds: draft.sinceSeconds, not: draft.deepenNot };
  const { wants, haveCount, shallow } = draft;
  return { version, wants: [...wants], haveCount, shallow: [...shallow], deepen, ...draft.flags };
}

/** Parses a positive integer in plain decimal digits, which git reads in the same way; null for any other text. */
function decimal(text: string, max: number): number | null {
  const value = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN;
  return value <= max ? value : null;
}

function deepenMalformed(line: string): FetchRefusal {
  return { refused: 'deepen-malformed', detail: `Invalid deepen: ${excerpt(line)}` };
}

export const NOT_TEXT: FetchRefusal = { refused: 'argument-unknown', detail: 'a line is not valid UTF-8' };
