/**
 * Values of options that several commands take. The parser has checked choices already; these give them their types.
 */
import type { AccessToken, Webhook } from '../client/operations.ts';
import type { Given } from '../session/context.ts';
import { usageFailure } from '../session/failure.ts';

export function parseGrants(list: readonly string[] | undefined): AccessToken['grants'] | undefined {
  return list as AccessToken['grants'] | undefined;
}

export function parseScope(text: string | undefined): AccessToken['scope'] | undefined {
  return text as AccessToken['scope'] | undefined;
}

type Selection =
  | { readonly scope: 'ALL_REPO'; readonly repository_ids: readonly string[] }
  | { readonly scope: 'SELECTED_REPO'; readonly repository_ids: readonly string[] };

/** Returns the repositories of something new: those of `--repository-ids`, or all. The service judges what is given. */
export function selection(given: Pick<Given, 'text' | 'list'>): Selection {
  const ids = given.list('repository-ids') ?? [];
  const scope = parseScope(given.text('scope')) ?? (ids.length > 0 ? 'SELECTED_REPO' : 'ALL_REPO');
  return scope === 'ALL_REPO' ? { scope, repository_ids: ids } : { scope, repository_ids: ids };
}

export function parseEvents(list: readonly string[] | undefined): Webhook['events'] | undefined {
  return list as Webhook['events'] | undefined;
}

/** Returns a time as the API takes it; `never` is null. Also takes a span from now: `30d`, `12h`. */
export function time(text: string | undefined, nowMs: number = Date.now()): string | null | undefined {
  if (text === undefined) return undefined;
  if (text === 'never') return null;
  const span = /^(\d{1,5})([dh])$/.exec(text);
  const at =
    span === null ? new Date(text) : new Date(nowMs + Number(span[1]) * (span[2] === 'd' ? 86_400_000 : 3_600_000));
  if (!Number.isNaN(at.getTime())) return at.toISOString();
  throw usageFailure(`${JSON.stringify(text)} is no time`, 'Give one such as 2030-01-31T00:00:00Z, 30d, 12h or never');
}

/** Returns `NAME=VALUE` pairs as an object. A name has one value. */
export function pairs(list: readonly string[] | undefined): Readonly<Record<string, string>> | undefined {
  if (list === undefined) return undefined;
  const found = new Map<string, string>();
  for (const pair of list) {
    const at = pair.indexOf('=');
    if (at < 1) throw usageFailure(`${JSON.stringify(pair)} is no NAME=VALUE`);
    const name = pair.slice(0, at);
    if (found.has(name)) throw usageFailure(`${JSON.stringify(name)} is given twice: give it once`);
    found.set(name, pair.slice(at + 1));
  }
  return Object.fromEntries(found);
}
