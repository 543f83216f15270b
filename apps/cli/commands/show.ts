/** Calls an operation and prints its answer: the API's body with --json, else a text for people. */
import type { CallInput } from '../client/client.ts';
import type { Operations } from '../client/operations.ts';
import type { Context } from '../session/context.ts';
import { type Session, signedIn } from '../session/host.ts';

export async function show<Id extends keyof Operations>(
  context: Context,
  id: Id,
  input: CallInput<Id>,
  textOf: (answer: Operations[Id]['answer']) => string,
  session?: Session,
): Promise<void> {
  const { client } = session ?? (await signedIn(context));
  const { text, value } = await client.callWithText(id, input);
  if (!context.globals.json) context.terminal.out(textOf(value));
  else printBody(context, text);
}

/** Prints a body of the API as it came, on lines of its own where a person reads it. */
export function printBody({ terminal }: Context, body: string): void {
  if (body === '') return;
  const isPretty = terminal.isInteractive;
  terminal.out(`${isPretty ? JSON.stringify(JSON.parse(body), null, 2) : body.trimEnd()}\n`);
}

/** Leaves out members without a value, for a body that changes only what was given. */
export function given<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  return parseGiven(Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)));
}

function parseGiven<Fields>(fields: object): Fields {
  return fields as Fields;
}
