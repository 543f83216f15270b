/** The master key: configured, or made once. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmod, readdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'vitest';
import { loadMasterKey } from '../../../adapters/filesystem/master-key.ts';
import { tempDir } from '../../support/temp-dir.ts';

describe('the master key', () => {
  test('is made once and private, however many callers need it at the same time', async (context) => {
    const dataDir = path.join(await tempDir(context), 'new', 'data');
    const keys = await Promise.all(Array.from({ length: 10 }, () => loadMasterKey({ dataDir, configured: undefined })));
    for (const key of keys) assert.deepEqual(key, keys[0]);
    assert.equal(keys[0]?.length, 32);
    assert.deepEqual(await loadMasterKey({ dataDir, configured: undefined }), keys[0]);
    assert.deepEqual(await readdir(dataDir), ['master-key']);
    assert.equal((await stat(path.join(dataDir, 'master-key'))).mode & 0o777, 0o600);
  });

  test('can be configured in hex or base64, and then no file is made', async (context) => {
    const dataDir = await tempDir(context);
    const key = randomBytes(32);
    for (const configured of [
      key.toString('hex'),
      key.toString('base64'),
      key.toString('base64url'),
      `${key.toString('hex')}\n`,
    ]) {
      assert.deepEqual(Buffer.from(await loadMasterKey({ dataDir, configured })), key);
    }
    assert.deepEqual(await readdir(dataDir), []);
  });

  test('is refused when the text is no key, and the error does not show the text', async (context) => {
    const dataDir = await tempDir(context);
    for (const configured of ['', 'secret', randomBytes(31).toString('hex'), randomBytes(33).toString('base64')]) {
      await assert.rejects(loadMasterKey({ dataDir, configured }), (error) => {
        assert.ok(error instanceof Error);
        return /32 bytes/.test(error.message) && (configured === '' || !error.message.includes(configured));
      });
    }
    await writeFile(path.join(dataDir, 'master-key'), 'cut off', { mode: 0o600 });
    await assert.rejects(loadMasterKey({ dataDir, configured: undefined }), /master-key must hold 32 bytes/);
  });

  test('that others can read is refused', async (context) => {
    const dataDir = await tempDir(context);
    await loadMasterKey({ dataDir, configured: undefined });
    await chmod(path.join(dataDir, 'master-key'), 0o644);
    await assert.rejects(loadMasterKey({ dataDir, configured: undefined }), /can be read by others/);
  });
});
