/**
 * Refuses forms that another site sent, as CrossOriginProtection of Go's net/http does.
 *
 * Invariants: the check is made before a form's body is read. It stands beside the token of each form, which decides
 * where the headers do not name another site.
 */

export interface Sender {
  readonly origin: string | undefined;
  readonly fetchSite: string | undefined;
  readonly host: string | undefined;
}

/**
 * Returns whether the headers say that another site sent the request. Where the browser says it by Sec-Fetch-Site, the
 * Origin does not count: a proxy that adds `Referrer-Policy: no-referrer` makes it `null` for forms of this site too
 * (Fetch, "append a request Origin header"). Browsers send Sec-Fetch-Site to https and localhost alone (W3C Fetch
 * Metadata). Elsewhere the browser's own `Host` counts as this site besides `webUrl`, so that a service is usable under
 * every name that leads to it, and `null` says nothing.
 */
export function isCrossSite({ origin, fetchSite, host }: Sender, webUrl: string): boolean {
  if (fetchSite !== undefined) return fetchSite !== 'same-origin' && fetchSite !== 'none';
  if (origin === undefined || origin === 'null') return false;
  const sent = URL.parse(origin);
  if (sent === null || (sent.protocol !== 'http:' && sent.protocol !== 'https:')) return true;
  return sent.host !== URL.parse(webUrl)?.host && sent.host !== host?.toLowerCase();
}

/** A form that another site sent. */
export class CrossSiteForm extends Error {
  override readonly name = 'CrossSiteForm';
}
