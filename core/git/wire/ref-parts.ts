/**
 * An answer about refs as its parts, which are written while the client reads: a repository may have a hundred thousand
 * refs, or names of 4 KB, and many clients may read at the same time.
 *
 * Invariants: the pieces in their order are the answer, and each is small, whatever the refs are. What a run is written
 * as depends on the run and the form alone, so it can be kept.
 */
import { OBJECT_ID_DIGITS, type ObjectId } from '../../kernel/ids.ts';
import { concatBytes, createLineWriter } from './pkt-line.ts';

/** A ref as clients see it. `peeled` is the object that an annotated tag peels to, null for any other ref. */
export interface AdvertisedRef {
  readonly name: string;
  readonly id: ObjectId;
  readonly peeled: ObjectId | null;
}

/** Some of the refs, in byte order of names. */
export type AdvertisedRun = readonly AdvertisedRef[];

/** Writes the lines of a ref. */
export type WriteRef = (ref: AdvertisedRef, line: (text: string) => void) => void;

/** What is written already, or refs that are still to be written. */
export type RefPart = Uint8Array | RefsPart;

interface RefsPart {
  readonly refs: AdvertisedRun;
  /** The name of what `write` writes, if these are all refs of a run; else null. */
  readonly form: string | null;
  readonly write: WriteRef;
}

/** What was written of whole runs before. */
export interface KeptRuns {
  get(run: AdvertisedRun, form: string): Uint8Array | undefined;
  set(run: AdvertisedRun, form: string, bytes: Uint8Array): void;
}

export const NOTHING_KEPT: KeptRuns = { get: () => undefined, set: () => undefined };

/**
 * UTF-16 code units of a piece, to which one line may be added. A run of ordinary names is one piece. Internal: the
 * pieces together are the same bytes.
 */
const PIECE_LENGTH_MAX = 96 * 1024;
/**
 * A line has at least an id, a space, a name, and what frames it: four digits of its length, and a line feed. Internal:
 * it is the form in which the server writes.
 */
const LINE_BYTES_MIN = OBJECT_ID_DIGITS + '0000 x\n'.length;

export interface RefParts {
  line(text: string): void;
  flush(): void;
  refs(refs: AdvertisedRun, write: WriteRef): void;
  /** The same for all refs of a run. */
  run(run: AdvertisedRun, form: string, write: WriteRef): void;
  /** Returns all parts. */
  end(): readonly RefPart[];
}

export function createRefParts(): RefParts {
  const parts: RefPart[] = [];
  let lines = createLineWriter();
  const endLines = (): void => {
    const bytes = lines.bytes();
    if (bytes.length > 0) parts.push(bytes);
    lines = createLineWriter();
  };
  const add = (part: RefsPart): void => {
    if (part.refs.length === 0) return;
    endLines();
    parts.push(part);
  };
  return {
    line: (text) => lines.line(text),
    flush: () => lines.flush(),
    refs: (refs, write) => add({ refs, form: null, write }),
    run: (refs, form, write) => add({ refs, form, write }),
    end() {
      endLines();
      return parts;
    },
  };
}

/** Writes the parts, each piece when it is asked for. */
export function* piecesOf(parts: readonly RefPart[], kept: KeptRuns = NOTHING_KEPT): Generator<Uint8Array, void> {
  for (const part of parts) {
    if (part instanceof Uint8Array) {
      yield part;
      continue;
    }
    const known = part.form === null ? undefined : kept.get(part.refs, part.form);
    if (known === undefined) yield* written(part, kept);
    else yield known;
  }
}

function* written({ refs, form, write }: RefsPart, kept: KeptRuns): Generator<Uint8Array, void> {
  let lines = createLineWriter();
  let length = 0;
  let isWhole = true;
  const line = (text: string): void => {
    length += text.length;
    lines.line(text);
  };
  for (const ref of refs) {
    if (length >= PIECE_LENGTH_MAX) {
      yield lines.bytes();
      lines = createLineWriter();
      length = 0;
      isWhole = false;
    }
    write(ref, line);
  }
  const bytes = lines.bytes();
  if (isWhole && form !== null) kept.set(refs, form, bytes);
  yield bytes;
}

/** Returns the whole answer; null if it is longer than `bytesMax`. */
export function wholeAnswer(
  parts: readonly RefPart[],
  bytesMax: number,
  kept: KeptRuns = NOTHING_KEPT,
): Uint8Array | null {
  let refs = 0;
  for (const part of parts) if (!(part instanceof Uint8Array)) refs += part.refs.length;
  if (refs * LINE_BYTES_MIN > bytesMax) return null;
  const pieces: Uint8Array[] = [];
  let length = 0;
  for (const piece of piecesOf(parts, kept)) {
    length += piece.length;
    if (length > bytesMax) return null;
    pieces.push(piece);
  }
  return concatBytes(pieces);
}
