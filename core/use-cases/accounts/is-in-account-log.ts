/** Whether the stream of an account has an event already, so that what is repeated after a crash records it once. */
import type { AccountEvent } from '../../account/events.ts';
import { accounts } from '../../account/evolve.ts';
import { streamName } from '../../kernel/envelope.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { JsonObject } from '../../kernel/json.ts';
import type { Context } from '../../runtime/execute.ts';
import { readForward } from '../../runtime/read-forward.ts';

/** Compares only the members that are named. Reads the whole stream. */
export async function isInAccountLog(
  { events }: Pick<Context, 'events'>,
  account: AccountId,
  {
    type,
    members,
  }: { readonly type: AccountEvent['type']; readonly members: Readonly<Record<string, string | number>> },
): Promise<boolean> {
  const isMeant = (data: JsonObject): boolean =>
    Object.entries(members).every(([member, value]) => data[member] === value);
  for await (const event of readForward(events, streamName(accounts.category, account), 0)) {
    if (event.type === type && isMeant(event.data)) return true;
  }
  return false;
}
