/** What people and their devices read on the pages of second factors. */
import type { JsonObject } from '../../core/kernel/json.ts';
import type { SitePage } from './form-browser.ts';

/** Returns the key that a page shows, as the person types it into an app. */
export function keyIn({ html }: SitePage): string {
  const [, key] = /<code tabindex="0">([A-Z2-7 ]+)<\/code>/.exec(html) ?? [];
  if (key === undefined) throw new Error(`The page shows no key:\n${html}`);
  return key.replaceAll(' ', '');
}

/** Returns what the page's button asks the browser for. */
export function optionsIn({ html }: SitePage): JsonObject {
  const [, options] = /data-options="([^"]+)"/.exec(html) ?? [];
  if (options === undefined) throw new Error(`The page asks for no passkey:\n${html}`);
  const text = options.replace(/&#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)));
  return JSON.parse(text) as JsonObject;
}
