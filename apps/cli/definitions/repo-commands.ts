/** `strata repo`. */
import type { ArgumentDefinition, CommandDefinition, OptionDefinition } from './definition.ts';

const REPOSITORY: ArgumentDefinition = { name: 'repository', description: 'NAME, USER/NAME or a URL' };
const REPOSITORY_OR_HERE: ArgumentDefinition = {
  name: 'repository',
  description: 'NAME, USER/NAME or a URL; without it the one that the current folder has as a remote',
  optional: true,
};
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
    options: [{ name: 'yes', kind: 'flag', description: 'do it' }],
    load: async () => (await import('../commands/repo.ts')).remove,
  },
];
