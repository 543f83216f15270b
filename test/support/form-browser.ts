/**
 * A browser without scripts and without a window: keeps cookies, reads pages and sends their forms as a browser does.
 * Its requests go over a socket (site-browser.ts, person.ts) or are injected (website.ts).
 *
 * Invariants: a path is sent as it is, without normalisation, so that tests can attack with it.
 */

/** What carries the requests of a browser to the website. */
export type Carrier = (request: {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
}) => Promise<{
  readonly status: number;
  readonly headers: Readonly<Record<string, number | string | readonly string[] | undefined>>;
  readonly bytes: Buffer;
}>;

export interface SitePage {
  readonly status: number;
  /** The last value of each; all cookies are in `setCookies`. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly html: string;
  readonly bytes: Buffer;
  /** The Location header; null without one. */
  readonly location: string | null;
  /** The cookies that the answer set, as whole headers. */
  readonly setCookies: readonly string[];
}

export type FormValues = Readonly<Record<string, string | readonly string[]>>;

/** A form that is sent in parts, with the files of its fields. */
export interface SentInParts {
  readonly fields: FormValues;
  readonly files?: readonly { readonly field: string; readonly name: string; readonly bytes: Uint8Array }[];
}

export interface SiteBrowser {
  /** By name. */
  readonly cookies: Map<string, string>;
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<SitePage>;
  /** Opens the page `on`, takes the token of its forms, and sends the fields to `path` as its form does. */
  submit(path: string, fields?: FormValues, on?: string): Promise<SitePage>;
  /** Does what `submit` does with a form that is sent in parts. */
  submitParts(path: string, sent: SentInParts, on?: string): Promise<SitePage>;
  /** Sends a form exactly as given: no token and no headers are added. */
  post(path: string, fields: FormValues, headers?: Readonly<Record<string, string>>): Promise<SitePage>;
  /** Follows redirects from a page to the one that they end at. */
  follow(page: SitePage): Promise<SitePage>;
}

/** Makes a browser of the website at an origin, with cookies that it may share with browsers of other nodes. */
export function createSiteBrowser(
  origin: string,
  carry: Carrier,
  cookies: Map<string, string> = new Map(),
): SiteBrowser {
  const visit = async (
    method: 'GET' | 'POST',
    path: string,
    more: Readonly<Record<string, string>>,
    body: string | Uint8Array | null,
  ): Promise<SitePage> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { host: new URL(origin).host, ...(cookie === '' ? {} : { cookie }), ...more };
    const answer = await carry({ method, path, headers, body });
    const received = Object.fromEntries(Object.entries(answer.headers).map(([name, value]) => [name, lastOf(value)]));
    const setCookies = [answer.headers['set-cookie'] ?? []].flat().map(String);
    for (const header of setCookies) keepCookie(cookies, header);
    const { status, bytes } = answer;
    const location = received['location'] ?? null;
    return { status, headers: received, html: bytes.toString('utf8'), bytes, location, setCookies };
  };
  const browser: SiteBrowser = {
    cookies,
    get: (path, headers = {}) => visit('GET', path, headers, null),
    post: (path, fields, headers = {}) =>
      visit('POST', path, { 'content-type': 'application/x-www-form-urlencoded', ...headers }, encodeForm(fields)),
    submit: async (path, fields = {}, on = path) => {
      const token = csrfTokenOf(await browser.get(on));
      return browser.post(path, { _csrf: token, ...fields }, { origin, 'sec-fetch-site': 'same-origin' });
    },
    submitParts: async (path, { fields, files = [] }, on = path) => {
      const token = csrfTokenOf(await browser.get(on));
      const form = new FormData();
      const pairs = Object.entries({ _csrf: token, ...fields });
      for (const [name, values] of pairs) for (const value of [values].flat()) form.append(name, value);
      for (const { field, name, bytes } of files) form.append(field, new Blob([Buffer.from(bytes)]), name);
      const encoded = new Response(form);
      const type = encoded.headers.get('content-type') ?? '';
      const headers = { 'content-type': type, origin, 'sec-fetch-site': 'same-origin' };
      return visit('POST', path, headers, new Uint8Array(await encoded.arrayBuffer()));
    },
    follow: async (page) => {
      let reached = page;
      for (let hops = 0; reached.location !== null; hops += 1) {
        if (hops > 5) throw new Error(`Too many redirects, the last to ${reached.location}`);
        reached = await browser.get(reached.location);
      }
      return reached;
    },
  };
  return browser;
}

function lastOf(value: number | string | readonly string[] | undefined): string | undefined {
  const last = typeof value === 'object' ? value.at(-1) : value;
  return last === undefined ? undefined : String(last);
}

function keepCookie(cookies: Map<string, string>, header: string): void {
  const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(header) ?? [];
  const isRemoved = /; *(Max-Age=0|Expires=Thu, 01 Jan 1970)/i.test(header);
  if (isRemoved) cookies.delete(name);
  else cookies.set(name, value);
}

/** Returns the token of the page's forms; throws for a page without one. */
export function csrfTokenOf({ html, status }: SitePage): string {
  const [, token] = /name="_csrf" value="([^"]+)"/.exec(html) ?? [];
  if (token === undefined) throw new Error(`The page has no form; its status is ${status}:\n${html}`);
  return token;
}

function encodeForm(fields: FormValues): string {
  const pairs = Object.entries(fields).flatMap(([name, values]) => [values].flat().map((value) => [name, value]));
  return new URLSearchParams(pairs).toString();
}
