/**
 * What a page's handler answers: a page, a redirect after a form, or other content.
 *
 * Invariants: a redirect leads only to a path of this site.
 */
import type { Readable } from 'node:stream';
import type { Html } from './html.ts';

/** The path that a sign-in leads on to; a longer one is left out. */
export const NEXT_PATH_LENGTH_MAX = 2_048;

/** A message on the next page that the person sees. */
export interface Flash {
  readonly kind: 'done' | 'failed';
  readonly text: string;
  /** The path of the page that undoes what was done; null without one. */
  readonly undo: string | null;
}

type Headers = Readonly<Record<string, string>>;

export type SiteAnswer =
  | { readonly kind: 'page'; readonly status: number; readonly headers: Headers; readonly html: Html }
  | { readonly kind: 'redirect'; readonly status: 301 | 303; readonly path: string; readonly flash: Flash | null }
  | {
      readonly kind: 'content';
      readonly status: number;
      readonly headers: Headers;
      readonly body: Content;
      /** The memory that a stream holds until it is read; by default none. */
      readonly heldBytes?: number;
    };

type Content = Buffer | string | Readable;

export function showPage(html: Html, status = 200, headers: Headers = {}): SiteAnswer {
  return { kind: 'page', status, headers, html };
}

/** Sends the person on with 303. `path` is percent-encoded. `text` is shown once on the page that they reach. */
export function redirectTo(path: string, text: string | null = null, kind: Flash['kind'] = 'done'): SiteAnswer {
  return leadTo(path, text === null ? null : { kind, text, undo: null });
}

/** Does what `redirectTo` does, with a link in the message to the page that undoes it. */
export function redirectWithUndo(path: string, text: string, undo: string): SiteAnswer {
  return leadTo(path, { kind: 'done', text, undo });
}

function leadTo(path: string, flash: Flash | null): SiteAnswer {
  if (localPath(path) !== path) throw new TypeError('A redirect leaves the site');
  return { kind: 'redirect', status: 303, path, flash };
}

/** Sends the person from an old address of a page to its new one; null if the path leaves the site. */
export function movedTo(path: string): SiteAnswer | null {
  return localPath(path) === path ? { kind: 'redirect', status: 301, path, flash: null } : null;
}

/** Answers something other than a page, such as a raw file. Its headers name its type and its own policy. */
export function showContent(body: Content, headers: Headers, status = 200, heldBytes = 0): SiteAnswer {
  return { kind: 'content', status, headers, body, heldBytes };
}

const ANY_ORIGIN = 'http://site.invalid';

/**
 * Returns the path, query and fragment of a text that names a place of this site; null for any other text. Browsers
 * take `//host`, `/\host` and paths with tabs or line ends for other hosts.
 */
export function localPath(text: string): string | null {
  if (!/^\/(?![/\\])[\x21-\x7e]*$/.test(text)) return null;
  const url = URL.parse(text, ANY_ORIGIN);
  if (url === null || url.origin !== ANY_ORIGIN) return null;
  // `/.//host` resolves to the path `//host`.
  return url.pathname.startsWith('//') ? null : text;
}

/** Returns the place that a sign-in may lead on to: as `localPath`, and null for a text that is too long to pass on. */
export function nextPath(text: string): string | null {
  return text.length > NEXT_PATH_LENGTH_MAX ? null : localPath(text);
}
