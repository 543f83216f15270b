/**
 * Runs each tool of `npm run check` on sources that it must refuse: a check that accepts everything looks like a check
 * that passes. The samples are under samples/, by check and then by the path that they pretend to have. The first line
 * of each sample names the message that the tool must print, or says that it must print none.
 *
 * Invariants: the tests run the project's own commands with its own settings, in a copy that holds the samples in
 * place of the code.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { checksOf } from './checks.ts';
import { ROOT } from './source-tree.ts';

const scratch = mkdtempSync(join(tmpdir(), 'strata-tools-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const SETTINGS = ['package.json', '.gitignore', '.biome.json', '.knip.jsonc', '.oxlintrc.json', 'tsconfig.json'];
const BROWSER = 'apps/website/assets/scripts';
const FOLDER_SETTINGS = [
  'core/tsconfig.json',
  'core/platform.d.ts',
  'apps/launcher/tsconfig.json',
  `${BROWSER}/tsconfig.json`,
];
const LINT_RULES = 'test/architecture/lint';

interface Verdict {
  readonly status: number | null;
  readonly lines: readonly string[];
}

/** Creates a project of one check's samples and runs the named checks in it. */
function runOnSamples(folder: string, checkNames: readonly string[]): { root: string; verdict: Verdict } {
  const root = join(scratch, folder);
  for (const file of [...SETTINGS, ...FOLDER_SETTINGS, LINT_RULES]) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    cpSync(join(ROOT, file), join(root, file), { recursive: true });
  }
  cpSync(join(import.meta.dirname, 'samples', folder), root, { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  const checks = checksOf(root).filter(({ name }) => checkNames.includes(name));
  assert.equal(checks.length, checkNames.length, 'the checks are those of npm run check');
  const results = checks.map(({ command, args }) => spawnSync(command, args, { cwd: root, encoding: 'utf8' }));
  const lines = results.flatMap(({ stdout, stderr }) => `${stdout}\n${stderr}`.split('\n'));
  const failed = results.every(({ status }) => status !== null && status !== 0);
  return { root, verdict: { status: failed ? 1 : 0, lines } };
}

/** Returns the samples of a folder with the message that their first lines expect; null for accepted ones. */
function samplesIn(folder: string): { path: string; expected: string | null }[] {
  const base = join(import.meta.dirname, 'samples', folder);
  return globSync('**/*.{ts,mjs,js}', { cwd: base })
    .sort()
    .flatMap((path) => {
      const line = /^\/\/ (accepted|refused: (.+))\n/.exec(readFileSync(join(base, path), 'utf8'));
      return line === null ? [] : [{ path, expected: line[2] ?? null }];
    });
}

for (const { folder, checks } of [
  { folder: 'types', checks: ['types', 'types of core', 'types of apps/launcher', `types of ${BROWSER}`] },
  { folder: 'lint', checks: ['lint'] },
  { folder: 'format', checks: ['format'] },
]) {
  describe(`the check of ${folder}`, () => {
    const { verdict } = runOnSamples(folder, checks);

    test('fails', () => assert.equal(verdict.status, 1, verdict.lines.join('\n')));

    for (const { path, expected } of samplesIn(folder)) {
      const printed = verdict.lines.filter((line) => line.includes(path));
      if (expected === null) test(`accepts ${path}`, () => assert.deepEqual(printed, []));
      else {
        test(`refuses ${path}`, () => {
          assert.ok(
            printed.some((line) => line.includes(expected)),
            `${expected} was not printed for ${path}, but: ${printed.join('\n') || 'nothing'}`,
          );
        });
      }
    }
  });
}

describe('the check of dead code', () => {
  const { verdict } = runOnSamples('dead-code', ['dead code']);
  const assertPrinted = (pattern: RegExp) =>
    assert.ok(
      verdict.lines.some((line) => pattern.test(line)),
      verdict.lines.join('\n'),
    );

  test('fails', () => assert.equal(verdict.status, 1));
  test('refuses an export that nothing imports', () => assertPrinted(/^unused .*adapters\/git\/exports\.ts/));
  test('refuses an exported type that nothing imports', () =>
    assertPrinted(/^UnusedShape .*adapters\/git\/exports\.ts/));
  test('refuses a file that nothing imports', () => assertPrinted(/^adapters\/git\/unused-file\.ts/));
  test('refuses a package that package.json does not name', () =>
    assertPrinted(/^undeclared .*apps\/server\/main\.ts/));
  test('accepts an export that is used', () => assert.ok(!verdict.lines.some((line) => line.startsWith('used '))));
});

test('every lint rule of the project has a sample that it refuses', () => {
  // The first line of a sample names its rule as oxlint prints it: `typescript(no-explicit-any)`.
  const withSample = new Set(samplesIn('lint').map(({ expected }) => expected));
  const text = readFileSync(join(ROOT, '.oxlintrc.json'), 'utf8');
  const settings: unknown = JSON.parse(text.replace(/^\s*\/\/.*$/gm, ''));
  const { rules, overrides } = settings as { rules: object; overrides: { rules: object }[] };
  const active = [rules, ...overrides.map((override) => override.rules)].flatMap((set) =>
    Object.entries(set).flatMap(([name, level]) => (level === 'off' ? [] : [name])),
  );
  const printed = active.map((name) => (name.includes('/') ? `${name.replace('/', '(')})` : `eslint(${name})`));
  assert.deepEqual(
    [...new Set(printed)].filter((name) => !withSample.has(name)),
    [],
  );
});
