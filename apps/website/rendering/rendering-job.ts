/** What a rendering thread is asked to do, and what it answers: plain data, which is copied from thread to thread. */

import type { LineWindow } from './line-window.ts';

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
  | ({ readonly kind: 'code' } & CodeJob);

export interface CodeJob {
  readonly text: string;
  /** Null: without colours. */
  readonly language: string | null;
  /** The first line wanted, counted from 1, and how many bytes of markup may follow. */
  readonly from: number;
  readonly bytesMax: number;
}

/** Some lines of a text, each as markup of its own. */
export interface CodeLines extends LineWindow {
  readonly lines: readonly string[];
}

export type Rendered = string | CodeLines;

export type ThreadMessage =
  /** The thread has loaded its libraries. */
  | { readonly ready: true }
  | { readonly rendered: Rendered }
  /** The library threw. */
  | { readonly failed: true };
