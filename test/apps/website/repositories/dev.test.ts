import { test } from 'vitest';
import { mkdir, writeFile, cp } from 'node:fs/promises';
import path from 'node:path';
import { execFileSync } from 'node:child_process';
import { chromium } from 'playwright-core';
import { createAccount, createRepository, git, newWorkTree } from '../../../support/strata.ts';
import { sharedParts, startNode } from '../../../support/strata-on-postgres.ts';
import { signIn } from '../../../support/site-browser.ts';
import { tempDir } from '../../../support/temp-dir.ts';

test('dev', { timeout: 300_000 }, async (context) => {
  const strata = await startNode(context, await sharedParts(context));
  const ada = await createAccount(strata, 'ada');
  const url = await createRepository(strata, ada, 'fastify');
  await createRepository(strata, ada, 'telescope');
  const dir = await tempDir(context);
  execFileSync('git', ['clone', '-q', '--bare', '/work/shared/repos/fastify.bundle', `${dir}/f.git`]);
  const heads = execFileSync('git', ['-C', `${dir}/f.git`, 'for-each-ref', '--format=%(refname)'])
    .toString()
    .split('\n')
    .slice(0, 10);
  console.log(heads);
  await git(`${dir}/f.git`, ['push', '--quiet', url, 'refs/heads/*', 'refs/tags/*']);
  const browser = await signIn(strata, ada);
  const head = execFileSync('git', ['-C', `${dir}/f.git`, 'rev-parse', 'refs/heads/main'])
    .toString()
    .trim();
  const branch = 'main';
  const pages = [
    '/ada',
    '/new',
    '/ada/fastify',
    '/ada/telescope',
    `/ada/fastify/tree/${branch}/lib`,
    `/ada/fastify/blob/${branch}/fastify.js`,
    `/ada/fastify/blob/${branch}/README.md`,
    `/ada/fastify/blob/${branch}/docs/Reference/Routes.md`,
    `/ada/fastify/commits/${branch}`,
    `/ada/fastify/commit/${head}`,
    '/ada/fastify/settings',
    '/ada/fastify/tree/nothing',
    `/ada/fastify/commit/${execFileSync('git', [
      '-C',
      `${dir}/f.git`,
      'log',
      '-1',
      '--format=%H',
      '--skip=20',
      '--no-merges',
      'main',
    ])
      .toString()
      .trim()}`,
  ];
  for (const page of pages) {
    let times = [];
    let got;
    for (let n = 0; n < 6; n += 1) {
      const since = performance.now();
      got = await browser.get(page);
      times.push((performance.now() - since).toFixed(1));
    }
    times.unshift('T');
    (await import('node:fs')).appendFileSync(
      '/tmp/w/pages-shots/times.txt',
      [got.status, got.bytes.length, times.join(' '), page, '\n'].join(' '),
    );
    console.log(got.status, got.bytes.length, times.join(' '), page);
    if (got.status >= 500) console.log(strata.log().slice(-3000));
  }
  const chrome = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  for (const [scheme, width] of [
    ['light', 1280],
    ['dark', 390],
  ] as const) {
    const ctx = await chrome.newContext({ colorScheme: scheme, viewport: { width, height: 1150 } });
    await ctx.addCookies([
      { name: 'strata_session', value: browser.cookie.split('=')[1], domain: 'localhost', path: '/' },
    ]);
    const tab = await ctx.newPage();
    tab.on('console', (m) => console.log(scheme, m.text()));
    for (const [n, page] of pages.entries()) {
      await tab.goto(strata.url + page);
      await tab.screenshot({ path: `/tmp/w/pages-shots/${width}-${String(n).padStart(2, '0')}.png`, fullPage: false });
    }
  }
  await chrome.close();
});
