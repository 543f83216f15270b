/**
 * Pages for a person's browser.
 *
 * Invariants: only an address of HTTP is opened, and no shell reads it.
 */
import { spawn } from 'node:child_process';
import type { Environment } from '../client/proxy.ts';
import type { Terminal } from './terminal.ts';

/** Opens the page in a browser; returns false if the person has none here. A browser that fails goes unnoticed. */
export function openBrowser(terminal: Terminal, environment: Environment, page: string): boolean {
  if (!terminal.isInteractive || !URL.canParse(page) || !/^https?:$/.test(new URL(page).protocol)) return false;
  const command = browserCommand(environment, new URL(page).href);
  if (command === null) return false;
  const [program, ...args] = command;
  const child = spawn(program, args, { stdio: 'ignore', detached: true });
  child.on('error', () => undefined);
  child.unref();
  return true;
}

function browserCommand(environment: Environment, page: string): readonly [program: string, ...args: string[]] | null {
  const set = (name: string): boolean => (environment[name] ?? '') !== '';
  if (set('CI') || set('SSH_CONNECTION') || set('SSH_TTY')) return null;
  const named = environment['BROWSER'];
  if (named !== undefined && /^[\w./-]+$/.test(named)) return [named, page];
  if (process.platform === 'darwin') return ['open', page];
  if (process.platform === 'win32') return ['rundll32', 'url.dll,FileProtocolHandler', page];
  return set('DISPLAY') || set('WAYLAND_DISPLAY') ? ['xdg-open', page] : null;
}
