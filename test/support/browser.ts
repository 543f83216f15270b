/**
 * A real Chromium without a window, for tests of the website.
 *
 * Invariants: a page that logs an error, throws, breaks the content security policy, loads something from another
 * origin or misses one of its own files fails its test, even if nothing on the page shows it.
 */
import assert from 'node:assert/strict';
import axe from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { z } from 'zod';
import { findChromium } from './chromium.ts';
import { cleanUp, type Ending } from './cleanup.ts';

/** How long a page may take to show what a test waits for. */
const WAIT_MS = 15_000;

export const WIDTHS = { phone: 390, desktop: 1_280 } as const;
const HEIGHT = 900;

export interface VisitorOptions {
  readonly width?: keyof typeof WIDTHS;
  readonly scheme?: 'light' | 'dark';
  /** False turns scripts off, as some visitors do. */
  readonly scripts?: boolean;
}

/** Each width and each scheme once: the screenshots show the other pairs. */
export const LOOKS = [
  { width: 'desktop', scheme: 'light' },
  { width: 'phone', scheme: 'dark' },
] as const satisfies readonly VisitorOptions[];

/** One person's browser: cookies of their own, and a page. */
export interface Visitor {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What the pages did wrong so far. The test fails at its end if there is anything. */
  readonly faults: readonly string[];
}

export interface TestBrowser {
  /** Opens a browser without cookies at this origin; it closes with the test. */
  visit(context: Ending, origin: string, options?: VisitorOptions): Promise<Visitor>;
}

/** Starts one browser, which ends with the suite. Its tests share it, and each visitor has cookies of their own. */
export async function startBrowser(ending: Ending): Promise<TestBrowser> {
  const executablePath = findChromium();
  if (executablePath === null) throw new Error('There is no Chromium here: use needs(chromium)');
  // Chromium's own sandbox does not start for root, and the only pages are those of the server under test.
  const browser = await chromium.launch({ executablePath, headless: true, chromiumSandbox: false });
  cleanUp(ending, () => browser.close());
  return { visit: (context, origin, options = {}) => visit(browser, context, origin, options) };
}

async function visit(browser: Browser, ending: Ending, origin: string, options: VisitorOptions): Promise<Visitor> {
  const { width = 'desktop', scheme = 'light', scripts = true } = options;
  const context = await browser.newContext({
    baseURL: origin,
    viewport: { width: WIDTHS[width], height: HEIGHT },
    colorScheme: scheme,
    javaScriptEnabled: scripts,
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'UTC',
  });
  context.setDefaultTimeout(WAIT_MS);
  const faults: string[] = [];
  watch(context, origin, faults);
  const page = await context.newPage();
  cleanUp(ending, async () => {
    await context.close();
    assert.deepEqual(faults, []);
  });
  return { page, context, faults };
}

function watch(context: BrowserContext, origin: string, faults: string[]): void {
  context.on('console', (message) => {
    const text = message.text();
    // Reported below for everything but the page itself, which may well answer 404 or 422.
    if (message.type() === 'error' && !text.startsWith('Failed to load resource')) faults.push(`console: ${text}`);
  });
  context.on('weberror', (error) => faults.push(`script: ${error.error().message}`));
  context.on('request', (request) => {
    const { protocol, origin: asked } = new URL(request.url());
    if (/^https?:$/.test(protocol) && asked !== origin) faults.push(`another origin: ${request.url()}`);
  });
  context.on('response', (response) => {
    const isPage = response.request().resourceType() === 'document';
    if (response.status() >= (isPage ? 500 : 400)) faults.push(`${response.status()}: ${response.url()}`);
  });
}

/** Run in the page, whose globals the compiler does not know here. */
const RUN_AXE = "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)";
const IS_DARK = "matchMedia('(prefers-color-scheme: dark)').matches";
const SIDEWAYS_PX = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';

const VIOLATIONS = z.array(
  z.object({
    id: z.string(),
    impact: z.string().nullable(),
    nodes: z.array(z.object({ html: z.string(), failureSummary: z.string().optional() })),
  }),
);

/**
 * Checks the page as it stands with axe-core in every look: no serious and no critical violation, and no sideways
 * scrolling. The page must have scripts on, since axe-core waits for timers of the page.
 */
export async function assertAccessible(page: Page): Promise<void> {
  const size = page.viewportSize();
  const scheme = (await page.evaluate(IS_DARK)) === true ? 'dark' : 'light';
  await page.evaluate(axe.source);
  for (const look of LOOKS) {
    await page.emulateMedia({ colorScheme: look.scheme });
    await page.setViewportSize({ width: WIDTHS[look.width], height: HEIGHT });
    await assertAccessibleNow(page, `${page.url()} on a ${look.width} in ${look.scheme} colours`);
  }
  await page.emulateMedia({ colorScheme: scheme });
  if (size !== null) await page.setViewportSize(size);
}

async function assertAccessibleNow(page: Page, at: string): Promise<void> {
  const violations = VIOLATIONS.parse(await page.evaluate(RUN_AXE));
  const grave = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  assert.deepEqual(grave, [], at);
  assert.equal(await page.evaluate(SIDEWAYS_PX), 0, `${at} scrolls sideways`);
}
