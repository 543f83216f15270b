/** Steps that several journeys through the website share, each as a person takes it: by links, labels and buttons. */
import type { Page } from 'playwright-core';
import { assertAccessible, LOOKS, type VisitorOptions } from './browser.ts';

export const PASSWORD = 'a long enough passphrase';

export type Check = (page: Page) => Promise<void>;

/** Only a page with scripts can be checked; its markup is the same without. */
export const unchecked: Check = async () => undefined;

export interface Way {
  /** Completes a test's title. */
  readonly how: string;
  /** Tells the accounts of the two ways apart. */
  readonly suffix: string;
  readonly look: VisitorOptions;
  readonly check: Check;
}

/**
 * The two ways to take a journey: with every page checked in every look, and with scripts off on a phone in the dark.
 */
export const WAYS: readonly Way[] = [
  { how: 'with scripts', suffix: 'scripts', look: { ...LOOKS[0], scripts: true }, check: assertAccessible },
  { how: 'without scripts', suffix: 'plain', look: { ...LOOKS[1], scripts: false }, check: unchecked },
];

export async function signUp(page: Page, username: string, check: Check = unchecked): Promise<void> {
  await page.goto('/sign-up');
  await page.getByLabel('Username').fill(username);
  await page.getByLabel('Email').fill(`${username}@example.org`);
  await page.getByLabel('Password').fill(PASSWORD);
  await check(page);
  await page.getByRole('button', { name: 'Sign up' }).click();
  await page.getByText(`Welcome, ${username}.`).waitFor();
}

/** Sends the sign-in page's form; `next` is the path that the person wanted. */
export async function signIn(page: Page, login: string, next: string, password = PASSWORD): Promise<void> {
  await page.goto(`/sign-in?next=${encodeURIComponent(next)}`);
  await page.getByLabel('Username or email').fill(login);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}
