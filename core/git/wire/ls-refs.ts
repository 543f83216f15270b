/**
 * `ls-refs`, by which a client of protocol v2 lists refs: gitprotocol-v2(5), "ls-refs".
 *
 * Must stay true: the refs follow HEAD in byte order, and no ref that matches a prefix is missing; the protocol allows
 * more refs than match. The work grows with the number of refs returned, not with prefixes times refs.
 */
import { LS_REFS_PREFIXES_MAX } from '../../kernel/limits.ts';
import type { AdvertisedRef, AdvertisedRefs } from './advertisement.ts';
import { headIdOf } from './advertisement.ts';
import { createLineWriter, type ProtocolRefusal } from './pkt-line.ts';
import { byRefOrder } from '../ref-name.ts';
import { decodeUtf8, decodeUtf8Lossy } from '../utf8.ts';

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

/** Parses the command's arguments: one for each packet, without line feeds. */
export function parseLsRefs(args: readonly Uint8Array[]): LsRefsRequest | ProtocolRefusal<'argument-unknown'> {
  let symrefs = false;
  let peel = false;
  let unborn = false;
  const prefixes = new Set<string>();
  for (const bytes of args) {
    const arg = decodeUtf8(bytes) ?? validPrefix(bytes);
    if (arg === 'symrefs') symrefs = true;
    else if (arg === 'peel') peel = true;
    else if (arg === 'unborn') unborn = true;
    else if (arg.startsWith('ref-prefix ')) prefixes.add(arg.slice('ref-prefix '.length));
    else return { refused: 'argument-unknown', detail: `unexpected line: '${arg}'` };
  }
  return { symrefs, peel, unborn, prefixes: prefixes.size >= LS_REFS_PREFIXES_MAX ? [] : [...prefixes] };
}

/** Cuts a prefix that ends within a character to its whole characters: that may match more refs, which is allowed. */
function validPrefix(bytes: Uint8Array): string {
  const text = decodeUtf8Lossy(bytes);
  return text.slice(0, text.indexOf('\ufffd'));
}

/** Returns the answer's body: HEAD if a prefix matches it, then the refs that match, then a flush. */
export function lsRefsAnswer(refs: AdvertisedRefs, request: LsRefsRequest): Uint8Array {
  const writer = createLineWriter();
  if (request.prefixes.length === 0 || request.prefixes.some((prefix) => 'HEAD'.startsWith(prefix))) {
    const headId = headIdOf(refs);
    const target = request.symrefs ? ` symref-target:${refs.head}` : '';
    if (headId !== null) writer.line(`${headId} HEAD${target}`);
    else if (request.unborn && request.symrefs) writer.line(`unborn HEAD${target}`);
  }
  for (const { from, to } of matchingRanges(refs.refs, request.prefixes)) {
    for (let at = from; at < to; at++) {
      const ref = refs.refs[at];
      if (ref === undefined) continue;
      const peeled = request.peel && ref.peeled !== null ? ` peeled:${ref.peeled}` : '';
      writer.line(`${ref.id} ${ref.name}${peeled}`);
    }
  }
  writer.flush();
  return writer.bytes();
}

interface Range {
  readonly from: number;
  readonly to: number;
}

/** Returns the refs with one of the prefixes, as ordered ranges. The ranges of two prefixes are nested or disjoint. */
function matchingRanges(refs: readonly AdvertisedRef[], prefixes: readonly string[]): readonly Range[] {
  if (prefixes.length === 0) return [{ from: 0, to: refs.length }];
  const ranges: Range[] = [];
  let covered = 0;
  for (const prefix of prefixes.toSorted(byRefOrder)) {
    const from = firstIndex(refs, covered, (name) => byRefOrder(name, prefix) >= 0);
    // If a shorter prefix has covered this one's names, `from` is past them, and the range is empty.
    const to = firstIndex(refs, from, (name) => !name.startsWith(prefix));
    if (to > from) ranges.push({ from, to });
    covered = to;
  }
  return ranges;
}

/** Returns the first index at or after `from` whose name passes. All names after the first that passes must pass. */
function firstIndex(refs: readonly AdvertisedRef[], from: number, passes: (name: string) => boolean): number {
  let low = from;
  let high = refs.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (passes(refs[middle]?.name ?? '')) high = middle;
    else low = middle + 1;
  }
  return low;
}
