/** `strata token`. */
import type { ArgumentDefinition, CommandDefinition, OptionDefinition } from './definition.ts';
import { grantsOption, LABEL, SELECTION } from './permission-options.ts';

const ID: ArgumentDefinition = { name: 'id', description: 'the id of the token' };

const SETTINGS: readonly OptionDefinition[] = [
  grantsOption('what it may do'),
  ...SELECTION,
  { name: 'expires-at', kind: 'text', value: 'TIME', description: 'such as 2030-01-31T00:00:00Z, 30d, 12h or never' },
];

export const TOKEN_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'token list',
    summary: 'List access tokens, without their secrets',
    load: async () => (await import('../commands/token.ts')).list,
  },
  {
    name: 'token get',
    summary: 'Show an access token',
    arguments: [ID],
    load: async () => (await import('../commands/token.ts')).get,
  },
  {
    name: 'token create',
    summary: 'Create an access token and print its secret, once',
    options: [{ ...LABEL, required: true }, ...SETTINGS],
    notes: ['Without --grants it may do everything, without --repository-ids in all repositories.'],
    examples: ['strata token create --name mirror --grants GIT_HTTP_READ --expires-at 90d'],
    load: async () => (await import('../commands/token.ts')).create,
  },
  {
    name: 'token edit',
    summary: 'Change an access token',
    arguments: [ID],
    options: [LABEL, ...SETTINGS],
    load: async () => (await import('../commands/token.ts')).edit,
  },
  {
    name: 'token delete',
    summary: 'Revoke an access token',
    arguments: [ID],
    load: async () => (await import('../commands/token.ts')).remove,
  },
];
