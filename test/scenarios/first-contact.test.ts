/** What a person sees who starts the server for the first time, and what a program reads there instead. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, test } from 'vitest';
import { cleanUp } from '../support/cleanup.ts';
import { freePort } from '../support/free-port.ts';
import { noPseudoTerminal, startOnTerminal } from '../support/pseudo-terminal.ts';
import { skippedFor } from '../support/skipped.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

const MAIN = path.resolve(import.meta.dirname, '../../apps/server/main.ts');
const ESCAPE = '\u001b';

describe('A server that is started', () => {
  test(
    'on a terminal logs readable lines, and then says where it is, how to begin and where the data lie',
    skippedFor(noPseudoTerminal()),
    async (context) => {
      const shared = await sharedParts(context, 'postgres');
      const port = await freePort();
      const dataDir = await tempDir(context);
      const url = `http://localhost:${port}`;
      const terminal = startOnTerminal(context, [process.execPath, MAIN], {
        PATH: process.env['PATH'] ?? '',
        TERM: 'xterm-256color',
        ...shared.env,
        STRATA_PORT: String(port),
        STRATA_DATA_DIR: dataDir,
      });
      await terminal.until(/Data .*\r\n/);
      const [log = '', greeting = ''] = terminal.shown().replaceAll('\r\n', '\n').split('\n\n');
      assert.match(log, new RegExp(`INFO${ESCAPE}\\[39m: ${ESCAPE}\\[36mStrata is ready`));
      assert.doesNotMatch(log, /^\{/m);
      assert.deepEqual(
        greeting.split('\n').map((line) => line.trim().split(/ {2,}/)),
        [
          ['Address', url],
          ['First account', `${url}/sign-up`],
          ['Data', `${dataDir}, ${shared.env['STRATA_LAYERS_DIR']}, the PostgreSQL of STRATA_DATABASE_URL`],
        ],
      );
      assert.equal((await fetch(`${url}/readyz`)).status, 200);
      await terminal.interrupt();
      assert.match(terminal.shown(), /Stopped/);
    },
  );

  test(
    'on a terminal for the first time says in one line that it made the database',
    skippedFor(noPseudoTerminal()),
    async (context) => {
      const port = await freePort();
      const terminal = startOnTerminal(context, [process.execPath, MAIN], {
        PATH: process.env['PATH'] ?? '',
        TERM: 'dumb',
        STRATA_PORT: String(port),
        STRATA_DATA_DIR: await tempDir(context),
      });
      await terminal.until(/Data .*\r\n/);
      const [log = ''] = terminal.shown().replaceAll('\r\n', '\n').split('\n\n');
      // Two more say, as root, as whom PostgreSQL runs and where, and one where git's memory is bounded.
      const lines = log.split('\n').filter((line) => !/PostgreSQL|postgres|control group/.test(line));
      assert.equal(lines.length, 2, log);
      assert.match(lines[0] ?? '', /Made the database/);
      assert.match(lines[1] ?? '', /Strata is ready/);
      await terminal.interrupt();
    },
  );

  test('with its output piped writes one JSON object a line, and nothing else', async (context) => {
    const strata = await startNode(context, await sharedParts(context));
    await strata.stop();
    const lines = strata.log().trimEnd().split('\n');
    const messages = lines.map((line) => (JSON.parse(line) as { readonly msg: string }).msg);
    assert.ok(messages.includes('Strata is ready'));
    assert.equal(messages.at(-1), 'Stopped');
  });

  test('on a port that another program has says so and leaves no database running', async (context) => {
    const other = createServer();
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    cleanUp(context, () => other.close());
    const { port } = other.address() as AddressInfo;
    const dataDir = await tempDir(context);
    const env = { PATH: process.env['PATH'] ?? '', STRATA_PORT: String(port), STRATA_DATA_DIR: dataDir };
    const refused = await promisify(execFile)(process.execPath, [MAIN], { env }).catch((error: unknown) => error);
    assert.ok(refused instanceof Error && 'stderr' in refused);
    const why = `STRATA_PORT is ${port}, which another program uses on 127.0.0.1: end it, or choose another port\n`;
    assert.equal(refused.stderr, why);
    assert.equal(existsSync(path.join(dataDir, 'postgres/cluster/PG_VERSION')), true);
    assert.equal(existsSync(path.join(dataDir, 'postgres/cluster/postmaster.pid')), false);
  });
});
