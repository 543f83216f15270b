/**
 * A flood of wrong passwords from many addresses against one node that also serves git. It prints what git had to wait
 * before and during the flood, and how long people took to sign in.
 */
import assert from 'node:assert/strict';
import { Agent, request as send } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { type TestContext, test } from 'vitest';
import { median, percentile } from '../../bench/statistics.ts';
import { noteFigure } from '../../support/figures.ts';
import {
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
  startStrata,
} from '../../support/strata.ts';

const GUESSES = 10_000;
/** Guesses under way at the same time, each on a connection of its own. */
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

interface Guess {
  readonly login: string;
  readonly password: string;
  readonly address: string;
}

function guess(strata: Strata, form: Form, { login, password, address }: Guess): Promise<Answer> {
  const body = new URLSearchParams({ _csrf: form.token, login, password }).toString();
  const type = 'application/x-www-form-urlencoded';
  const headers = { 'content-type': type, cookie: form.cookie, origin: strata.url, 'x-forwarded-for': address };
  return visit(`${strata.url}/sign-in`, 'POST', headers, body);
}

/** Signs in, again and again while the service is too busy, and returns the milliseconds until it let the person in. */
async function signInPatiently(strata: Strata, form: Form, person: Guess): Promise<number> {
  const start = performance.now();
  for (;;) {
    const { status, body } = await guess(strata, form, person);
    const spent = performance.now() - start;
    // Whoever signs in is not one of a flood.
    if (status === 303) return pause(1_000, spent);
    assert.equal(status, 503, body);
    await pause(1_000);
  }
}

/** Sends the guesses, with this address for each, and calls the function over and over until all are answered. */
async function flood(
  strata: Strata,
  addressOf: (n: number) => string,
  meanwhile: readonly (() => Promise<void>)[],
): Promise<{ readonly seconds: number; readonly statuses: ReadonlyMap<number, number> }> {
  const form = await formOf(strata);
  const statuses = new Map<number, number>();
  let next = 0;
  let done = false;
  const attacker = async (): Promise<void> => {
    while (next < GUESSES) {
      const n = next++;
      const login = n % 50 === 0 ? 'ada' : `name-${n % 1_000}`;
      const { status } = await guess(strata, form, { login, password: 'wrong password', address: addressOf(n) });
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  const start = performance.now();
  const attack = Promise.all(Array.from({ length: AT_ONCE }, attacker)).finally(() => {
    done = true;
  });
  const others = meanwhile.map(async (act) => {
    while (!done) await act();
  });
  await Promise.all([attack, ...others]);
  return { seconds: (performance.now() - start) / 1_000, statuses };
}

function note(context: TestContext, what: string, times: readonly number[]): void {
  const [p50, p99, max] = [median(times), percentile(times, 0.99), Math.max(...times)].map(
    (ms) => `${ms.toFixed(0)} ms`,
  );
  noteFigure(context, `${what}: p50 ${p50}, p99 ${p99}, at most ${max}, of ${times.length}`);
}

/** Against a tenth of the names from each address: no limit of rates stops any of these guesses. */
const FLOODS = {
  'ten in a row from each of a thousand addresses': (n: number) =>
    `203.${Math.floor(n / 2_560)}.${Math.floor(n / 10) % 256}.7`,
  'a thousand addresses in turn': (n: number) => `203.${Math.floor((n % 1_000) / 256)}.${(n % 1_000) % 256}.7`,
};

for (const [kind, addressOf] of Object.entries(FLOODS))
  test(`ten thousand wrong passwords, ${kind}, leave git usable and let people sign in`, async (context) => {
    const strata = await startStrata(context, { env: { STRATA_TRUSTED_PROXIES: '127.0.0.1,::1' } });
    const [ada] = [await createAccount(strata, 'ada'), await createAccount(strata, 'grace')];
    const url = await createRepository(strata, ada, 'project');
    const work = await newWorkTree(context);
    await git(work, ['push', '--quiet', url, 'main']);
    const lsRemote = async (times: number[]): Promise<void> => {
      const start = performance.now();
      await git(work, ['ls-remote', '--quiet', url]);
      times.push(performance.now() - start);
    };
    const [quiet, during, known, unknown]: [number[], number[], number[], number[]] = [[], [], [], []];
    for (let n = 0; n < BEFORE; n += 1) await lsRemote(quiet);
    const form = await formOf(strata);
    const password = 'correct horse battery';
    const { cookie, status } = await guess(strata, form, { login: 'ada', password, address: '192.0.2.1' });
    assert.equal(status, 303);
    // The cookie that says in which browser somebody signed in, without the session.
    const marked = cookie.split('; ').filter((pair) => pair.startsWith('strata_browser='));
    assert.equal(marked.length, 1, cookie);
    const browser = { ...form, cookie: [form.cookie, ...marked].join('; ') };

    // Ada's browser has signed in before; Grace's has not, and each of her tries is from an address of its own.
    const { seconds, statuses } = await flood(strata, addressOf, [
      () => lsRemote(during),
      async () =>
        void known.push(await signInPatiently(strata, browser, { login: 'ada', password, address: '192.0.2.1' })),
      async () => {
        const address = `198.51.100.${unknown.length % 256}`;
        unknown.push(await signInPatiently(strata, form, { login: 'grace', password, address }));
      },
    ]);

    await commitFile(work, 'second', 'second\n');
    await git(work, ['push', '--quiet', url, 'main']);
    const counts = [...statuses].map(([answer, count]) => `${count} with ${answer}`).join(', ');
    noteFigure(context, `${GUESSES} wrong passwords in ${seconds.toFixed(1)} s: ${counts}`);
    note(context, 'git ls-remote before', quiet);
    note(context, 'git ls-remote during', during);
    note(context, 'signing in with a known browser', known);
    note(context, 'signing in with another browser', unknown);
    for (const answer of statuses.keys()) assert.ok([422, 429, 503].includes(answer), counts);
    assert.ok((statuses.get(422) ?? 0) > 100, counts);
    // In turns, since a slow machine compares fewer passwords in a second.
    const turnMs = (seconds * 1_000) / (statuses.get(422) ?? 1);
    assert.ok(Math.max(...known) < 60 * turnMs, 'a known browser waits for few turns');
    assert.ok(Math.max(...unknown) < 1_000 * turnMs, 'another browser waits for one turn of each address at most');
    assert.doesNotMatch(strata.log(), /"level":(50|60)/);
  });
