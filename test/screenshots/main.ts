/**
 * `npm run screenshots`: every page at both widths and in both colour schemes, below .cache/screenshots, to be looked at.
 *
 * Must stay true: the server, its data and its database are made for the run and removed after it.
 */
import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { WIDTHS } from '../support/browser.ts';
import { findChromium } from '../support/chromium.ts';
import type { Ending } from '../support/cleanup.ts';
import { type Strata, startStrata } from '../support/strata.ts';
import { DEMO, fillDemo } from '../demo/fill.ts';
import { SHOTS, type Who } from './shots.ts';
import { fillLong, LONG } from './long.ts';

const FOLDER = path.resolve(import.meta.dirname, '../../.cache/screenshots');
const NEWCOMER = { username: 'newcomer', email: 'newcomer@example.org', password: DEMO.password } as const;
// Nobody listens on the discard port.
const DEAD = 'https://localhost:9';

async function main(words: readonly string[]): Promise<void> {
  const executablePath = findChromium();
  if (executablePath === null) throw new Error('There is no Chromium: install one, or name one with STRATA_CHROMIUM');
  const steps: (() => unknown)[] = [];
  const ending: Ending = { onTestFinished: (step) => void steps.push(step) };
  try {
    await rm(FOLDER, { recursive: true, force: true });
    await mkdir(FOLDER, { recursive: true });
    const strata = await startStrata(ending, { log: 'postgres', env: { STRATA_ALLOW_PRIVATE_TARGETS: 'true' } });
    await fillDemo(strata, { kind: `${DEAD}/hooks`, dead: DEAD });
    const browser = await chromium.launch({ executablePath, chromiumSandbox: false });
    steps.push(() => browser.close());
    await signUp(browser, strata, NEWCOMER);
    await signUp(browser, strata, LONG);
    await fillLong(strata);
    for (const width of ['desktop', 'phone'] as const) {
      for (const scheme of ['light', 'dark'] as const) await shootAll(browser, strata, { width, scheme }, words);
    }
  } finally {
    for (let step = steps.pop(); step !== undefined; step = steps.pop()) await step();
  }
  process.stdout.write(`The pictures are in ${FOLDER}\n`);
}

interface Look {
  readonly width: keyof typeof WIDTHS;
  readonly scheme: 'light' | 'dark';
}

async function shootAll(browser: Browser, strata: Strata, look: Look, words: readonly string[]): Promise<void> {
  const visitors = new Map<Who, BrowserContext>();
  for (const { name, who, path: target, prepare } of SHOTS) {
    if (words.length > 0 && !words.some((word) => name.includes(word))) continue;
    const context = visitors.get(who) ?? (await visitor(browser, strata, look, who));
    visitors.set(who, context);
    const page = await context.newPage();
    await page.goto(target);
    await prepare?.(page);
    const file = `${name}.${WIDTHS[look.width]}.${look.scheme}.png`;
    await page.screenshot({ path: path.join(FOLDER, file), fullPage: true });
    await page.close();
  }
  await Promise.all([...visitors.values()].map((context) => context.close()));
}

async function visitor(browser: Browser, strata: Strata, { width, scheme }: Look, who: Who): Promise<BrowserContext> {
  const context = await browser.newContext({
    baseURL: strata.url,
    viewport: { width: WIDTHS[width], height: 900 },
    colorScheme: scheme,
    reducedMotion: 'reduce',
  });
  const account = { stranger: null, newcomer: NEWCOMER, demo: DEMO, long: LONG }[who];
  if (account !== null) {
    const page = await context.newPage();
    await page.goto('/sign-in');
    await page.locator('input[name=login]').fill(account.username);
    await page.locator('input[name=password]').fill(account.password);
    await leave(page);
    await page.close();
  }
  return context;
}

async function signUp(
  browser: Browser,
  { url }: Strata,
  { username, email, password }: { readonly username: string; readonly email: string; readonly password: string },
): Promise<void> {
  const page = await browser.newPage({ baseURL: url });
  await page.goto('/sign-up');
  await page.getByLabel('User name').fill(username);
  await page.getByLabel('E-mail').fill(email);
  await page.getByLabel('Password').fill(password);
  await leave(page);
  await page.close();
}

/** Sends the page's form and waits for the page that follows. */
async function leave(page: Page): Promise<void> {
  const before = page.url();
  await page.locator('main form button').first().click();
  await page.waitForURL((url) => url.href !== before);
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exitCode = 1;
});
