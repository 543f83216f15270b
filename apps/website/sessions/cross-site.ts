/**
 * Refuses forms that another site sent.
 *
 * Invariants: the check is made before a form's body is read. It stands beside the token of each form, since some
 * browsers send neither header.
 */

export interface Sender {
  readonly origin: string | undefined;
  readonly fetchSite: string | undefined;
  readonly host: string | undefined;
}

/**
 * Returns whether the headers say that another site sent the request. The browser's own `Host` counts as this site
 * besides `webUrl`, so that a service is usable under every name that leads to it.
 */
export function isCrossSite({ origin, fetchSite, host }: Sender, webUrl: string): boolean {
  if (fetchSite !== undefined && fetchSite !== 'same-origin' && fetchSite !== 'none') return true;
  if (origin === undefined) return false;
  const sent = URL.parse(origin);
  // A sandboxed frame, a file or a redirect from another site sends `null`.
  if (sent === null || (sent.protocol !== 'http:' && sent.protocol !== 'https:')) return true;
  return sent.host !== URL.parse(webUrl)?.host && sent.host !== host?.toLowerCase();
}

/** A form that another site sent. */
export class CrossSiteForm extends Error {
  override readonly name = 'CrossSiteForm';
}
