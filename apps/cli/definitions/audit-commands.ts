/** `strata audit`. */
import type { CommandDefinition, OptionDefinition } from './definition.ts';
import { REPOSITORY_OR_HERE } from './repository-arguments.ts';

const SINCE: OptionDefinition = { name: 'since', kind: 'text', value: 'TIME', description: 'from this log time on' };
const UNTIL: OptionDefinition = { name: 'until', kind: 'text', value: 'TIME', description: 'before this log time' };
const KEYS: OptionDefinition = {
  name: 'keys',
  kind: 'text',
  value: 'FILE',
  description: "the service's first key: the first line of its /.well-known/strata-log-keys",
};

export const AUDIT_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'audit log',
    summary: "List entries of the account's log, oldest first",
    options: [
      {
        name: 'after',
        kind: 'number',
        value: 'N',
        min: 0,
        max: 999_999_999_999_999,
        description: 'behind this sequence',
      },
      {
        name: 'limit',
        kind: 'number',
        value: 'N',
        min: 1,
        max: 1_000,
        description: 'at most this many; 100 by default',
      },
      { name: 'type', kind: 'text', value: 'TYPE', description: 'such as RefsUpdated' },
      { name: 'stream', kind: 'text', value: 'STREAM', description: 'of this stream' },
      { name: 'repository-id', kind: 'text', value: 'ID', description: 'of this repository, or naming it' },
      { name: 'actor-id', kind: 'text', value: 'ID', description: 'caused by this token, user or trust rule' },
      { name: 'request-id', kind: 'text', value: 'ID', description: 'appended by this request' },
      SINCE,
      UNTIL,
    ],
    examples: ['strata audit log --type RefsUpdated --since 2026-11-01T00:00:00Z'],
    load: async () => (await import('../commands/audit.ts')).log,
  },
  {
    name: 'audit export',
    summary: "Save the account's log in a file that can be verified offline",
    arguments: [
      { name: 'file', description: 'where to; a file that is there is replaced when the export is complete' },
    ],
    options: [SINCE, UNTIL],
    notes: [
      'With --since or --until it is a slice, which proves its place in the whole log, and what it shows at its edges.',
    ],
    examples: ['strata audit export log.ndjson'],
    load: async () => (await import('../commands/audit.ts')).exportLog,
  },
  {
    name: 'audit verify',
    summary: 'Verify an export, without the service',
    arguments: [{ name: 'file', description: 'exports, or folders of files *.ndjson', several: true }],
    options: [
      KEYS,
      {
        name: 'checkpoint',
        kind: 'list',
        filled: true,
        value: 'FILES',
        description: 'checkpoints that were kept, which the exports of their logs must continue',
      },
      { name: 'since', kind: 'text', value: 'TIME', description: 'the range that was asked for begins here' },
      { name: 'until', kind: 'text', value: 'TIME', description: 'the range that was asked for ends before this' },
      {
        name: 'revoke',
        kind: 'text',
        value: 'KEY',
        description: "a stolen key, as a line of the service's list, which counts up to --after",
      },
      {
        name: 'after',
        kind: 'number',
        value: 'SIZE',
        min: 0,
        max: 999_999_999_999_999,
        description: 'the entries of a checkpoint that was kept from before, which must be given',
      },
    ],
    notes: [
      'Checks form, order, revisions, openings, leaves, edges, the tree and its signature, and names the line of what is wrong. An opening that is left out is an erasure, and no fault.',
      'Exit status: 0 verified, 1 refuted, 2 not decidable, such as without --keys. Of several files one that is refuted decides, then one that is not decidable.',
    ],
    examples: ['strata audit verify log.ndjson --keys first-key --checkpoint kept/42.txt'],
    load: async () => (await import('../commands/audit.ts')).verify,
  },
  {
    name: 'audit replay',
    summary: 'Rebuild the account from an export, as of a moment',
    arguments: [{ name: 'file', description: 'an export of the log' }],
    options: [
      { name: 'at', kind: 'text', value: 'TIME', description: 'the moment, as RFC 3339; the last entry by default' },
      {
        name: 'compare',
        kind: 'text',
        value: 'URL',
        description: 'the address of a service to compare with: is the account there the same?',
      },
    ],
    notes: [
      'It reads the file alone and prints the digest of the account: the one that the service shows as of the same moment. With --json it prints the account itself, as the API answers it.',
      'It does not check whether the export is unaltered: strata audit verify does.',
    ],
    examples: ['strata audit replay log.ndjson --at 2026-11-21T10:00:00Z --compare https://strata.example'],
    load: async () => (await import('../commands/audit-replay.ts')).auditReplay,
  },
  {
    name: 'audit token',
    summary: 'Show what an access token was allowed and what it did, also of a revoked one',
    arguments: [{ name: 'id', description: 'the id of the token' }],
    options: [
      { name: 'after', kind: 'text', value: 'PLACE', description: 'behind a page, as that page names it' },
      {
        name: 'limit',
        kind: 'number',
        value: 'N',
        min: 1,
        max: 100,
        description: 'at most this many changes, and uses; 50 by default',
      },
    ],
    examples: ['strata audit token 01a20000-0000-7000-8000-000000000000'],
    load: async () => (await import('../commands/audit-token.ts')).auditToken,
  },
  {
    name: 'audit access',
    summary: 'Show who could read a repository as of a moment, and who did',
    arguments: [REPOSITORY_OR_HERE],
    options: [
      { name: 'at', kind: 'text', value: 'TIME', description: 'who could, as of this moment; now by default' },
      { name: 'did', kind: 'flag', description: 'who did, by the minute, oldest first' },
      { name: 'since', kind: 'text', value: 'TIME', description: 'who did, from the minute of this time on' },
      { name: 'until', kind: 'text', value: 'TIME', description: 'who did, in minutes that begin before this time' },
      { name: 'after', kind: 'text', value: 'PLACE', description: 'who did, behind a page, as that page names it' },
      {
        name: 'limit',
        kind: 'number',
        value: 'N',
        min: 1,
        max: 100,
        description: 'with --did, at most this many; 50 by default',
      },
    ],
    examples: [
      'strata audit access engine --at 2026-11-21T10:00:00Z',
      'strata audit access engine --since 2026-11-21T10:00:00Z',
    ],
    load: async () => (await import('../commands/audit-access.ts')).auditAccess,
  },
  {
    name: 'audit watch',
    summary: 'Keep checkpoints, verify what is new, and fail when two do not agree',
    options: [
      {
        name: 'folder',
        kind: 'text',
        value: 'FOLDER',
        description: 'where they are kept: one folder for each account',
      },
      {
        name: 'every',
        kind: 'number',
        value: 'SECONDS',
        min: 1,
        max: 86_400,
        description: 'ask again and again; once without it',
      },
      KEYS,
    ],
    notes: [
      'Without --keys, the first key that the service names is trusted, and kept. A later key is trusted once an entry of the log endorses it; where a key was revoked nothing does, and --keys must name the new one. A checkpoint that contradicts the one before it, or the entries that the service shows, or that another key signed, is kept as evidence.',
    ],
    examples: ['strata audit watch --every 3600'],
    load: async () => (await import('../commands/audit-watch.ts')).watch,
  },
];
