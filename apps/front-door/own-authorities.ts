/** The authorities of the service, as users see them: those of the website and of the API. */

export interface Addresses {
  readonly baseUrl: string;
  readonly webUrl: string;
}

export function ownAuthorities({ baseUrl, webUrl }: Addresses): ReadonlySet<string> {
  return new Set([webUrl, baseUrl].map((url) => new URL(url).host));
}
