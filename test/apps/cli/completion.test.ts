/** Completion in the shells themselves: what a press of the Tab key makes of a line. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../../support/cleanup.ts';
import { needs } from '../../support/optional-suites.ts';
import { noPseudoTerminal, startOnTerminal } from '../../support/pseudo-terminal.ts';
import { skippedFor } from '../../support/skipped.ts';
import { tempDir } from '../../support/temp-dir.ts';

const CHECKOUT = path.join(import.meta.dirname, '../../../apps/cli/checkout.ts');
const run = promisify(execFile);

describe('Completion', () => {
  const ending = suiteEnding();
  let folder: string;
  const env = () => ({ PATH: process.env['PATH'] ?? '', HOME: folder, TERM: 'dumb', LC_ALL: 'C.UTF-8' });

  beforeAll(async () => {
    folder = await tempDir(ending);
    const scripts = ['zsh', 'fish'].map(async (shell) => {
      const { stdout } = await run(process.execPath, [CHECKOUT, 'completion', shell], { env: env() });
      await writeFile(path.join(folder, `strata.${shell}`), stdout);
    });
    await Promise.all(scripts);
  });

  describe('in fish', needs('fish'), () => {
    async function offered(line: string): Promise<readonly string[]> {
      const script = `source ${path.join(folder, 'strata.fish')}; complete -C '${line}'`;
      const { stdout, stderr } = await run('fish', ['--no-config', '-c', script], { env: env(), cwd: folder });
      assert.equal(stderr, '');
      return stdout
        .trim()
        .split('\n')
        .map((found) => found.split('\t')[0] ?? '');
    }

    test('offers commands, their options and the values of those, and nothing of other commands', async () => {
      assert.deepEqual(await offered('strata repo cl'), ['clone']);
      assert.deepEqual(await offered('strata token '), ['create', 'delete', 'edit', 'get', 'list']);
      assert.deepEqual(await offered('strata --json repo create --cl'), ['--clone']);
      assert.deepEqual(await offered('strata token create --grants API_O'), ['API_OIDC_TRUST']);
      assert.deepEqual(await offered('strata completion z'), ['zsh']);
      assert.deepEqual(await offered('strata repo list --cl'), ['']);
    });
  });

  describe('in zsh', needs('zsh'), () => {
    test(
      'completes commands, options and values as they are typed',
      skippedFor(noPseudoTerminal()),
      async (context) => {
        const zsh = startOnTerminal(context, ['zsh', '-f', '-i'], env());
        // It must end by the interrupt that ends this test; without the quotes the echo of the line would be the
        // answer.
        zsh.type(`TRAPINT() { exit }; PS1=; autoload -Uz compinit && compinit -D -u; source '${folder}/strata.zsh'\n`);
        zsh.type(`strata() { print -r "GIVEN:$*:" }; print REA''DY\n`);
        await zsh.until(/READY/);
        const lines: readonly (readonly [typed: string, given: string])[] = [
          ['strata repo cl\tx\n', 'repo clone x'],
          ['strata tok\tcr\t--expi\t30d\n', 'token create --expires-at 30d'],
          ['strata token create --grants API_O\t\n', 'token create --grants API_OIDC_TRUST'],
          ['strata --json trust-rule ref\tx\n', '--json trust-rule refusals x'],
          ['strata completion f\t\n', 'completion fish'],
        ];
        for (const [typed, given] of lines) {
          zsh.type(typed);
          await zsh.until(new RegExp(`GIVEN:${given}:`));
        }
      },
    );
  });
});
