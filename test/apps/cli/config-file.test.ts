/** The configuration file: who can read it, what survives a change, and what no message quotes. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { test } from 'vitest';
import { configPath, forgetHost, readConfig, storeHost } from '../../../apps/cli/settings/config-file.ts';
import { tempDir } from '../../support/temp-dir.ts';

const HOST = { token: 'a secret', username: 'ada', webUrl: 'https://web.example', tokenId: null, expiresAt: null };
const ignore = (): void => undefined;

test('is made for its owner alone, in a folder of theirs', async (context) => {
  const file = path.join(await tempDir(context), 'config', 'strata', 'config.toml');
  await storeHost(file, 'https://one.example', HOST);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.equal((await stat(path.dirname(file))).mode & 0o777, 0o700);
  assert.deepEqual(await readdir(path.dirname(file)), ['config.toml']);
  const config = await readConfig(file, assert.fail);
  assert.deepEqual([config?.current, config?.hosts.get('https://one.example')], ['https://one.example', HOST]);
});

test('keeps what it does not know, and becomes private again when it is written', async (context) => {
  const file = path.join(await tempDir(context), 'config.toml');
  await writeFile(file, 'editor = "vi"\n[hosts."https://one.example"]\nnote = "mine"\ntoken = "previous"\n', {
    mode: 0o644,
  });
  const warnings: string[] = [];
  await readConfig(file, (line) => void warnings.push(line));
  assert.match(warnings.join('\n'), /mode 644/);
  await storeHost(file, 'https://one.example', HOST);
  const text = await readFile(file, 'utf8');
  assert.match(text, /editor = "vi"/);
  assert.match(text, /note = "mine"/);
  assert.ok(!text.includes('previous'));
  assert.equal((await stat(file)).mode & 0o777, 0o600);
});

test('behind a symbolic link is changed where the link leads', async (context) => {
  const folder = await tempDir(context);
  await mkdir(path.join(folder, 'real'));
  await writeFile(path.join(folder, 'real', 'config.toml'), '', { mode: 0o600 });
  const file = path.join(folder, 'config.toml');
  await symlink(path.join(folder, 'real', 'config.toml'), file);
  await storeHost(file, 'https://one.example', HOST);
  assert.match(await readFile(path.join(folder, 'real', 'config.toml'), 'utf8'), /a secret/);
  assert.ok((await readConfig(file, ignore))?.hosts.has('https://one.example'));
});

test('goes on with another login when the current one is forgotten', async (context) => {
  const file = path.join(await tempDir(context), 'config.toml');
  for (const url of ['https://one.example', 'https://two.example']) await storeHost(file, url, HOST);
  await forgetHost(file, 'https://two.example');
  const config = await readConfig(file, ignore);
  assert.deepEqual([config?.current, config?.hosts.size], ['https://one.example', 1]);
  await forgetHost(file, 'https://one.example');
  assert.deepEqual(await readConfig(file, ignore), { current: null, hosts: new Map() });
});

test('that is broken is named with its line, and not quoted', async (context) => {
  const file = path.join(await tempDir(context), 'config.toml');
  await writeFile(file, 'current = "x"\ntoken = "a secret\n', { mode: 0o600 });
  await assert.rejects(readConfig(file, ignore), (error: Error) => {
    assert.match(error.message, /config\.toml is not TOML \(line 2\)/);
    assert.ok(!`${error.stack} ${error.cause}`.includes('a secret'));
    return true;
  });
  await writeFile(file, 'hosts = 3\ncurrent = 4\n', { mode: 0o600 });
  assert.deepEqual(await readConfig(file, ignore), { current: null, hosts: new Map() });
});

test('loses no login of several at the same time, in this process and in others', async (context) => {
  const file = path.join(await tempDir(context), 'strata', 'config.toml');
  const module = path.resolve(import.meta.dirname, '../../../apps/cli/settings/config-file.ts');
  const script = `
    const { storeHost } = await import(${JSON.stringify(module)});
    const [file, name] = process.argv.slice(1);
    const host = ${JSON.stringify(HOST)};
    await Promise.all([1, 2, 3].map((n) => storeHost(file, 'https://' + name + n + '.example', host)));`;
  await Promise.all(
    ['a', 'b', 'c'].map((name) =>
      promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script, file, name]),
    ),
  );
  assert.equal((await readConfig(file, assert.fail))?.hosts.size, 9);
  assert.deepEqual(await readdir(path.dirname(file)), ['config.toml']);
});

test('that another command left locked is named with its lock, and stays as it is', async (context) => {
  const file = path.join(await tempDir(context), 'config.toml');
  await writeFile(`${file}.lock`, '');
  await assert.rejects(storeHost(file, 'https://one.example', HOST), /if none runs, remove \S+config\.toml\.lock/);
  assert.deepEqual(await readdir(path.dirname(file)), ['config.toml.lock']);
});

test('is where the environment says', () => {
  assert.equal(configPath({ SERVICE_CONFIG: '/a/b.toml', HOME: '/h' }), '/a/b.toml');
  assert.equal(configPath({ XDG_CONFIG_HOME: '/x', HOME: '/h' }), '/x/strata/config.toml');
  assert.equal(configPath({ XDG_CONFIG_HOME: 'relative', HOME: '/h' }), '/h/.config/strata/config.toml');
  // The attack: a job whose HOME is empty, as with env -i and some runners, leaves its token in the checkout.
  for (const HOME of ['', '.', 'home']) {
    assert.equal(configPath({ HOME }), path.join(userInfo().homedir, '.config/strata/config.toml'), HOME);
  }
});
