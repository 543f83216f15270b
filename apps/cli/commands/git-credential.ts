/**
 * `strata git-credential`: git's credential helper, gitcredentials(7) and git-credential(1).
 *
 * Invariants: it answers for the address of the service alone, protocol and port included. It never asks a person,
 * stores nothing that git tells it, and is silent about everything that it does not answer.
 */
import type { Context, Given } from '../session/context.ts';
import { findHost, type Host, loginCommand } from '../session/host.ts';

const INPUT_LENGTH_MAX = 64 * 1024;

type Attributes = ReadonlyMap<string, string>;

export async function gitCredential(context: Context, given: Given): Promise<void> {
  const operation = given.argument('operation');
  if (operation === 'capability') {
    context.terminal.out('version 0\n');
    return;
  }
  if (operation !== 'get' && operation !== 'store' && operation !== 'erase') return;
  const attributes = attributesOf((await context.readInput()).slice(0, INPUT_LENGTH_MAX));
  const host = await findHost(context);
  if (host.token === null || !isOfService(attributes, host.webUrl)) return;
  if (operation === 'get') answer(context, attributes, { ...host, token: host.token });
  if (operation === 'erase' && attributes.get('password') === host.token) {
    context.terminal.say(`strata: the service does not take this token any more. ${loginCommand(host.baseUrl)}`);
  }
}

function answer(context: Context, attributes: Attributes, host: Host & { readonly token: string }): void {
  const wanted = attributes.get('username');
  // Somebody else's password was asked for.
  if (wanted !== undefined && host.username !== null && wanted.toLowerCase() !== host.username.toLowerCase()) return;
  const expiry = host.expiresAt === null ? Number.NaN : Date.parse(host.expiresAt);
  const lines = [
    `username=${wanted ?? host.username ?? 'strata'}`,
    `password=${host.token}`,
    ...(Number.isNaN(expiry) ? [] : [`password_expiry_utc=${Math.floor(expiry / 1000)}`]),
  ];
  if (lines.some((line) => /[\r\n\0]/.test(line))) return;
  context.terminal.out(`${lines.join('\n')}\n`);
}

/** Reads lines of `key=value` up to an empty line. A `url` stands for its parts. */
function attributesOf(input: string): Attributes {
  const attributes = new Map<string, string>();
  for (const line of input.split('\n')) {
    if (line === '') break;
    const at = line.indexOf('=');
    if (at < 1) continue;
    const [key, value] = [line.slice(0, at), line.slice(at + 1)];
    if (key === 'url') setUrl(attributes, value);
    else attributes.set(key, value);
  }
  return attributes;
}

function setUrl(attributes: Map<string, string>, text: string): void {
  if (!URL.canParse(text)) return;
  const url = new URL(text);
  attributes.set('protocol', url.protocol.slice(0, -1)).set('host', url.host).set('path', url.pathname.slice(1));
  if (url.username !== '') attributes.set('username', decodeURIComponent(url.username));
}

function isOfService(attributes: Attributes, webUrl: string): boolean {
  const text = `${attributes.get('protocol') ?? ''}://${attributes.get('host') ?? ''}`;
  // A host is a name and a port: anything else could end elsewhere than it seems.
  if (!/^https?:\/\/[\w.:[\]-]+$/.test(text) || !URL.canParse(text)) return false;
  return new URL(text).origin === new URL(webUrl).origin;
}
