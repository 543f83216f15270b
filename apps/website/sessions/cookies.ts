/**
 * The cookies of the website.
 *
 * Invariants: no script reads a cookie. On HTTPS every name begins with `__Host-`, so that neither a sibling host
 * nor a plain-HTTP answer can set it. Browsers refuse that prefix without HTTPS, so a service on plain HTTP has none.
 */

export interface CookieNames {
  readonly session: string;
  readonly form: string;
  readonly flash: string;
  /** Proves that the browser has signed in to an account before, for the rate limits of sign-ins. */
  readonly browser: string;
}

export interface Cookies {
  readonly names: CookieNames;
  readonly secure: boolean;
  readonly attributes: {
    readonly path: '/';
    readonly httpOnly: true;
    readonly secure: boolean;
    readonly sameSite: 'lax';
  };
}

export function cookiesFor(webUrl: string): Cookies {
  const secure = webUrl.startsWith('https:');
  const prefix = secure ? '__Host-strata_' : 'strata_';
  return {
    names: {
      session: `${prefix}session`,
      form: `${prefix}form`,
      flash: `${prefix}flash`,
      browser: `${prefix}browser`,
    },
    secure,
    attributes: { path: '/', httpOnly: true, secure, sameSite: 'lax' },
  };
}
