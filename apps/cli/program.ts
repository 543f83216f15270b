/**
 * The parser of the command line, made from the definitions.
 *
 * Invariants: what was typed is checked here against the definition, so that a handler meets only values that the
 * definition allows. A fault in it is a usage error (exit status 2).
 */
import { Command, InvalidArgumentError, Option } from 'commander';
import { COMMANDS, GLOBAL_OPTIONS } from './definitions/all-commands.ts';
import type { CommandDefinition, OptionDefinition } from './definitions/definition.ts';
import { GROUPS } from './definitions/groups.ts';
import type { Given, Globals } from './session/context.ts';

export interface Chosen {
  readonly command: CommandDefinition;
  readonly given: Given;
  readonly globals: Globals;
}

const ENVIRONMENT_HELP = `
Environment:
  SERVICE_TOKEN      an access token; it goes before the one of the configuration file
  SERVICE_USERNAME   the account of a repository that is named without one
  SERVICE_CONFIG     the configuration file; $XDG_CONFIG_HOME/strata/config.toml by default
  SERVICE_BASE_URL   the address of the service; http://localhost:8080 by default
  SERVICE_WEB_URL    the address of its website and of git, if it is another one
  HTTPS_PROXY, HTTP_PROXY, NO_PROXY, NODE_EXTRA_CA_CERTS, SSL_CERT_FILE, NO_COLOR as in other programs

Exit status: 0 done, 1 refused or failed, 2 used wrongly, 3 not signed in.
Documentation: docs/cli.md, and strata COMMAND --help.`;

/** Returns the parser. Parsing calls `choose` with the command that was typed. */
export function createProgram(version: string, choose: (chosen: Chosen) => void): Command {
  const program = new Command('strata')
    .description('The command line of Strata, a Git hosting service')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .addHelpText('after', ENVIRONMENT_HELP)
    .configureHelp({ showGlobalOptions: true })
    .showSuggestionAfterError()
    .exitOverride();
  program.helpCommand('help [command]', 'show help');
  for (const option of GLOBAL_OPTIONS) program.addOption(optionOf(program, option));
  const groups = new Map(
    GROUPS.map(({ name, summary }) => [name, program.command(name).description(summary).helpCommand(false)] as const),
  );
  for (const definition of COMMANDS) {
    const words = definition.name.split(' ');
    const parent = words.length > 1 ? groups.get(words[0] ?? '') : program;
    if (parent === undefined) throw new Error(`${definition.name} belongs to no group`);
    addCommand(program, parent.command(words.at(-1) ?? ''), definition, choose);
  }
  return program;
}

function addCommand(
  program: Command,
  command: Command,
  definition: CommandDefinition,
  choose: (chosen: Chosen) => void,
): void {
  command
    .description(definition.summary)
    .helpOption('-h, --help', 'show help')
    .configureHelp({ showGlobalOptions: true });
  for (const { name, description, optional, several, choices } of definition.arguments ?? []) {
    const form = several === true ? `[${name}...]` : optional === true ? `[${name}]` : `<${name}>`;
    const argument = command.createArgument(form, description);
    command.addArgument(choices === undefined ? argument : argument.choices([...choices]));
  }
  for (const option of definition.options ?? []) command.addOption(optionOf(command, option));
  const after = [
    ...(definition.notes ?? []).map((note) => `\n${note}`),
    ...(definition.examples === undefined
      ? []
      : [`\nExamples:\n${definition.examples.map((line) => `  ${line}`).join('\n')}`]),
  ];
  if (after.length > 0) command.addHelpText('after', after.join('\n'));
  command.action(() => {
    choose({ command: definition, given: givenOf(command, definition), globals: globalsOf(program) });
  });
}

/** Lists add up; another value may be given once, since the first of two would be lost without a word. */
function optionOf(command: Command, definition: OptionDefinition): Option {
  const { name, value = 'TEXT', description, required, kind } = definition;
  if (kind === 'flag') {
    // A flag of its own, not the negation of another.
    const option = new Option(`--${name}`, description);
    option.negate = false;
    return option;
  }
  const option = new Option(`--${name} <${value}>`, helpOf(definition));
  if (required === true) option.makeOptionMandatory();
  return option.argParser((text: string, before: ReturnType<typeof valueOf> | undefined) => {
    if (before === undefined) return valueOf(definition, text);
    if (typeof before === 'object' && definition.kind === 'list') return [...before, ...listOf(definition, text)];
    // The values are left out: they may be secrets.
    return command.error(`error: option '${option.flags}' is given twice: give it once`);
  });
}

function helpOf(definition: OptionDefinition): string {
  const { description } = definition;
  const choices = definition.kind === 'text' || definition.kind === 'list' ? definition.choices : undefined;
  if (choices !== undefined) return `${description} (${definition.kind === 'list' ? 'of ' : ''}${choices.join(', ')})`;
  if (definition.kind === 'number' && definition.otherwise !== undefined) {
    return `${description} (${definition.otherwise} by default)`;
  }
  return description;
}

function valueOf(
  definition: Exclude<OptionDefinition, { kind: 'flag' }>,
  text: string,
): string | number | readonly string[] {
  switch (definition.kind) {
    case 'number':
      return numberOf(definition, text);
    case 'text':
      return oneOf(definition.choices, text);
    case 'list':
      return listOf(definition, text);
  }
}

function listOf(
  { choices, filled = false, whole = false }: Extract<OptionDefinition, { kind: 'list' }>,
  text: string,
): readonly string[] {
  if (whole) return [text];
  const words = text.split(',').map((word) => word.trim());
  const found = words.filter((word) => word !== '');
  if (filled && found.length === 0) throw new InvalidArgumentError('It names nothing.');
  return found.map((word) => oneOf(choices, word));
}

function oneOf(choices: readonly string[] | undefined, text: string): string {
  if (choices === undefined) return text;
  const found = choices.find((choice) => choice.toLowerCase() === text.toLowerCase());
  if (found === undefined) throw new InvalidArgumentError(`Allowed are ${choices.join(', ')}.`);
  return found;
}

function numberOf(definition: Extract<OptionDefinition, { kind: 'number' }>, text: string): number {
  const { min, max, fractions } = definition;
  const form = fractions === true ? /^\d{1,7}(\.\d{1,6})?$/ : /^\d{1,15}$/;
  const value = form.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new InvalidArgumentError(`Give a ${fractions === true ? '' : 'whole '}number from ${min} to ${max}.`);
}

function keyOf(option: string): string {
  return option.replaceAll(/-(\w)/g, (_whole, letter: string) => letter.toUpperCase());
}

function givenOf(command: Command, definition: CommandDefinition): Given {
  const options = new Map<string, unknown>(Object.entries(command.opts()));
  const names = (definition.arguments ?? []).map(({ name }) => name);
  const argument = (name: string): string | undefined => command.args[names.indexOf(name)];
  const valueOfOption = (name: string): unknown => {
    const found = options.get(keyOf(name));
    const known = definition.options?.find((option) => option.name === name);
    return found === undefined && known?.kind === 'number' ? known.otherwise : found;
  };
  return {
    argument: (name) => {
      const found = argument(name);
      if (found === undefined) throw new TypeError(`${definition.name} has no argument ${name}`);
      return found;
    },
    optionalArgument: argument,
    several: (name) => command.args.slice(names.indexOf(name)),
    text: (name) => {
      const found = valueOfOption(name);
      return typeof found === 'string' ? found : undefined;
    },
    number: (name) => {
      const found = valueOfOption(name);
      return typeof found === 'number' ? found : undefined;
    },
    list: (name) => {
      const found = valueOfOption(name);
      return Array.isArray(found) ? found.map(String) : undefined;
    },
    flag: (name) => valueOfOption(name) === true,
  };
}

function globalsOf(program: Command): Globals {
  const options = new Map<string, unknown>(Object.entries(program.opts()));
  const text = (name: string): string | null => {
    const found = options.get(name);
    return typeof found === 'string' ? found : null;
  };
  return {
    json: options.get('json') === true,
    debug: options.get('debug') === true,
    baseUrl: text('baseUrl'),
    webUrl: text('webUrl'),
  };
}
