/** The question before what a person may regret: on a terminal it is asked, elsewhere `--yes` must answer it. */
import type { Context, Given } from './context.ts';
import { Failure, usageFailure } from './failure.ts';

/** Returns if it is to be done; throws a failure if not. `otherwise` says what to add where nobody can be asked. */
export async function confirm(context: Context, given: Given, what: string, otherwise: string): Promise<void> {
  if (given.flag('yes')) return;
  if (context.ask === null) throw usageFailure(what, otherwise);
  const answer = await context.ask(`${what}. Do it? [y/N] `);
  if (!/^y(es)?$/i.test(answer.trim())) throw new Failure(1, 'Nothing was done');
}
