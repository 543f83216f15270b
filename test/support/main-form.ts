/** What a person reads on a page of the website, and the form that fills it, as a browser would send it unchanged. */
import type { SitePage } from './form-browser.ts';

const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"' };

/** Decodes the references that pages escape texts by. */
export function decodedText(markup: string): string {
  return markup.replaceAll(/&(?:#(\d+)|(\w+));/g, (reference, code: string | undefined, name = '') =>
    code === undefined ? (NAMED[name] ?? reference) : String.fromCodePoint(Number(code)),
  );
}

export function visibleText({ html }: SitePage): string {
  return decodedText(html.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' '));
}

export function mainForm({ html }: SitePage): Record<string, string> {
  const [form = ''] = /<form class="stack"[^]*?<\/form>/.exec(html) ?? [];
  const hidden = form.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g);
  const areas = form.matchAll(/<textarea id="[^"]*" name="([^"]*)"[^>]*>\n([^<]*)<\/textarea>/g);
  const inputs = form.matchAll(/<input id="[^"]*" name="([^"]*)" type="text" value="([^"]*)"/g);
  const chosen = form.matchAll(/<input type="radio" name="([^"]*)" value="([^"]*)" checked>/g);
  const found = [...hidden, ...inputs, ...areas, ...chosen];
  const fields = found.map(([, name = '', value = '']) => [name, decodedText(value)] as const);
  return Object.fromEntries(fields.filter(([name]) => name !== '_csrf'));
}
