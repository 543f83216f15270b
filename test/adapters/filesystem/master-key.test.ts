/** The master key: given, or made once. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmod, readdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'node:test';
import { loadMasterKey } from '../../../adapters/filesystem/master-key.ts';
import { tempDir } from '../../support/temp-dir.ts';

describe('the master key', () => {
  test('is made once, durable and private, by however many processes start', async (context) => {
    const dataDir = path.join(await tempDir(context), 'new', 'data');
    const keys = await Promise.all(Array.from({ length: 10 }, () => loadMasterKey({ dataDir, given: undefined })));
    for (const key of keys) assert.deepEqual(key, keys[0]);
    assert.equal(keys[0]?.length, 32);
    assert.deepEqual(await loadMasterKey({ dataDir, given: undefined }), keys[0]);
    assert.deepEqual(await readdir(dataDir), ['master-key']);
    assert.equal((await stat(path.join(dataDir, 'master-key'))).mode & 0o777, 0o600);
  });

  test('can be given in hex or base64, and then no file is made', async (context) => {
    const dataDir = await tempDir(context);
    const key = randomBytes(32);
    for (const given of [
      key.toString('hex'),
      key.toString('base64'),
      key.toString('base64url'),
      `${key.toString('hex')}\n`,
    ]) {
      assert.deepEqual(Buffer.from(await loadMasterKey({ dataDir, given })), key);
    }
    assert.deepEqual(await readdir(dataDir), []);
  });

  test('is refused when it is none, without being shown', async (context) => {
    const dataDir = await tempDir(context);
    for (const given of ['', 'secret', randomBytes(31).toString('hex'), randomBytes(33).toString('base64')]) {
      await assert.rejects(loadMasterKey({ dataDir, given }), (error) => {
        assert.ok(error instanceof Error);
        return /32 bytes/.test(error.message) && (given === '' || !error.message.includes(given));
      });
    }
    await writeFile(path.join(dataDir, 'master-key'), 'cut off', { mode: 0o600 });
    await assert.rejects(loadMasterKey({ dataDir, given: undefined }), /master-key must hold 32 bytes/);
  });

  test('that others can read is refused', async (context) => {
    const dataDir = await tempDir(context);
    await loadMasterKey({ dataDir, given: undefined });
    await chmod(path.join(dataDir, 'master-key'), 0o644);
    await assert.rejects(loadMasterKey({ dataDir, given: undefined }), /can be read by others/);
  });
});
