/** A person who uses the website of a real server, by its pages and forms, without a browser. */
import type { Strata } from './strata.ts';

/** A browser that keeps its cookies, whichever node answers. */
export function person() {
  const cookies = new Map<string, string>();
  const send = async (
    strata: Pick<Strata, 'url'>,
    path: string,
    init: Omit<RequestInit, 'headers'> = {},
  ): Promise<Response> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { Cookie: cookie, Origin: strata.url };
    const response = await fetch(strata.url + path, { ...init, headers, redirect: 'manual' });
    for (const header of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(header) ?? [];
      if (value === '') cookies.delete(name);
      else cookies.set(name, value);
    }
    return response;
  };
  const read = async (strata: Pick<Strata, 'url'>, path: string): Promise<string> => {
    const response = await send(strata, path);
    const location = response.headers.get('location');
    return location === null ? response.text() : read(strata, location);
  };
  const submit = async (
    strata: Pick<Strata, 'url'>,
    path: string,
    fields: Readonly<Record<string, string>>,
  ): Promise<Response> => {
    const [, token = ''] = /name="_csrf" value="([^"]+)"/.exec(await read(strata, path)) ?? [];
    return send(strata, path, { method: 'POST', body: new URLSearchParams({ _csrf: token, ...fields }) });
  };
  return { read, submit };
}
