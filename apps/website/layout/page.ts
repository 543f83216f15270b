/**
 * The document around every page: head, navigation, message of the page before, content and foot.
 *
 * Invariants: the document holds no inline script, style or event handler, and nothing from another origin. Each
 * page has a title of its own and one h1.
 */
import { assetPath, type ScriptName } from '../assets/files.ts';
import { buttonForm } from './forms.ts';
import { type Content, type Html, html, NOTHING } from './html.ts';
import type { Visit } from './visit.ts';

export interface PageOptions {
  /** The text of the browser's tab. The product's name is added. */
  readonly title: string;
  /** The page's own head: its h1, and tabs where it has them. Without it the content holds the h1. */
  readonly head?: Content;
  /** `narrow` is for forms, `middle` for texts. */
  readonly width?: 'narrow' | 'middle' | 'full';
  /** The modules that this page needs beside those of every page. */
  readonly scripts?: readonly ScriptName[];
}

const SCRIPTS_OF_EVERY_PAGE: readonly ScriptName[] = ['page.js'];

export function page(visit: Visit, options: PageOptions, content: Content): Html {
  const { title, head = null, width = 'full', scripts = [] } = options;
  const modules = [...SCRIPTS_OF_EVERY_PAGE, ...scripts].map(
    (name) => html`<script type="module" src="${assetPath(name)}"></script>`,
  );
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Strata</title>
<link rel="stylesheet" href="${assetPath('site.css')}">
<link rel="icon" href="${assetPath('mark.svg')}" type="image/svg+xml">
${modules}
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
${topBar(visit)}
<main class="page" id="content">${head !== null && html`<div class="head">${head}</div>`}${flashNote(visit)}
<div class="body stack${width === 'full' ? '' : ` ${width}`}">${content}</div></main>
<footer class="foot"><div class="page"><span>Strata</span> <a href="/docs">Docs</a></div></footer>
</body>
</html>
`;
}

const MARK = html`<svg viewBox="0 0 18 18" aria-hidden="true" fill="currentColor"><path d="M2 3.5 9 1l7 2.5L9 6z"/><path d="m2 7.6 7 2.5 7-2.5v2L9 12.1 2 9.6z" opacity=".75"/><path d="m2 11.7 7 2.5 7-2.5v2L9 16.2 2 13.7z" opacity=".5"/></svg>`;

function topBar(visit: Visit): Html {
  const { person } = visit;
  return html`<header class="top"><div class="page"><a class="brand" href="/">${MARK} Strata</a>${
    person === null ? signedOutLinks(visit) : signedInLinks(visit, person.username)
  }</div></header>`;
}

function signedOutLinks(visit: Visit): Html {
  return html`<nav class="who" aria-label="Account">${link(visit, 'Docs', '/docs')}${visit.signUpOpen && link(visit, 'Sign up', '/sign-up')}${link(
    visit,
    'Sign in',
    '/sign-in',
  )}</nav>`;
}

function signedInLinks(visit: Visit, username: string): Html {
  const links = visit.navigation.map(({ label, path, also }) => link(visit, label, path, also));
  const signOut = html`<button class="button quiet">Sign out</button>`;
  const nav = links.length > 0 && html`<nav aria-label="Account">${links}</nav>`;
  return html`${nav}<div class="who">${link(visit, username, '/settings', ['/mfa-tokens'])}${buttonForm(
    { action: '/sign-out', csrf: visit.csrf() },
    signOut,
  )}</div>`;
}

function link(visit: Visit, label: string, path: string, also: readonly string[] = []): Html {
  const { pathname } = visit.url;
  const isHere = [path, ...also].some((each) => pathname === each || pathname.startsWith(`${each}/`));
  return html`<a href="${path}"${isHere && html` aria-current="page"`}>${label}</a>`;
}

function flashNote({ flash }: Visit): Html {
  if (flash === null) return NOTHING;
  const isBad = flash.kind === 'failed';
  return html`<p class="note flash${isBad && ' bad'}" role="${isBad ? 'alert' : 'status'}">${flash.text}${
    flash.undo !== null && html` <a href="${flash.undo}">Undo</a>`
  }</p>`;
}
