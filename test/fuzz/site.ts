/** The website as a signed-in person finds it: its pages by following links, and its forms with their fields. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { SiteBrowser } from '../support/form-browser.ts';
import type { Draft } from './heads.ts';
import type { Making, Site, SiteForm } from './making.ts';
import { hostileText, mutateText } from './mutations.ts';

export const NO_SITE: Site = { cookie: '', pages: [], forms: [] };
const PAGES_MAX = 150;
/** Forms that would end the session or close the account, when they are sent as they are. */
const ENDING = /^\/(sign-out|settings\/(sessions|delete|password))|\/delete$|\/revoke/;
const WRONG_PASSWORD = 'not the password';

/** Visits pages from the account's own on, one of each kind. */
export async function crawl(browser: SiteBrowser, username: string): Promise<Site> {
  const waiting = [`/${username}`, '/', '/new', '/settings', '/access-tokens', '/webhooks', '/storage-buckets'];
  const seen = new Set<string>();
  const pages: string[] = [];
  const forms = new Map<string, SiteForm>();
  for (let path = waiting.shift(); path !== undefined && pages.length < PAGES_MAX; path = waiting.shift()) {
    const kind = path.replaceAll(/[0-9a-f]{40}|[0-9a-f-]{36}|\d+/g, '*');
    if (seen.has(kind) || path.startsWith('/assets/')) continue;
    seen.add(kind);
    const { status, html, location } = await browser.get(path);
    if (location?.startsWith('/') === true) waiting.push(location);
    if (status !== 200) continue;
    pages.push(path);
    for (const form of formsOf(html, path))
      forms.set(`${form.action} ${form.fields.map(([name]) => name).join(' ')}`, form);
    for (const [, href = ''] of html.matchAll(/href="(\/[^"#]*)/g)) waiting.push(unescaped(href));
    await sleep(0);
  }
  return { cookie: cookieOf(browser), pages, forms: [...forms.values()] };
}

export function cookieOf({ cookies }: SiteBrowser): string {
  return [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
}

/** The same pages and forms for another account, whose name and ids stand for those of the first. */
export function siteOf(site: Site, names: ReadonlyMap<string, string>, cookie: string, csrf: string): Site {
  const renamed = (text: string): string =>
    names.entries().reduce((left, [from, to]) => left.replaceAll(from, to), text);
  return {
    cookie,
    pages: site.pages.map(renamed),
    forms: site.forms.map(({ action, fields }) => ({
      action: renamed(action),
      fields: fields.map(([name, value]) => [name, name === '_csrf' ? csrf : renamed(value)]),
    })),
  };
}

function formsOf(html: string, path: string): readonly SiteForm[] {
  return [...html.matchAll(/<form[^>]*method="post"[^>]*>(.*?)<\/form>/gis)].map(([whole, content = '']) => {
    const action = unescaped(/<form[^>]*action="([^"]*)"/i.exec(whole)?.[1] ?? '');
    const fields = [...content.matchAll(/<(?:input|select|textarea|button)[^>]*name="([^"]+)"[^>]*>/gi)].map(
      ([tag, name = '']): readonly [string, string] => [
        unescaped(name),
        unescaped(/value="([^"]*)"/i.exec(tag)?.[1] ?? ''),
      ],
    );
    return { action: action === '' ? path : action, fields };
  });
}

function unescaped(text: string): string {
  return text
    .replaceAll('&#39;', "'")
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');
}

/** Somebody opens a page. */
export function pageInput({ dice, account, isMutated }: Making): Draft {
  const page = dice.pick(account.site.pages);
  const query = isMutated && dice.chance(0.5) ? `${page.includes('?') ? '&' : '?'}${asQuery(hostileText(dice))}` : '';
  const target = isMutated && dice.chance(0.4) ? `/${asPath(mutateText(dice, page.slice(1)))}` : page;
  return { method: 'GET', target: target + query, headers: [['Cookie', account.site.cookie]], body: null };
}

function asPath(text: string): string {
  return encodeURI(text.toWellFormed()).replaceAll(/[\s\0]/g, '%00');
}

function asQuery(text: string): string {
  const value = encodeURIComponent(text.toWellFormed());
  return `page=${value}&ref=${value}&path=${value}&at=${value}&after=${value}`;
}

/** Somebody sends a form. */
export function formInput({ dice, account, isMutated }: Making): Draft {
  const { forms, cookie } = account.site;
  const form = dice.pick(forms);
  const pairs = form.fields.map(([name, value]): [string, string] => [
    name,
    value !== '' ? value : valueOf(name, dice.below(50)),
  ]);
  // The account must still be usable for the next input.
  const spoiled = ENDING.test(form.action) && !dice.chance(0.01);
  const csrf = pairs.find(([name]) => name === '_csrf');
  if (spoiled && csrf !== undefined) csrf[1] = `${csrf[1].slice(0, -1)}!`;
  if (isMutated) {
    for (const pair of pairs) if (pair[0] !== '_csrf' && dice.chance(0.4)) pair[1] = mutateText(dice, pair[1]);
    if (dice.chance(0.2)) pairs.splice(dice.below(pairs.length), 1);
    if (dice.chance(0.2)) pairs.push([hostileText(dice), hostileText(dice)]);
    if (pairs.length > 0 && dice.chance(0.2)) pairs.push(dice.pick(pairs));
  }
  const body = Buffer.from(new URLSearchParams(pairs).toString());
  const headers: Draft['headers'] = [
    ['Cookie', cookie],
    ['Content-Type', 'application/x-www-form-urlencoded'],
    ['Sec-Fetch-Site', 'same-origin'],
  ];
  return { method: 'POST', target: form.action, headers, body };
}

function valueOf(name: string, n: number): string {
  if (/password/.test(name)) return WRONG_PASSWORD;
  if (/url|endpoint|issuer/.test(name)) return 'https://127.0.0.1:9/hook';
  if (/email/.test(name)) return `made-${n}@example.org`;
  return `made-${n}`;
}
