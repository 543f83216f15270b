/** `strata webhook`. */
import { EVENT_KINDS } from '../client/operations.ts';
import type { ArgumentDefinition, CommandDefinition, OptionDefinition } from './definition.ts';

const ID: ArgumentDefinition = { name: 'id', description: 'the id of the webhook' };
const EVENTS: OptionDefinition = {
  name: 'events',
  kind: 'list',
  value: 'LIST',
  choices: EVENT_KINDS,
  description: 'what it is told of',
};

export const WEBHOOK_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'webhook list',
    summary: 'List webhooks',
    load: async () => (await import('../commands/webhook.ts')).list,
  },
  {
    name: 'webhook get',
    summary: 'Show a webhook',
    arguments: [ID],
    load: async () => (await import('../commands/webhook.ts')).get,
  },
  {
    name: 'webhook create',
    summary: 'Create a webhook and print its secret, once',
    arguments: [{ name: 'url', description: 'an address with HTTPS' }],
    options: [EVENTS, { name: 'inactive', kind: 'flag', description: 'send nothing yet' }],
    notes: ['Without --events it is told of pushes.'],
    examples: ['strata webhook create https://receiver.example/hook --events push,create'],
    load: async () => (await import('../commands/webhook.ts')).create,
  },
  {
    name: 'webhook edit',
    summary: 'Change a webhook; a new address gets a new secret',
    arguments: [ID],
    options: [
      { name: 'url', kind: 'text', value: 'URL', description: 'an address with HTTPS' },
      EVENTS,
      { name: 'active', kind: 'flag', description: 'send events' },
      { name: 'inactive', kind: 'flag', description: 'send nothing' },
    ],
    load: async () => (await import('../commands/webhook.ts')).edit,
  },
  {
    name: 'webhook rotate-secret',
    summary: 'Give a webhook a new secret and print it, once',
    arguments: [ID],
    notes: ['The secret before it also signs for 24 hours.'],
    load: async () => (await import('../commands/webhook.ts')).rotateSecret,
  },
  {
    name: 'webhook ping',
    summary: 'Send a ping',
    arguments: [ID],
    load: async () => (await import('../commands/webhook.ts')).ping,
  },
  {
    name: 'webhook deliveries',
    summary: 'List deliveries, newest first',
    arguments: [ID],
    options: [
      { name: 'limit', kind: 'number', value: 'N', min: 1, max: 100, description: 'at most this many; 50 by default' },
      { name: 'include-payload', kind: 'flag', description: 'show what was sent' },
    ],
    load: async () => (await import('../commands/webhook.ts')).deliveries,
  },
  {
    name: 'webhook redeliver',
    summary: 'Send a delivery again',
    arguments: [ID, { name: 'delivery', description: 'the id of the delivery' }],
    load: async () => (await import('../commands/webhook.ts')).redeliver,
  },
  {
    name: 'webhook delete',
    summary: 'Delete a webhook',
    arguments: [ID],
    load: async () => (await import('../commands/webhook.ts')).remove,
  },
];
