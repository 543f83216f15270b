/** Every command, in the order of the help. */
import { ACCOUNT_COMMANDS } from './account-commands.ts';
import { AUDIT_COMMANDS } from './audit-commands.ts';
import { BLAME_COMMANDS } from './blame-commands.ts';
import { BUCKET_COMMANDS } from './bucket-commands.ts';
import { COMMIT_COMMANDS } from './commit-commands.ts';
import type { CommandDefinition, OptionDefinition } from './definition.ts';
import { REF_COMMANDS } from './ref-commands.ts';
import { REPO_COMMANDS } from './repo-commands.ts';
import { SEARCH_COMMANDS } from './search-commands.ts';
import { TAG_COMMANDS } from './tag-commands.ts';
import { TOKEN_COMMANDS } from './token-commands.ts';
import { TRUST_RULE_COMMANDS } from './trust-rule-commands.ts';
import { WEBHOOK_COMMANDS } from './webhook-commands.ts';

const OTHER_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'api',
    summary: 'Send any request to the API',
    arguments: [
      { name: 'method', description: 'GET, POST, PUT, PATCH or DELETE' },
      { name: 'path', description: 'such as /v1/repositories' },
    ],
    options: [
      { name: 'body', kind: 'text', value: 'JSON', description: 'what to send: JSON, @FILE or - for standard input' },
      { name: 'query', kind: 'list', value: 'LIST', description: 'NAME=VALUE for the query' },
      { name: 'accept', kind: 'text', value: 'TYPE', description: 'such as application/octet-stream' },
      { name: 'no-token', kind: 'flag', description: 'send no token' },
    ],
    examples: [
      'strata api GET /v1/repos/ada/engine/branches',
      'strata api GET /v1/repos/ada/engine/contents/logo.png --query raw=true >logo.png',
    ],
    load: async () => (await import('../commands/api.ts')).api,
  },
  {
    name: 'completion',
    summary: 'Print a script that completes commands in a shell',
    arguments: [{ name: 'shell', description: 'bash, zsh or fish', choices: ['bash', 'zsh', 'fish'] }],
    examples: [
      'source <(strata completion bash)',
      'strata completion zsh >"${fpath[1]}/_strata"',
      'strata completion fish >~/.config/fish/completions/strata.fish',
    ],
    load: async () => (await import('./completion.ts')).completionOf(COMMANDS, GLOBAL_OPTIONS),
  },
];

export const COMMANDS: readonly CommandDefinition[] = [
  ...ACCOUNT_COMMANDS,
  ...REPO_COMMANDS,
  ...COMMIT_COMMANDS,
  ...SEARCH_COMMANDS,
  ...BLAME_COMMANDS,
  ...REF_COMMANDS,
  ...TAG_COMMANDS,
  ...TOKEN_COMMANDS,
  ...WEBHOOK_COMMANDS,
  ...BUCKET_COMMANDS,
  ...TRUST_RULE_COMMANDS,
  ...AUDIT_COMMANDS,
  ...OTHER_COMMANDS,
];

/** Options that every command takes, before or after its name. */
export const GLOBAL_OPTIONS: readonly OptionDefinition[] = [
  { name: 'json', kind: 'flag', description: 'print the body that the API answers' },
  {
    name: 'base-url',
    kind: 'text',
    value: 'URL',
    description: 'the address of the service; SERVICE_BASE_URL, or that of the last login, by default',
  },
  {
    name: 'web-url',
    kind: 'text',
    value: 'URL',
    description: 'the address of its website and of git, if it is another one; SERVICE_WEB_URL by default',
  },
  { name: 'debug', kind: 'flag', description: 'print requests and stack traces to standard error' },
];
