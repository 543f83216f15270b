/**
 * The suites that need something this machine may not have, in one place: what each needs, and how to run it.
 *
 * Must stay true: a suite left out is skipped by name, with its reason, never silently absent.
 */

export interface OptionalSuite {
  readonly name: string;
  /** The environment variable that says where the outside part is. */
  readonly variable: string;
  readonly command: string;
}

export const OPTIONAL_SUITES = [
  {
    name: 'a real repository through push, fetch and clone',
    variable: 'STRATA_REAL_REPOSITORY',
    command: 'STRATA_REAL_REPOSITORY=<a git bundle> npm test -- real-repository',
  },
  {
    name: 'the event store contract on EventStoreDB',
    variable: 'STRATA_EVENTSTORE_URL',
    command: "STRATA_EVENTSTORE_URL='esdb://127.0.0.1:2113?tls=false' npm test -- eventstoredb",
  },
] as const satisfies readonly OptionalSuite[];

/**
 * The option of a test or suite that runs only where its outside part is:
 * `describe('EventStoreDB', needs('STRATA_EVENTSTORE_URL'), () => …)`.
 */
export function needs(variable: (typeof OPTIONAL_SUITES)[number]['variable']): { skip: string | false } {
  return { skip: (process.env[variable] ?? '') === '' ? `needs ${variable}` : false };
}
