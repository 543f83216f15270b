/**
 * A flood of wrong passwords from many addresses against one node that also serves git. It prints what git had to wait
 * before and during the flood.
 */
import assert from 'node:assert/strict';
import { Agent, request as send } from 'node:http';
import { test } from 'vitest';
import {
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
  startStrata,
} from '../support/strata.ts';
import { median, percentile } from '../bench/statistics.ts';
import { noteFigure } from '../support/figures.ts';

const GUESSES = 10_000;
/** Guesses under way at once, each on a connection of its own. */
const AT_ONCE = 200;
const BEFORE = 30;

interface Form {
  readonly cookie: string;
  readonly token: string;
}

interface Answer {
  readonly status: number;
  readonly cookie: string;
  readonly body: string;
}

const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });

function visit(url: string, method: string, headers: Readonly<Record<string, string>>, body = ''): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const length = body === '' ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const sent = send(url, { agent, method, headers: { ...headers, ...length } }, (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => parts.push(part));
      answer.on('error', reject);
      answer.on('end', () => {
        const cookie = (answer.headers['set-cookie'] ?? []).map((each) => each.split(';')[0]).join('; ');
        resolve({ status: answer.statusCode ?? 0, cookie, body: Buffer.concat(parts).toString('utf8') });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

async function formOf(strata: Strata): Promise<Form> {
  const { cookie, body } = await visit(`${strata.url}/sign-in`, 'GET', {});
  const [, token = ''] = /name="_csrf" value="([^"]+)"/.exec(body) ?? [];
  assert.notEqual(token, '', body);
  return { cookie, token };
}

function guess(strata: Strata, form: Form, login: string, password: string, address: string): Promise<Answer> {
  const body = new URLSearchParams({ _csrf: form.token, login, password }).toString();
  const type = 'application/x-www-form-urlencoded';
  const headers = { 'content-type': type, cookie: form.cookie, origin: strata.url, 'x-forwarded-for': address };
  return visit(`${strata.url}/sign-in`, 'POST', headers, body);
}

test('ten thousand wrong passwords from a thousand addresses leave git usable, and lock nobody out', async (context) => {
  const strata = await startStrata(context, { env: { STRATA_TRUSTED_PROXIES: '127.0.0.1,::1' } });
  const ada = await createAccount(strata, 'ada');
  const url = await createRepository(strata, ada, 'project');
  const work = await newWorkTree(context);
  await git(work, ['push', '--quiet', url, 'main']);
  const lsRemote = async (): Promise<number> => {
    const start = performance.now();
    await git(work, ['ls-remote', '--quiet', url]);
    return performance.now() - start;
  };
  const quiet: number[] = [];
  for (let n = 0; n < BEFORE; n += 1) quiet.push(await lsRemote());

  const form = await formOf(strata);
  const statuses = new Map<number, number>();
  let next = 0;
  let done = false;
  const attacker = async (): Promise<void> => {
    while (next < GUESSES) {
      const n = next++;
      // Ten guesses from each address, against a tenth of the names: no limit of rates stops any of them.
      const address = `203.${Math.floor(n / 2_560)}.${Math.floor(n / 10) % 256}.7`;
      const { status } = await guess(
        strata,
        form,
        n % 50 === 0 ? 'ada' : `name-${n % 1_000}`,
        'wrong password',
        address,
      );
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  const start = performance.now();
  const flood = Promise.all(Array.from({ length: AT_ONCE }, attacker)).finally(() => {
    done = true;
  });
  const during: number[] = [];
  while (!done) during.push(await lsRemote());
  await flood;
  const seconds = (performance.now() - start) / 1_000;

  await commitFile(work, 'second', 'second\n');
  await git(work, ['push', '--quiet', url, 'main']);
  const counts = [...statuses].map(([status, count]) => `${count} with ${status}`).join(', ');
  noteFigure(context, `${GUESSES} wrong passwords in ${seconds.toFixed(1)} s: ${counts}`);
  for (const [when, times] of [
    ['before', quiet],
    ['during', during],
  ] as const) {
    const [p50, p99] = [median(times), percentile(times, 0.99)].map((ms) => `${ms.toFixed(0)} ms`);
    noteFigure(context, `git ls-remote ${when}: p50 ${p50}, p99 ${p99}, of ${times.length}`);
  }
  const answered = new Set(statuses.keys());
  for (const status of answered) assert.ok([422, 429, 503].includes(status), counts);
  assert.ok((statuses.get(422) ?? 0) > 100, counts);
  assert.doesNotMatch(strata.log(), /"level":(50|60)/);
});
