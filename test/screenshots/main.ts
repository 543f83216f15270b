/**
 * `npm run screenshots`: every page at both widths and in both colour schemes, below .cache/screenshots, to be looked
 * at. With `--docs` it writes the few pictures of docs/screenshots instead.
 *
 * Invariants: the server, its data and its database are made for the run and removed after it.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { inspect } from 'node:util';
import { type Browser, type BrowserContext, chromium } from 'playwright-core';
import { fillDemo } from '../demo/fill.ts';
import { startReceiver } from '../demo/receiver.ts';
import { WIDTHS } from '../support/browser.ts';
import { findChromium } from '../support/chromium.ts';
import type { Ending } from '../support/cleanup.ts';
import { selfSignedCertificate } from '../support/self-signed-certificate.ts';
import { type Strata, startStrata } from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';
import { fillLong } from './long.ts';
import { PEOPLE, signIn, signUpAll, type Who } from './people.ts';
import { CLOSING_SHOTS, DOCS_SHOTS, SHOTS, type Shot } from './shots.ts';
import { createWeights, type Weights } from './weights.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const FOLDER = path.join(ROOT, '.cache/screenshots');
const DOCS_FOLDER = path.join(ROOT, 'docs/screenshots');
/** Pictures of the documentation: small files that are sharp in a text. */
const DOCS_VIEWPORT = { width: 960, height: 600 };

interface Look {
  readonly scheme: 'light' | 'dark';
  readonly viewport: { readonly width: number; readonly height: number };
}

const LOOKS: readonly Look[] = (['desktop', 'phone'] as const).flatMap((width) =>
  (['light', 'dark'] as const).map((scheme) => ({ scheme, viewport: { width: WIDTHS[width], height: 900 } })),
);

async function main(words: readonly string[]): Promise<void> {
  const executablePath = findChromium();
  if (executablePath === null) throw new Error('There is no Chromium: install one, or name one with STRATA_CHROMIUM');
  const steps: (() => unknown)[] = [];
  const ending: Ending = { onTestFinished: (step) => void steps.push(step) };
  try {
    const strata = await startFull(ending);
    const browser = await chromium.launch({ executablePath, chromiumSandbox: false });
    steps.push(() => browser.close());
    await signUpAll(browser, strata.url);
    if (words.includes('--docs')) return await shootDocs({ browser, strata, weights: createWeights() });
    await fillLong(strata);
    await rm(FOLDER, { recursive: true, force: true });
    await mkdir(FOLDER, { recursive: true });
    const weights = createWeights();
    await shootAll({ browser, strata, weights }, SHOTS, words);
    const closed = await strata.restart({ STRATA_SIGN_UP: 'closed' });
    for (const lost of ['layers', 'cache']) await rm(path.join(closed.dataDir, lost), { recursive: true });
    await shootAll({ browser, strata: closed, weights }, CLOSING_SHOTS, words);
    await weights.done();
    process.stdout.write(`The pictures are in ${FOLDER}\nThe heaviest pages: ${weights.heaviest(5).join(', ')}\n`);
    if (weights.faults.length > 0) throw new Error(weights.faults.join('\n'));
  } finally {
    for (let step = steps.pop(); step !== undefined; step = steps.pop()) await step();
  }
}

/** Starts a server with the demo, and a receiver of its webhooks that is down for builds and chats. */
async function startFull(ending: Ending): Promise<Strata> {
  const certificate = selfSignedCertificate();
  const authority = path.join(await tempDir(ending), 'receiver.pem');
  await writeFile(authority, certificate.cert);
  const receiver = await startReceiver(certificate, 0, (target) => (target === '/hooks' ? 204 : 503));
  ending.onTestFinished(() => receiver.close());
  const env = {
    ...{ STRATA_ALLOW_PRIVATE_TARGETS: 'true', STRATA_BYO_REQUIRES_PLAN: 'false' },
    NODE_EXTRA_CA_CERTS: authority,
  };
  const strata = await startStrata(ending, { log: 'postgres', env });
  const origin = `https://localhost:${receiver.port}`;
  await fillDemo(strata, { kind: `${origin}/hooks`, dead: origin });
  return strata;
}

interface Studio {
  readonly browser: Browser;
  readonly strata: Strata;
  readonly weights: Weights;
}

async function shootAll(studio: Studio, shots: readonly Shot[], words: readonly string[]): Promise<void> {
  const wanted = shots.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
  for (const look of LOOKS) {
    await shoot(studio, look, wanted, ({ name }) => ({
      path: path.join(FOLDER, `${name}.${look.viewport.width}.${look.scheme}.png`),
      fullPage: true,
    }));
  }
}

async function shootDocs(studio: Studio): Promise<void> {
  await rm(DOCS_FOLDER, { recursive: true, force: true });
  await mkdir(DOCS_FOLDER, { recursive: true });
  for (const scheme of ['light', 'dark'] as const) {
    const wanted = SHOTS.filter(({ name }) => DOCS_SHOTS[scheme].includes(name));
    await shoot(studio, { scheme, viewport: DOCS_VIEWPORT }, wanted, ({ name }) => ({
      path: path.join(DOCS_FOLDER, `${name}.${scheme}.png`),
    }));
  }
  process.stdout.write(`The pictures are in ${DOCS_FOLDER}\n`);
}

interface PictureOptions {
  readonly path: string;
  readonly fullPage?: boolean;
}

async function shoot(
  { browser, strata, weights }: Studio,
  look: Look,
  shots: readonly Shot[],
  optionsOf: (shot: Shot) => PictureOptions,
): Promise<void> {
  const visitors = new Map<Who, BrowserContext>();
  for (const shot of shots) {
    const context = visitors.get(shot.who) ?? (await visitor(browser, strata, look, shot.who));
    visitors.set(shot.who, context);
    const page = await context.newPage();
    weights.watch(shot, page);
    try {
      await page.goto(shot.path);
      await shot.prepare?.(page);
      await page.screenshot(optionsOf(shot));
    } catch (error) {
      throw new Error(`The picture ${shot.name} at ${page.url()}`, { cause: error });
    }
    await page.close();
  }
  await Promise.all([...visitors.values()].map((context) => context.close()));
}

async function visitor(browser: Browser, { url }: Strata, look: Look, who: Who): Promise<BrowserContext> {
  const context = await browser.newContext({
    baseURL: url,
    viewport: look.viewport,
    colorScheme: look.scheme,
    reducedMotion: 'reduce',
  });
  context.setDefaultTimeout(15_000);
  const person = PEOPLE[who];
  if (person !== null) {
    const page = await context.newPage();
    await signIn(page, person);
    await page.close();
  }
  return context;
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`${inspect(error)}\n`);
  process.exitCode = 1;
});
