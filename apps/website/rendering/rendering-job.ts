/** What a rendering thread is asked to do, and what it answers: plain data, which is copied from thread to thread. */
import type { ChangedText } from './changed-words.ts';
import type { Runs } from './runs.ts';

/** Where a Markdown text stands in its repository, so that its relative links lead into the repository's pages. */
export interface MarkdownPlace {
  /** The address of the page of files at the text's commit or ref, such as `/ada/engine/blob/main`. */
  readonly blobs: string;
  /** The address of raw bytes there, such as `/ada/engine/raw/main`. */
  readonly raw: string;
  /** The folder of the text, percent-encoded, such as `docs/guide`; empty for the root. */
  readonly folder: string;
  /** What follows the path of each address, such as `?at=20261103T140200Z`. */
  readonly query?: string;
}

export type RenderingJob =
  | { readonly kind: 'markdown'; readonly text: string; readonly place: MarkdownPlace }
  | { readonly kind: 'colours'; readonly text: string; readonly language: string }
  | { readonly kind: 'changes'; readonly files: readonly ChangedText[] };

/** Markup, or the colours of a text. */
export type Rendered = string | Runs;

export type ThreadMessage =
  /** The thread has loaded its libraries. */
  | { readonly ready: true }
  | { readonly rendered: Rendered }
  /** The library threw. */
  | { readonly failed: true };
