/** The help of every command and group, and what the parser takes. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { COMMANDS, GLOBAL_OPTIONS } from '../../../apps/cli/definitions/all-commands.ts';
import { GROUPS } from '../../../apps/cli/definitions/groups.ts';
import { type Chosen, createProgram } from '../../../apps/cli/program.ts';

type Program = ReturnType<typeof createProgram>;

/** Parses the words; returns what was chosen, and what was written instead of it. */
function typed(words: readonly string[]): { chosen: Chosen | null; output: string } {
  let chosen: Chosen | null = null;
  let output = '';
  const program = createProgram('1.2.3', (found) => {
    chosen = found;
  });
  const capture = (command: Program): void => {
    const write = (text: string): void => void (output += text);
    command.configureOutput({ writeOut: write, writeErr: write, getOutHelpWidth: () => 80 });
    for (const child of command.commands) capture(child);
  };
  capture(program);
  try {
    program.parse(['node', 'strata', ...words]);
  } catch (error) {
    output += String(error);
  }
  return { chosen, output };
}

describe('the help', () => {
  for (const { name, summary, arguments: words = [], options = [], notes = [], examples = [] } of COMMANDS) {
    test(`of ${name} names every argument and option, fits 80 columns, and shows its examples`, () => {
      const { output } = typed([...name.split(' '), '--help']);
      const shown = output.replaceAll(/\s+/g, ' ');
      assert.ok(shown.startsWith(`Usage: strata ${name}`), output);
      for (const text of [summary, ...notes, ...examples])
        assert.ok(shown.includes(text.replaceAll(/\s+/g, ' ')), text);
      for (const { name: word, description } of words)
        assert.ok(shown.includes(word) && shown.includes(description), word);
      for (const option of [...options, ...GLOBAL_OPTIONS]) assert.ok(shown.includes(`--${option.name}`), option.name);
      const listed = output.split('\n').filter((line) => /^\s+(--|-\w,)/.test(line));
      for (const line of listed) assert.ok(line.length <= 80, line);
    });
  }

  test('of the whole names every group and every command of its own', () => {
    const { output } = typed(['--help']);
    const single = COMMANDS.filter(({ name }) => !name.includes(' '));
    for (const { name } of [...GROUPS, ...single]) assert.match(output, new RegExp(`^  ${name}\\b`, 'm'));
  });
});

describe('the parser', () => {
  test('takes options of every command before and after its name', () => {
    for (const words of [
      ['--json', '--base-url', 'https://a', 'usage'],
      ['usage', '--base-url', 'https://a', '--json'],
    ]) {
      const { chosen } = typed(words);
      assert.deepEqual(chosen?.globals, { json: true, debug: false, baseUrl: 'https://a', webUrl: null });
    }
  });

  test('reads lists without white space and choices without case, and offers the nearest word for a mistake', () => {
    const { chosen } = typed(['token', 'create', '--name', 'x', '--grants', 'all, git_http_read,']);
    assert.deepEqual(chosen?.given.list('grants'), ['ALL', 'GIT_HTTP_READ']);
    assert.match(typed(['repo', 'lst']).output, /Did you mean list/);
    assert.match(typed(['repo', 'list', '--limt', '3']).output, /Did you mean --limit/);
  });

  test('takes a number at each limit, and none past it', () => {
    for (const [value, taken] of [
      ['1', true],
      ['100', true],
      ['0', false],
      ['101', false],
      ['1.5', false],
      ['-1', false],
      ['1e1', false],
    ] as const) {
      const { chosen, output } = typed(['webhook', 'deliveries', 'id', '--limit', value]);
      assert.equal(chosen?.given.number('limit'), taken ? Number(value) : undefined, `${value} ${output}`);
    }
    assert.equal(typed(['login']).chosen?.given.number('poll-seconds'), 2);
    assert.equal(typed(['login', '--poll-seconds', '0.5']).chosen?.given.number('poll-seconds'), 0.5);
  });

  test('takes a flag that begins with no- as a flag of its own', () => {
    const { chosen } = typed(['bucket', 'edit', 'id', '--no-default']);
    assert.deepEqual([chosen?.given.flag('no-default'), chosen?.given.flag('default')], [true, false]);
  });
});
