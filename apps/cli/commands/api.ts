/**
 * `strata api`: any request to the API, with the caller's token.
 *
 * Invariants: the request goes to the service alone, whatever the path says. The answer's bytes are printed as they
 * are.
 */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { ApiError } from '../client/client.ts';
import { readText } from '../client/transport.ts';
import type { Context, Given } from '../session/context.ts';
import { codeOf, usageFailure } from '../session/failure.ts';
import { findHost, publicClient, signedIn } from '../session/host.ts';
import { pairs } from './fields.ts';
import { printBody } from './show.ts';

export async function api(context: Context, given: Given): Promise<void> {
  const method = given.argument('method').toUpperCase();
  if (!/^[A-Z]{1,20}$/.test(method)) throw usageFailure(`${JSON.stringify(method)} is no method`);
  const target = targetOf(given.argument('path'), pairs(given.list('query')) ?? {});
  const text = given.text('body');
  const body = text === undefined ? null : await bodyFrom(context, text);
  const { client, baseUrl } = await clientFor(context, given.flag('no-token'));
  const accept = given.text('accept');
  const answer = await client.send({ method, target, body, headers: accept === undefined ? {} : { accept } });
  if (answer.status < 200 || answer.status > 299) {
    if (answer.status >= 300 && answer.status < 400 && answer.status !== 304) {
      throw usageFailure(`${baseUrl} redirects; strata follows no redirects, since its token would go along`);
    }
    const refused = await readText(answer.body);
    // The body is what was asked for, whatever the status.
    if (refused !== '' && context.globals.json) context.terminal.out(`${refused.trimEnd()}\n`);
    throw new ApiError(answer.status, refused, answer.header('x-request-id'));
  }
  const isJson = answer.header('content-type')?.includes('json') === true;
  if (isJson) printBody(context, await readText(answer.body));
  else for await (const chunk of answer.body) context.terminal.out(chunk);
}

async function clientFor(context: Context, withoutToken: boolean) {
  if (!withoutToken) {
    const { client, host } = await signedIn(context);
    return { client, baseUrl: host.baseUrl };
  }
  const { baseUrl } = await findHost(context);
  return { client: publicClient(context, baseUrl), baseUrl };
}

/** The path is put behind the address of the API, so it must not be able to name another host. */
function targetOf(path: string, query: Readonly<Record<string, string>>): string {
  if (/^[a-z][a-z0-9+.-]*:|^\/\//i.test(path)) {
    throw usageFailure('Give a path such as /v1/repositories, not an address');
  }
  const rooted = path.startsWith('/') ? path : `/${path}`;
  if (/[\s\\#]/.test(rooted)) throw usageFailure('Percent-encode white space, backslashes and # in the path');
  const added = new URLSearchParams(query).toString();
  if (added === '') return rooted;
  return `${rooted}${rooted.includes('?') ? '&' : '?'}${added}`;
}

async function bodyFrom(context: Context, text: string): Promise<string> {
  const found =
    text === '-' ? await context.readInput() : text.startsWith('@') ? await fileText(context, text.slice(1)) : text;
  try {
    JSON.parse(found);
  } catch {
    throw usageFailure('The body is not JSON');
  }
  return found;
}

async function fileText(context: Context, name: string): Promise<string> {
  const file = resolve(context.folder, name);
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw usageFailure(`${file} cannot be read: ${codeOf(error)}`);
  }
}
