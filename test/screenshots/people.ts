/** Who visits the pages: people whose accounts are in the states that pages have to show. */
import { Secret, TOTP } from 'otpauth';
import type { Browser, Page } from 'playwright-core';
import { DEMO } from '../demo/fill.ts';
import { LONG } from './long.ts';

export interface Person {
  readonly username: string;
  readonly email: string;
  readonly password: string;
}

const { password } = DEMO;

const NEWCOMER: Person = { username: 'newcomer', email: 'newcomer@example.org', password };
/** Makes what pages show only once: a secret, a key, a pending token. */
const MAKER: Person = { username: 'maker', email: 'maker@example.org', password };
/** Stands at the second step of the sign-in. */
const GUARDED: Person = { username: 'guarded', email: 'guarded@example.org', password };
/** Has deleted the account, and may undo it. */
const LEAVER: Person = { username: 'leaver', email: 'leaver@example.org', password };

/** Null is a stranger. */
export const PEOPLE = {
  stranger: null,
  demo: DEMO,
  newcomer: NEWCOMER,
  long: LONG,
  maker: MAKER,
  guarded: GUARDED,
  leaver: LEAVER,
} as const satisfies Readonly<Record<string, Person | null>>;

export type Who = keyof typeof PEOPLE;

/** Signs everybody up but the demo's account, which exists. */
export async function signUpAll(browser: Browser, url: string): Promise<void> {
  for (const person of [NEWCOMER, LONG, MAKER, GUARDED, LEAVER]) {
    const page = await browser.newPage({ baseURL: url });
    await page.goto('/sign-up');
    await page.getByLabel('Username').fill(person.username);
    await page.getByLabel('Email').fill(person.email);
    await page.getByLabel('Password').fill(person.password);
    await leave(page);
    if (person === GUARDED) await addApp(page);
    if (person === LEAVER) await deleteAccount(page);
    await page.close();
  }
}

export async function signIn(page: Page, person: Person): Promise<void> {
  await page.goto('/sign-in');
  await page.locator('input[name=login]').fill(person.username);
  await page.locator('input[name=password]').fill(person.password);
  await leave(page);
}

/** Sends the page's form and waits for the page that follows. */
async function leave(page: Page): Promise<void> {
  const before = page.url();
  await page.locator('main form button').first().click();
  await page.waitForURL((url) => url.href !== before);
}

async function addApp(page: Page): Promise<void> {
  await page.goto('/mfa-tokens/add/app');
  await page.getByLabel('Name').fill('Phone');
  await page.getByLabel('Your current password').fill(password);
  await page.locator('main form button').first().click();
  const key = (await page.locator('main .copy code').first().innerText()).replaceAll(' ', '');
  const app = new TOTP({ secret: Secret.fromBase32(key), digits: 6, period: 30 });
  await page.locator('input[name=code]').fill(app.generate());
  await leave(page);
}

async function deleteAccount(page: Page): Promise<void> {
  await page.goto('/settings/delete');
  await page.locator('input[name=username]').fill(LEAVER.username);
  await page.locator('input[name=current_password]').fill(password);
  await leave(page);
}
