/**
 * Searches of one repository's files, by native git: their paths, and their lines.
 *
 * Invariants: each call is bounded in processor time, memory and time, and ends with the request that it serves. Few
 * run at the same time, and none takes a slot of those that fetches and pushes share. At a bound a call throws
 * `reading-too-costly`, or `object-too-large` where git cannot hold a file in its memory; what it yielded before is
 * right.
 */
import type { ObjectId } from '../kernel/ids.ts';
import type { Bounded } from './object-history.ts';

export interface WantedLines {
  /** In one line, and without NUL. */
  readonly text: string;
  /** Whether it is an expression of PCRE (pcre2pattern(3)), which `regexFault` has found no fault with. */
  readonly isRegex: boolean;
  /** Paths of files of the tree that are not looked into. */
  readonly without: readonly Uint8Array[];
}

/** Why an expression cannot be searched for: this git knows none, or what PCRE says of it. */
export type RegexFault = { readonly kind: 'unavailable' } | { readonly kind: 'invalid'; readonly reason: string };

export interface ObjectSearch {
  /**
   * Streams the paths of all files, links and submodules below a tree. The bytes are those of `git ls-tree -r -z`
   * (core/git/file-list.ts), or with `sizes` of `git ls-tree -r -l -z`.
   */
  files(tree: ObjectId, options: { readonly sizes: boolean }, bounded: Bounded): AsyncIterable<Uint8Array>;
  /**
   * Streams the lines of the files below a tree, or of a blob, that match, with those around them. Links and files that
   * git takes for binary are left out. The bytes are those of `git grep -z -n --column` (core/git/grep-lines.ts).
   */
  lines(root: ObjectId, wanted: WantedLines, bounded: Bounded): AsyncIterable<Uint8Array>;
  /** Returns whether git takes a blob for binary, as it does for one with NUL at its beginning. */
  isBinary(blob: ObjectId, bounded: Bounded): Promise<boolean>;
  /** Returns null for an expression that can be searched for. */
  regexFault(regex: string, bounded: Bounded): Promise<RegexFault | null>;
}
