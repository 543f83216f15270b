/** The credential helper: what it answers to git, and what it keeps to itself. */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../../support/cleanup.ts';
import { bundledCommand, type CommandLine, commandLine } from '../../support/command-line.ts';

const TOKEN = `strata_${'k'.repeat(46)}`;

describe('strata git-credential', () => {
  const ending = suiteEnding();
  let cli: CommandLine;

  beforeAll(async () => {
    const env = { SERVICE_TOKEN: TOKEN, SERVICE_USERNAME: 'ada', SERVICE_WEB_URL: 'https://git.example.org:8443' };
    const strata = { url: 'https://api.example.org' };
    cli = await commandLine(ending, strata, { command: await bundledCommand(ending), env });
  });

  const ask = (input: string, operation = 'get'): Promise<string> => cli.done(['git-credential', operation], { input });

  test('answers for the address of the service', async () => {
    const answer = `username=ada\npassword=${TOKEN}\n`;
    assert.equal(await ask('protocol=https\nhost=git.example.org:8443\n\n'), answer);
    const more =
      'capability[]=authtype\ncapability[]=state\nprotocol=https\nhost=GIT.example.org:8443\npath=r/ada/x.git\n';
    assert.equal(await ask(`${more}wwwauth[]=Basic realm="Strata"\n`), answer);
    assert.equal(await ask('url=https://ADA@git.example.org:8443/r/ada/x.git\n'), answer.replace('ada', 'ADA'));
  });

  // The attack: a submodule or a redirect makes git ask for the password of a host that only looks like the service.
  test('says nothing about any other protocol, host, port or user', async () => {
    const places = [
      'protocol=http\nhost=git.example.org:8443\n',
      'protocol=https\nhost=git.example.org\n',
      'protocol=https\nhost=git.example.org:8443.evil.example\n',
      'protocol=https\nhost=git.example.org:8443@evil.example\n',
      'protocol=https\nhost=evil.example/git.example.org:8443\n',
      'protocol=https\nhost=api.example.org\n',
      'protocol=https\nhost=git.example.org:8443\nusername=bob\n',
      'url=https://git.example.org:8443@evil.example/\n',
      '\nprotocol=https\nhost=git.example.org:8443\n',
      'nonsense',
      '',
    ];
    const answers = await Promise.all(places.map((input) => ask(input)));
    assert.deepEqual(
      answers,
      places.map(() => ''),
    );
  });

  test('stores nothing, takes every operation, and says what to do when its token was refused', async () => {
    const place = `protocol=https\nhost=git.example.org:8443\nusername=ada\n`;
    assert.equal(await ask(`${place}password=another\n`, 'store'), '');
    assert.equal(await ask('', 'capability'), 'version 0\n');
    assert.equal(await ask(place, 'a-later-operation'), '');
    const erased = await cli.run(['git-credential', 'erase'], { input: `${place}password=${TOKEN}\n` });
    assert.deepEqual([erased.code, erased.stdout], [0, '']);
    assert.match(erased.stderr, /does not take this token any more\. strata login --base-url/);
    assert.equal((await cli.run(['git-credential', 'erase'], { input: `${place}password=x\n` })).stderr, '');
    assert.match((await ask(place)) || '', /^username=ada\n/);
  });

  test('answers git itself, by the configuration that the documentation shows', async () => {
    const [node = '', file = ''] = cli.command;
    const helper = `credential.https://git.example.org:8443.helper=!'${node}' '${file}' git-credential`;
    const input = 'url=https://git.example.org:8443/r/ada/x.git\n\n';
    const filled = await cli.program(['git', '-c', helper, 'credential', 'fill'], { input });
    assert.match(filled.stdout, new RegExp(`^password=${TOKEN}$`, 'm'), filled.stderr);
    const other = await cli.program(['git', '-c', helper, 'credential', 'fill'], {
      input: 'url=https://evil.example/\n\n',
    });
    assert.notEqual(other.code, 0);
    assert.ok(!other.stdout.includes(TOKEN));
  });

  test('without a login it is silent', async () => {
    const input = 'protocol=http\nhost=localhost:8080\n';
    const env = { SERVICE_TOKEN: '', SERVICE_BASE_URL: '', SERVICE_WEB_URL: '' };
    assert.deepEqual(await cli.run(['git-credential', 'get'], { input, env }), { code: 0, stdout: '', stderr: '' });
  });
});
