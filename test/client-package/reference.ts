/**
 * docs/cli.md, made from the definitions of the commands.
 *
 * Invariants: every command, argument and option of the command line is in it.
 */
import { COMMANDS, GLOBAL_OPTIONS } from '../../apps/cli/definitions/all-commands.ts';
import type { CommandDefinition, OptionDefinition } from '../../apps/cli/definitions/definition.ts';
import { GROUPS } from '../../apps/cli/definitions/groups.ts';

const INTRODUCTION = `# The command line

\`strata\` is the command line of the service. It needs Node 20 or newer, and git for cloning. \`npm run client\` writes this
page from the definitions of the commands: change those instead.

## Install

\`\`\`sh
npm run client:pack            # in a checkout; prints the path of the package
npm install -g strata-cli-*.tgz
strata login --setup-git --base-url https://strata.example
\`\`\`

The page \`/docs/cli\` of a service offers the package with its checksum, where it was made: the build of the image
makes it, and so does \`npm start\` in a checkout.

From a checkout \`npm run --silent strata -- ARGS\` does the same as \`strata ARGS\`.

\`strata completion bash|zsh|fish\` prints a script that completes commands.

## Sign in

\`strata login\` prints an address and a code. Grant the login in a browser, on this or another device, if the page shows
the same code. The token is then in the configuration file, which only you can read (mode 0600). \`strata logout\` revokes
it. Programs and jobs set \`SERVICE_TOKEN\` instead.

| variable                                                            | what it sets                                                                             |
| ------------------------------------------------------------------- | ---------------------------------------------------------------------------------------- |
| \`SERVICE_TOKEN\`                                                     | an access token; it goes before the one of the configuration file                        |
| \`SERVICE_USERNAME\`                                                  | the account of a repository that is named without one                                    |
| \`SERVICE_CONFIG\`                                                    | the configuration file; \`$XDG_CONFIG_HOME/strata/config.toml\` by default                 |
| \`SERVICE_BASE_URL\`                                                  | the address of the service; that of the last login, or \`http://localhost:8080\` by default |
| \`SERVICE_WEB_URL\`                                                   | the address of its website and of git, if it is another one                              |
| \`SERVICE_ID_TOKEN\`                                                  | the identity token of a job, for \`strata oidc-exchange\`                                  |
| \`SERVICE_SECRET_ACCESS_KEY\`                                         | the secret of an access key, for \`strata bucket create\` and \`edit\`                       |
| \`HTTPS_PROXY\`, \`HTTP_PROXY\`, \`NO_PROXY\`, \`NODE_EXTRA_CA_CERTS\`, \`SSL_CERT_FILE\`, \`NO_COLOR\`, \`BROWSER\` | as in other programs                                               |

The file is not looked for in the working folder: an empty or relative \`HOME\` does not count, and the home that the
system knows does.

A proxy is one of HTTP or HTTPS: \`strata\` refuses another kind, such as \`socks5://\`, by the name of the variable.
\`NO_PROXY\` lists names, domains, addresses and ranges of them (\`10.0.0.0/8\`), or is \`*\`.

After logins to several services, \`--base-url\` or \`SERVICE_BASE_URL\` chooses one; else the last login counts.

## Git

\`strata login --setup-git\` makes git ask \`strata git-credential\` for passwords of the service, and of no other host.
\`strata repo clone\` and \`strata repo create --clone\` set the same in the clone.

Where a command takes a repository, \`NAME\` is one of yours, \`USER/NAME\` anybody's, and the URL of a repository works as
well. \`repo get\`, \`edit\` and \`url\` without a name mean the repository that the current folder has as a remote.

## In a job

A trust rule lets the jobs of a CI system in without a stored secret:

\`\`\`sh
strata trust-rule create --name site --issuer https://token.actions.githubusercontent.com \\
  --subject 'repo:*/*:ref:refs/heads/main' --claims repository_id=456789,repository_owner_id=123456 \\
  --grants GIT_HTTP_WRITE,API_REPOS_READ
\`\`\`

On GitHub the claims name the repository and its owner (\`gh api repos/acme/site --jq '.id, .owner.id'\`), and the subject
leaves the names open: since the middle of 2026 it has ids behind them in some repositories. Without the claims it lets in
every repository of GitHub. Never write \`repo:acme*/…\`, which lets in \`acme-evil\`. The website's guide to CI jobs has
rules for GitLab CI, CircleCI, Buildkite, Jenkins and HCP Terraform.

In the job, \`strata oidc-exchange --save\` signs in with the identity token of the job for 15 minutes:

\`\`\`sh
export SERVICE_BASE_URL=https://strata.example SERVICE_USERNAME=ada
strata oidc-exchange --save
strata repo clone site
\`\`\`

## Output

On a terminal a list is a table, cut to the terminal's width, with relative times and colours (none with \`NO_COLOR\`).
Into a pipe or a file go lines of tab-separated whole values without a head. With \`--json\` standard output is the body
that the API answers, and nothing else. Messages and errors go to standard error. \`--debug\` adds the requests and stack
traces; neither holds a secret.

| exit status | meaning                                                  |
| ----------- | -------------------------------------------------------- |
| 0           | done; also when the reader of the output has gone away   |
| 1           | refused by the service, or failed                        |
| 2           | used wrongly: an unknown option, a missing argument      |
| 3           | not signed in, or the service does not take the token    |
| 130         | ended by Ctrl-C                                          |

GET, HEAD, PUT and DELETE are sent again, four times at most, after a connection that broke or was silent for two minutes,
and after 429, 502, 503 and 504: after the seconds of \`Retry-After\`, else after half a second, and each time twice as
long. A 404 to the repeat of a DELETE that may have been carried out counts as success. Any other request is sent again
only if the connection was refused, and the exchange of an identity token never. An error says where a request may have
been carried out all the same.

## As a library

The package is also a client for programs, with the types of the API:

\`\`\`js
import { createClient } from 'strata-cli';

const client = createClient({ baseUrl: 'https://strata.example', token: process.env.SERVICE_TOKEN });
const { repositories } = await client.call('listRepositories', { query: { limit: 10 } });
\`\`\`

\`call\` takes the id of an operation of the OpenAPI document, and its \`path\`, \`query\` and \`body\`. It throws \`ApiError\`,
with \`status\` and \`detail\`, for an answer other than 2xx.

An option that takes a list may be given again: its values add up. Another option with a value may be given once, and a
repetition is refused.

## Options of every command`;

function optionForm({ name, kind, value = 'TEXT' }: OptionDefinition): string {
  return `\`--${name}${kind === 'flag' ? '' : ` ${value}`}\``;
}

function optionText(option: OptionDefinition): string {
  const notes = [
    option.description,
    ...(option.kind === 'list'
      ? [option.whole === true ? 'may be given again' : 'separated by commas, or given again']
      : []),
    ...('choices' in option && option.choices !== undefined
      ? [`one of ${option.choices.map((text) => `\`${text}\``).join(', ')}`]
      : []),
    ...(option.kind === 'number' ? [`${option.min} to ${option.max}`] : []),
    ...(option.kind === 'number' && option.otherwise !== undefined ? [`${option.otherwise} by default`] : []),
    ...(option.required === true ? ['needed'] : []),
  ];
  return `- ${optionForm(option)}: ${escaped(notes.join('; '))}`;
}

const escaped = (text: string): string => text.replaceAll(/(?<!`)([*<>])(?!`)/g, '\\$1');

function commandText({
  name,
  summary,
  arguments: words = [],
  options = [],
  notes = [],
  examples = [],
}: CommandDefinition): string {
  const usage = [
    'strata',
    name,
    ...words.map(({ name: word, optional, several }) => {
      const text = word.toUpperCase();
      return several === true ? `[${text}…]` : optional === true ? `[${text}]` : text;
    }),
    ...options
      .filter(({ required }) => required === true)
      .map(({ name: option, value = 'TEXT' }) => `--${option} ${value}`),
    ...(options.some(({ required }) => required !== true) ? ['[OPTIONS]'] : []),
  ].join(' ');
  const list = [
    ...words.map(({ name: word, description }) => `- \`${word.toUpperCase()}\`: ${escaped(description)}`),
    ...options.map(optionText),
  ];
  return [
    `### strata ${name}`,
    `${summary}.`,
    `\`\`\`\n${usage}\n\`\`\``,
    ...(list.length === 0 ? [] : [list.join('\n')]),
    ...notes.map(escaped),
    ...(examples.length === 0 ? [] : [`\`\`\`sh\n${examples.join('\n')}\n\`\`\``]),
  ].join('\n\n');
}

/** Returns the page, in Markdown. */
export function referenceText(): string {
  const inGroup = (group: string): readonly CommandDefinition[] =>
    COMMANDS.filter(({ name }) => name.startsWith(`${group} `));
  const single = COMMANDS.filter(({ name }) => !name.includes(' '));
  const parts = [
    INTRODUCTION,
    GLOBAL_OPTIONS.map(optionText).join('\n'),
    '## Commands',
    ...single.map(commandText),
    ...GROUPS.flatMap(({ name, summary }) => [`## strata ${name}`, `${summary}.`, ...inGroup(name).map(commandText)]),
  ];
  return `${parts.join('\n\n')}\n`;
}
