/** `strata repo`. */
import type { ArgumentDefinition, CommandDefinition, OptionDefinition } from './definition.ts';
import { REPOSITORY, REPOSITORY_OR_HERE } from './repository-arguments.ts';

const DESCRIPTION: OptionDefinition = {
  name: 'description',
  kind: 'text',
  value: 'TEXT',
  description: 'what it holds',
};
const DEFAULT_BRANCH: OptionDefinition = {
  name: 'default-branch',
  kind: 'text',
  value: 'BRANCH',
  description: 'the branch that a clone checks out',
};

const DELETED_REPOSITORY: ArgumentDefinition = { name: 'repository', description: 'NAME or ID of a deleted one' };
const DRY_RUN: OptionDefinition = { name: 'dry-run', kind: 'flag', description: 'show what it would do' };
const YES: OptionDefinition = { name: 'yes', kind: 'flag', description: 'do it without a question' };

export const REPO_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'repo list',
    summary: 'List repositories',
    options: [
      {
        name: 'limit',
        kind: 'number',
        value: 'N',
        min: 1,
        max: 1_000_000,
        description: 'at most this many; all by default',
      },
      {
        name: 'page',
        kind: 'number',
        value: 'N',
        min: 0,
        max: 1_000_000,
        description: 'one page of the API, counted from 0',
      },
    ],
    load: async () => (await import('../commands/repo.ts')).list,
  },
  {
    name: 'repo create',
    summary: 'Create a repository',
    arguments: [{ name: 'name', description: 'its name' }],
    options: [
      { name: 'clone', kind: 'flag', description: 'clone it into the current folder' },
      {
        name: 'storage-bucket-id',
        kind: 'text',
        value: 'ID',
        description: "a verified bucket of your own; by default the account's default bucket, or platform storage",
      },
      DESCRIPTION,
      DEFAULT_BRANCH,
    ],
    examples: ['strata repo create engine --clone'],
    load: async () => (await import('../commands/repo.ts')).create,
  },
  {
    name: 'repo get',
    summary: 'Show a repository',
    arguments: [REPOSITORY_OR_HERE],
    load: async () => (await import('../commands/repo.ts')).get,
  },
  {
    name: 'repo edit',
    summary: 'Change the description or the default branch',
    arguments: [REPOSITORY_OR_HERE],
    options: [DESCRIPTION, DEFAULT_BRANCH],
    load: async () => (await import('../commands/repo.ts')).edit,
  },
  {
    name: 'repo rename',
    summary: 'Rename a repository',
    arguments: [REPOSITORY, { name: 'name', description: 'its new name' }],
    notes: ['git reaches it at its old addresses until another repository takes the name; strata wants the new one.'],
    examples: ['strata repo rename engine difference-engine'],
    load: async () => (await import('../commands/repo.ts')).rename,
  },
  {
    name: 'repo url',
    summary: 'Print the address to clone from',
    arguments: [REPOSITORY_OR_HERE],
    options: [{ name: 'web', kind: 'flag', description: 'print the address of its page instead' }],
    load: async () => (await import('../commands/repo.ts')).url,
  },
  {
    name: 'repo clone',
    summary: 'Clone a repository; git uses this login in it',
    arguments: [
      REPOSITORY,
      { name: 'directory', description: "where to; the repository's name by default", optional: true },
    ],
    load: async () => (await import('../commands/repo.ts')).clone,
  },
  {
    name: 'repo delete',
    summary: 'Delete a repository',
    arguments: [REPOSITORY],
    options: [YES],
    load: async () => (await import('../commands/repo.ts')).remove,
  },
  {
    name: 'repo restore',
    summary: 'Set branches and tags back to an earlier moment',
    arguments: [REPOSITORY_OR_HERE],
    options: [
      { name: 'at', kind: 'text', value: 'TIME', description: 'what they were at this time (RFC 3339)' },
      { name: 'event', kind: 'text', value: 'ID', description: 'what they were right after this event' },
      { name: 'before', kind: 'text', value: 'ID', description: 'what they were right before this event' },
      { name: 'refs', kind: 'list', value: 'REF,…', description: 'full names; all by default' },
      DRY_RUN,
      YES,
    ],
    notes: ['Needs the grant ALL and the scope ALL_REPO. What a restoration did can be undone like any other change.'],
    examples: ['strata repo restore engine --at 2026-11-21T10:00:00Z --dry-run'],
    load: async () => (await import('../commands/undo.ts')).restore,
  },
  {
    name: 'repo deleted',
    summary: 'List deleted repositories',
    notes: ['Needs the grant ALL and the scope ALL_REPO.'],
    load: async () => (await import('../commands/undo.ts')).deleted,
  },
  {
    name: 'repo undelete',
    summary: 'Get a deleted repository back',
    arguments: [DELETED_REPOSITORY],
    options: [{ name: 'name', kind: 'text', value: 'NAME', description: 'another name, where its own is taken' }],
    notes: ['Needs the grant ALL and the scope ALL_REPO.'],
    load: async () => (await import('../commands/undo.ts')).undelete,
  },
  {
    name: 'repo purge',
    summary: 'Remove for good what no branch and no tag reaches, or all of a deleted repository',
    arguments: [{ name: 'repository', description: 'NAME, USER/NAME or a URL; a deleted one by its ID' }],
    options: [DRY_RUN, YES],
    notes: ['Needs the grant ALL and the scope ALL_REPO. It cannot be undone.'],
    load: async () => (await import('../commands/undo.ts')).purge,
  },
];
