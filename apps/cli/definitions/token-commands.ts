/** `strata token`. */
import { GRANTS, SCOPES } from '../client/operations.ts';
import type { ArgumentDefinition, CommandDefinition, OptionDefinition } from './definition.ts';

const ID: ArgumentDefinition = { name: 'id', description: 'the id of the token' };

const SETTINGS: readonly OptionDefinition[] = [
  { name: 'grants', kind: 'list', value: 'LIST', choices: GRANTS, description: 'what it may do' },
  {
    name: 'scope',
    kind: 'text',
    value: 'SCOPE',
    choices: SCOPES,
    description: 'all repositories, or only those of --repository-ids',
  },
  { name: 'repository-ids', kind: 'list', value: 'LIST', description: 'the repositories of SELECTED_REPO' },
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
    options: [{ name: 'name', kind: 'text', value: 'NAME', required: true, description: 'a label' }, ...SETTINGS],
    notes: ['Without --grants it may do everything, without --repository-ids in all repositories.'],
    examples: ['strata token create --name mirror --grants GIT_HTTP_READ --expires-at 90d'],
    load: async () => (await import('../commands/token.ts')).create,
  },
  {
    name: 'token edit',
    summary: 'Change an access token',
    arguments: [ID],
    options: [{ name: 'name', kind: 'text', value: 'NAME', description: 'a label' }, ...SETTINGS],
    load: async () => (await import('../commands/token.ts')).edit,
  },
  {
    name: 'token delete',
    summary: 'Revoke an access token at once',
    arguments: [ID],
    load: async () => (await import('../commands/token.ts')).remove,
  },
];
