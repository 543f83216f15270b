/**
 * `ls-refs`, by which a client of protocol v2 lists refs: gitprotocol-v2(5), "ls-refs".
 *
 * Invariants: the refs follow HEAD in byte order, and no ref that matches a prefix is missing; the protocol allows
 * more refs than match. The work grows with the number of refs returned, not with prefixes times refs.
 */
import { MIB } from '../../kernel/byte-units.ts';
import { byRefOrder } from '../ref-name.ts';
import { decodeUtf8, decodeUtf8Lossy } from '../utf8.ts';
import { type AdvertisedRefs, firstPlace, headIdOf, type RefPlace } from './advertisement.ts';
import type { CommandArguments, ProtocolRefusal } from './pkt-line.ts';
import { type AdvertisedRun, createRefParts, type RefPart, type RefParts, type WriteRef } from './ref-parts.ts';
import { excerpt } from './safe-line.ts';

/**
 * From this many prefixes on, or this length of them in UTF-16 code units, ls-refs returns every ref, as git does from
 * 65,536 on: each prefix is searched for.
 */
export const LS_REFS_PREFIXES_MAX = 4_096;
export const LS_REFS_PREFIXES_LENGTH_MAX = MIB;
/** Lines with a prefix: git sends six for each ref that is fetched by a short name. */
export const LS_REFS_PREFIX_LINES_MAX = 131_072;

export interface LsRefsRequest {
  /** Name the branch that HEAD points to. */
  readonly symrefs: boolean;
  /** Add the peeled ids of annotated tags. */
  readonly peel: boolean;
  /** With `symrefs`: name the branch that HEAD points to even if it does not exist. */
  readonly unborn: boolean;
  /** Return only refs that start with one of these; all refs if empty. */
  readonly prefixes: readonly string[];
}

export type LsRefsRefusal = ProtocolRefusal<'argument-unknown' | 'too-many-ref-prefixes'>;

/** Reads the command's arguments. */
export function createLsRefsArguments(): CommandArguments<LsRefsRequest, LsRefsRefusal> {
  const flags = { symrefs: false, peel: false, unborn: false };
  const prefixes = new Set<string>();
  let prefixCount = 0;
  let prefixLength = 0;
  let areAllRefsWanted = false;
  const addPrefix = (prefix: string): LsRefsRefusal | null => {
    prefixCount += 1;
    if (prefixCount > LS_REFS_PREFIX_LINES_MAX) {
      const detail = `more than ${LS_REFS_PREFIX_LINES_MAX} ref-prefix lines`;
      return { refused: 'too-many-ref-prefixes', detail };
    }
    prefixes.add(prefix);
    prefixLength += prefix.length;
    if (prefixes.size >= LS_REFS_PREFIXES_MAX || prefixLength > LS_REFS_PREFIXES_LENGTH_MAX) areAllRefsWanted = true;
    if (areAllRefsWanted) prefixes.clear();
    return null;
  };
  return {
    read(bytes) {
      const arg = decodeUtf8(bytes) ?? validPrefix(bytes);
      if (arg.startsWith('ref-prefix ')) return addPrefix(arg.slice('ref-prefix '.length));
      if (arg !== 'symrefs' && arg !== 'peel' && arg !== 'unborn') {
        return { refused: 'argument-unknown', detail: `unexpected line: '${excerpt(arg)}'` };
      }
      flags[arg] = true;
      return null;
    },
    end: () => ({ ...flags, prefixes: [...prefixes] }),
  };
}

/** Cuts a prefix that ends within a character to its whole characters: that may match more refs, which is allowed. */
function validPrefix(bytes: Uint8Array): string {
  const text = decodeUtf8Lossy(bytes);
  return text.slice(0, text.indexOf('\ufffd'));
}

/** Returns the answer's body: HEAD if a prefix matches it, then the refs that match, then a flush. */
export function lsRefsAnswer(refs: AdvertisedRefs, request: LsRefsRequest): readonly RefPart[] {
  const parts = createRefParts();
  const lines = request.peel ? WITH_PEELED : PLAIN;
  if (request.prefixes.length === 0 || request.prefixes.some((prefix) => 'HEAD'.startsWith(prefix))) {
    const headId = headIdOf(refs);
    const target = request.symrefs ? ` symref-target:${refs.head}` : '';
    if (headId !== null) parts.line(`${headId} HEAD${target}`);
    else if (request.unborn && request.symrefs) parts.line(`unborn HEAD${target}`);
  }
  for (const range of matchingRanges(refs.runs, request.prefixes)) addRange(parts, refs.runs, range, lines);
  parts.flush();
  return parts.end();
}

const PLAIN: Lines = { form: 'ls-refs', write: ({ id, name }, line) => line(`${id} ${name}`) };
const WITH_PEELED: Lines = {
  form: 'ls-refs peel',
  write: ({ id, name, peeled }, line) => line(`${id} ${name}${peeled === null ? '' : ` peeled:${peeled}`}`),
};

/** How a ref is written, and the name of that form. */
interface Lines {
  readonly form: string;
  readonly write: WriteRef;
}

interface Range {
  readonly from: RefPlace;
  readonly to: RefPlace;
}

/** Returns the refs with one of the prefixes, as ordered ranges. The ranges of two prefixes are nested or disjoint. */
function matchingRanges(runs: readonly AdvertisedRun[], prefixes: readonly string[]): readonly Range[] {
  if (prefixes.length === 0) return [{ from: { run: 0, ref: 0 }, to: { run: runs.length, ref: 0 } }];
  const ranges: Range[] = [];
  let covered: RefPlace = { run: 0, ref: 0 };
  for (const prefix of prefixes.toSorted(byRefOrder)) {
    const from = firstPlace(runs, (name) => byRefOrder(name, prefix) >= 0);
    // A shorter prefix has covered this one's names.
    if (isBefore(from, covered)) continue;
    const to = firstPlace(runs, (name) => byRefOrder(name, prefix) >= 0 && !name.startsWith(prefix));
    if (isBefore(from, to)) ranges.push({ from, to });
    covered = to;
  }
  return ranges;
}

function isBefore(a: RefPlace, b: RefPlace): boolean {
  return a.run < b.run || (a.run === b.run && a.ref < b.ref);
}

function addRange(parts: RefParts, runs: readonly AdvertisedRun[], { from, to }: Range, { form, write }: Lines): void {
  for (let at = from.run; at <= to.run; at += 1) {
    const run = runs[at] ?? [];
    const start = at === from.run ? from.ref : 0;
    const end = at === to.run ? to.ref : run.length;
    if (end - start === run.length) parts.run(run, form, write);
    else parts.refs(run.slice(start, end), write);
  }
}
