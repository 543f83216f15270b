/**
 * The suites that need something this machine may not have, in one place: what each needs, and how to run it.
 *
 * Must stay true: a suite left out is skipped by name, with its reason, never silently absent.
 */
import { findTemporalTool, type TemporalTool } from './temporal-tools.ts';

export interface OptionalSuite {
  readonly name: string;
  /** The environment variable that says where the outside part is, or the program that has to be installed. */
  readonly part: string;
  readonly command: string;
}

export const OPTIONAL_SUITES = [
  {
    name: 'a real repository through push, fetch and clone',
    part: 'STRATA_REAL_REPOSITORY',
    command: 'STRATA_REAL_REPOSITORY=<a git bundle> npm test -- real-repository',
  },
  {
    name: 'the event store contract on EventStoreDB',
    part: 'STRATA_EVENTSTORE_URL',
    command: "STRATA_EVENTSTORE_URL='esdb://127.0.0.1:2113?tls=false' npm test -- eventstoredb",
  },
  {
    name: "the workflows' contract on Temporal",
    part: 'temporal-test-server',
    command: '.ci/temporal-tools.sh && npm test -- temporal',
  },
  {
    name: "a real Temporal server's restarts",
    part: 'temporal',
    command: '.ci/temporal-tools.sh && npm test -- temporal',
  },
] as const satisfies readonly OptionalSuite[];

type Part = (typeof OPTIONAL_SUITES)[number]['part'];

/**
 * The option of a test or suite that runs only where its outside part is:
 * `describe('EventStoreDB', needs('STRATA_EVENTSTORE_URL'), () => …)`.
 */
export function needs(part: Part): { skip: string | false } {
  return { skip: isThere(part) ? false : `needs ${part}` };
}

export function isThere(part: Part): boolean {
  return isTool(part) ? findTemporalTool(part) !== null : (process.env[part] ?? '') !== '';
}

function isTool(part: Part): part is TemporalTool & Part {
  return part === 'temporal' || part === 'temporal-test-server';
}
