/** The help of every command and group, and what the parser takes. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { pairs } from '../../../apps/cli/commands/fields.ts';
import { COMMANDS, GLOBAL_OPTIONS } from '../../../apps/cli/definitions/all-commands.ts';
import type { OptionDefinition } from '../../../apps/cli/definitions/definition.ts';
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

  for (const { name, arguments: words = [], options = [] } of COMMANDS) {
    const typedWith = (...more: readonly string[]) =>
      typed([...name.split(' '), ...words.map(({ choices }) => choices?.[0] ?? 'word'), ...more]);
    const valueOf = (option: OptionDefinition): string =>
      option.kind === 'number' ? String(option.max) : ('choices' in option && option.choices?.[0]) || 'one';
    for (const option of [...options, ...GLOBAL_OPTIONS]) {
      const needed = options
        .filter((other) => other.required === true && other.name !== option.name)
        .flatMap((other) => [`--${other.name}`, valueOf(other)]);
      const given = option.kind === 'flag' ? [`--${option.name}`] : [`--${option.name}`, valueOf(option)];
      const what = option.kind === 'flag' ? 'is set' : option.kind === 'list' ? 'adds up' : 'is refused';
      test(`${name} --${option.name}, given twice: ${what}`, () => {
        const { chosen, output } = typedWith(...needed, ...given, ...given);
        if (option.kind === 'list') {
          assert.deepEqual(chosen?.given.list(option.name), [valueOf(option), valueOf(option)], output);
        } else if (option.kind === 'flag') {
          assert.ok(chosen !== null, output);
        } else {
          assert.equal(chosen, null);
          assert.match(output, new RegExp(`^error: option '--${option.name} <\\w+>' is given twice: give it once\n`));
        }
        assert.ok(typedWith(...needed, ...given).chosen !== null, 'once it is taken');
      });
    }
  }

  test('refuses an option of every command that stands before and after the name', () => {
    const { chosen, output } = typed(['--base-url', 'https://a', 'usage', '--base-url', 'https://b']);
    assert.equal(chosen, null);
    assert.match(output, /'--base-url <URL>' is given twice: give it once/);
  });

  test('adds up lists with and without commas, and shows no value that is given twice', () => {
    const { chosen } = typed(['audit', 'verify', 'log', '--checkpoint', 'a,b', '--checkpoint', 'c']);
    assert.deepEqual(chosen?.given.list('checkpoint'), ['a', 'b', 'c']);
    const refused = typed(['oidc-exchange', '--id-token', 'first.secret', '--id-token', 'second.secret']);
    assert.ok(!refused.output.includes('secret'), refused.output);
  });

  test('refuses a checkpoint without a name, which would be left out of what is checked', () => {
    for (const given of [[''], [','], ['a', ''], ['', 'a']]) {
      const { chosen, output } = typed(['audit', 'verify', 'log', ...given.flatMap((name) => ['--checkpoint', name])]);
      assert.equal(chosen, null, given.join(' '));
      assert.match(output, /'--checkpoint <FILES>' argument '.?' is invalid\. It names nothing/);
    }
    const { chosen } = typed(['token', 'edit', 'id', '--repository-ids', '']);
    assert.deepEqual(chosen?.given.list('repository-ids'), [], 'others can be emptied');
  });

  test('refuses a name of a pair that has two values', () => {
    assert.deepEqual(pairs(['ref=a', 'actor=b=c']), { ref: 'a', actor: 'b=c' });
    assert.throws(() => pairs(['ref=a', 'ref=b']), /"ref" is given twice/);
    assert.throws(() => pairs(['__proto__=a', '__proto__=b']), /"__proto__" is given twice/);
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
