/**
 * Drives the git of the machine: `driver.ts [--protocol=<0|1|2>] [--credential-helper]`.
 *
 * Invariants: no setting of the machine or its user reaches git. Without `--credential-helper` the credentials stand
 * in the URL; with it git asks for them after the server's first 401, as it does with a keychain.
 */
import { spawnSync } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import type { DriverAnswer, DriverRequest, Place } from '../driver-protocol.ts';

const { values } = parseArgs({
  options: { protocol: { type: 'string', default: '2' }, 'credential-helper': { type: 'boolean', default: false } },
});
const asksForCredentials = values['credential-helper'];
const HELPER = '!f() { echo "username=$CLIENT_USERNAME"; echo "password=$CLIENT_TOKEN"; }; f';

const request = JSON.parse(await text(process.stdin)) as DriverRequest;
process.stdout.write(`${JSON.stringify(answerTo(request))}\n`);

function answerTo(asked: DriverRequest): DriverAnswer {
  if (asked.operation === 'version') {
    const { stdout } = spawnSync('git', ['--version'], { encoding: 'utf8' });
    return { outcome: 'ok', version: stdout.replace('git version', '').trim() };
  }
  const ran = runGit(asked, argumentsOf(asked));
  return ran.status === 0 ? { outcome: 'ok' } : { outcome: 'refused', words: ran.stderr };
}

function argumentsOf(asked: Exclude<DriverRequest, { readonly operation: 'version' }>): string[] {
  const inside = ['-C', asked.folder];
  switch (asked.operation) {
    case 'clone': {
      const depth = asked.depth === undefined ? [] : [`--depth=${asked.depth}`];
      return ['clone', '--quiet', ...depth, '--', addressOf(asked), asked.folder];
    }
    case 'fetch':
      return [...inside, 'fetch', '--quiet', 'origin'];
    case 'unshallow':
      return [...inside, 'fetch', '--quiet', '--unshallow', 'origin'];
    case 'push':
      return [...inside, 'push', '--quiet', '--', addressOf(asked), asked.refspec];
  }
}

function addressOf({ url, username, token }: Place): string {
  const address = new URL(url);
  if (asksForCredentials) return address.href;
  address.username = username;
  address.password = token;
  return address.href;
}

function runGit({ username, token }: Place, args: readonly string[]) {
  const helper = asksForCredentials ? ['-c', `credential.helper=${HELPER}`] : [];
  return spawnSync('git', ['-c', `protocol.version=${values.protocol}`, ...helper, ...args], {
    encoding: 'utf8',
    env: {
      PATH: process.env['PATH'],
      HOME: '/nonexistent',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_TERMINAL_PROMPT: '0',
      LC_ALL: 'C.UTF-8',
      CLIENT_USERNAME: username,
      CLIENT_TOKEN: token,
    },
  });
}
