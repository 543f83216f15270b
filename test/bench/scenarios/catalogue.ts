/**
 * All scenarios, in the table's order.
 *
 * Invariants: the names are the values of `--only`.
 */
import { PUSH_SCENARIOS } from './pushes.ts';
import { READ_SCENARIOS } from './reads.ts';
import { REST_SCENARIOS } from './rest.ts';
import type { Scenario } from './scenario.ts';

export const SCENARIOS: readonly Scenario[] = [...READ_SCENARIOS, ...PUSH_SCENARIOS, ...REST_SCENARIOS];

/** Scenarios measured without replayed load. */
export const REAL_CLIENT = { name: 'real-client', title: 'wall time of a real git client' };
export const WRITING = { name: 'writing', title: 'a commit of one file of 1 KiB by REST, and by push' };
export const MEMORY = { name: 'memory', title: 'memory during a 1 GiB push and 20 clones' };
/** Scenarios measured alone, without the servers of the others. */
export const LOG = { name: 'log', title: 'appends and subscribers of each event log, alone' };
export const WEBHOOKS = { name: 'webhooks', title: 'a healthy receiver beside 10,000 deliveries to a dead one, alone' };
export const READING = { name: 'reading', title: 'what pages read of 80,000 commits, alone' };
export const PAGES = { name: 'pages', title: 'whole pages of the website over HTTP, first and again, alone' };
export const COMMAND_LINE = { name: 'command-line', title: 'how long the command line takes, alone' };
export const STORAGE = { name: 'storage', title: 'pushes and cold clones by the place of the layers, alone' };
export const GROWTH = { name: 'growth', title: 'what a repository costs after 100,000 pushes, alone' };
export const AUDIT = { name: 'audit', title: 'exporting and verifying the log of an account, alone' };
export const REF_COUNT = { name: 'ref-count', title: 'what a repository of 200,000 refs costs, alone' };
export const SCALE = { name: 'scale', title: 'what growing repositories, accounts and services cost, alone' };

export const ALL_NAMES: readonly { readonly name: string; readonly title: string }[] = [
  ...SCENARIOS.map(({ name, title }) => ({ name, title })),
  WRITING,
  REAL_CLIENT,
  MEMORY,
  LOG,
  WEBHOOKS,
  READING,
  PAGES,
  COMMAND_LINE,
  STORAGE,
  GROWTH,
  REF_COUNT,
  SCALE,
  AUDIT,
];
