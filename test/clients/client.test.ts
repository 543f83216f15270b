/** What a driver says is taken for an answer only if it is one, and what is shown of it holds no secret. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { askDriver, shownWords } from './client.ts';

const RUN = { url: 'http://localhost:15123/r/ada/git.git', token: 'strata_s3cr/et', folder: '/tmp/run' };

test('an answer is the last line of a driver that ended well', async () => {
  const driver = (program: string) => ({ command: process.execPath, args: ['--eval', program] });
  const request = { operation: 'version' } as const;
  const answer = `console.log('a warning'); console.log(JSON.stringify({ outcome: 'ok', version: '1' }));`;
  assert.deepEqual(await askDriver(driver(answer), request), { outcome: 'ok', version: '1' });
  const broken = [
    `${answer} process.exit(1)`,
    `console.log('{"outcome": "maybe"}')`,
    `console.error('no module named git')`,
    `process.kill(process.pid, 'SIGKILL')`,
  ];
  for (const program of broken) await assert.rejects(askDriver(driver(program), request), program);
  await assert.rejects(askDriver(driver(broken[2] ?? ''), request), /no module named git/);
});

test('the words of a client are shown in one line without token, port and folder, however the token was written', () => {
  const words =
    "fatal: 'http://ada:strata_s3cr%2Fet@localhost:15123/r'\n\u001B[31mtoken strata_s3cr/et\r\nin /tmp/run/new-1\n";
  assert.equal(shownWords(words, RUN), "fatal: 'http://ada:<token>@localhost/r' [31mtoken <token> in <folder>/new-1");
});
