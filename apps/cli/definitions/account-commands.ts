/** Signing in, git, and the account. */
import type { CommandDefinition } from './definition.ts';

export const ACCOUNT_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'login',
    summary: 'Sign in through the browser',
    options: [
      {
        name: 'hostname',
        kind: 'text',
        value: 'LABEL',
        description: 'what the page calls this device; the name of the machine by default',
      },
      {
        name: 'poll-seconds',
        kind: 'number',
        value: 'N',
        min: 0.1,
        max: 60,
        otherwise: 2,
        fractions: true,
        description: 'how often to ask whether the login was granted',
      },
      { name: 'setup-git', kind: 'flag', description: 'make git use this login for the service' },
    ],
    notes: [
      'It prints an address and a code. Open the address in a browser, on this or another device, and grant the login if the page shows the same code. The token is kept in the configuration file, which only you can read.',
    ],
    examples: ['strata login --setup-git', 'strata login --base-url https://strata.example'],
    load: async () => (await import('../commands/login.ts')).login,
  },
  {
    name: 'logout',
    summary: 'Revoke the token of the login and forget it',
    options: [{ name: 'local', kind: 'flag', description: 'only forget it: the service is not asked' }],
    load: async () => (await import('../commands/login.ts')).logout,
  },
  {
    name: 'whoami',
    summary: 'Show the account, the service and the usage',
    notes: ['With --json it prints the usage, as the API answers it.'],
    load: async () => (await import('../commands/account.ts')).whoami,
  },
  {
    name: 'usage',
    summary: 'Show the usage and the quotas of the account',
    load: async () => (await import('../commands/account.ts')).usage,
  },
  {
    name: 'open',
    summary: 'Open the page of a repository, or the website, in a browser',
    arguments: [
      {
        name: 'repository',
        description:
          'NAME, USER/NAME or a URL; without it the one that the current folder has as a remote, else the website',
        optional: true,
      },
    ],
    notes: ['Where there is no browser, and into a pipe, it prints the address; with --json as {"url": ...}.'],
    examples: ['strata open', 'strata open ada/engine'],
    load: async () => (await import('../commands/open.ts')).open,
  },
  {
    name: 'git-credential',
    summary: "Answer git: a credential helper, as git's own documentation describes it",
    arguments: [{ name: 'operation', description: 'get, store, erase or capability' }],
    notes: [
      'strata login --setup-git makes git call it. It answers for the address of the service only, asks nobody anything, and stores nothing that git tells it.',
    ],
    examples: ["git config --global credential.https://strata.example.helper '!strata git-credential'"],
    load: async () => (await import('../commands/git-credential.ts')).gitCredential,
  },
  {
    name: 'oidc-exchange',
    summary: 'Exchange the identity token of a CI job for an access token of 15 minutes',
    options: [
      {
        name: 'id-token',
        kind: 'text',
        value: 'TOKEN',
        description:
          'the identity token, @FILE or - for standard input; other processes of the machine can read a token that is given here',
      },
      {
        name: 'audience',
        kind: 'text',
        value: 'TEXT',
        description: 'what to ask GitHub or CircleCI for; ADDRESS/SERVICE_USERNAME by default',
      },
      { name: 'save', kind: 'flag', description: 'sign in with the access token instead of printing it' },
    ],
    notes: [
      'Without --id-token the identity token comes from SERVICE_ID_TOKEN, from the variables of Bitbucket or HCP Terraform, from circleci run oidc get on CircleCI, or from the runner of GitHub Actions (permissions: id-token: write). On GitLab name it in the job: id_tokens: SERVICE_ID_TOKEN: aud: ADDRESS/USERNAME.',
      'A token for another audience than ADDRESS/USERNAME or --audience is not sent. The exchange is never repeated, since a token works once.',
      'A trust rule of the account must accept the token: strata trust-rule create.',
    ],
    examples: [
      'export SERVICE_TOKEN="$(strata oidc-exchange)"',
      'strata oidc-exchange --save && strata repo clone site',
    ],
    load: async () => (await import('../commands/exchange.ts')).exchange,
  },
];
