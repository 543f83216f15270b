/** A person who uses the website of a service of several nodes, without a browser's window. */
import type { FormValues, SitePage } from './form-browser.ts';
import { browserOf } from './site-browser.ts';
import type { Strata } from './strata.ts';

export interface Person {
  /** Returns the page at the end of the redirects, as HTML. */
  read(strata: Pick<Strata, 'url'>, path: string): Promise<string>;
  /** Opens the page `on`, and sends the fields to `path` as its form does. */
  submit(strata: Pick<Strata, 'url'>, path: string, fields?: FormValues, on?: string): Promise<SitePage>;
}

/** Keeps its cookies, whichever node answers. */
export function person(): Person {
  const cookies = new Map<string, string>();
  return {
    read: async ({ url }, path) => {
      const browser = browserOf(url, cookies);
      return (await browser.follow(await browser.get(path))).html;
    },
    submit: ({ url }, path, fields, on) => browserOf(url, cookies).submit(path, fields, on),
  };
}
