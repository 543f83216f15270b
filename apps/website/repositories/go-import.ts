/**
 * Tells Go's client where the repository of a module lies (https://go.dev/ref/mod#vcs-find): it asks for the page of
 * the module, and of each package below, with `?go-get=1`, and clones with its own credentials.
 *
 * Invariants: the answer is made from the request alone, so it tells nothing of what exists. Its host is one that the
 * settings name, whatever the client sends.
 */
import { repositoryNameRefusal, usernameRefusal } from '../../../core/account/names.ts';
import { asciiLowerCase } from '../../../core/kernel/text.ts';
import { type Addresses, ownAuthorities } from '../../front-door/own-authorities.ts';
import { type Html, html } from '../layout/html.ts';

/** The first two segments of a path. Names hold no character that needs an escape. */
const MODULE = /^\/([A-Za-z0-9-]{1,64})\/([A-Za-z0-9._-]{1,128})(?:\/|$)/;

/** Returns the page for Go's client; null for any other request. Go compares the case of what it asked for. */
export function goImportPage(target: string, host: string | undefined, addresses: Addresses): Html | null {
  const [path = '', query = ''] = target.split('?', 2);
  if (!query.includes('go-get=1') || new URLSearchParams(query).get('go-get') !== '1') return null;
  const [, username, segment] = MODULE.exec(path) ?? [];
  if (username === undefined || segment === undefined) return null;
  const name = segment.replace(/\.git$/, '');
  if (usernameRefusal(asciiLowerCase(username)) !== null || repositoryNameRefusal(name) !== null) return null;
  const web = new URL(addresses.webUrl);
  const asked = asciiLowerCase(host ?? '');
  const authority = ownAuthorities(addresses).has(asked) ? asked : web.host;
  const repository = `${web.protocol}//${authority}/r/${username}/${name}.git`;
  const module = `${authority}/${username}/${segment}`;
  return html`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${module}</title><meta name="go-import" content="${module} git ${repository}"></head><body><p>go get ${module}</p></body></html>`;
}
