/** The service on what other providers of S3 are known to do otherwise: as docs/operating.md, Buckets of users says. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'vitest';
import { needs } from '../support/optional-suites.ts';
import { renderProviders } from './cells.ts';
import { tryProviders } from './matrix.ts';
import { PROVIDERS } from './rows.ts';

const DOCUMENT = path.resolve(import.meta.dirname, '../../docs/operating.md');

describe('A bucket of another provider', needs('versitygw'), () => {
  test('does what the table in the documentation says, and no cell of it fails', async (context) => {
    const rows = await tryProviders(context, PROVIDERS);
    const failures = rows.flatMap(({ provider, cells }) =>
      cells.flatMap((cell) => (cell.is === 'failed' ? [`${provider}: ${cell.why}`] : [])),
    );
    assert.deepEqual(failures, []);
    const [documented] = /^\| provider [^]*?\n(?!\|)/m.exec(await readFile(DOCUMENT, 'utf8')) ?? [''];
    assert.equal(documented, renderProviders(rows));
  });
});
