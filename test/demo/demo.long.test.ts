/** `npm run demo`: what the README says of it is there, and it ends without a trace outside its folder. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { test } from 'vitest';
import { cleanUp } from '../support/cleanup.ts';
import { freePort } from '../support/free-port.ts';
import { tempDir } from '../support/temp-dir.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const FILLED_SPAN_MS = 300_000;
const ENDED_SPAN_MS = 60_000;
/** More links than the pages of the demo have. */
const LINKS_MAX = 500;

interface Demo {
  readonly process: ChildProcess;
  /** Resolves with all that the demo says until it can be looked at. */
  readonly said: Promise<string>;
}

/** Runs the command of `npm run demo`. */
function startDemo(dataDir: string, port: number): Demo {
  const args = [path.join(ROOT, 'apps/launcher/launch.cjs'), path.join(ROOT, 'test/demo/main.ts')];
  const env = { ...process.env, STRATA_DATA_DIR: dataDir, STRATA_PORT: String(port) };
  const demo = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const said = new Promise<string>((resolve, reject) => {
    const note = (chunk: Buffer): void => {
      output += chunk.toString('utf8');
      if (output.includes('┘')) resolve(output);
    };
    demo.stdout.on('data', note);
    demo.stderr.on('data', note);
    demo.once('exit', (code) => reject(new Error(`The demo ended with ${code}:\n${output.slice(-4_000)}`)));
    setTimeout(() => reject(new Error(`The demo is not ready:\n${output.slice(-4_000)}`)), FILLED_SPAN_MS).unref();
  });
  return { process: demo, said };
}

async function end({ process: demo }: Demo): Promise<void> {
  if (demo.exitCode !== null || demo.signalCode !== null) return;
  const ended = once(demo, 'exit');
  demo.kill('SIGTERM');
  await Promise.race([
    ended,
    pause(ENDED_SPAN_MS, undefined, { ref: false }).then(() => {
      demo.kill('SIGKILL');
      throw new Error('The demo did not end');
    }),
  ]);
}

/** Signs in with the form of the page, as the demo says, and returns the cookies. */
async function signInAsSaid(said: string): Promise<{ readonly origin: string; readonly cookie: string }> {
  const row = (label: string): string => new RegExp(`│  ${label} +(.+?) +│`).exec(said)?.[1] ?? '';
  const [page, login, password] = [row('Address'), row('Name'), row('Password')];
  const shown = await fetch(page);
  const { origin } = new URL(page);
  const [, token = ''] = /name="_csrf" value="([^"]+)"/.exec(await shown.text()) ?? [];
  const sent = await fetch(page, {
    method: 'POST',
    redirect: 'manual',
    headers: { origin, cookie: cookiesOf(shown), 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ _csrf: token, login, password }).toString(),
  });
  assert.equal(sent.status, 303, await sent.text());
  return { origin, cookie: cookiesOf(sent) };
}

function cookiesOf(answer: Response): string {
  return answer.headers
    .getSetCookie()
    .map((cookie) => cookie.split(';', 1)[0])
    .join('; ');
}

test('the demo fills its folder, shows a page behind every link of its account, and ends', async (context) => {
  const dataDir = await tempDir(context);
  const port = await freePort();
  const demo = startDemo(dataDir, port);
  cleanUp(context, () => end(demo));
  const said = await demo.said;
  const box = /^Making the demo in .+\n\n┌─+┐\n(│.+│\n){3}└─+┘/;
  assert.match(said, box, 'it says nothing else');
  const { origin, cookie } = await signInAsSaid(said);
  assert.equal(origin, `http://localhost:${port}`);

  const reached = new Map<string, string>();
  const read = async (link: string): Promise<void> => {
    const answer = await fetch(new URL(link, origin), { headers: { cookie }, redirect: 'manual' });
    const text = await answer.text();
    assert.ok([200, 303].includes(answer.status), `${link} answers ${answer.status}`);
    reached.set(link, answer.headers.get('content-type')?.startsWith('text/html') === true ? text : '');
  };
  const starts = ['/ada', '/access-tokens', '/webhooks', '/usage', '/settings', '/mfa-tokens', '/docs'];
  for (const start of starts) await read(start);
  const repositories = [...new Set(reached.get('/ada')?.match(/(?<=href=")\/ada\/[a-z]+(?=")/g))];
  assert.deepEqual(repositories.toSorted(), ['/ada/dotfiles', '/ada/handbook', '/ada/lantern']);
  const webhooks = [...new Set(reached.get('/webhooks')?.match(/(?<=href=")\/webhooks\/[0-9a-f-]{36}(?=")/g))];
  for (const page of [...repositories, ...webhooks]) await read(page);
  const statuses = webhooks.map((webhook) => reached.get(webhook) ?? '').join('');
  for (const status of ['Delivered', 'Failed', 'Pending']) assert.match(statuses, new RegExp(status, 'i'));

  const links = [...reached.values()].flatMap((html) => [...html.matchAll(/ href="(\/[^"#]*)/g)]);
  const paths = new Set(links.map(([, link = '']) => link.replaceAll('&#38;', '&').replaceAll('&amp;', '&')));
  assert.ok(paths.size > 50 && paths.size < LINKS_MAX, `${paths.size} links`);
  for (const link of paths) if (!reached.has(link)) await read(link);

  await end(demo);
  assert.equal(demo.process.exitCode, 0);
  await assert.rejects(fetch(`${origin}/healthz`));
});
