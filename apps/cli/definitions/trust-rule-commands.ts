/** `strata trust-rule`. */
import type { ArgumentDefinition, CommandDefinition, OptionDefinition } from './definition.ts';
import { grantsOption, LABEL, SELECTION } from './permission-options.ts';

const ID: ArgumentDefinition = { name: 'id', description: 'the id of the rule' };

const ISSUER: OptionDefinition = {
  name: 'issuer',
  kind: 'text',
  value: 'URL',
  description: 'the iss of the identity token',
};
const SUBJECT: OptionDefinition = {
  name: 'subject',
  kind: 'text',
  value: 'PATTERN',
  description: 'its sub; * stands for one or more characters but / and :',
};
const RULE_GRANTS = grantsOption('what the access tokens may do');
const REST: readonly OptionDefinition[] = [
  { name: 'claims', kind: 'list', value: 'LIST', description: 'NAME=PATTERN of other claims' },
  ...SELECTION,
];

export const TRUST_RULE_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'trust-rule list',
    summary: 'List trust rules, oldest first: the first that matches decides',
    load: async () => (await import('../commands/trust-rule.ts')).list,
  },
  {
    name: 'trust-rule get',
    summary: 'Show a trust rule and the audience that tokens need',
    arguments: [ID],
    load: async () => (await import('../commands/trust-rule.ts')).get,
  },
  {
    name: 'trust-rule create',
    summary: 'Let jobs of a CI system exchange their identity tokens',
    options: [
      { ...LABEL, required: true },
      { ...ISSUER, required: true },
      { ...SUBJECT, required: true },
      { ...RULE_GRANTS, required: true },
      ...REST,
    ],
    examples: [
      'strata trust-rule create --name site --issuer https://token.actions.githubusercontent.com --subject "repo:*/*:ref:refs/heads/main" --claims repository_id=456789,repository_owner_id=123456 --grants GIT_HTTP_WRITE',
    ],
    load: async () => (await import('../commands/trust-rule.ts')).create,
  },
  {
    name: 'trust-rule edit',
    summary: 'Change a trust rule; ends the tokens that it gave out',
    arguments: [ID],
    options: [LABEL, ISSUER, SUBJECT, RULE_GRANTS, ...REST],
    load: async () => (await import('../commands/trust-rule.ts')).edit,
  },
  {
    name: 'trust-rule refusals',
    summary: 'Show why tokens of the issuer were refused',
    arguments: [ID],
    load: async () => (await import('../commands/trust-rule.ts')).refusals,
  },
  {
    name: 'trust-rule delete',
    summary: 'Delete a trust rule; ends the tokens that it gave out',
    arguments: [ID],
    load: async () => (await import('../commands/trust-rule.ts')).remove,
  },
];
