/** `strata whoami` and `strata usage`. */
import type { Usage, UsageFigure } from '../client/operations.ts';
import type { Context } from '../session/context.ts';
import { signedIn } from '../session/host.ts';
import { usernameOf } from '../session/repositories.ts';
import { fieldsText } from '../terminal/table.ts';
import { relativeTime, sizeText } from '../terminal/values.ts';
import { show } from './show.ts';

const count = (value: number): string => String(value);

/** Returns `3 of 50 (6%)`, or the used figure alone where there is no quota. */
function figureText({ used, quota }: UsageFigure, textOf: (value: number) => string): string {
  if (quota === null) return textOf(used);
  const share = quota === 0 ? '' : ` (${Math.round((used / quota) * 100)}%)`;
  return `${textOf(used)} of ${textOf(quota)}${share}`;
}

/** An older server does not tell what deleted repositories hold. */
function deletedText({ deleted_storage_bytes: deleted }: Partial<Usage>): string {
  if (deleted === undefined || deleted.used === 0) return '';
  return `; ${sizeText(deleted.used)} of it deleted, until retention or purge`;
}

/** An older server does not count changes. */
function changesField({ changes }: Partial<Usage>): (readonly [string, string])[] {
  return changes === undefined ? [] : [['changes this month', figureText(changes, count)]];
}

/** An older server does not tell what waits to leave storage. */
function waitingFields({ waiting_storage_bytes: waiting }: Partial<Usage>): (readonly [string, string])[] {
  return waiting === undefined ? [] : [['waiting to leave storage', figureText(waiting, sizeText)]];
}

function usageFields(usage: Usage): (readonly [string, string])[] {
  return [
    ['repositories', figureText(usage.repos, count)],
    ['storage', `${figureText(usage.storage_bytes, sizeText)}${deletedText(usage)}`],
    ...waitingFields(usage),
    ['transfer this month', figureText(usage.transfer_bytes, sizeText)],
    ['ingress this month', figureText(usage.ingress_bytes, sizeText)],
    ...changesField(usage),
  ];
}

export async function usage(context: Context): Promise<void> {
  await show(context, 'getUsage', {}, (found) => fieldsText(context.terminal, usageFields(found)));
}

export async function whoami(context: Context): Promise<void> {
  const session = await signedIn(context);
  if (context.globals.json) {
    await show(context, 'getUsage', {}, () => '', session);
    return;
  }
  const { host, client } = session;
  const found = await client.call('getUsage', {});
  // A token that may not list repositories still works.
  const username = await usernameOf(session).catch(() => null);
  const until = host.expiresAt === null ? '' : `, expires ${relativeTime(host.expiresAt)}`;
  const source = host.tokenSource === 'file' ? host.configFile : 'SERVICE_TOKEN';
  context.terminal.out(
    fieldsText(context.terminal, [
      ['account', username ?? 'not known (set SERVICE_USERNAME)'],
      ['service', host.baseUrl],
      ['token from', `${source}${until}`],
      ...usageFields(found),
    ]),
  );
}
