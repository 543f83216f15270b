/** `strata ref`. */
import type { ArgumentDefinition, CommandDefinition, OptionDefinition } from './definition.ts';
import { REPOSITORY, REPOSITORY_OR_HERE } from './repository-arguments.ts';

const REF: ArgumentDefinition = { name: 'ref', description: 'its full name, or the short name of a branch' };
const OBJECT: ArgumentDefinition = { name: 'id', description: 'the whole id of the object that it is to name' };
const EXPECTED: OptionDefinition = {
  name: 'expected',
  kind: 'text',
  value: 'ID',
  description: 'what the ref names now, or any; by default what it names when the command looks',
};

export const REF_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'ref list',
    summary: 'List all refs with their ids',
    arguments: [REPOSITORY_OR_HERE],
    notes: ['Needs the grant ALL and the scope ALL_REPO.'],
    load: async () => (await import('../commands/ref.ts')).list,
  },
  {
    name: 'ref create',
    summary: 'Create a branch, a tag or another ref',
    arguments: [REPOSITORY, REF, OBJECT],
    examples: ['strata ref create engine refs/tags/v1 6dcb09b5b57875f334f61aebed695e2e4193db5e'],
    load: async () => (await import('../commands/ref.ts')).create,
  },
  {
    name: 'ref move',
    summary: 'Let a ref name another object, forwards or not',
    arguments: [REPOSITORY, REF, OBJECT],
    options: [EXPECTED],
    load: async () => (await import('../commands/ref.ts')).move,
  },
  {
    name: 'ref delete',
    summary: 'Delete a ref',
    arguments: [REPOSITORY, REF],
    options: [EXPECTED],
    load: async () => (await import('../commands/ref.ts')).remove,
  },
];
