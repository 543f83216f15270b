/** Options that are given twice, of every command of `strata-admin`. */
import assert from 'node:assert/strict';
import type { Command, Option } from 'commander';
import { describe, test } from 'vitest';
import { LOSS_REASON_LENGTH_MAX } from '../../../apps/admin/checkpoint-commands.ts';
import { OPERATOR_NAME_LENGTH_MAX } from '../../../apps/admin/operator.ts';
import { createProgram } from '../../../apps/admin/program.ts';

const ID = '01a20000-0000-7000-8000-00000000000a';
const OTHER_ID = '01a20000-0000-7000-8000-00000000000b';
/** Two values that an option takes; others take any text. */
const VALUES: Readonly<Record<string, readonly [string, string]>> = {
  '--plan <plan>': ['FREE', 'PRO'],
  '--scope <scope>': ['ALL_REPO', 'SELECTED_REPO'],
  '--grants <list>': ['GIT_HTTP_READ,API_REPOS_READ', 'API_STORAGE'],
  '--repository-ids <list>': [ID, OTHER_ID],
  '--expires-at <time>': ['2030-01-31T00:00:00Z', '2031-01-31T00:00:00Z'],
  '--code <code>': ['WXYZ-1234', 'WXYZ-1235'],
  '--repository <username/name>': ['ada/engine', 'ada/other'],
  '--repository <id>': [ID, OTHER_ID],
  '--account <id>': [ID, OTHER_ID],
  '--revision <number>': ['1', '2'],
  '--address <address>': ['127.0.0.1', '127.0.0.2'],
};
const LISTS: Readonly<Record<string, readonly string[]>> = {
  '--grants <list>': ['GIT_HTTP_READ', 'API_REPOS_READ', 'API_STORAGE'],
  '--repository-ids <list>': [ID, OTHER_ID],
};

function leavesOf(command: Command, words: readonly string[] = []): (readonly [readonly string[], Command])[] {
  if (command.commands.length === 0) return [[words, command]];
  return command.commands.flatMap((child) => leavesOf(child, [...words, child.name()]));
}

const valuesOf = ({ flags }: Option): readonly [string, string] => VALUES[flags] ?? ['one', 'two'];

/** Parses the words without running a command; returns the options, or the message of the refusal. */
function parse(path: readonly string[], words: readonly string[]): Readonly<Record<string, unknown>> | string {
  const program = createProgram();
  const [, leaf] = leavesOf(program).find(([name]) => name.join(' ') === path.join(' ')) ?? [];
  assert.ok(leaf !== undefined);
  let refusal = '';
  for (const command of [program, ...program.commands, leaf])
    command.configureOutput({ writeErr: (text) => (refusal += text) });
  leaf.action(() => undefined);
  try {
    program.parse(['node', 'strata-admin', ...path, ...words]);
  } catch {
    return refusal;
  }
  return leaf.opts();
}

describe('an option that is given twice', () => {
  for (const [path, command] of leavesOf(createProgram())) {
    const operands = command.registeredArguments.map(() => './file');
    const needed = (except: Option): readonly string[] =>
      command.options
        .filter((option) => option.mandatory && option.flags !== except.flags)
        .flatMap((option) =>
          option.isBoolean() ? [option.flags] : [option.flags.split(' ')[0] ?? '', valuesOf(option)[0]],
        );
    for (const option of command.options) {
      const { flags } = option;
      const [name = ''] = flags.split(' ');
      const list = LISTS[flags];
      const what = option.isBoolean() ? 'is set' : list === undefined ? 'is refused' : 'adds up';
      test(`${path.join(' ')} ${name}: ${what}`, () => {
        const [first, second] = valuesOf(option);
        const twice = option.isBoolean() ? [name, name] : [name, first, name, second];
        const parsed = parse(path, [...operands, ...needed(option), ...twice]);
        if (option.isBoolean() || list !== undefined) {
          assert.ok(typeof parsed === 'object', JSON.stringify(parsed));
          assert.deepEqual(parsed[option.attributeName()], list ?? true);
          return;
        }
        assert.ok(typeof parsed === 'string', JSON.stringify(parsed));
        // The values are not shown: one may be a secret.
        assert.equal(parsed.split('\n')[0], `error: option '${flags}' is given twice: give it once`);
        const once = parse(path, [...operands, ...needed(option), name, first]);
        assert.ok(typeof once === 'object', JSON.stringify(once));
      });
    }
  }

  test('--as, of the program itself: is refused', () => {
    const name = ['--username', 'ada', '--plan', 'PRO', '--as', 'grace'];
    assert.equal(typeof parse(['account', 'set-plan'], name), 'object');
    const twice = parse(['account', 'set-plan'], [...name, '--as', 'ops']);
    assert.match(JSON.stringify(twice), /'--as <name>' is given twice/);
  });

  test('takes the place of a default, in parts or whole', () => {
    const parts = parse(['token', 'create'], ['--username', 'ada', '--name', 'ci', '--grants', 'API_STORAGE']);
    assert.ok(typeof parts === 'object');
    assert.deepEqual([parts['grants'], parts['repositoryIds']], [['API_STORAGE'], []]);
  });
});

describe('the name of who types a command', () => {
  test('has 1 to 100 characters and stands in one line', () => {
    const by = (name: string) => parse(['account', 'set-plan'], ['--username', 'a', '--plan', 'PRO', '--as', name]);
    for (const name of ['a', 'Grace Hopper', 'grace@example.org', 'x'.repeat(OPERATOR_NAME_LENGTH_MAX)]) {
      assert.equal(typeof by(name), 'object', name);
    }
    for (const name of ['', ' ', 'a\nb', 'a\u001b[1m', '\u202ea', 'x'.repeat(OPERATOR_NAME_LENGTH_MAX + 1)]) {
      assert.match(JSON.stringify(by(name)), /Give a name of 1 to 100 characters/, JSON.stringify(name));
    }
  });
});

describe('the reason of a lost checkpoint', () => {
  test('has 1 to 500 characters and stands in one line', () => {
    const given = (reason: string) => parse(['log', 'checkpoints', 'accept-loss'], ['--all', '--reason', reason]);
    for (const reason of ['a', 'The disk died', 'x'.repeat(LOSS_REASON_LENGTH_MAX)]) {
      assert.equal(typeof given(reason), 'object', reason);
    }
    for (const reason of ['', ' ', 'a\nb', 'x'.repeat(LOSS_REASON_LENGTH_MAX + 1)]) {
      assert.match(JSON.stringify(given(reason)), /Give a reason of 1 to 500 characters/, JSON.stringify(reason));
    }
  });
});
