/** A program on a pseudo-terminal, made by script(1) of util-linux. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { cleanUp, type Ending } from './cleanup.ts';

const WAIT_MS = 60_000;

/** Returns why no pseudo-terminal can be made here, or false. Other systems have a `script` of another form. */
export function noPseudoTerminal(): string | false {
  const { stdout } = spawnSync('script', ['--version'], { encoding: 'utf8' });
  return typeof stdout === 'string' && stdout.includes('util-linux') ? false : 'script(1) of util-linux is not here';
}

export interface PseudoTerminal {
  /** What the program has written, with the line ends of a terminal. */
  shown(): string;
  until(pattern: RegExp): Promise<void>;
  type(keys: string): void;
  /** Presses Ctrl-C and waits for the end. */
  interrupt(): Promise<void>;
}

/** Starts a program with its arguments on a pseudo-terminal; it ends with the test. */
export function startOnTerminal(
  context: Ending,
  command: readonly string[],
  env: Readonly<Record<string, string>>,
): PseudoTerminal {
  const quoted = command.map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`).join(' ');
  const args = ['--quiet', '--flush', '--return', '--command', `exec ${quoted}`, '/dev/null'];
  const child = spawn('script', args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  let shown = '';
  child.stdout.on('data', (chunk: Buffer) => {
    shown += chunk.toString('utf8');
  });
  // It may end by itself just before it is interrupted.
  child.stdin.on('error', () => undefined);
  const interrupt = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.stdin.write('\u0003');
    await exited;
  };
  cleanUp(context, interrupt);
  return {
    shown: () => shown,
    until: async (pattern) => {
      const deadline = Date.now() + WAIT_MS;
      while (!pattern.test(shown)) {
        if (Date.now() > deadline || child.exitCode !== null) throw new Error(`It did not show ${pattern}:\n${shown}`);
        await sleep(20);
      }
    },
    type: (keys) => void child.stdin.write(keys),
    interrupt,
  };
}
